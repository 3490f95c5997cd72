"""Signing in: limited by name and address, silent about who exists, safe about where it leads."""

import time

import pytest
from django.core import mail
from django.test import Client

from projects.models import SignInCount, User
from projects.sign_in import may_try
from tests import builders

pytestmark = pytest.mark.django_db


def attempt(client, username, password, **headers):
    return client.post("/login/", {"username": username, "password": password}, **headers)


def test_the_right_password_signs_in():
    builders.person("alice")
    response = attempt(Client(), "alice", builders.PASSWORD)
    assert (response.status_code, response["Location"]) == (302, "/")


def test_the_sixth_try_in_a_minute_is_refused_even_with_the_right_password():
    builders.person("alice")
    client = Client()
    for _ in range(5):
        assert attempt(client, "alice", "wrong").status_code == 200
    limited = attempt(Client(), "Alice", builders.PASSWORD)
    assert (limited.status_code, limited["Retry-After"]) == (429, "60")
    assert "Too many tries" in limited.content.decode()


def test_the_limit_is_for_one_name_from_one_address():
    builders.person("alice")
    builders.person("bob")
    for _ in range(6):
        attempt(Client(), "alice", "wrong")
    assert attempt(Client(), "bob", builders.PASSWORD).status_code == 302
    elsewhere = attempt(Client(), "alice", builders.PASSWORD, REMOTE_ADDR="192.0.2.7")
    assert elsewhere.status_code == 302


def test_tried_names_are_not_stored_in_clear():
    may_try("alice", "192.0.2.7")
    assert "alice" not in str(SignInCount.objects.values().get())


def test_unknown_names_and_wrong_passwords_read_the_same_and_last_the_same(settings):
    settings.PASSWORD_HASHERS = settings.PASSWORD_HASHERS[1:]
    builders.person("alice")
    closed = builders.person("carol")
    closed.is_active = False
    closed.save()
    pages, lasted_s = set(), []
    for username in ("alice", "nobody", "carol"):
        started = time.perf_counter()
        client = Client()
        page = attempt(client, username, "wrong").content.decode()
        lasted_s.append(time.perf_counter() - started)
        assert "Please enter a correct username and password" in page
        pages.add(page.count("alert"))
    assert len(pages) == 1
    assert max(lasted_s) < 5 * min(lasted_s)


def test_a_foreign_next_address_is_not_followed():
    builders.person("alice")
    body = {"username": "alice", "password": builders.PASSWORD, "next": "//evil.example/"}
    assert Client().post("/login/", body)["Location"] == "/"


def test_signing_out_ends_the_session():
    client = builders.signed_in(builders.person())
    assert client.get("/tokens/").status_code == 200
    assert client.get("/logout/").status_code == 405
    client.post("/logout/")
    assert client.get("/tokens/").status_code == 302


def test_a_closed_account_is_out_at_once():
    user = builders.person()
    client = builders.signed_in(user)
    User.objects.update(is_active=False)
    assert client.get("/tokens/").status_code == 302


def test_a_lost_password_is_set_by_the_link_of_the_mail():
    builders.person("alice")
    Client().post("/password/reset/", {"email": "alice@example.org"})
    link = next(word for word in mail.outbox[0].body.split() if "/password/reset/" in word)
    client = Client()
    page = client.get(link, follow=True)
    new = "quite another password"
    client.post(page.redirect_chain[-1][0], {"new_password1": new, "new_password2": new})
    assert attempt(Client(), "alice", new).status_code == 302


def test_asking_for_a_reset_does_not_tell_who_exists():
    builders.person("alice")
    answers = {
        Client().post("/password/reset/", {"email": email}, follow=True).content.decode()[:200]
        for email in ("alice@example.org", "nobody@example.org")
    }
    assert len(answers) == 1
    assert len(mail.outbox) == 1


@pytest.mark.parametrize("theme", ["light", "dark", "system"])
def test_the_theme_is_kept_in_a_cookie(theme):
    response = Client().post("/settings/theme/", {"theme": theme, "next": "/login/"})
    assert response["Location"] == "/login/"
    cookie = response.cookies["theme"]
    assert (cookie.value, cookie["samesite"]) == (theme, "Lax")


def test_an_unknown_theme_and_a_foreign_address_change_nothing():
    body = {"theme": "<script>", "next": "https://evil.example/"}
    response = Client().post("/settings/theme/", body)
    assert "theme" not in response.cookies
    assert response["Location"] == "/"

"""Bad bodies are answered 4xx with a code and a sentence, store nothing, and never crash."""

import json

import pytest
from django.db import OperationalError

from projects import services
from projects.models import Project
from projects.records import OrganisationRole, Scope
from tests import builders

pytestmark = pytest.mark.django_db
PROJECTS = "/api/v1/projects"


def post(body, content_type="application/json", **headers):
    client = builders.with_token(builders.token(Scope.ADMIN_ORG))
    return client.generic("POST", PROJECTS, body, content_type=content_type, headers=headers)


def wish(**changes):
    return json.dumps({"slug": "moe", "name": "MoE", **changes}).encode()


def named(raw):
    """A body whose name is these raw bytes of JSON."""
    return b'{"slug": "moe", "name": ' + raw + b"}"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"[" * 2000, "too_deep"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "too_deep"),
        (named(b"1" * 5000), "number"),
        (named(b"NaN"), "number"),
        (named(b"-Infinity"), "number"),
        (named(b"1e999"), "number"),
        (b'{"slug": "a", "slug": "b", "name": "x"}', "duplicate_key"),
        (named(b'"\\u0000"'), "encoding"),
        (named(b'"\\ud800"'), "encoding"),
        (named(b'["\\ud800"]'), "encoding"),
        (b"\xef\xbb\xbf" + wish(), "encoding"),
        (wish().decode().encode("utf-16"), "encoding"),
        (b'{"slug": "\xff"}', "encoding"),
        (b"   ", "empty"),
        (b"{", "not_json"),
        (b'{"slug": "a" "b"}', "not_json"),
        (b"[]", "invalid"),
        (b"", "required"),
        (wish(colour="red"), "unknown_field"),
        (wish(starts_on="31/02/2026"), "invalid"),
        (wish(currency="usd"), "invalid"),
        (wish(slug="a b"), "invalid"),
        (wish(name="n" * 201), "max_length"),
        (wish(name=True), "invalid"),
    ],
)
def test_a_bad_body_is_refused_with_its_code(body, code):
    response = post(body)
    assert response.status_code == 400, response.content
    assert response.json()["code"] == code
    assert response.json()["message"]
    assert Project.objects.count() == 0


def test_brackets_inside_texts_are_no_depth():
    assert post(wish(description="[" * 500 + '\\"{')).status_code == 201


def test_pairs_of_half_characters_are_one_character():
    assert post(b'{"slug": "moe", "name": "\\ud83d\\ude00"}').status_code == 201
    assert Project.objects.get().name == "😀"


def test_a_body_over_the_limit_is_refused_as_json():
    response = post(wish(description="x" * (5 * 1024 * 1024)))
    assert (response.status_code, response.json()["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    ("content_type", "headers"),
    [
        ("application/json; charset=bz2_codec", {}),
        ("application/json; charset=utf-16", {}),
        ("application/json", {"content-encoding": "gzip"}),
        ("text/plain", {}),
        ("application/x-www-form-urlencoded", {}),
    ],
)
def test_an_unsupported_wrapping_is_refused(content_type, headers):
    response = post(wish(), content_type, **headers)
    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")


def test_a_refusal_names_the_field():
    assert post(wish(currency="euro")).json()["field"] == "currency"


def test_all_wrong_fields_are_named_together():
    errors = post(b"{}").json()["errors"]
    assert {error["field"] for error in errors} == {"slug", "name"}


def test_a_project_address_that_is_taken_is_refused():
    builders.project("moe")
    response = post(wish())
    assert (response.status_code, response.json()["field"]) == (400, "slug")


@pytest.mark.parametrize("raised", [OperationalError("SELECT secret"), RuntimeError("/etc/passwd")])
def test_trouble_on_our_side_tells_no_secret(monkeypatch, raised):
    def fail(*args, **kwargs):
        raise raised

    monkeypatch.setattr(services, "create_project", fail)
    response = post(wish())
    is_database = isinstance(raised, OperationalError)
    assert response.status_code == (503 if is_database else 500)
    assert ("Retry-After" in response) == is_database
    assert "secret" not in response.content.decode()
    assert "passwd" not in response.content.decode()


def test_unknown_addresses_and_methods_are_json():
    client = builders.with_token(builders.token(Scope.ADMIN_ORG))
    assert client.get("/api/v1/projects/nothing/").json()["code"] == "not_found"
    assert client.put(PROJECTS).json()["code"] == "method_not_allowed"


@pytest.mark.parametrize("address", ["/energy/?project=%00", "/api/v1/projects?x=a%00b"])
def test_a_nul_in_a_query_is_refused(address):
    assert builders.signed_in(builders.person("ada")).get(address).status_code == 400


def test_a_browser_needs_the_csrf_token_to_write():
    user = builders.person(role=OrganisationRole.ADMIN)
    client = builders.signed_in(user)
    client.handler.enforce_csrf_checks = True
    refused = client.post(PROJECTS, wish(), content_type="application/json")
    assert refused.status_code == 403
    assert client.post("/people/", {"username": "x"}).status_code == 403
    assert client.post("/settings/theme/", {"theme": "dark"}).status_code == 403
    client.get("/people/")
    token = client.cookies["csrftoken"].value
    headers = {"x-csrftoken": token}
    made = client.post(PROJECTS, wish(), content_type="application/json", headers=headers)
    assert made.status_code == 201


def test_a_door_that_does_not_exist_answers_in_json(client):
    for method in (client.get, client.post):
        answer = method("/api/v1/no-such-door")
        assert answer.status_code == 404
        assert answer.json()["code"] == "not_found"

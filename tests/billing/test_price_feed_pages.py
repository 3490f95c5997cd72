"""The page of price feeds: who may connect, what a refresh shows, what a refusal says."""

import pytest
from django.urls import reverse

from billing.models import Price, PriceBook
from billing.services import ask_for_refresh
from jobs.services import run_job
from projects.records import OrganisationRole
from tests import builders
from tests.billing.builders import operator
from tests.billing.price_servers import aws_price_list, p5

pytestmark = pytest.mark.django_db
WISH = {
    "feed": "aws",
    "book": "AWS list",
    "regions": "us-east-1, us-west-2",
    "services": ["accelerators"],
}


@pytest.fixture
def aws(monkeypatch):
    with aws_price_list(p5()) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_PRICING", server.address)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        yield server


@pytest.fixture
def admin():
    return builders.signed_in(builders.person("admin", role=OrganisationRole.ADMIN))


def prices_page(client) -> str:
    return client.get(reverse("prices")).content.decode()


def refresh_now() -> None:
    run_job(ask_for_refresh(operator(), PriceBook.objects.get(feed="aws")))


def test_connecting_makes_a_book_asks_for_a_reading_and_shows_its_progress(admin, aws):
    answer = admin.post(reverse("price_feed_new"), WISH)

    assert answer.status_code == 302
    book = PriceBook.objects.get()
    assert (book.name, book.feed) == ("AWS list", "aws")
    assert book.feed_settings["regions"] == ["us-east-1", "us-west-2"]
    shown = prices_page(admin)
    assert "AWS list" in shown
    assert reverse("job_progress", args=[book.feed_settings["job"]]) in shown


def test_a_reading_shows_its_counts_and_what_was_left_out(admin, aws):
    admin.post(reverse("price_feed_new"), WISH)
    aws.products[0]["product"]["attributes"]["gpu"] = "4"
    aws.products.append(p5())
    refresh_now()

    shown = prices_page(admin)

    assert Price.objects.count() == 1
    assert "machines with another count of accelerators" in shown
    assert "$6.88" in shown


def test_a_refusal_is_shown_with_the_missing_permission(admin, aws):
    admin.post(reverse("price_feed_new"), WISH)
    aws.faults = ["AccessDeniedException"]
    refresh_now()

    assert "pricing:GetProducts" in prices_page(admin)


def test_a_wrong_wish_is_told_at_its_field(admin):
    for changed in ({"regions": " , "}, {"book": "Shipped list"}, {"feed": "azure"}):
        answer = admin.post(reverse("price_feed_new"), {**WISH, **changed})
        assert answer.status_code == 200
        assert next(iter(changed)) in answer.context["form"].errors
    assert not PriceBook.objects.exists()


def test_a_member_sees_feeds_without_their_errors_and_cannot_change_them(admin, aws):
    admin.post(reverse("price_feed_new"), WISH)
    aws.faults = ["AccessDeniedException"]
    refresh_now()
    book = PriceBook.objects.get()
    member = builders.signed_in(builders.person("moe"))

    shown = prices_page(member)
    assert "AWS list" in shown
    assert "pricing:GetProducts" not in shown
    assert member.get(reverse("price_feed_new")).status_code == 403
    for name in ("price_feed_refresh", "price_feed_disconnect"):
        assert member.post(reverse(name, args=[book.pk])).status_code == 403


def test_refreshing_and_disconnecting_by_button(admin, aws):
    admin.post(reverse("price_feed_new"), WISH)
    book = PriceBook.objects.get()
    assert admin.post(reverse("price_feed_refresh", args=[book.pk])).status_code == 302
    assert admin.post(reverse("price_feed_disconnect", args=[book.pk])).status_code == 302
    assert PriceBook.objects.get().feed == ""
    assert admin.post(reverse("price_feed_refresh", args=[book.pk])).status_code == 404
    assert admin.post(reverse("price_feed_disconnect", args=[book.pk])).status_code == 404


def test_a_feed_of_another_organisation_is_not_found(admin, aws):
    admin.post(reverse("price_feed_new"), WISH)
    outsider = builders.signed_in(
        builders.person("charlie", role=OrganisationRole.ADMIN, of=builders.organisation("other"))
    )
    book = PriceBook.objects.get()
    assert outsider.post(reverse("price_feed_refresh", args=[book.pk])).status_code == 404
    assert "AWS list" not in prices_page(outsider)

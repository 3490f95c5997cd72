"""A month that arrives in parts loses none of them: a later part asks, or says that it adds."""

from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError
from django.urls import reverse

from billing.documents import is_in_force
from billing.models import Delivery
from billing.services import IncomingFile, NewDelivery, receive_files
from jobs.services import run_job
from projects.records import OrganisationRole
from tests.billing.builders import costing, focus_csv, imported, operator, total
from tests.builders import person, signed_in

pytestmark = pytest.mark.django_db


def on_day(day: int, amount: str) -> dict[str, str]:
    return costing(
        amount,
        ChargePeriodStart=f"2026-05-{day:02}T00:00:00Z",
        ChargePeriodEnd=f"2026-05-{day:02}T01:00:00Z",
    )


FIRST = focus_csv([on_day(1, "1.10"), on_day(2, "2")])
SECOND = focus_csv([on_day(3, "3"), on_day(4, "4.5"), on_day(5, "5")])


def added(content: bytes) -> Delivery:
    receipt = receive_files(
        operator(),
        NewDelivery(
            source_name="aws",
            files=[IncomingFile(name="part.csv", chunks=[content])],
            adds=True,
        ),
    )
    run_job(receipt.job_id)
    return Delivery.objects.get(pk=receipt.delivery_id)


def test_a_second_part_never_silently_deletes_the_first():
    imported(FIRST)

    delivery = imported(SECOND)

    assert delivery.state == Delivery.State.NEEDS_CONFIRMATION
    assert delivery.report["shrinking"][0]["days_lost"] == ["2026-05-01", "2026-05-02"]
    assert total() == Decimal("3.10")


def test_a_part_that_says_so_adds_its_rows_and_repeats_change_nothing():
    imported(FIRST)

    assert added(SECOND).state == Delivery.State.PUBLISHED
    assert total() == Decimal("15.60")

    added(SECOND)
    imported(FIRST)
    assert total() == Decimal("15.60")


def test_the_whole_month_replaces_its_parts():
    imported(FIRST)
    added(SECOND)

    whole = [on_day(day, "1") for day in range(1, 6)]
    delivery = imported(focus_csv(whole))

    assert delivery.state == Delivery.State.PUBLISHED
    assert total() == 5


def test_a_waiting_part_is_added_from_its_page_or_by_a_second_word():
    imported(FIRST)
    delivery = imported(SECOND)
    client = signed_in(person(role=OrganisationRole.ADMIN))

    client.post(reverse("import_decide", args=[delivery.pk]), {"decision": "add"})
    run_job(Delivery.objects.get(pk=delivery.pk).job_id)

    assert total() == Decimal("15.60")


def test_a_waiting_part_is_added_when_it_is_handed_in_again_as_one():
    imported(FIRST)
    imported(SECOND)

    assert added(SECOND).state == Delivery.State.PUBLISHED
    assert total() == Decimal("15.60")


def test_a_declared_month_is_the_providers_whole_word():
    imported(FIRST)

    delivery = imported(SECOND, periods=["2026-05"])

    assert delivery.state == Delivery.State.PUBLISHED
    assert total() == Decimal("12.5")


def test_files_that_add_name_no_month():
    with pytest.raises(ValidationError):
        receive_files(
            operator(),
            NewDelivery(
                source_name="aws",
                files=[IncomingFile(name="part.csv", chunks=[FIRST])],
                periods=["2026-05"],
                adds=True,
            ),
        )


def test_the_same_bytes_from_another_source_are_named():
    imported(FIRST, source="aws")

    delivery = imported(FIRST, source="default")

    assert delivery.report["also_from"] == ["aws"]


def handed_in(content: bytes, *, again: bool = False) -> Delivery:
    receipt = receive_files(
        operator(),
        NewDelivery(
            source_name="aws",
            files=[IncomingFile(name="x.csv", chunks=[content])],
            again=again,
            confirm_shrink=True,
        ),
    )
    run_job(receipt.job_id)
    return Delivery.objects.get(pk=receipt.delivery_id)


def test_earlier_bytes_stay_replaced_unless_somebody_puts_them_back():
    old, new = focus_csv([on_day(1, "101")]), focus_csv([on_day(1, "61")])
    handed_in(old)
    handed_in(new)

    assert is_in_force(handed_in(old)) is False
    assert total() == 61

    assert is_in_force(handed_in(old, again=True)) is True
    assert total() == 101


def test_rows_that_a_whole_month_drops_are_named():
    may = [on_day(1, "1") for _ in range(60)]
    april = {
        "BillingPeriodStart": "2026-04-01T00:00:00Z",
        "BillingPeriodEnd": "2026-05-01T00:00:00Z",
    }
    april |= {
        "ChargePeriodStart": "2026-04-02T00:00:00Z",
        "ChargePeriodEnd": "2026-04-03T00:00:00Z",
    }
    handed_in(focus_csv([*may, costing("0.5", **april)]))

    whole = handed_in(focus_csv([costing("2", **april) for _ in range(60)]))

    assert total() == 180
    (dropped,) = whole.report["dropped"]
    assert (dropped["period"], dropped["rows"]) == ("2026-04", 1)

"""What a bill told of is not accrued again: long after it, and where it counts no hours."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from planning.accruals import accruals_of
from planning.selectors import burndown_of
from tests.planning.test_variance_join import bill, charged, compute, main_run
from tests.runs.builders import DAY, T0, assign, make_run, the_project

pytestmark = pytest.mark.django_db

LAST_DAYS = {
    "ChargePeriodStart": "2026-09-15T00:00:00Z",
    "ChargePeriodEnd": "2026-09-16T00:00:00Z",
}


@pytest.mark.parametrize("later", [0, 200])
def test_what_was_billed_long_ago_is_not_accrued_again(later: int) -> None:
    main_run()
    bill(compute("478.40"), compute("478.40", **LAST_DAYS))
    found = accruals_of(the_project(), as_of=timezone.now() + later * DAY, currency="USD")
    assert found.settled_through == T0.date()
    assert found.days == ()


def test_hours_after_a_bill_of_long_ago_are_accrued() -> None:
    main_run()
    bill(compute("478.40"), compute("478.40", **LAST_DAYS))
    assign(make_run("again"), T0 + 40 * DAY, T0 + 41 * DAY)
    found = accruals_of(the_project(), as_of=timezone.now() + 200 * DAY, currency="USD")
    assert [(one.day, one.quantity) for one in found.days] == [
        (T0.date() + timedelta(days=40), Decimal(192))
    ]


def test_a_bill_that_counts_no_hours_is_no_reason_to_accrue_its_days() -> None:
    main_run()
    rented = {"SkuMeter": "BoxUsage:p5.48xlarge", "ConsumedQuantity": "", "ConsumedUnit": ""}
    bill(charged("500", **rented, PricingQuantity="", PricingUnit=""))
    assign(make_run("again"), T0 + 3 * DAY, T0 + 4 * DAY)
    found = accruals_of(the_project(), as_of=timezone.now(), currency="USD")
    assert found.settled_through == T0.date()
    assert [one.day for one in found.days] == [T0.date() + timedelta(days=3)]


def test_the_first_day_of_the_calendar_has_no_bills_and_no_error() -> None:
    main_run()
    bill(compute("478.40"))
    found = burndown_of(the_project(), as_of=datetime(1, 1, 1, tzinfo=UTC))
    assert (found.actual_cost, found.accrued_cost, found.through) == (None, 0, None)

"""What was charged to a line of the plan: as known at an instant, whole or not at all."""

from datetime import datetime
from decimal import Decimal

import pytest
from django.utils import timezone

from billing.allocation_wishes import TargetWish
from planning.selectors import burndown_of
from tests.billing.builders import focus_csv, hand_in, in_force, rule
from tests.planning.test_variance_join import approve, compute, main_run
from tests.runs.builders import DAY, T0, the_project

pytestmark = pytest.mark.django_db


def charged_to_the_main_run() -> None:
    """A baseline, and a rule that gives the account's charges to its main run."""
    approve()
    main_run()
    target = TargetWish(project="moe", plan_line_key="main_run")
    in_force(rule("sub_account", "222222222222", "moe", targets=[target]))
    hand_in(focus_csv([compute("478.40")]))


def spent_on_the_main_run(as_of: datetime) -> Decimal | None:
    earned = burndown_of(the_project(), as_of=as_of).earned
    assert earned is not None
    return next(line.actual for line in earned.money.lines if line.key == "main_run")


def test_a_bill_that_came_later_was_not_known_of_a_line_either() -> None:
    charged_to_the_main_run()
    assert spent_on_the_main_run(timezone.now()) == Decimal("478.40")
    assert spent_on_the_main_run(T0 + 3 * DAY) is None


def test_a_line_with_charges_in_two_currencies_has_no_partial_sum() -> None:
    charged_to_the_main_run()
    hand_in(focus_csv([compute("368", BillingCurrency="EUR")]), source="other")
    assert spent_on_the_main_run(timezone.now()) is None

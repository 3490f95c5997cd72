"""A variance from real doors: bills, power readings, progress and assignments of a project."""

import json
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from billing.services import add_exchange_rate
from carbon.configuration import apply
from formulae.variance import Cause
from planning.line_changes import remove_line
from planning.selectors import burndown_of
from planning.services import approve_plan, draft_plan
from planning.variance import variance_of
from planning.variance_records import Against, Variance, VarianceNote
from projects.records import OrganisationRole
from runs.progress_records import EventKind
from runs.records import RunRecord
from tests.billing.builders import costing, focus_csv, hand_in, in_force, rule
from tests.billing.price_builders import rate_wish
from tests.builders import person, signed_in
from tests.carbon.builders import INTERVALS, imported, instant, operator, write_csv
from tests.planning.builders import make_choice, make_estimate
from tests.planning.variance_builders import of, untold
from tests.runs.builders import DAY, HOUR, T0, assign, event, make_run, record, steps, the_project

pytestmark = pytest.mark.django_db

# 8 accelerators for 23 h: 12 h of steps, 2 h down, 9 h of steps, each of 10 s.
TOKENS_PER_STEP, STEPS = 5_000_000, 21 * 360
TOKENS_PLANNED = 60 * 10**9
# 6 N D / (989.4 TFLOP/s * 55 % * 3600 s) for the tokens that were trained
PLANNED_H = 6e9 * TOKENS_PER_STEP * STEPS / (989.4e12 * 0.55 * 3600)
MILLIJOULE_AN_HOUR = 2_340_000_000  # 0.65 kW


def approve() -> None:
    """The baseline: 60 billion tokens on 8 accelerators at $2.50, and the contingency."""
    estimate = make_estimate(
        operator(),
        model={"params": 1e9},
        tokens=TOKENS_PLANNED,
        accelerator_count=8,
        host_factor=1.0,
        pue=1.2,
    )
    draft = draft_plan(operator(), the_project(), estimate, make_choice(starts_on=T0.date()))
    for key in ("experiments", "preprocessing", "distillation", "evaluation"):
        remove_line(operator(), draft, key)
    approve_plan(operator(), draft, as_of=T0)


def main_run() -> RunRecord:
    run = make_run(tokens_planned=TOKENS_PLANNED, tokens_per_step=TOKENS_PER_STEP)
    assign(run, T0, T0 + 23 * HOUR)
    return run


def progress(run: RunRecord) -> None:
    told = [
        event(EventKind.STOP, T0 + 12 * HOUR),
        event(EventKind.RESTART, T0 + 14 * HOUR, to_step=4320),
    ]
    points = [
        *steps(0, 4320, at=T0, tokens_total=None),
        *steps(4380, STEPS, at=T0 + timedelta(hours=14, minutes=10), tokens_total=None),
    ]
    record(run, points, told, now=T0 + 2 * DAY)


def charged(amount: str, **columns: str) -> dict[str, str]:
    """A charge of the day of the run."""
    return {
        **costing(amount),
        "BillingPeriodStart": "2026-09-01T00:00:00Z",
        "BillingPeriodEnd": "2026-10-01T00:00:00Z",
        "ChargePeriodStart": "2026-09-14T00:00:00Z",
        "ChargePeriodEnd": "2026-09-15T00:00:00Z",
        **columns,
    }


def compute(amount: str, **columns: str) -> dict[str, str]:
    """23 hours of a server of eight."""
    sku = {"SkuMeter": "BoxUsage:p5.48xlarge", "ConsumedQuantity": "23"}
    return charged(amount, **sku, **columns)


def stored_data(amount: str) -> dict[str, str]:
    return charged(
        amount,
        ServiceName="Amazon Simple Storage Service",
        ServiceCategory="Storage",
        ServiceSubcategory="",
        SkuMeter="TimedStorage-ByteHrs",
        ConsumedUnit="GB-Months",
    )


def bill(*rows: dict[str, str]) -> None:
    """Charges of the project."""
    the_project()
    in_force(rule("sub_account", "222222222222", "moe"))
    hand_in(focus_csv(rows))


def bill_of_the_day() -> None:
    """$2.60 an hour and $12 of storage."""
    bill(compute("478.40"), stored_data("12"))


def power(folder: Path) -> None:
    """0.65 kW of each accelerator, metered, in a hall of another PUE and grid than planned."""
    rows = [
        (
            instant(T0 + hour * HOUR),
            instant(T0 + (hour + 1) * HOUR),
            f"GPU-{device}",
            str(MILLIJOULE_AN_HOUR),
        )
        for hour in range(23)
        for device in range(8)
    ]
    imported(write_csv(folder / "power.csv", INTERVALS, rows), now=T0 + 2 * DAY)
    factors = {"host_factor": 1.0, "pue": 1.3, "grid_g_per_kwh": 300}
    apply(operator(), {"sites": [{"slug": "hall-1", "factors": factors}]})


def variance(**options: Any) -> Variance:
    found = variance_of(the_project(), as_of=timezone.now(), **options)
    assert found is not None
    return found


def cost(found: Variance, cause: Cause) -> float | None:
    amount = of(found, cause).cost
    return None if amount is None else float(amount)


@pytest.mark.parametrize(
    "order", [("bill", "power", "progress"), ("progress", "power", "bill")], ids=" ".join
)
def test_each_cause_is_what_was_worked_by_hand_in_whatever_order_facts_arrive(
    order: tuple[str, ...], tmp_path: Path
) -> None:
    approve()
    run = main_run()
    doors: dict[str, Callable[[], None]] = {
        "bill": bill_of_the_day,
        "power": lambda: power(tmp_path),
        "progress": lambda: progress(run),
    }
    for door in order:
        doors[door]()
    found = variance()
    assert found.against is Against.WORK_DONE
    assert found.notes == ()
    assert float(found.cost.planned or 0) == pytest.approx(PLANNED_H * 2.5)
    assert found.cost.actual == Decimal("490.40")
    costs = {one.cause: float(one.cost or 0) for one in found.causes if one.cost}
    assert costs == pytest.approx(
        {
            Cause.EFFICIENCY: (168 - PLANNED_H) * 2.5,
            Cause.DOWN: 16 * 2.5,
            Cause.PRICE: 184 * 0.10,
            Cause.STORAGE: 12,
        }
    )
    used_kwh = 184 * 0.65
    assert float(found.facility_energy_kwh.planned or 0) == pytest.approx(PLANNED_H * 0.65 * 1.2)
    assert float(found.facility_energy_kwh.actual or 0) == pytest.approx(used_kwh * 1.3)
    assert float(of(found, Cause.PUE).facility_energy_kwh or 0) == pytest.approx(used_kwh * 0.1)
    intensity = of(found, Cause.CARBON_INTENSITY)
    assert float(intensity.kgco2e or 0) == pytest.approx(used_kwh * 1.3 * -0.1)
    down = of(found, Cause.DOWN).opens
    assert (down.buckets, down.run_ids) == (("down",), (run.run_id,))
    assert [(one.day, one.accelerator_h) for one in down.days] == [(T0.date(), Decimal(16))]
    _agrees_with_the_burn_down(found)


def _agrees_with_the_burn_down(found: Variance) -> None:
    earned = burndown_of(the_project(), as_of=timezone.now()).earned
    assert earned is not None
    assert found.cost.actual == earned.money.actual
    assert found.cost.difference == earned.money.reserve_drawn
    assert found.reserve == earned.money.reserve > 0


def test_a_rate_that_moved_is_currency_and_no_price() -> None:
    """184 h at 2 EUR: 1.25 USD when the plan was approved, 1.30 at the end of the month."""
    approve()
    progress(main_run())
    bill(compute("368", BillingCurrency="EUR"))
    unknown = variance()
    assert unknown.cost.actual is None
    assert untold(unknown) == set(Cause)
    assert VarianceNote.RATE_MISSING in unknown.notes
    for day, rate in (("2026-09-11", "1.25"), ("2026-09-30", "1.30")):
        add_exchange_rate(operator(), rate_wish(rate, base="EUR", quote="USD", on=day))
    found = variance()
    assert cost(found, Cause.PRICE) == pytest.approx(0, abs=1e-9)
    assert cost(found, Cause.CURRENCY) == pytest.approx(368 * 0.05)
    assert found.cost.actual == Decimal("478.40")


def test_without_a_bill_the_hours_that_ran_are_accrued_and_explained() -> None:
    """What is accrued has no price of its own yet, so the shipped list's stands for it."""
    approve()
    progress(main_run())
    found = variance()
    assert found.cost.actual is not None
    assert cost(found, Cause.DOWN) == pytest.approx(16 * 2.5)
    assert cost(found, Cause.UNEXPLAINED) == 0


def test_the_command_and_the_door_tell_the_same() -> None:
    approve()
    progress(main_run())
    out = StringIO()
    call_command("variance", "--project", "moe", "--json", stdout=out)
    told = json.loads(out.getvalue())
    alice = person(role=OrganisationRole.ADMIN)
    answer = signed_in(alice).get("/api/v1/projects/moe/variance")
    assert answer.json()["causes"] == told["causes"]
    causes = {one["cause"]: one for one in told["causes"]}
    assert list(causes) == [cause.value for cause in Cause]
    assert Decimal(causes["down"]["cost"]) == pytest.approx(Decimal(40))
    assert causes["down"]["opens"]["buckets"] == ["down"]
    words = StringIO()
    call_command("variance", "--project", "moe", stdout=words)
    assert "down                       40.00 USD" in words.getvalue()


def test_without_a_baseline_there_is_nothing_to_compare() -> None:
    main_run()
    assert variance_of(the_project(), as_of=timezone.now()) is None
    out = StringIO()
    call_command("variance", "--project", "moe", "--json", stdout=out)
    assert json.loads(out.getvalue()) == {"baseline": None, "causes": []}

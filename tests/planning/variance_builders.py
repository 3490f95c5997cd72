"""A worked plan, half done, and what it used: records by hand for the tests of its variance."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID, uuid4

from carbon.records import EmissionSummary
from formulae.drivers import Cause
from formulae.money import exact_sum
from formulae.time_ledger import HOUR_MICROSECOND, Bucket
from planning.earned import Spending, earned_states
from planning.earned_records import LineProgress, Method, WorkDone
from planning.expenses import Expenses
from planning.records import Burndown, BurndownDay, CostGroup, LineBase, PlanLineRecord, PlanRecord
from planning.used_time import UsedTime
from planning.variance import Known, build_variance
from planning.variance_drivers import Assumed
from planning.variance_records import CauseDetail, Variance
from runs.records import RunRecord

START, DAYS = date(2026, 9, 14), 10
THROUGH = START + timedelta(days=4)  # half of the days
TOKENS = 100 * 10**9
# 1000 h of the main run at $2.50, nine tenths of them useful, 0.65 kW, PUE 1.2, 400 g/kWh; twice
# the hours of the useful half are 450 useful ones of 500.
LINES = {
    "main_run": "2500",
    "experiments": "500",
    "storage_warm": "40",
    "requests_get": "10",
    "transfer_egress": "20",
    "service_logging": "6",
    "contingency": "600",
}
PROGRAMME = ("main_run", "experiments", "contingency")
ASSUMED = Assumed(
    accelerator_h=Fraction(1000),
    goodput=Fraction(9, 10),
    tokens=TOKENS,
    flop_per_token=Fraction(6 * 10**9),
    peak_flop_per_s=Fraction(10**15),
    accelerator_kwh=Fraction(650),
    it_kwh=Fraction(650),
    facility_kwh=Fraction(780),
    kgco2e=Fraction(312),
)
# What goes exactly as planned: half of all lines but the contingency.
AS_PLANNED = {
    CostGroup.ACCELERATOR: "1500",
    CostGroup.STORAGE_WARM: "20",
    CostGroup.REQUESTS: "5",
    CostGroup.TRANSFER: "10",
    CostGroup.SERVICES: "3",
}


def make_plan() -> PlanRecord:
    def line(key: str, amount: str) -> PlanLineRecord:
        is_compute = key in PROGRAMME
        share = float(amount) / 2500
        return PlanLineRecord(
            key=key,
            name=key,
            base=LineBase.AMOUNT,
            fraction=None,
            amount=Decimal(amount),
            starts_on=START,
            ends_on=START + timedelta(days=DAYS),
            in_programme=is_compute,
            facility_energy_kwh=780.0 * share if is_compute else None,
            kgco2e=312.0 * share if is_compute else None,
        )

    return PlanRecord(
        version_id=1,
        number=3,
        is_approved=True,
        approved_at=datetime(2026, 9, 1, tzinfo=UTC),
        approved_by="alice",
        currency="USD",
        main_run_cost=Decimal(2500),
        main_run_starts_on=START,
        main_run_ends_on=START + timedelta(days=DAYS),
        main_run_facility_energy_kwh=780.0,
        main_run_kgco2e=312.0,
        estimate_id=uuid4(),
        lines=tuple(line(key, amount) for key, amount in LINES.items()),
    )


def make_run(slug: str = "main", **changes: Any) -> RunRecord:
    run = RunRecord(
        run_id=uuid4(),
        project_id=UUID(int=1),
        slug=slug,
        name=slug,
        accelerator_key="h100-sxm-80gb",
        accelerator_count=8,
        precision="bf16",
        start=None,
        end=None,
    )
    return replace(run, **changes)


def make_time(
    main: Mapping[Bucket, int] | None = None,
    *,
    other_h: int = 100,
    unassigned_h: int = 0,
    day: date = START,
    **changes: Any,
) -> UsedTime:
    """Hours of the main run by bucket, all on one day, and of other runs."""
    spent = {Bucket.PRODUCTIVE: 450, Bucket.CHECKPOINT: 50} if main is None else main
    time = UsedTime(
        main_by_day={day: {bucket: hours * HOUR_MICROSECOND for bucket, hours in spent.items()}},
        other_microsecond=other_h * HOUR_MICROSECOND,
        unassigned_microsecond=unassigned_h * HOUR_MICROSECOND,
        main_runs=(make_run(),),
        other_run_ids=(UUID(int=2),),
    )
    return replace(time, **changes)


def make_energy(kwh: float | None = 390.0, **changes: Any) -> EmissionSummary:
    """600 h at 0.65 kW; a PUE of 1.2 and 400 g/kWh unless changed."""
    facility_kwh = None if kwh is None else kwh * 1.2
    summary = EmissionSummary(
        start_on=START,
        end_on=THROUGH,
        accelerator_energy_kwh=kwh,
        it_energy_kwh=kwh,
        facility_energy_kwh=facility_kwh,
        scope_2_location_kgco2e=None if facility_kwh is None else facility_kwh * 0.4,
        scope_2_market_kgco2e=None,
        market_basis=(),
        coverage_fraction=1.0,
        measured_fraction=1.0,
        spread_fraction=0.0,
        estimated_fraction=0.0,
        factors=(),
    )
    return replace(summary, **changes)


def make_work(tokens: int | None = TOKENS // 2, *, planned: int = TOKENS) -> WorkDone:
    """So many tokens of the main run, of so many that its run plans."""
    if tokens is None:
        return WorkDone(tokens_planned=planned)
    share = min(Decimal(1), Decimal(tokens) / Decimal(planned))
    done = LineProgress(completed_fraction=share, method=Method.TOKENS)
    return WorkDone(
        by_line={"main_run": {THROUGH: done}},
        tokens_by_day={THROUGH: tokens},
        tokens_planned=planned,
    )


def make_known(
    *,
    costs: Mapping[CostGroup, str] | None = None,
    hours: str | None = "600",
    time: UsedTime | None = None,
    work: WorkDone | None = None,
    energy: EmissionSummary | None = None,
    assumed: Assumed = ASSUMED,
    **changes: Any,
) -> Known:
    """A half-done project where all went as planned, but for what is changed."""
    plan, energy = make_plan(), energy or make_energy()
    amounts = {**AS_PLANNED, **(costs or {})}
    by_group = {group: Decimal(amount) for group, amount in amounts.items()}
    total = exact_sum(by_group.values())
    spending = Spending(
        through=THROUGH, cost=total, accrued=Decimal(0), by_day={}, by_line={}, emissions=energy
    )
    earned = earned_states(plan, work or make_work(), spending)
    assert earned is not None
    known = Known(
        burndown=_burndown(plan, by_group, energy),
        plan=plan,
        earned=earned,
        through=THROUGH,
        assumed=assumed,
        spent=Expenses(by_group=by_group, accelerator_h=None if hours is None else Decimal(hours)),
        time=make_time() if time is None else time,
    )
    return replace(known, **changes)


def _burndown(
    plan: PlanRecord, by_group: dict[CostGroup, Decimal], energy: EmissionSummary
) -> Burndown:
    """All charges on the first day."""
    day = BurndownDay(
        day=START,
        planned_value=Decimal(0),
        actual_cost=exact_sum(by_group.values()),
        cost_by_group=by_group,
        planned_facility_energy_kwh=None,
        accelerator_energy_kwh=None,
        facility_energy_kwh=None,
        coverage_fraction=None,
        planned_kgco2e=None,
        scope_2_location_kgco2e=None,
    )
    return Burndown(
        as_of=datetime(2026, 9, 19, tzinfo=UTC),
        plan=plan,
        currency="USD",
        basis="effective",
        days=(day,),
        billed_through=THROUGH,
        metered_through=THROUGH,
        planned_value=None,
        actual_cost=None,
        compute_cost=None,
        accelerator_h=None,
        energy_and_emissions=energy,
    )


def make_variance(**changes: Any) -> Variance:
    return build_variance(make_known(**changes))


def of(found: Variance, cause: Cause) -> CauseDetail:
    return next(one for one in found.causes if one.cause is cause)


def moved(found: Variance, name: str = "cost") -> dict[Cause, Decimal]:
    """The causes that add something, to six decimals."""
    amounts = {one.cause: getattr(one, name) for one in found.causes}
    return {
        cause: shown
        for cause, amount in amounts.items()
        if amount is not None and (shown := round(amount, 6))
    }


def untold(found: Variance) -> set[Cause]:
    """The causes whose cost cannot be told."""
    return {one.cause for one in found.causes if one.cost is None}

"""Reads why a project differs from its baseline: plan and actuals joined, causes with their days.

Source of the split: formulae.variance. What is compared is the plan's budget of the work that was
done, so that an early run is no overrun and a late one no saving.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from django.utils import timezone

from formulae.drivers import AVAILABILITY, CAUSE_OF_BUCKET, Cause, Drivers, Exact, stored
from formulae.money import exact_sum, round_half_even
from formulae.time_ledger import Bucket
from formulae.units import EXACT
from formulae.variance import CauseAmount, variance_by_cause
from planning.classes import GROUP_OF_CLASS
from planning.earned_records import EarnedStates
from planning.estimating import Answer
from planning.expenses import Expenses, expenses_of
from planning.models import Estimate
from planning.records import Burndown, CostGroup, PlanRecord
from planning.selectors import burndown_of
from planning.used_time import UsedTime, hours_of, used_time
from planning.variance_drivers import (
    GROUPS_OF_CAUSE,
    Assumed,
    actual_drivers,
    assumed_of,
    compared_against,
    days_that_weigh,
    driver_pairs,
    is_time_unknown,
    planned_drivers,
    surplus_h,
)
from planning.variance_records import (
    Against,
    CauseDay,
    CauseDetail,
    Compared,
    DriverPair,
    Opens,
    Variance,
    VarianceNote,
)
from projects.models import Project

DAYS_SHOWN: Final = 7
_WHOLE_COVERAGE: Final = 0.995
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """All that a variance is made of, as the rooms below tell it."""

    burndown: Burndown
    plan: PlanRecord
    earned: EarnedStates
    through: date
    assumed: Assumed
    spent: Expenses
    time: UsedTime | None


def variance_of(
    project: Project,
    *,
    as_of: datetime,
    basis: str = "effective",
    burndown: Burndown | None = None,
) -> Variance | None:
    """Why actuals differ from the baseline, by cause; None without a baseline or anything known.

    Args:
        project: as `projects.access.project_for` gave it.
        as_of: aware instant; facts that arrived later are left out.
        basis: billed, effective, list or contracted.
        burndown: the same project's at the same instant and basis, where it is at hand.

    Raises:
        ValueError: an unknown basis.
    """
    found = burndown or burndown_of(project, as_of=as_of, basis=basis)
    if found.plan is None or found.earned is None or found.through is None:
        return None
    until = min(as_of, timezone.now(), _midnight(found.through + _DAY))
    estimate = Estimate.objects.filter(pk=found.plan.estimate_id).values("spec", "result").get()
    answer = Answer.from_document(estimate["result"])
    return build_variance(
        Known(
            burndown=found,
            plan=found.plan,
            earned=found.earned,
            through=found.through,
            assumed=assumed_of(answer, level=found.plan.level, tokens=_tokens(estimate["spec"])),
            spent=expenses_of(project, found, found.plan),
            time=used_time(project, until=until),
        )
    )


def build_variance(known: Known) -> Variance:
    """Take plan and actuals apart and set them against each other."""
    planned = planned_drivers(known.plan, known.assumed, known.earned)
    energy = known.burndown.energy_and_emissions
    actual = actual_drivers(known.spent, known.time, known.earned, energy)
    against = compared_against(known.earned)
    money = known.earned.money
    pairs = driver_pairs(planned, actual, known.assumed)
    return Variance(
        baseline_number=known.plan.number,
        as_of=known.burndown.as_of,
        through=known.through,
        currency=known.plan.currency,
        basis=known.burndown.basis,
        against=against,
        cost=Compared(planned=planned.cost, actual=actual.cost),
        facility_energy_kwh=_compared(planned.facility_kwh, actual.facility_kwh),
        kgco2e=_compared(planned.kgco2e, actual.kgco2e),
        schedule=None
        if money.earned_value is None
        else EXACT.subtract(money.earned_value, money.planned_value),
        reserve=money.reserve,
        causes=tuple(
            CauseDetail(
                cause=one.cause,
                cost=one.cost,
                facility_energy_kwh=one.facility_kwh,
                kgco2e=one.kgco2e,
                driver=_with_allowed(one, pairs.get(one.cause), planned),
                opens=_opens(one, known),
            )
            for one in variance_by_cause(planned, actual)
        ),
        coverage_fraction=energy.coverage_fraction,
        notes=_notes(known, actual, against),
    )


def _with_allowed(one: CauseAmount, pair: DriverPair | None, planned: Drivers) -> DriverPair | None:
    """The driver; for lost hours, planned is what the plan allows, its share of goodput too."""
    cost, hours = planned.accelerator_cost, planned.hours
    if one.cause not in AVAILABILITY or pair is None or pair.actual is None:
        return pair
    if one.cost is None or not cost or not hours:
        return pair
    beyond_h = Fraction(one.cost) * hours / Fraction(cost)
    allowed = round_half_even(stored(Fraction(pair.actual) - beyond_h) or Decimal(0), decimals=6)
    return replace(pair, planned=allowed)


def _compared(planned: Exact | None, actual: Exact | None) -> Compared:
    ends = (None if end is None else stored(Fraction(end)) for end in (planned, actual))
    before, after = ends
    return Compared(planned=before, actual=after)


def _notes(known: Known, actual: Drivers, against: Against) -> tuple[VarianceNote, ...]:
    """What a reader should know before trusting a cause."""
    time, coverage = known.time, known.burndown.energy_and_emissions.coverage_fraction
    nobodys = time is not None and bool(time.unassigned_microsecond)
    told = {
        VarianceNote.PROGRESS_UNKNOWN: against is Against.CALENDAR,
        VarianceNote.TIME_UNKNOWN: time is None or is_time_unknown(time),
        VarianceNote.NOT_ASSIGNED: nobodys or bool(surplus_h(known.spent, time)),
        VarianceNote.ENERGY_NOT_COVERED: coverage is not None and coverage < _WHOLE_COVERAGE,
        VarianceNote.RATE_MISSING: known.spent.is_rate_missing,
        VarianceNote.COST_UNKNOWN: actual.cost is None and not known.spent.is_rate_missing,
    }
    return tuple(note for note, holds in told.items() if holds)


def _opens(one: CauseAmount, known: Known) -> Opens:
    """The charges, runs, buckets and days behind a cause."""
    cause, time = one.cause, known.time
    groups = GROUPS_OF_CAUSE.get(cause, ())
    buckets = [bucket for bucket, of in CAUSE_OF_BUCKET.items() if of is cause]
    run_ids = tuple(run.run_id for run in time.main_runs) if time else ()
    if cause is Cause.EFFICIENCY:
        buckets = [Bucket.SLOW]
    elif cause is Cause.EXPERIMENTS:
        run_ids = time.other_run_ids if time else ()
    elif cause is not Cause.VOLUME and not buckets:
        run_ids = ()
    days = _days_of_time(time, buckets) if buckets and time else _days_of_charges(known, groups)
    return Opens(
        start_on=known.plan.starts_on if not known.burndown.days else known.burndown.days[0].day,
        end_on=known.through + _DAY,
        cost_classes=tuple(name for name, group in GROUP_OF_CLASS.items() if group in groups),
        run_ids=run_ids,
        buckets=tuple(bucket.value for bucket in buckets),
        days=days,
    )


def _days_of_time(time: UsedTime, buckets: Sequence[Bucket]) -> tuple[CauseDay, ...]:
    hours = [
        (day, sum((hours_of(spent.get(bucket, 0)) for bucket in buckets), Fraction(0)))
        for day, spent in time.main_by_day.items()
    ]
    return tuple(
        CauseDay(day=day, accelerator_h=stored(Fraction(spent)))
        for day, spent in days_that_weigh(hours, most=DAYS_SHOWN)
    )


def _days_of_charges(known: Known, groups: Sequence[CostGroup]) -> tuple[CauseDay, ...]:
    costs = [
        (row.day, exact_sum(row.cost_by_group.get(group, Decimal(0)) for group in groups))
        for row in known.burndown.days
    ]
    return tuple(
        CauseDay(day=day, cost=stored(Fraction(cost)))
        for day, cost in days_that_weigh(costs, most=DAYS_SHOWN)
    )


def _tokens(spec: Mapping[str, Any]) -> int | None:
    tokens = spec.get("tokens")
    return int(tokens) if tokens else None


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, tzinfo=UTC)

"""When the lines of a plan are spent: default dates, and amounts spread over days. Pure."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal

from formulae.allocation import split
from formulae.units import EXACT
from planning.records import PlanLineRecord

QUANTUM = Decimal("1E-18")
# Offsets in days from the main run's start (S) or end (E): the chapter's milestones put experiments
# and preprocessing before the main run, distillation after it, evaluation beside it.
BEFORE_D = 28
AFTER_D = 14


def default_dates(key: str, *, run_start: date, run_end: date) -> tuple[date, date]:
    """The first day and the exclusive last day of a plan line, unless somebody says otherwise."""
    before = run_start - timedelta(days=BEFORE_D)
    after = run_end + timedelta(days=AFTER_D)
    return {
        "experiments": (before, run_start),
        "preprocessing": (before, run_start),
        "distillation": (run_end, after),
        "evaluation": (run_start, after),
        "contingency": (run_start, after),
    }.get(key, (run_start, run_end))


def days_of(starts_on: date, ends_on: date) -> list[date]:
    """Every day of [starts_on, ends_on)."""
    return [starts_on + timedelta(days=offset) for offset in range((ends_on - starts_on).days)]


def planned_cost_by_day(lines: Sequence[PlanLineRecord]) -> dict[date, Decimal]:
    """Each line spread evenly over its days; the days sum to the lines to the last digit."""
    by_day: defaultdict[date, Decimal] = defaultdict(Decimal)
    for line in lines:
        days = days_of(line.starts_on, line.ends_on)
        for day, part in zip(
            days, split(line.amount, [1] * len(days), quantum=QUANTUM), strict=True
        ):
            by_day[day] = EXACT.add(by_day[day], part)
    return dict(by_day)


def planned_quantity_by_day(
    lines: Sequence[PlanLineRecord], quantity: str
) -> dict[date, float] | None:
    """The same for `facility_energy_kwh` or `kgco2e`; None when a programme line does not know."""
    by_day: defaultdict[date, float] = defaultdict(float)
    for line in lines:
        if not line.in_programme:
            continue
        amount: float | None = getattr(line, quantity)
        if amount is None:
            return None
        days = days_of(line.starts_on, line.ends_on)
        for day in days:
            by_day[day] += amount / len(days)
    return dict(by_day)

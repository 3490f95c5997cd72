"""The burn-down: plan, charges, energy, emissions joined day by day. Pure: no table, no clock."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal

from billing.records import DailyCostRow
from carbon.records import EmissionDay, EmissionSummary, EnergyDay
from formulae.money import exact_sum
from formulae.units import EXACT
from planning.accrual_records import Accruals, AccruedDay
from planning.classes import COMPUTE_CLASSES, group_of
from planning.earned import Spending, cost_of_days, earned_by_day, earned_states
from planning.earned_records import WorkDone
from planning.forecast_records import EstimateBelief
from planning.forecasting import project_forecast
from planning.phasing import days_of, planned_cost_by_day, planned_quantity_by_day
from planning.records import Burndown, BurndownDay, CostGroup, PlanRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Actuals:
    """What happened, as the rooms below tell it."""

    costs: Sequence[DailyCostRow]
    energy: Sequence[EnergyDay]
    emissions: Sequence[EmissionDay]
    emission_summary: EmissionSummary
    accruals: Accruals = field(default_factory=Accruals)
    work: WorkDone = field(default_factory=WorkDone)
    cost_by_line: Mapping[str, Decimal] = field(default_factory=dict)
    belief: EstimateBelief | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the burn-down is asked: the instant of knowledge, the currency, the cost basis."""

    as_of: datetime
    currency: str
    basis: str


def build_burndown(question: Question, plan: PlanRecord | None, actuals: Actuals) -> Burndown:
    """Join plan and actuals on one time axis.

    Charges in another currency than the plan's make the sums unknown (None), named in
    `other_currencies`; so do charges without a cost on this basis: a partial sum would read as the
    whole.

    Args:
        question: instant, ISO-4217 currency, basis (billed, effective, list, contracted).
        plan: the baseline, or None when nobody approved one.
        actuals: rows by day; a day without a row is unknown, not zero.

    Returns:
        Days from the first planned or actual day to the last, not cumulated.
    """
    costs = [row for row in actuals.costs if row.currency == question.currency]
    foreign = tuple(sorted({row.currency for row in actuals.costs} - {question.currency}))
    known = bool(costs) and not foreign and all(row.cost is not None for row in costs)
    planned = planned_cost_by_day(plan.lines) if plan else {}
    through = _through(question, actuals)
    accruals = _accruals(question, actuals.accruals, through)
    compute = [row for row in costs if row.x_cost_class in COMPUTE_CLASSES]
    found = Burndown(
        as_of=question.as_of,
        plan=plan,
        currency=question.currency,
        basis=question.basis,
        days=_days(plan, planned, actuals, costs if known else [], accruals.days),
        billed_through=max((row.day for row in actuals.costs), default=None),
        metered_through=max((row.day for row in actuals.energy), default=None),
        planned_value=_planned_value(plan, planned, through or question.as_of.date()),
        actual_cost=_sum_cost(costs) if known else None,
        compute_cost=_sum_cost(compute) if known else None,
        accelerator_h=_sum_known_decimal([row.accelerator_h for row in actuals.costs]),
        energy_and_emissions=actuals.emission_summary,
        other_currencies=foreign,
        through=through,
        work=actuals.work,
        accruals=accruals,
        accrued_cost=None if foreign else _accrued_cost(accruals.days),
    )
    return found if plan is None else _with_earned(found, plan, actuals)


def _through(question: Question, actuals: Actuals) -> date | None:
    """The last day that anything is known of; what merely goes on every day is no news."""
    known = [row.day for row in actuals.costs] + [row.day for row in actuals.energy]
    known += [one.day for one in actuals.accruals.days if one.unit != "day"]
    known = known or list(actuals.work.tokens_by_day)
    return min(max(known), question.as_of.date()) if known else None


def _accruals(question: Question, found: Accruals, through: date | None) -> Accruals:
    """Those in the currency and up to the last day that anything is known of."""
    days = (one for one in found.days if through is None or one.day <= through)
    return replace(found, days=tuple(one for one in days if one.currency == question.currency))


def _accrued_cost(accrued: Sequence[AccruedDay]) -> Decimal | None:
    """The sum of what is accrued, None where hours ran at a rate that nobody knows."""
    costs = [one.cost for one in accrued]
    known = [cost for cost in costs if cost is not None]
    return exact_sum(known) if len(known) == len(costs) else None


def _with_earned(found: Burndown, plan: PlanRecord, actuals: Actuals) -> Burndown:
    """The burn-down with the earned value of its plan, at its last day and by day."""
    through = found.through
    if through is None:
        return found
    billed = [(row.day, row.actual_cost) for row in found.days if row.actual_cost is not None]
    accrued = found.accruals.days if found.accruals else ()
    spending = Spending(
        through=through,
        cost=found.actual_cost if billed or actuals.costs else Decimal(0),
        accrued=found.accrued_cost,
        by_day=cost_of_days(billed, accrued, through=through),
        by_line=dict(actuals.cost_by_line),
        emissions=actuals.emission_summary,
        whole_through=found.as_of.date() - timedelta(days=1),
    )
    earned = earned_by_day(plan, actuals.work, through=through)
    found = replace(found, forecast=project_forecast(found, actuals.belief))
    return replace(
        found,
        earned=earned_states(plan, actuals.work, spending),
        days=tuple(replace(row, earned_value_to_date=earned.get(row.day)) for row in found.days),
    )


def _days(
    plan: PlanRecord | None,
    planned: dict[date, Decimal],
    actuals: Actuals,
    costs: Sequence[DailyCostRow],
    accrued: Sequence[AccruedDay],
) -> tuple[BurndownDay, ...]:
    """One row a day from the first day that anything is known of to the last."""
    groups = _by_group(costs)
    energy = {row.day: row for row in actuals.energy}
    emissions = {row.day: row for row in actuals.emissions}
    planned_kwh = planned_quantity_by_day(plan.lines, "facility_energy_kwh") if plan else None
    planned_kg = planned_quantity_by_day(plan.lines, "kgco2e") if plan else None
    unbilled: defaultdict[date, list[AccruedDay]] = defaultdict(list)
    for one in accrued:
        unbilled[one.day].append(one)
    known_days = {*planned, *groups, *energy, *emissions, *unbilled}
    if not known_days:
        return ()
    rows = []
    for day in days_of(min(known_days), max(known_days) + timedelta(days=1)):
        metered, emitted = energy.get(day), emissions.get(day)
        rows.append(
            BurndownDay(
                day=day,
                planned_value=planned.get(day, Decimal(0)),
                actual_cost=exact_sum(groups[day].values()) if day in groups else None,
                cost_by_group=groups.get(day, {}),
                planned_facility_energy_kwh=None
                if planned_kwh is None
                else planned_kwh.get(day, 0.0),
                accelerator_energy_kwh=metered.accelerator_energy_kwh if metered else None,
                facility_energy_kwh=metered.facility_energy_kwh if metered else None,
                coverage_fraction=metered.coverage_fraction if metered else None,
                planned_kgco2e=None if planned_kg is None else planned_kg.get(day, 0.0),
                scope_2_location_kgco2e=emitted.scope_2_location_kgco2e if emitted else None,
                accrued_cost=_accrued_cost(unbilled[day]) if day in unbilled else None,
            )
        )
    return tuple(rows)


def _by_group(costs: Sequence[DailyCostRow]) -> dict[date, dict[CostGroup, Decimal]]:
    """Known costs by day and band."""
    groups: defaultdict[date, dict[CostGroup, Decimal]] = defaultdict(dict)
    for row in costs:
        if row.cost is not None:
            bands, band = groups[row.day], group_of(row.x_cost_class)
            bands[band] = EXACT.add(bands.get(band, Decimal(0)), row.cost)
    return dict(groups)


def _planned_value(
    plan: PlanRecord | None, planned: dict[date, Decimal], through: date
) -> Decimal | None:
    """What the plan wanted spent by the end of `through`, or None without a plan."""
    if plan is None:
        return None
    return exact_sum(amount for day, amount in planned.items() if day <= through)


def _sum_cost(rows: Sequence[DailyCostRow]) -> Decimal:
    return exact_sum(row.cost for row in rows if row.cost is not None)


def _sum_known_decimal(values: Sequence[Decimal | None]) -> Decimal | None:
    """Accelerator-hours: rows without any are rows of other things, not unknown hours."""
    known = [value for value in values if value is not None]
    return exact_sum(known) if known else None

"""Reads earned value of a project: its plan, what is done, what it cost until now."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final

from billing.cost_questions import CostQuestion, Scope
from billing.records import Basis
from billing.selectors import cost_table
from carbon.records import EmissionSummary
from formulae.money import divide, exact_sum, quantise_money
from formulae.units import EXACT
from planning.accrual_records import AccruedDay
from planning.earned_records import EarnedState, EarnedStates, Spent, Unit, WorkDone
from planning.earned_rules import earned_state, runway_on
from planning.phasing import days_of
from planning.records import PlanRecord
from projects.models import Project

BURN_DAYS: Final = 14
MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What a project spent up to a day: money by day billed and accrued, and its emissions.

    `cost` and `accrued` are None where a part is unknown: in another currency, without a rate.
    """

    through: date
    cost: Decimal | None
    accrued: Decimal | None
    by_day: dict[date, Decimal]
    by_line: dict[str, Decimal]
    emissions: EmissionSummary
    whole_through: date | None = None  # the last day that is over; None = `through`

    @property
    def total(self) -> Decimal | None:
        """Billed and accrued cost."""
        if self.cost is None or self.accrued is None:
            return None
        return EXACT.add(self.cost, self.accrued)


def earned_states(plan: PlanRecord, work: WorkDone, spending: Spending) -> EarnedStates | None:
    """Earned value of a plan in money, energy and carbon by the end of `spending.through`."""
    progress = work.at(spending.through)

    def state(unit: Unit, spent: Spent) -> EarnedState | None:
        return earned_state(
            plan.lines, unit=unit, through=spending.through, progress=progress, spent=spent
        )

    money = state(Unit.MONEY, Spent(total=spending.total, by_line=spending.by_line))
    if money is None:
        return None
    burn = burn_per_day(spending)
    at_end = money.estimate_at_cpi
    return EarnedStates(
        currency=plan.currency,
        through=spending.through,
        money=money,
        energy=state(Unit.ENERGY, _quantity(spending.emissions.facility_energy_kwh)),
        carbon=state(Unit.CARBON, _quantity(spending.emissions.scope_2_location_kgco2e)),
        tokens_trained=work.tokens_at(spending.through),
        tokens_planned=work.tokens_planned,
        burn_per_day=burn,
        runway_on=runway_on(
            budget=money.budget_at_completion,
            spent=spending.total,
            per_day=burn,
            through=spending.through,
        ),
        programme_multiple_at_completion=None
        if at_end is None
        else divide(at_end, plan.main_run_cost),
        sci_g_per_million_tokens=software_carbon_intensity(
            spending.emissions, work.tokens_at(spending.through)
        ),
    )


def _quantity(value: float | None) -> Spent:
    return Spent(total=None if value is None else quantise_money(Decimal(repr(value))))


def burn_per_day(spending: Spending) -> Decimal | None:
    """The mean cost of a day over the last two weeks that are over; None before the first cost.

    A day without any cost counts: a project that rests burns less. Where a part of the cost is not
    known, the rest of it is no burn rate.
    """
    if spending.total is None:
        return None
    last = min(spending.whole_through or spending.through, spending.through)
    known = [day for day in spending.by_day if day <= last]
    if not known:
        return None
    first = max(last - timedelta(days=BURN_DAYS - 1), min(known))
    amounts = (cost for day, cost in spending.by_day.items() if first <= day <= last)
    return divide(exact_sum(amounts), Decimal((last - first).days + 1))


def software_carbon_intensity(emissions: EmissionSummary, tokens: int | None) -> float | None:
    """Software carbon intensity, gCO2e for a million tokens trained: (E * I + M) / R.

    Embodied carbon that is not known is left out, and the score says less than it should; the page
    names what is in it. Source: ISO/IEC 21031:2024.
    """
    operational = emissions.scope_2_location_kgco2e
    if operational is None or not tokens:
        return None
    return (operational + (emissions.embodied_kgco2e or 0.0)) * 1000 / (tokens / MILLION)


def spent_by_line(
    project: Project, *, plan: PlanRecord, basis: str, end_on: date, as_of: datetime
) -> dict[str, Decimal]:
    """What charges cost that allocation rules give to a line of the plan, in its currency.

    A line that has a charge in another currency, or without a cost on this basis, is left out.
    """
    question = CostQuestion(
        group_by=("plan_line_key",),
        basis=Basis(basis),
        scope=Scope(project_id=project.pk),
        end_on=end_on,
        as_of=as_of,
    )
    rows = [row for row in cost_table(project.organisation_id, question).rows if row.group[0]]
    known = [row for row in rows if row.cost is not None and row.currency == plan.currency]
    partly = {row.group[0] for row in rows if row not in known}
    return {
        row.group[0]: row.cost
        for row in known
        if row.group[0] and row.cost is not None and row.group[0] not in partly
    }


def cost_of_days(
    billed: Iterable[tuple[date, Decimal]], accrued: Sequence[AccruedDay], *, through: date
) -> dict[date, Decimal]:
    """Billed and accrued cost by day, up to a day."""
    found: dict[date, Decimal] = {}
    priced = [(one.day, one.cost) for one in accrued if one.cost is not None]
    for day, cost in (*billed, *priced):
        if day <= through:
            found[day] = EXACT.add(found.get(day, Decimal(0)), cost)
    return found


def earned_by_day(plan: PlanRecord, work: WorkDone, *, through: date) -> dict[date, Decimal]:
    """The earned value in money by the end of each day on which it is known."""
    found = {}
    for day in days_of(plan.starts_on, through + timedelta(days=1)):
        state = earned_state(
            plan.lines,
            unit=Unit.MONEY,
            through=day,
            progress=work.at(day),
            spent=Spent(total=None),
        )
        if state is not None and state.earned_value is not None:
            found[day] = state.earned_value
    return found

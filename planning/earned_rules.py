"""Earned value of a plan's lines: pure rules, no table, no clock.

Every unit uses the same completed fractions, so that a line that is half done has earned half its
money, half its energy and half its carbon. The contingency earns in proportion to the work of the
other lines: at the end all of the budget is earned, whether the reserve was needed or not.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from formulae.earned_value import (
    EarnedValue,
    cost_performance_index,
    earned_value,
    estimate_at_completion_at_cpi,
    estimate_at_completion_at_cpi_and_spi,
    estimate_at_completion_at_plan,
    schedule_performance_index,
    to_complete_performance_index,
)
from formulae.money import divide, exact_sum, multiply, quantise_money
from formulae.units import EXACT
from planning.earned_records import EarnedState, LineProgress, LineState, Method, Spent, Unit
from planning.records import PlanLineRecord

RESERVE_KEYS: Final = frozenset({"contingency"})
RUNWAY_LIMIT_DAYS: Final = 3650
DECIMALS: Final = 18


def _days_passed(line: PlanLineRecord, through: date) -> tuple[int, int]:
    """The days of a line that are over by the end of a day, and all of them."""
    days = (line.ends_on - line.starts_on).days
    return min(max((through - line.starts_on).days + 1, 0), days), days


def planned_fraction(line: PlanLineRecord, through: date) -> Decimal:
    """Share of a line that should be done by the end of a day: its days are alike.

    f = min(1, max(0, (through + 1 - starts_on) / (ends_on - starts_on)))
    """
    passed, days = _days_passed(line, through)
    return divide(Decimal(passed), Decimal(days)) or Decimal(0)


def planned_amount(line: PlanLineRecord, budget: Decimal, through: date) -> Decimal:
    """The part of a budget that is planned by the end of a day, as the days of the plan sum to it.

    The same amounts as `phasing.planned_cost_by_day` spreads, to the last digit: what does not
    divide goes to the first days.
    """
    passed, days = _days_passed(line, through)
    quanta, extra = divmod(int(budget.scaleb(DECIMALS, context=EXACT)), days)
    return Decimal(quanta * passed + min(passed, extra)).scaleb(-DECIMALS, context=EXACT)


def line_budget(line: PlanLineRecord, unit: Unit) -> Decimal | None:
    """What a line may spend in a unit; None where the plan does not know."""
    if unit is Unit.MONEY:
        return line.amount
    quantity = line.facility_energy_kwh if unit is Unit.ENERGY else line.kgco2e
    if quantity is None:
        return None if line.in_programme else Decimal(0)  # what is no computing uses no energy here
    return quantise_money(Decimal(repr(quantity)))


def earned_state(
    lines: Sequence[PlanLineRecord],
    *,
    unit: Unit,
    through: date,
    progress: Mapping[str, LineProgress],
    spent: Spent,
) -> EarnedState | None:
    """The state of a plan in one unit by the end of a day.

    Args:
        lines: of the plan in force.
        unit: money, kWh or kgCO2e.
        through: the last day that counts.
        progress: measured lines by key; a line without is earned as planned. A main run without
            makes the earned value unknown: nothing says how far it is.
        spent: on everything and by line, same unit.

    Returns:
        The state; None where the plan does not know the unit.
    """
    budgets = {line.key: line_budget(line, unit) for line in lines}
    known = {key: budget for key, budget in budgets.items() if budget is not None}
    if not lines or len(known) < len(budgets):
        return None
    work = [line for line in lines if line.key not in RESERVE_KEYS]
    states = [_line(line, known[line.key], through, progress, spent.by_line) for line in work]
    done = _whole(state.earned_value for state in states)
    budget_of_work = exact_sum(state.budget for state in states)
    share = None if done is None else divide(done, budget_of_work)
    for line in lines:
        if line.key in RESERVE_KEYS:
            states.append(_reserve(line, known[line.key], through, share))
    order = {line.key: place for place, line in enumerate(lines)}
    states.sort(key=lambda one: order[one.key])
    return _state(unit, tuple(states), spent.total, done)


def _line(
    line: PlanLineRecord,
    budget: Decimal,
    through: date,
    progress: Mapping[str, LineProgress],
    actual_by_line: Mapping[str, Decimal],
) -> LineState:
    planned = planned_fraction(line, through)
    found = progress.get(line.key)
    if found is not None:
        done: Decimal | None = found.completed_fraction
        method = found.method
    elif line.key == "main_run":
        done, method = None, Method.TOKENS
    else:
        done, method = planned, Method.LEVEL_OF_EFFORT
    return LineState(
        key=line.key,
        name=line.name,
        method=method,
        budget=budget,
        planned_value=planned_amount(line, budget, through),
        earned_value=None
        if done is None
        else earned_value(budget_at_completion=budget, completed_fraction=done),
        actual=actual_by_line.get(line.key),
        completed_fraction=done,
    )


def _reserve(
    line: PlanLineRecord, budget: Decimal, through: date, share: Decimal | None
) -> LineState:
    return LineState(
        key=line.key,
        name=line.name,
        method=Method.RESERVE,
        budget=budget,
        planned_value=planned_amount(line, budget, through),
        earned_value=None if share is None else multiply(budget, min(share, Decimal(1))),
        actual=None,
        completed_fraction=share,
    )


def _whole(amounts: Iterable[Decimal | None]) -> Decimal | None:
    """The sum; None where a part is not known."""
    found = list(amounts)
    known = [amount for amount in found if amount is not None]
    return exact_sum(known) if len(known) == len(found) else None


def _state(
    unit: Unit, lines: tuple[LineState, ...], actual: Decimal | None, done: Decimal | None
) -> EarnedState:
    base = EarnedState(
        unit=unit,
        lines=lines,
        budget_at_completion=exact_sum(line.budget for line in lines),
        planned_value=exact_sum(line.planned_value for line in lines),
        earned_value=_whole(line.earned_value for line in lines),
        actual=actual,
    )
    reserve = exact_sum(line.budget for line in lines if line.method is Method.RESERVE)
    drawn = None if actual is None or done is None else EXACT.subtract(actual, done)
    indices: dict[str, Decimal | None] = {}
    if base.state is not None and base.state.actual_cost > 0:  # credits beyond the cost: no index
        indices = _indices(base.state)
    return EarnedState(
        unit=unit,
        lines=lines,
        budget_at_completion=base.budget_at_completion,
        planned_value=base.planned_value,
        earned_value=base.earned_value,
        actual=actual,
        reserve=reserve,
        reserve_drawn=drawn,
        **indices,
    )


def _indices(state: EarnedValue) -> dict[str, Decimal | None]:
    return {
        "cost_performance_index": cost_performance_index(state),
        "schedule_performance_index": schedule_performance_index(state),
        "to_complete_index": to_complete_performance_index(
            state, target=state.budget_at_completion
        ),
        "estimate_at_cpi": estimate_at_completion_at_cpi(state),
        "estimate_at_plan": estimate_at_completion_at_plan(state),
        "estimate_at_cpi_and_spi": estimate_at_completion_at_cpi_and_spi(state),
    }


def runway_on(
    *, budget: Decimal, spent: Decimal | None, per_day: Decimal | None, through: date
) -> date | None:
    """The day on which the budget is spent at a rate: the last day that it still pays for.

    >>> runway_on(budget=Decimal(100), spent=Decimal(40), per_day=Decimal(20),
    ...     through=date(2026, 11, 15))
    datetime.date(2026, 11, 18)
    """
    if spent is None or per_day is None or per_day <= 0:
        return None
    left = EXACT.subtract(budget, spent)
    if left <= 0:
        return through
    days = divide(left, per_day)
    if days is None or days > RUNWAY_LIMIT_DAYS:
        return None
    return through + timedelta(days=int(days))

"""Earned value management on exact amounts of one currency; None wherever a figure is undefined."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from formulae.money import divide, multiply
from formulae.periods import Period, as_utc
from formulae.units import EXACT, QuantityError

_ZERO = Decimal(0)
_ONE = Decimal(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class EarnedValue:
    """The state of a plan at one instant, all amounts in one currency."""

    budget_at_completion: Decimal
    planned_value: Decimal
    earned_value: Decimal
    actual_cost: Decimal

    @property
    def cost_variance(self) -> Decimal:
        """CV = EV - AC; below 0 is over budget."""
        return EXACT.subtract(self.earned_value, self.actual_cost)

    @property
    def schedule_variance(self) -> Decimal:
        """SV = EV - PV; below 0 is late."""
        return EXACT.subtract(self.earned_value, self.planned_value)


def completed_fraction(*, done: Decimal, planned: Decimal) -> Decimal:
    """Share of the work that is done, such as tokens trained of tokens planned.

    f = min(1, done / planned)

    Args:
        done: tokens trained, count, >= 0.
        planned: tokens planned, count, > 0.

    Returns:
        Fraction, 0 to 1; work past the plan earns nothing.

    Raises:
        QuantityError: done is below 0, or planned is not above 0.

    Source: PMI, Practice Standard for Earned Value Management, 2nd edition 2011 (physical
    measurement).

    >>> completed_fraction(done=Decimal("8e12"), planned=Decimal("10e12")) == Decimal("0.8")
    True
    """
    fraction = divide(done, planned)
    if fraction is None or planned < 0 or done < 0:
        raise QuantityError(
            f"{done} done of {planned} planned; done must be at least 0, planned above 0"
        )
    return min(_ONE, fraction)


def earned_value(*, budget_at_completion: Decimal, completed_fraction: Decimal) -> Decimal:
    """Budget of the work that is done.

    EV = BAC * f

    Args:
        budget_at_completion: BAC, money.
        completed_fraction: f, fraction, 0 to 1.

    Returns:
        Money, same currency.

    Raises:
        QuantityError: the fraction is outside 0 to 1.

    Source: ANSI/PMI 19-006-2019 (The Standard for Earned Value Management).

    >>> earned_value(budget_at_completion=Decimal(1000), completed_fraction=Decimal("0.8")) == 800
    True
    """
    if not _ZERO <= completed_fraction <= _ONE:
        raise QuantityError(
            f"the completed fraction is {completed_fraction}; it must be from 0 to 1"
        )
    return multiply(budget_at_completion, completed_fraction)


def planned_value_linear(
    *, budget_at_completion: Decimal, period: Period, as_of: datetime
) -> Decimal:
    """Budget of the work that should be done by an instant, when it is spent evenly.

    PV = BAC * min(1, max(0, (as_of - start) / (end - start)))

    Args:
        budget_at_completion: BAC, money.
        period: planned start and end of the work.
        as_of: any instant.

    Returns:
        Money, same currency, 0 before the start and BAC from the end on.

    Source: ANSI/PMI 19-006-2019; even spread is a choice of this plan.

    >>> from formulae.periods import month_from_label, parse_utc
    >>> april = month_from_label("2026-04")
    >>> noon = parse_utc("2026-04-16T00:00:00Z")
    >>> planned_value_linear(budget_at_completion=Decimal(900), period=april, as_of=noon) == 450
    True
    """
    instant = as_utc(as_of)
    if instant <= period.start:
        return _ZERO
    if instant >= period.end:
        return budget_at_completion
    elapsed = Period(start=period.start, end=instant).duration_microsecond
    share = divide(Decimal(elapsed), Decimal(period.duration_microsecond)) or _ZERO
    return multiply(budget_at_completion, share)


def cost_performance_index(state: EarnedValue) -> Decimal | None:
    """Value earned per amount spent; above 1 is under budget.

    CPI = EV / AC

    Args:
        state: amounts of one currency.

    Returns:
        Ratio; None while nothing is spent.

    Source: ANSI/PMI 19-006-2019.

    >>> state = EarnedValue(budget_at_completion=Decimal(1000), planned_value=Decimal(500),
    ...     earned_value=Decimal(400), actual_cost=Decimal(500))
    >>> cost_performance_index(state) == Decimal("0.8")
    True
    """
    return divide(state.earned_value, state.actual_cost)


def schedule_performance_index(state: EarnedValue) -> Decimal | None:
    """Value earned per value planned; above 1 is ahead.

    SPI = EV / PV

    Args:
        state: amounts of one currency.

    Returns:
        Ratio; None while nothing was planned.

    Source: ANSI/PMI 19-006-2019.

    >>> state = EarnedValue(budget_at_completion=Decimal(1000), planned_value=Decimal(500),
    ...     earned_value=Decimal(400), actual_cost=Decimal(500))
    >>> schedule_performance_index(state) == Decimal("0.8")
    True
    """
    return divide(state.earned_value, state.planned_value)


def estimate_at_completion_at_cpi(state: EarnedValue) -> Decimal | None:
    """Forecast total, when the rest costs as the past did.

    EAC = BAC / CPI = BAC * AC / EV

    Args:
        state: amounts of one currency.

    Returns:
        Money; None while nothing is earned or spent.

    Source: ANSI/PMI 19-006-2019.

    >>> state = EarnedValue(budget_at_completion=Decimal(1000), planned_value=Decimal(500),
    ...     earned_value=Decimal(400), actual_cost=Decimal(500))
    >>> estimate_at_completion_at_cpi(state) == 1250
    True
    """
    if state.actual_cost == 0:
        return None
    return divide(EXACT.multiply(state.budget_at_completion, state.actual_cost), state.earned_value)


def estimate_at_completion_at_plan(state: EarnedValue) -> Decimal:
    """Forecast total, when the rest costs as planned.

    EAC = AC + BAC - EV

    Args:
        state: amounts of one currency.

    Returns:
        Money.

    Source: ANSI/PMI 19-006-2019.

    >>> state = EarnedValue(budget_at_completion=Decimal(1000), planned_value=Decimal(500),
    ...     earned_value=Decimal(400), actual_cost=Decimal(500))
    >>> estimate_at_completion_at_plan(state) == 1100
    True
    """
    return EXACT.add(
        state.actual_cost, EXACT.subtract(state.budget_at_completion, state.earned_value)
    )


def estimate_at_completion_at_cpi_and_spi(state: EarnedValue) -> Decimal | None:
    """Forecast total, when cost and schedule both press on the rest.

    EAC = AC + (BAC - EV) / (CPI * SPI) = AC + (BAC - EV) * AC * PV / EV^2

    Args:
        state: amounts of one currency.

    Returns:
        Money; None while nothing is earned, spent or planned.

    Source: ANSI/PMI 19-006-2019.

    >>> state = EarnedValue(budget_at_completion=Decimal(1000), planned_value=Decimal(500),
    ...     earned_value=Decimal(400), actual_cost=Decimal(500))
    >>> estimate_at_completion_at_cpi_and_spi(state) == Decimal("1437.5")
    True
    """
    if state.actual_cost == 0 or state.planned_value == 0:
        return None
    remaining = EXACT.subtract(state.budget_at_completion, state.earned_value)
    spent_by_planned = EXACT.multiply(state.actual_cost, state.planned_value)
    rest = divide(
        EXACT.multiply(remaining, spent_by_planned),
        EXACT.multiply(state.earned_value, state.earned_value),
    )
    return None if rest is None else EXACT.add(state.actual_cost, rest)


def estimate_to_complete(
    *, estimate_at_completion: Decimal | None, actual_cost: Decimal
) -> Decimal | None:
    """Forecast cost of what remains.

    ETC = EAC - AC

    Args:
        estimate_at_completion: EAC, money; None when undefined.
        actual_cost: AC, money, same currency.

    Returns:
        Money; None when the forecast is undefined.

    Source: ANSI/PMI 19-006-2019.

    >>> estimate_to_complete(estimate_at_completion=Decimal(1250), actual_cost=Decimal(500)) == 750
    True
    """
    return (
        None
        if estimate_at_completion is None
        else EXACT.subtract(estimate_at_completion, actual_cost)
    )


def variance_at_completion(
    *, budget_at_completion: Decimal, estimate_at_completion: Decimal | None
) -> Decimal | None:
    """Forecast under-run (above 0) or overrun (below 0).

    VAC = BAC - EAC

    Args:
        budget_at_completion: BAC, money.
        estimate_at_completion: EAC, money, same currency; None when undefined.

    Returns:
        Money; None when the forecast is undefined.

    Source: ANSI/PMI 19-006-2019.

    >>> bac, eac = Decimal(1000), Decimal(1250)
    >>> variance_at_completion(budget_at_completion=bac, estimate_at_completion=eac)
    Decimal('-250')
    """
    return (
        None
        if estimate_at_completion is None
        else EXACT.subtract(budget_at_completion, estimate_at_completion)
    )


def to_complete_performance_index(state: EarnedValue, *, target: Decimal) -> Decimal | None:
    """Efficiency that the rest needs for the total to meet a target.

    TCPI = (BAC - EV) / (target - AC), with target = BAC or EAC

    Args:
        state: amounts of one currency.
        target: BAC, or an EAC, money, same currency.

    Returns:
        Ratio; None once the target is spent, when no efficiency can meet it.

    Source: ANSI/PMI 19-006-2019.

    >>> state = EarnedValue(budget_at_completion=Decimal(1000), planned_value=Decimal(500),
    ...     earned_value=Decimal(400), actual_cost=Decimal(500))
    >>> to_complete_performance_index(state, target=Decimal(1000)) == Decimal("1.2")
    True
    """
    left = EXACT.subtract(target, state.actual_cost)
    if left <= 0:
        return None
    return divide(EXACT.subtract(state.budget_at_completion, state.earned_value), left)


def cumulate(amounts: Iterable[Decimal | None]) -> list[Decimal | None]:
    """Running exact totals, for burn-down lines.

    S_n = a_1 + ... + a_n

    Args:
        amounts: money of one currency in order; None for a day that is not known.

    Returns:
        One total per amount; None from the first unknown day on, since a total without it would be
        too low.

    Source: definition.

    >>> cumulate([Decimal("0.1"), Decimal("0.2"), None, Decimal(1)])
    [Decimal('0.1'), Decimal('0.3'), None, None]
    """
    totals: list[Decimal | None] = []
    running: Decimal | None = _ZERO
    for amount in amounts:
        running = None if running is None or amount is None else EXACT.add(running, amount)
        totals.append(running)
    return totals

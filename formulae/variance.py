"""Why a cost, its energy and its emissions differ from plan: one cause after the other, exactly."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from formulae.drivers import AVAILABILITY, Cause, Drivers, Exact, stored, sum_known
from formulae.money import exact_sum
from formulae.units import EXACT, G_PER_KG

__all__ = ["Cause", "CauseAmount", "Drivers", "variance_by_cause"]

Step = tuple[Cause, Fraction | None]


_AROUND: Final = (Cause.STORAGE, Cause.TRANSFER, Cause.OTHER_CHARGES, Cause.CURRENCY)
_HOURS: Final = frozenset({Cause.VOLUME, Cause.EFFICIENCY, *AVAILABILITY, Cause.EXPERIMENTS})
_MONEY: Final = frozenset({*_HOURS, Cause.PRICE, *_AROUND})
_ENERGY: Final = frozenset({*_HOURS, Cause.POWER, Cause.HOST_FACTOR, Cause.PUE})
_CARBON: Final = frozenset({*_ENERGY, Cause.CARBON_INTENSITY})


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseAmount:
    """What one cause adds to plan; below 0 it saved.

    None: what it adds cannot be told, and is part of `unexplained`; or the total is not known.
    0: it does not bear on this quantity, or nothing moved.
    """

    cause: Cause
    cost: Decimal | None
    facility_kwh: Decimal | None
    kgco2e: Decimal | None


def variance_by_cause(planned: Drivers, actual: Drivers) -> tuple[CauseAmount, ...]:
    """The difference between actuals and plan by cause, in money, energy and emissions.

    cost = price * (FLOP / (3600 * peak * MFU) + lost hours + other hours) + other charges;
    kWh = hours * kW * host factor * PUE; kg = kWh * intensity / 1000; the drivers of the plan
    become the actual ones in the order of Cause, and each cause is the difference that its step
    makes. The levels between the steps are rounded once, to 18 decimals, so that causes sum to the
    difference exactly. A step that lacks a driver is left out: what it hides is `unexplained`.

    Args:
        planned: the budget of the work that was done.
        actual: what was used; hours >= 0.

    Returns:
        Every cause once, in the order of Cause; amounts sum to actual less planned wherever both
        totals are known, and all are None where one is not.

    Source: own rule; one factor at a time as in cost variance analysis (Horngren, Datar and Rajan,
    Cost Accounting, 15th edition 2015, chapters 7 and 8).

    >>> planned = Drivers(tokens=100, productive_h=9, main_h=10, other_h=0,
    ...     accelerator_cost=Decimal(20))
    >>> actual = Drivers(tokens=100, productive_h=12, lost_h={Cause.DOWN: 2}, main_h=14, other_h=0,
    ...     accelerator_cost=Decimal(35))
    >>> for one in variance_by_cause(planned, actual):
    ...     if one.cost:
    ...         print(one.cause.value, f"{one.cost:.2f}")
    efficiency 6.67
    down 1.33
    price 7.00
    """
    hours = _hour_steps(planned, actual)
    money = _explained((planned.cost, actual.cost), _money_steps(planned, actual, hours), _MONEY)
    kwh_steps = _kwh_steps(planned, actual, hours)
    kwh = (planned.facility_kwh, actual.facility_kwh)
    energy = _explained(kwh, kwh_steps, _ENERGY)
    kg = (planned.kgco2e, actual.kgco2e)
    carbon = _explained(kg, _kg_steps(planned, actual, kwh_steps), _CARBON)
    return tuple(
        CauseAmount(
            cause=cause, cost=money[cause], facility_kwh=energy[cause], kgco2e=carbon[cause]
        )
        for cause in Cause
    )


def _hour_steps(planned: Drivers, actual: Drivers) -> list[Step]:
    """All accelerator-hours after each cause that moves them; None where it cannot be told."""
    if planned.main_h is None or planned.other_h is None:
        return []
    main, other = Fraction(planned.main_h), Fraction(planned.other_h)
    steps: list[Step] = []
    work = _work_ratio(planned, actual)
    if work is not None:
        main *= work
    steps.append((Cause.VOLUME, None if work is None else main + other))
    growth = _growth(planned, actual)
    if growth is not None:
        main = Fraction(planned.main_h) + growth
    # Without the tokens, more work and slower work look alike.
    grown = None if growth is None else main + other
    steps.append((Cause.UNEXPLAINED if work is None else Cause.EFFICIENCY, grown))
    for cause, more_h in _more_lost(planned, actual):
        if more_h is not None:
            main += more_h
        steps.append((cause, None if more_h is None else main + other))
    if actual.productive_h is None and actual.main_h is not None:
        main = Fraction(actual.main_h) + Fraction(actual.unassigned_h)
        steps.append((Cause.UNEXPLAINED, main + other))
    is_told = actual.other_h is not None
    if actual.other_h is not None:
        other = Fraction(actual.other_h)
    steps.append((Cause.EXPERIMENTS, main + other if is_told else None))
    return steps


def _work_ratio(planned: Drivers, actual: Drivers) -> Fraction | None:
    """Work done over work budgeted: FLOP where both know them, else tokens."""
    tokens = _ratio(actual.tokens, planned.tokens)
    if actual.tokens is not None and actual.tokens == planned.tokens:
        tokens = Fraction(1)  # none of none, too
    flop = _ratio(actual.flop_per_token, planned.flop_per_token)
    if tokens is None:
        return None
    return tokens if flop is None else tokens * flop


def _growth(planned: Drivers, actual: Drivers) -> Fraction | None:
    """What actual productive hours add to planned hours, with the plan's losses per useful hour."""
    if planned.productive_h is None or actual.productive_h is None or planned.main_h is None:
        return None
    scale = _ratio(planned.main_h, planned.productive_h)
    scaled = Fraction(actual.productive_h) * (1 if scale is None else scale)
    return scaled - Fraction(planned.main_h)


def _more_lost(planned: Drivers, actual: Drivers) -> list[Step]:
    """By availability cause, the hours lost beyond what the plan allows, those of no run too."""
    nobodys = Fraction(actual.unassigned_h)
    return [
        (cause, (more_h or Fraction(0)) + nobodys)
        if nobodys and cause is Cause.UNKNOWN_TIME
        else (cause, more_h)
        for cause, more_h in _beyond_allowance(planned, actual)
    ]


def _beyond_allowance(planned: Drivers, actual: Drivers) -> list[Step]:
    """By availability cause, the hours lost beyond what the plan allows for the useful hours.

    Where useful hours are not known, only the causes that actuals name are told.
    """
    rest, allowance = actual.left_over_h, planned.left_over_h
    if allowance is None:
        return [(cause, None) for cause in AVAILABILITY]
    lost = {cause: Fraction(hours) for cause, hours in actual.lost_h.items()}
    scale = _work_ratio(planned, actual)
    if rest is not None:
        lost = {cause: lost.get(cause, Fraction(0)) for cause in AVAILABILITY}
        lost[Cause.UNKNOWN_TIME] += rest
        scale = _ratio(actual.productive_h, planned.productive_h) or Fraction(0)
    scale = Fraction(1) if scale is None else scale
    beyond = {cause: lost[cause] - scale * _named(planned, cause) for cause in lost}
    over = sum((max(Fraction(0), hours) for hours in beyond.values()), Fraction(0))
    steps: list[Step] = []
    for cause in AVAILABILITY:
        more_h = beyond.get(cause)
        if more_h is not None:
            spared = Fraction(cause is Cause.DOWN and rest is not None)
            share = max(Fraction(0), more_h) / over if over else spared
            more_h -= allowance * scale * share
        steps.append((cause, more_h))
    return steps


def _named(planned: Drivers, cause: Cause) -> Fraction:
    """The hours that a plan says a cause takes."""
    return Fraction(planned.lost_h.get(cause, 0))


def _money_steps(planned: Drivers, actual: Drivers, hours: Iterable[Step]) -> list[Step]:
    """The whole cost after each cause."""
    price = _ratio(planned.accelerator_cost, planned.hours)
    if price is None:
        price = _exact(planned.price_per_accelerator_h)
    computed, around = _exact(planned.other_compute_cost), sum_known(planned.around)
    if computed is None or around is None:
        return []
    steps: list[Step] = []
    for cause, level in hours:
        if cause is Cause.EXPERIMENTS and level is not None:
            computed = _exact(actual.other_compute_cost) or Fraction(0)
        cost = _product(level, price)
        steps.append((cause, None if cost is None else cost + computed + around))
    cost = _product(actual.hours, price)
    is_priced = cost is not None
    if cost is not None:
        computed = _exact(actual.other_compute_cost) or Fraction(0)
        steps.append((Cause.UNEXPLAINED, cost + computed + around))
    compute = sum_known((actual.accelerator_cost, actual.other_compute_cost))
    parts = [_exact(part) for part in planned.around]
    priced = sum_known((compute, *parts))
    steps.append((Cause.PRICE if is_priced else Cause.UNEXPLAINED, priced))
    for place, (cause, part) in enumerate(zip(_AROUND, actual.around, strict=True)):
        parts[place] = _exact(part)
        steps.append((cause, sum_known((compute, *parts))))
    return steps


def _kwh_steps(planned: Drivers, actual: Drivers, hours: Iterable[Step]) -> list[Step]:
    """The energy of the facility after each cause."""
    host = _ratio(planned.it_kwh, planned.accelerator_kwh) or _exact(planned.host_factor)
    pue = _ratio(planned.facility_kwh, planned.it_kwh) or _exact(planned.pue)
    kwh_per_h = _ratio(planned.facility_kwh, planned.hours)
    if kwh_per_h is None:
        kwh_per_h = _product(_exact(planned.accelerator_kw), host, pue)
    steps: list[Step] = [(cause, _product(level, kwh_per_h)) for cause, level in hours]
    used = _product(actual.hours, kwh_per_h)
    drawn = None if used is None else _product(_exact(actual.accelerator_kwh), host, pue)
    behind_hosts = None if drawn is None else _product(_exact(actual.it_kwh), pue)
    facility_kwh = _exact(actual.facility_kwh)
    return [
        *steps,
        (Cause.UNEXPLAINED, used),
        (Cause.POWER, drawn),
        (Cause.HOST_FACTOR, behind_hosts),
        (Cause.PUE, None if behind_hosts is None else facility_kwh),
        (Cause.UNEXPLAINED, facility_kwh),
    ]


def _kg_steps(planned: Drivers, actual: Drivers, kwh: Iterable[Step]) -> list[Step]:
    """The emissions after each cause."""
    grams = _ratio(planned.kgco2e, planned.facility_kwh, G_PER_KG)
    if grams is None:
        grams = _exact(planned.g_per_kwh)
    steps = [(cause, _product(level, grams, Fraction(1, G_PER_KG))) for cause, level in kwh]
    is_told = steps[-1][1] is not None
    return [*steps, (Cause.CARBON_INTENSITY, _exact(actual.kgco2e) if is_told else None)]


def _explained(
    ends: tuple[Exact | None, Exact | None], steps: Iterable[Step], bears: frozenset[Cause]
) -> dict[Cause, Decimal | None]:
    """The difference that each step makes; what the steps leave open is unexplained."""
    planned, actual = (stored(_exact(end)) for end in ends)
    if planned is None or actual is None:
        return dict.fromkeys(Cause)
    found: dict[Cause, Decimal | None] = {
        cause: None if cause in bears else Decimal(0) for cause in Cause
    }
    reached = planned
    for cause, exact_level in [*steps, (Cause.UNEXPLAINED, Fraction(actual))]:
        level = stored(exact_level)
        if level is not None:
            step = EXACT.subtract(level, reached)
            found[cause] = exact_sum((found[cause] or Decimal(0), step))
            reached = level
    return found


def _exact(value: Exact | None) -> Fraction | None:
    return None if value is None else Fraction(value)


def _product(*factors: Fraction | None) -> Fraction | None:
    """The exact product; None where a factor is not known."""
    product = Fraction(1)
    for factor in factors:
        if factor is None:
            return None
        product *= factor
    return product


def _ratio(over: Exact | None, under: Exact | None, times: int = 1) -> Fraction | None:
    """The exact ratio; None where a part is not known or the lower one is 0."""
    if over is None or not under:
        return None
    return Fraction(over) / Fraction(under) * times

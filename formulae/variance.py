"""Why a cost, its energy and its emissions differ from plan: one cause after the other, exactly."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Final

from formulae.money import divide, exact_sum
from formulae.time_ledger import Bucket
from formulae.units import EXACT, G_PER_KG, MONEY_LIMIT, QuantityError

Exact = Decimal | Fraction | int
Step = tuple["Cause", Fraction | None]


class Cause(StrEnum):
    """What moved a figure, in the order in which the plan's drivers become the actual ones."""

    VOLUME = "volume"
    EFFICIENCY = "efficiency"
    DOWN = "down"
    RESTART = "restart"
    REWORK = "rework"
    CHECKPOINT = "checkpoint"
    DATA_STALL = "data_stall"
    STRAGGLER = "straggler"
    IDLE = "idle"
    UNKNOWN_TIME = "unknown_time"
    EXPERIMENTS = "experiments"
    PRICE = "price"
    POWER = "power"
    HOST_FACTOR = "host_factor"
    PUE = "pue"
    CARBON_INTENSITY = "carbon_intensity"
    STORAGE = "storage"
    TRANSFER = "transfer"
    OTHER_CHARGES = "other_charges"
    CURRENCY = "currency"
    UNEXPLAINED = "unexplained"


# Slow steps are no bucket here: they are a lower MFU. What is productive is not lost.
CAUSE_OF_BUCKET: Final = {
    Bucket.DOWN: Cause.DOWN,
    Bucket.STARTUP: Cause.RESTART,
    Bucket.REWORK: Cause.REWORK,
    Bucket.CHECKPOINT: Cause.CHECKPOINT,
    Bucket.DATA_STALL: Cause.DATA_STALL,
    Bucket.STRAGGLER: Cause.STRAGGLER,
    Bucket.IDLE: Cause.IDLE,
    Bucket.UNKNOWN: Cause.UNKNOWN_TIME,
}
AVAILABILITY: Final = tuple(CAUSE_OF_BUCKET.values())
_AROUND: Final = (Cause.STORAGE, Cause.TRANSFER, Cause.OTHER_CHARGES, Cause.CURRENCY)
_HOURS: Final = frozenset({Cause.VOLUME, Cause.EFFICIENCY, *AVAILABILITY, Cause.EXPERIMENTS})
_MONEY: Final = frozenset({*_HOURS, Cause.PRICE, *_AROUND})
_ENERGY: Final = frozenset({*_HOURS, Cause.POWER, Cause.HOST_FACTOR, Cause.PUE})
_CARBON: Final = frozenset({*_ENERGY, Cause.CARBON_INTENSITY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Drivers:
    """What a cost, its energy and its emissions are made of; None is not known.

    Planned drivers are those of the budget for the work that was done. `main_h` and `other_h` are
    accelerator-hours of the main run and of everything else. `lost_h` holds hours of the main run
    by availability cause; what of `main_h` is neither productive nor lost is unknown time in
    actuals, and an allowance in a plan: it is set against what was lost beyond the plan's own
    `lost_h`, in proportion. `currency_cost` is what exchange rates that moved have added,
    the other amounts being at the plan's rates. The rates serve a plan that has no hours yet.
    """

    tokens: Exact | None = None
    flop_per_token: Exact | None = None
    productive_h: Exact | None = None
    lost_h: Mapping[Cause, Exact] = field(default_factory=dict)
    main_h: Exact | None = None
    other_h: Exact | None = None
    accelerator_h: Exact | None = None
    accelerator_cost: Exact | None = None
    other_compute_cost: Exact | None = 0
    storage_cost: Exact | None = 0
    transfer_cost: Exact | None = 0
    other_cost: Exact | None = 0
    currency_cost: Exact | None = 0
    accelerator_kwh: Exact | None = None
    it_kwh: Exact | None = None
    facility_kwh: Exact | None = None
    kgco2e: Exact | None = None
    price_per_accelerator_h: Exact | None = None
    accelerator_kw: Exact | None = None
    host_factor: Exact | None = None
    pue: Exact | None = None
    g_per_kwh: Exact | None = None

    @property
    def cost(self) -> Decimal | None:
        """All amounts together, to 18 decimals; None where one is not known."""
        parts = (self.accelerator_cost, self.other_compute_cost, *_around(self))
        return _quantised(_sum(parts))

    @property
    def hours(self) -> Fraction | None:
        """All accelerator-hours: as given, else those of the main run and the others."""
        if self.accelerator_h is not None:
            return Fraction(self.accelerator_h)
        return _sum((self.main_h, self.other_h))


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

    Raises:
        QuantityError: hours below 0, or more productive and lost hours than the main run has.

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
    for drivers in (planned, actual):
        _check(drivers)
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


def _check(drivers: Drivers) -> None:
    """Refuse hours that cannot be."""
    given = (drivers.productive_h, drivers.main_h, drivers.other_h, drivers.accelerator_h)
    if any(hours is not None and hours < 0 for hours in (*given, *drivers.lost_h.values())):
        raise QuantityError("hours must be at least 0")
    if not drivers.lost_h.keys() <= set(AVAILABILITY):
        raise QuantityError(f"lost hours are of {', '.join(AVAILABILITY)}")
    left = _left_over(drivers)
    if left is not None and left < 0:
        raise QuantityError(f"the main run has {-left} h less than its parts together")


def _left_over(drivers: Drivers) -> Fraction | None:
    """Hours of the main run that are neither productive nor lost to something."""
    if drivers.main_h is None or drivers.productive_h is None:
        return None
    lost = sum((Fraction(hours) for hours in drivers.lost_h.values()), Fraction(0))
    return Fraction(drivers.main_h) - Fraction(drivers.productive_h) - lost


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
    is_told = actual.other_h is not None
    if actual.other_h is not None:
        other = Fraction(actual.other_h)
    steps.append((Cause.EXPERIMENTS, main + other if is_told else None))
    return steps


def _work_ratio(planned: Drivers, actual: Drivers) -> Fraction | None:
    """Work done over work budgeted: FLOP where both know them, else tokens."""
    tokens = _ratio(actual.tokens, planned.tokens)
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
    """By availability cause, the hours lost beyond what the plan allows for the useful hours."""
    rest, allowance = _left_over(actual), _left_over(planned)
    if rest is None or allowance is None or planned.productive_h is None:
        return [(cause, None) for cause in AVAILABILITY]
    lost = {cause: Fraction(actual.lost_h.get(cause, 0)) for cause in AVAILABILITY}
    lost[Cause.UNKNOWN_TIME] += rest
    scale = _ratio(actual.productive_h, planned.productive_h) or Fraction(0)
    beyond = {
        cause: lost[cause] - Fraction(planned.lost_h.get(cause, 0)) * scale
        for cause in AVAILABILITY
    }
    over = sum((max(Fraction(0), hours) for hours in beyond.values()), Fraction(0))
    steps: list[Step] = []
    for cause, more_h in beyond.items():
        share = max(Fraction(0), more_h) / over if over else Fraction(cause is Cause.DOWN)
        steps.append((cause, more_h - allowance * scale * share))
    return steps


def _money_steps(planned: Drivers, actual: Drivers, hours: Iterable[Step]) -> list[Step]:
    """The whole cost after each cause."""
    price = _ratio(planned.accelerator_cost, planned.hours)
    if price is None:
        price = _exact(planned.price_per_accelerator_h)
    computed, around = _exact(planned.other_compute_cost), _sum(_around(planned))
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
    compute = _sum((actual.accelerator_cost, actual.other_compute_cost))
    parts = [_exact(part) for part in _around(planned)]
    priced = _sum((compute, *parts))
    steps.append((Cause.PRICE if is_priced else Cause.UNEXPLAINED, priced))
    for place, (cause, part) in enumerate(zip(_AROUND, _around(actual), strict=True)):
        parts[place] = _exact(part)
        steps.append((cause, _sum((compute, *parts))))
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
    planned, actual = (_quantised(_exact(end)) for end in ends)
    if planned is None or actual is None:
        return dict.fromkeys(Cause)
    found: dict[Cause, Decimal | None] = {
        cause: None if cause in bears else Decimal(0) for cause in Cause
    }
    reached = planned
    for cause, exact_level in [*steps, (Cause.UNEXPLAINED, Fraction(actual))]:
        level = _quantised(exact_level)
        if level is not None:
            step = EXACT.subtract(level, reached)
            found[cause] = exact_sum((found[cause] or Decimal(0), step))
            reached = level
    return found


def _around(drivers: Drivers) -> tuple[Exact | None, ...]:
    """What is charged beside compute, in the order of _AROUND."""
    return (
        drivers.storage_cost,
        drivers.transfer_cost,
        drivers.other_cost,
        drivers.currency_cost,
    )


def _exact(value: Exact | None) -> Fraction | None:
    return None if value is None else Fraction(value)


def _sum(parts: Iterable[Exact | None]) -> Fraction | None:
    """The exact sum; None where a part is not known."""
    total = Fraction(0)
    for part in parts:
        if part is None:
            return None
        total += Fraction(part)
    return total


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


def _quantised(value: Fraction | None) -> Decimal | None:
    """The nearest number of 18 decimals; None where it is too large to be stored."""
    if value is None or abs(value) >= MONEY_LIMIT:
        return None
    return divide(Decimal(value.numerator), Decimal(value.denominator))

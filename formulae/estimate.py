"""The kickoff estimate of a main run, its seeded interval and the plan lines; no catalogue."""

import math
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from formulae.compute import accelerator_hours, days, training_flop
from formulae.emissions import operational_kgco2e
from formulae.energy import facility_energy_kwh, it_energy_kwh
from formulae.estimate_spec import EstimateInputError, EstimateSpec, Triangular
from formulae.money import Money, quantise_money, round_half_even, sum_money
from formulae.units import WH_PER_KWH

__all__ = [
    "PLAN_LINES",
    "REFERENCE_BAND",
    "EstimateInputError",
    "EstimateInterval",
    "EstimateResult",
    "EstimateSpec",
    "MoneyPercentiles",
    "Percentiles",
    "PlanLineAmount",
    "PlanLineBase",
    "PlanLineRule",
    "Triangular",
    "cost_of_hours",
    "estimate_training",
    "plan_lines",
    "programme_multiple",
]

_Draws = NDArray[np.float64]
_LEVELS: Final = (0.10, 0.50, 0.80, 0.90)
_HOUR_DECIMALS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """Percentiles and mean of one quantity, in its unit."""

    p10: float
    p50: float
    p80: float
    p90: float
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyPercentiles:
    """Percentiles and mean of a cost, exact multiples of the price."""

    p10: Money
    p50: Money
    p80: Money
    p90: Money
    mean: Money


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateInterval:
    """The spread of each quantity over seeded draws; None where the quantity itself is None."""

    draws: int
    seed: int
    accelerator_h: Percentiles
    days: Percentiles
    cost: MoneyPercentiles | None
    accelerator_energy_kwh: Percentiles | None
    it_energy_kwh: Percentiles | None
    facility_energy_kwh: Percentiles | None
    scope_2_location_kgco2e: Percentiles | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateResult:
    """The main run, 1.0x; what an unknown input leaves open is None, and so is an interval without
    ranges.
    """

    flop: float
    accelerator_h: float
    days: float
    cost: Money | None
    accelerator_energy_kwh: float | None
    it_energy_kwh: float | None
    facility_energy_kwh: float | None
    scope_2_location_kgco2e: float | None
    interval: EstimateInterval | None


class PlanLineBase(StrEnum):
    """What the fraction of a plan line applies to."""

    MAIN_RUN = "main_run"
    SUBTOTAL = "subtotal"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLineRule:
    """One line of the plan: a fraction of the main run, or of the subtotal of the lines above."""

    key: str
    fraction: Decimal
    base: PlanLineBase


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLineAmount:
    """One line of a plan: its rule, the amount that the fraction applies to, and the product."""

    rule: PlanLineRule
    base_amount: Money
    amount: Money


PLAN_LINES: Final = (
    PlanLineRule(key="main_run", fraction=Decimal("1.00"), base=PlanLineBase.MAIN_RUN),
    PlanLineRule(key="experiments", fraction=Decimal("0.20"), base=PlanLineBase.MAIN_RUN),
    PlanLineRule(key="preprocessing", fraction=Decimal("0.05"), base=PlanLineBase.MAIN_RUN),
    PlanLineRule(key="distillation", fraction=Decimal("0.15"), base=PlanLineBase.MAIN_RUN),
    PlanLineRule(key="evaluation", fraction=Decimal("0.05"), base=PlanLineBase.MAIN_RUN),
    PlanLineRule(key="contingency", fraction=Decimal("0.20"), base=PlanLineBase.SUBTOTAL),
)
REFERENCE_BAND: Final = (Decimal("1.8"), Decimal("2.0"))


def estimate_training(spec: EstimateSpec) -> EstimateResult:
    """Compute, time, money, energy and carbon of one main run.

    F = 6 * N_active * D; hours = F / (peak * MFU * goodput * 3600); cost = hours * price;
    E_accelerator = hours * P / 1000; E_it = E_accelerator * host; E_facility = E_it * PUE;
    C = E_facility * I / 1000

    Args:
        spec: checked inputs.

    Returns:
        The point estimate, and the interval when the spec holds at least one range.

    Source: the formulae of compute, energy and emissions; billed hours that make no progress draw
    the same mean power.

    >>> spec = EstimateSpec(
    ...     active_params=1e10,
    ...     tokens=1e13,
    ...     accelerators=256,
    ...     peak_flop_per_s=989.4e12,
    ...     mfu=0.55,
    ... )
    >>> result = estimate_training(spec)
    >>> result.flop, round(result.accelerator_h), round(result.days, 2), result.cost
    (6e+23, 306277, 49.85, None)
    """
    flop = training_flop(spec.active_params, spec.tokens)
    accelerator_h = accelerator_hours(
        flop=flop, peak_flop_per_s=spec.peak_flop_per_s, mfu=spec.mfu, goodput=spec.goodput
    )
    accelerator_kwh = _energy_kwh(accelerator_h, spec.mean_power_w)
    it_kwh = it_energy_kwh(accelerator_kwh, spec.host_factor)
    facility_kwh = facility_energy_kwh(it_kwh, spec.pue)
    return EstimateResult(
        flop=flop,
        accelerator_h=accelerator_h,
        days=days(accelerator_h, spec.accelerators),
        cost=_cost(accelerator_h, spec),
        accelerator_energy_kwh=accelerator_kwh,
        it_energy_kwh=it_kwh,
        facility_energy_kwh=facility_kwh,
        scope_2_location_kgco2e=operational_kgco2e(facility_kwh, spec.g_per_kwh),
        interval=_interval(spec, flop),
    )


def cost_of_hours(accelerator_h: float, price_per_accelerator_h: Money) -> Money:
    """Exact cost of a physical quantity of accelerator-hours.

    cost = half-even(hours, 6 decimals) * price

    Args:
        accelerator_h: accelerator-hours, h, finite, >= 0.
        price_per_accelerator_h: contract rate, money per h.

    Returns:
        Money in the currency of the price.

    Source: design rule; six decimals of an hour are 3.6 ms, finer than any bill.

    >>> cost_of_hours(2_788_000.0, Money.of("2", "USD")) == Money.of(5_576_000, "USD")
    True
    """
    return price_per_accelerator_h.times(
        round_half_even(Decimal(accelerator_h), decimals=_HOUR_DECIMALS)
    )


def programme_multiple() -> Decimal:
    """What the whole programme costs as a multiple of its main run, by the plan lines.

    multiple = (1 + 0.20 + 0.05 + 0.15 + 0.05) * (1 + 0.20) = 1.45 * 1.20 = 1.74

    The chapter that lists these lines prints "about 1.86" for the same product and concludes that
    a budget should be 1.8 to 2.0 times the main run. The product is 1.74; 1.86 is 1.55 * 1.20, as
    if one more line of 10 % were listed. The band of 1.8 to 2.0 is kept apart, as REFERENCE_BAND.

    Returns:
        Ratio to the main run, exact.

    Source: chapter 23, section 23.1, budget table; its product corrected here.

    >>> programme_multiple() == Decimal("1.74")
    True
    """
    return sum(
        (line.amount.amount for line in plan_lines(Money.of(1, "XXX"))), Decimal(0)
    ).normalize()


def plan_lines(main_run_cost: Money) -> tuple[PlanLineAmount, ...]:
    """The amounts of the plan lines, contingency last, on the subtotal of the others.

    line_i = fraction_i * main_run; contingency = 0.20 * sum(line_i)

    Args:
        main_run_cost: accelerator-hours of the main run at the contract rate, 1.0x.

    Returns:
        One amount for each of PLAN_LINES. They sum to 1.74 times the main run (see
        programme_multiple), exactly while the cost has at most 14 decimals.

    Source: chapter 23, section 23.1, budget table.

    >>> for line in plan_lines(Money.of(1000, "USD")):
    ...     print(line.rule.key, round(line.amount.amount))
    main_run 1000
    experiments 200
    preprocessing 50
    distillation 150
    evaluation 50
    contingency 290
    """
    lines: list[PlanLineAmount] = []
    for rule in PLAN_LINES:
        base = main_run_cost
        if rule.base is PlanLineBase.SUBTOTAL:
            base = sum_money((line.amount for line in lines), currency=main_run_cost.currency)
        lines.append(PlanLineAmount(rule=rule, base_amount=base, amount=base.times(rule.fraction)))
    return tuple(lines)


def _energy_kwh(accelerator_h: float, power_w: float | None) -> float | None:
    """Accelerator energy of billed hours at a mean power, kWh; None without a power."""
    return None if power_w is None else accelerator_h * power_w / WH_PER_KWH


def _price(spec: EstimateSpec) -> Money | None:
    """The price with its currency; None without a price."""
    if spec.price_per_accelerator_h is None or spec.currency is None:
        return None
    return Money(amount=quantise_money(spec.price_per_accelerator_h), currency=spec.currency)


def _cost(accelerator_h: float, spec: EstimateSpec) -> Money | None:
    """The cost of the hours; None without a price."""
    price = _price(spec)
    return None if price is None else cost_of_hours(accelerator_h, price)


def _interval(spec: EstimateSpec, flop: float) -> EstimateInterval | None:
    """Percentiles over seeded draws; None when no input is given as a range."""
    if spec.mfu_range is None and spec.goodput_range is None and spec.power_w_range is None:
        return None
    # One stream for each input: a range that is added for one leaves the draws of the others as
    # they were.
    streams = [np.random.default_rng(child) for child in np.random.SeedSequence(spec.seed).spawn(3)]
    mfu = _draw(streams[0], spec.mfu_range, spec.mfu, spec.draws)
    goodput = _draw(streams[1], spec.goodput_range, spec.goodput, spec.draws)
    hours = accelerator_hours(
        flop=flop, peak_flop_per_s=spec.peak_flop_per_s, mfu=1.0, goodput=1.0
    ) / (mfu * goodput)
    power = spec.mean_power_w
    energy = None
    if power is not None:
        energy = hours * _draw(streams[2], spec.power_w_range, power, spec.draws) / WH_PER_KWH
    accelerator_h = _percentiles(hours)
    per_kwh = it_energy_kwh(1.0, spec.host_factor)
    facility_per_kwh = facility_energy_kwh(per_kwh, spec.pue)
    return EstimateInterval(
        draws=spec.draws,
        seed=spec.seed,
        accelerator_h=accelerator_h,
        days=_percentiles(hours * days(1.0, spec.accelerators)),
        cost=_money_percentiles(accelerator_h, spec),
        accelerator_energy_kwh=_scaled(energy, 1.0),
        it_energy_kwh=_scaled(energy, per_kwh),
        facility_energy_kwh=_scaled(energy, facility_per_kwh),
        scope_2_location_kgco2e=_scaled(
            energy, operational_kgco2e(facility_per_kwh, spec.g_per_kwh)
        ),
    )


def _draw(stream: np.random.Generator, span: Triangular | None, point: float, draws: int) -> _Draws:
    """Draws of one input; the point itself where there is no range or the range has no width."""
    if span is None:
        return np.full(draws, point)
    if span.low == span.high:
        return np.full(draws, span.mode)
    return stream.triangular(span.low, span.mode, span.high, size=draws)


def _percentiles(values: _Draws) -> Percentiles:
    """P10, P50, P80, P90 (linear between draws) and mean."""
    p10, p50, p80, p90 = (float(level) for level in np.quantile(values, _LEVELS))
    return Percentiles(p10=p10, p50=p50, p80=p80, p90=p90, mean=math.fsum(values) / len(values))


def _scaled(values: _Draws | None, factor: float | None) -> Percentiles | None:
    """Percentiles of the draws times a factor; None when either is unknown."""
    return None if values is None or factor is None else _percentiles(values * factor)


def _money_percentiles(accelerator_h: Percentiles, spec: EstimateSpec) -> MoneyPercentiles | None:
    """Hours' percentiles at the price: cost rises with the hours, so percentiles carry over
    exactly.
    """
    price = _price(spec)
    if price is None:
        return None
    return MoneyPercentiles(
        p10=cost_of_hours(accelerator_h.p10, price),
        p50=cost_of_hours(accelerator_h.p50, price),
        p80=cost_of_hours(accelerator_h.p80, price),
        p90=cost_of_hours(accelerator_h.p90, price),
        mean=cost_of_hours(accelerator_h.mean, price),
    )

"""The kickoff estimate of a main run and its programme by seeded draws; no priors in here."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from formulae.beliefs import Belief, Draws
from formulae.compute import accelerator_hours
from formulae.estimate_spec import EstimateInputError, EstimateSpec
from formulae.money import Money, quantise_money, round_half_even
from formulae.plan_lines import REFERENCE_BAND, PlanLineBase
from formulae.tornado import TornadoBar, product_tornado, spread_of
from formulae.units import G_PER_KG, HOURS_PER_DAY, WH_PER_KWH

__all__ = [
    "EstimateInputError",
    "EstimateResult",
    "EstimateSpec",
    "MoneyPercentiles",
    "Percentiles",
    "ProgrammeResult",
    "cost_of_hours",
    "estimate_training",
]

_HOUR_DECIMALS: Final = 6
# The power of each input in each result: hours = F / (peak * mfu * goodput), and so on.
_HOURS: Final = {"step_mfu": -1, "goodput": -1}
_COST: Final = {**_HOURS, "price_ratio": 1}
_ACCELERATOR_KWH: Final = {**_HOURS, "power_w": 1}
_IT_KWH: Final = {**_ACCELERATOR_KWH, "host_factor": 1}
_FACILITY_KWH: Final = {**_IT_KWH, "pue": 1}
_EXPONENTS: Final[dict[str, dict[str, int]]] = {
    "accelerator_h": _HOURS,
    "cost": _COST,
    "accelerator_energy_kwh": _ACCELERATOR_KWH,
    "it_energy_kwh": _IT_KWH,
    "facility_energy_kwh": _FACILITY_KWH,
    "scope_2_location_kgco2e": {**_FACILITY_KWH, "g_per_kwh": 1},
    "scope_2_market_kgco2e": {**_FACILITY_KWH, "market_g_per_kwh": 1},
    "embodied_kgco2e": {**_HOURS, "embodied_kg_per_accelerator_h": 1},
    "water_l": {**_IT_KWH, "wue_l_per_kwh": 1},
}
_INPUTS: Final = tuple(dict.fromkeys(name for powers in _EXPONENTS.values() for name in powers))
_TORNADOES: Final = (
    "accelerator_h",
    "cost",
    "facility_energy_kwh",
    "scope_2_location_kgco2e",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """Percentiles and mean of one quantity, in its unit."""

    p10: float
    p50: float
    p80: float
    p90: float
    mean: float

    def scaled(self, factor: float) -> "Percentiles":
        """The percentiles of the quantity times a factor >= 0."""
        return Percentiles(**{f.name: getattr(self, f.name) * factor for f in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyPercentiles:
    """Percentiles and mean of a cost."""

    p10: Money
    p50: Money
    p80: Money
    p90: Money
    mean: Money


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgrammeResult:
    """The main run and the lines around it, before any contingency, over seeded draws.

    `inside_fraction` are the probabilities of ending at or below each multiple of REFERENCE_BAND,
    where 1.0x is the main run at its median. `contingency` is P80 less P50.
    """

    cost: MoneyPercentiles
    contingency: Money
    inside_fraction: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateResult:
    """The main run, 1.0x, and its programme; what an unknown input leaves open is None."""

    flop: float
    accelerator_h: Percentiles
    days: Percentiles | None
    cost: MoneyPercentiles | None
    programme: ProgrammeResult | None
    accelerator_energy_kwh: Percentiles | None
    it_energy_kwh: Percentiles | None
    facility_energy_kwh: Percentiles | None
    scope_2_location_kgco2e: Percentiles | None
    scope_2_market_kgco2e: Percentiles | None
    embodied_kgco2e: Percentiles | None
    water_l: Percentiles | None
    tornado: Mapping[str, tuple[TornadoBar, ...]]


def estimate_training(spec: EstimateSpec) -> EstimateResult:
    """Compute, time, money, energy, carbon and water of one main run, each with its interval.

    F = flop_per_token * D; hours = F / (peak * MFU * goodput * 3600); cost = hours * price;
    E_accelerator = hours * P / 1000; E_it = E_accelerator * host; E_facility = E_it * PUE;
    C = E_facility * I / 1000; embodied = hours * kg per hour; water = E_it * WUE

    Every uncertain input is drawn `draws` times from its own stream of the seed, so that a range
    for one input leaves the draws of the others as they were. Percentiles are linear between draws.

    Args:
        spec: checked inputs.

    Returns:
        Percentiles of every quantity; all equal where no input is uncertain.

    Source: the formulae of compute, energy and emissions; billed hours that make no progress draw
    the same mean power.

    >>> from formulae.beliefs import Certain
    >>> spec = EstimateSpec(
    ...     flop_per_token=6e10,
    ...     tokens=1e13,
    ...     accelerators=256,
    ...     peak_flop_per_s=989.4e12,
    ...     step_mfu=Certain(value=0.55),
    ... )
    >>> result = estimate_training(spec)
    >>> result.flop, round(result.accelerator_h.p50), round(result.days.p50, 2), result.cost
    (6e+23, 306277, 49.85, None)
    """
    flop = spec.flop_per_token * spec.tokens
    ideal_h = accelerator_hours(
        flop=flop, peak_flop_per_s=spec.peak_flop_per_s, mfu=1.0, goodput=1.0
    )
    beliefs = {name: getattr(spec, name) for name in _INPUTS}
    beliefs = {name: belief for name, belief in beliefs.items() if belief is not None}
    draws = _draw_all(spec, {**beliefs, "development_ratio": spec.development_ratio})
    samples = _samples(spec, ideal_h=ideal_h, draws=draws)
    main = samples.pop("cost", None) if spec.price_ratio.is_certain else samples.get("cost")
    found = _percentiles(samples, dtype=np.float32)
    hours = found["accelerator_h"]
    cost = _main_cost(spec, hours, found.get("cost"))
    return EstimateResult(
        flop=flop,
        accelerator_h=hours,
        days=None
        if spec.accelerators is None
        else hours.scaled(1 / spec.accelerators / HOURS_PER_DAY),
        cost=cost,
        programme=None
        if cost is None or main is None
        else _programme(spec, main, draws, main_run=cost.p50),
        tornado=_tornadoes(spec, beliefs, ideal_h=ideal_h),
        **{name: found.get(name) for name in _PHYSICAL},
    )


_PHYSICAL: Final = (
    "accelerator_energy_kwh",
    "it_energy_kwh",
    "facility_energy_kwh",
    "scope_2_location_kgco2e",
    "scope_2_market_kgco2e",
    "embodied_kgco2e",
    "water_l",
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


def _draw_all(spec: EstimateSpec, beliefs: Mapping[str, Belief]) -> dict[str, Draws]:
    """Draws of each uncertain input from its own stream; certain inputs are not drawn."""
    source = np.random.PCG64(spec.seed)
    start, generator = source.state, np.random.Generator(source)
    drawn = {}
    for name, belief in beliefs.items():
        if not belief.is_certain:
            source.state = start
            source.advance(_STREAMS[name])
            drawn[name] = belief.draw(generator, spec.draws)
    return drawn


# Where each input's draws begin in the one sequence of the seed, far enough apart never to meet.
_STREAMS: Final = {
    name: place * 2**64 for place, name in enumerate((*_INPUTS, "development_ratio"))
}


def _samples(
    spec: EstimateSpec, *, ideal_h: float, draws: Mapping[str, Draws]
) -> dict[str, Draws | float]:
    """Each result over the draws; a plain float where nothing that it hangs on is uncertain."""

    def times(base: Draws | float | None, name: str, *, per: float = 1.0) -> Draws | float | None:
        belief: Belief | None = getattr(spec, name)
        if base is None or belief is None:
            return None
        return base * (draws.get(name, belief.median) / per)

    hours = ideal_h / (
        draws.get("step_mfu", spec.step_mfu.median) * draws.get("goodput", spec.goodput.median)
    )
    cost = None
    if spec.price_per_accelerator_h is not None:
        price = float(spec.price_per_accelerator_h.amount)
        cost = hours * (price * draws.get("price_ratio", spec.price_ratio.median))
    accelerator_kwh = times(hours, "power_w", per=WH_PER_KWH)
    it_kwh = times(accelerator_kwh, "host_factor")
    facility_kwh = times(it_kwh, "pue")
    found = {
        "accelerator_h": hours,
        "cost": cost,
        "accelerator_energy_kwh": accelerator_kwh,
        "it_energy_kwh": it_kwh,
        "facility_energy_kwh": facility_kwh,
        "scope_2_location_kgco2e": times(facility_kwh, "g_per_kwh", per=G_PER_KG),
        "scope_2_market_kgco2e": times(facility_kwh, "market_g_per_kwh", per=G_PER_KG),
        "embodied_kgco2e": times(hours, "embodied_kg_per_accelerator_h"),
        "water_l": times(it_kwh, "wue_l_per_kwh"),
    }
    return {name: sample for name, sample in found.items() if sample is not None}


def _programme_draws(
    spec: EstimateSpec, main: Draws | float, draws: Mapping[str, Draws], *, main_p50: float
) -> Draws | float:
    """Main run and the other lines without contingency; those follow the median main run."""
    around = above = 0.0
    for rule in spec.lines:
        share = float(rule.fraction) * (above if rule.base is PlanLineBase.SUBTOTAL else 1.0)
        above += share
        if rule.key not in ("main_run", "contingency"):
            around += share
    fixed = 0.0 if spec.fixed_lines is None else float(spec.fixed_lines.amount)
    planned = around * main_p50 + fixed
    return main + planned * draws.get("development_ratio", spec.development_ratio.median)


def _percentiles(
    samples: Mapping[str, Draws | float], *, dtype: type[np.floating[Any]]
) -> dict[str, Percentiles]:
    """P10, P50, P80, P90 and mean of each result; all results are sorted in one go.

    Physical quantities are sorted as 32-bit floats, in half the time: what that rounds, 6e-8, is
    far below what another seed would move.
    """
    found = {
        name: Percentiles(p10=value, p50=value, p80=value, p90=value, mean=value)
        for name, value in samples.items()
        if isinstance(value, float)
    }
    names = [name for name in samples if name not in found]
    if not names:
        return found
    table = np.empty((len(names), np.size(samples[names[0]])), dtype=dtype)
    for row, name in enumerate(names):
        table[row] = samples[name]
    means = table.mean(axis=1, dtype=np.float64).tolist()
    table.sort(axis=1)
    levels = [_at(table, level).tolist() for level in (0.10, 0.50, 0.80, 0.90)]
    for row, name in enumerate(names):
        p10, p50, p80, p90 = (level[row] for level in levels)
        found[name] = Percentiles(p10=p10, p50=p50, p80=p80, p90=p90, mean=means[row])
    return found


def _at(table: NDArray[np.floating[Any]], level: float) -> Draws:
    """One percentile of each row of a table whose rows are sorted, linear between draws."""
    place = level * (table.shape[1] - 1)
    below = math.floor(place)
    above = min(below + 1, table.shape[1] - 1)
    lower, upper = table[:, below].astype(np.float64), table[:, above].astype(np.float64)
    between: Draws = lower + (upper - lower) * (place - below)
    return between


def _main_cost(
    spec: EstimateSpec, hours: Percentiles, drawn: Percentiles | None
) -> MoneyPercentiles | None:
    """The cost: exact multiples of the price while the price is certain, else as it was drawn."""
    price = spec.price_per_accelerator_h
    if price is None:
        return None
    if drawn is not None:
        return _money(drawn, price.currency)
    rate = price.times(Decimal(str(spec.price_ratio.median)))
    return MoneyPercentiles(
        **{f.name: cost_of_hours(getattr(hours, f.name), rate) for f in fields(hours)}
    )


def _money(found: Percentiles, currency: str) -> MoneyPercentiles:
    """Drawn costs as money, to the cent: more digits would be draws, not knowledge."""
    return MoneyPercentiles(
        **{f.name: _cents(getattr(found, f.name), currency) for f in fields(found)}
    )


def _cents(amount: float, currency: str) -> Money:
    return Money(
        amount=quantise_money(round_half_even(Decimal(amount), decimals=2)), currency=currency
    )


def _programme(
    spec: EstimateSpec, main: Draws | float, draws: Mapping[str, Draws], *, main_run: Money
) -> ProgrammeResult:
    """The programme's cost, its reserve, and how likely it ends inside each multiple."""
    median = float(main_run.amount)
    drawn = _programme_draws(spec, main, draws, main_p50=median)
    found = _percentiles({"programme": drawn}, dtype=np.float64)["programme"]
    limits = [float(multiple) * median for multiple in REFERENCE_BAND]
    return ProgrammeResult(
        cost=_money(found, main_run.currency),
        contingency=_cents(found.p80 - found.p50, main_run.currency),
        inside_fraction=tuple(float(np.mean(drawn <= limit)) for limit in limits),
    )


def _tornadoes(
    spec: EstimateSpec, beliefs: Mapping[str, Belief], *, ideal_h: float
) -> dict[str, tuple[TornadoBar, ...]]:
    """One tornado for each headline result that is known."""
    medians = _samples(spec, ideal_h=ideal_h, draws={})
    spreads = {name: spread_of(it) for name, it in beliefs.items() if not it.is_certain}
    return {
        name: product_tornado(
            spreads,
            exponents=_EXPONENTS[name],
            result_at_medians=float(medians[name]),
        )
        for name in _TORNADOES
        if name in medians
    }

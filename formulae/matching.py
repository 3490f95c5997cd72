"""Contracts matched to energy of a market, over a year and hour by hour; no tables, no choice."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from formulae.units import QuantityError, kg_from_g, require_range


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyInstrument:
    """A contract as matching sees it: valid in the hours [first, last) of a year.

    `energy_kwh` is what it delivers in them, None for all energy that is left there (a supplier's
    rate); `hourly_kwh` is what it delivers in each of them, where that is known.
    """

    g_per_kwh: float
    first: int
    last: int
    energy_kwh: float | None
    hourly_kwh: Sequence[float] | None = None

    def __post_init__(self) -> None:
        """Refuse hours in disorder and negative quantities."""
        require_range("g_per_kwh", self.g_per_kwh, low=0)
        if not 0 <= self.first <= self.last:
            raise QuantityError(f"hours {self.first} to {self.last} are out of order")
        if self.energy_kwh is not None:
            require_range("energy_kwh", self.energy_kwh, low=0)
        if self.hourly_kwh is not None and len(self.hourly_kwh) != self.last - self.first:
            raise QuantityError(
                f"{len(self.hourly_kwh)} hours of energy for {self.last - self.first} hours"
            )


_Cover = Callable[[Sequence[float], HourlyInstrument], list[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """What contracts cover: by contract, and by hour with the emissions of what is covered."""

    used_kwh: tuple[float, ...]
    covered_kwh: tuple[float, ...]
    covered_kgco2e: tuple[float, ...]


def match_annually(
    energy_kwh: Sequence[float], instruments: Sequence[HourlyInstrument]
) -> Matching:
    """Cover a market's energy of a year by contracts, pro rata over the hours of their validity.

    used_i = min(E_i, sum of R_h over its hours); each R_h falls by the share used_i / sum of R_h

    R_h is what earlier contracts left of hour h, so no hour is covered twice, none falls below
    zero, and what a contract has too much of is not used.

    Args:
        energy_kwh: facility energy of each hour of the year, kWh, >= 0.
        instruments: eligible contracts in the order of the hierarchy (certificates first).

    Returns:
        Energy used of each contract, kWh; energy covered in each hour, kWh, and its emissions,
        kgCO2e.

    Source: GHG Protocol Scope 2 Guidance 2015, table 6.3 and chapter 7 (vintage: a contract covers
    energy of its own period).

    >>> year = [100.0, 300.0, 600.0]
    >>> half = HourlyInstrument(g_per_kwh=0, first=0, last=3, energy_kwh=500)
    >>> match_annually(year, [half]).covered_kwh
    (50.0, 150.0, 300.0)
    >>> surplus = HourlyInstrument(g_per_kwh=20, first=0, last=2, energy_kwh=1_000)
    >>> found = match_annually(year, [half, surplus])
    >>> found.used_kwh, found.covered_kgco2e
    ((500.0, 200.0), (1.0, 3.0, 0.0))
    """
    left = [require_range("energy_kwh", one, low=0) for one in energy_kwh]
    return _matched(left, instruments, _pro_rata)


def match_hourly(energy_kwh: Sequence[float], instruments: Sequence[HourlyInstrument]) -> Matching:
    """Cover the energy of each hour by what contracts deliver in that hour.

    used_i,h = min(D_i,h, R_h), with D_i,h what contract i delivers in hour h: as it is known by the
    hour, else its energy spread evenly over the hours of its validity

    Args:
        energy_kwh: facility energy of each hour of the year, kWh, >= 0.
        instruments: eligible contracts in the order of the hierarchy (certificates first).

    Returns:
        Energy used of each contract, kWh; energy covered in each hour, kWh, and its emissions,
        kgCO2e.

    Source: the hourly matching that the revision of the GHG Protocol Scope 2 Guidance proposes
    (public consultation of 2025).

    >>> solar = HourlyInstrument(
    ...     g_per_kwh=0, first=0, last=3, energy_kwh=600, hourly_kwh=[0.0, 500.0, 100.0]
    ... )
    >>> found = match_hourly([100.0, 300.0, 600.0], [solar])
    >>> found.covered_kwh, found.used_kwh
    ((0.0, 300.0, 100.0), (400.0,))
    """
    left = [require_range("energy_kwh", one, low=0) for one in energy_kwh]
    return _matched(left, instruments, _by_the_hour)


def _pro_rata(left: Sequence[float], instrument: HourlyInstrument) -> list[float]:
    """What a contract covers of the open energy of its hours, each by the same share."""
    whole = math.fsum(left)
    if instrument.energy_kwh is None or instrument.energy_kwh >= whole:
        return list(left)
    share = instrument.energy_kwh / whole
    return [one * share for one in left]


def _by_the_hour(left: Sequence[float], instrument: HourlyInstrument) -> list[float]:
    """What a contract covers of the open energy of each hour by its delivery in that hour."""
    if instrument.hourly_kwh is not None:
        return [min(one, has) for one, has in zip(left, instrument.hourly_kwh, strict=True)]
    if instrument.energy_kwh is None:
        return list(left)
    even = instrument.energy_kwh / len(left) if left else 0.0
    return [min(one, even) for one in left]


def _matched(left: list[float], instruments: Sequence[HourlyInstrument], cover: _Cover) -> Matching:
    """Let each contract in turn cover what those before it left."""
    whole_kwh = list(left)
    covered_kwh, covered_kgco2e = [0.0] * len(left), [0.0] * len(left)
    used_kwh = []
    for one in instruments:
        if one.last > len(left):
            raise QuantityError(f"hour {one.last} lies outside of {len(left)} hours")
        covers = cover(left[one.first : one.last], one)
        used_kwh.append(math.fsum(covers))
        for hour, part_kwh in enumerate(covers, start=one.first):
            left[hour] = max(0.0, left[hour] - part_kwh)
            # Where nothing is left, what is covered is the whole, to the last bit.
            covered_kwh[hour] = covered_kwh[hour] + part_kwh if left[hour] else whole_kwh[hour]
            covered_kgco2e[hour] += kg_from_g(part_kwh * one.g_per_kwh)
    return Matching(
        used_kwh=tuple(used_kwh),
        covered_kwh=tuple(covered_kwh),
        covered_kgco2e=tuple(covered_kgco2e),
    )


def market_share_kgco2e(
    *,
    energy_kwh: float,
    uncontracted_kgco2e: float | None,
    market_energy_kwh: float,
    covered_kwh: float,
    covered_kgco2e: float,
) -> float | None:
    """Market-based emissions of one owner's energy in an hour of which contracts cover a part.

    C = C_0 * (1 - covered / E) + covered_kgco2e * e / E

    Contracts cover all energy of a market alike, whoever used it: owners share them by energy, so
    the parts of all owners sum to the emissions of the whole market.

    Args:
        energy_kwh: e, the owner's facility energy in the hour, kWh, 0 to market_energy_kwh.
        uncontracted_kgco2e: C_0, the emissions of e at the residual mix or grid average, kgCO2e,
            >= 0; None when unknown.
        market_energy_kwh: E, all energy of the market in the hour, kWh, >= 0.
        covered_kwh: what contracts cover of E, kWh, 0 to market_energy_kwh.
        covered_kgco2e: the emissions that these contracts convey, kgCO2e, >= 0.

    Returns:
        kgCO2e, >= 0; None when a part that no contract covers has no factor.

    Source: GHG Protocol Scope 2 Guidance 2015, section 6.5, shared by energy.

    >>> market_share_kgco2e(
    ...     energy_kwh=25,
    ...     uncontracted_kgco2e=10,
    ...     market_energy_kwh=100,
    ...     covered_kwh=60,
    ...     covered_kgco2e=8,
    ... )
    6.0
    """
    require_range("market_energy_kwh", market_energy_kwh, low=0)
    if market_energy_kwh == 0:
        return uncontracted_kgco2e
    share = require_range("energy_kwh", energy_kwh, low=0) / market_energy_kwh
    conveyed_kgco2e = require_range("covered_kgco2e", covered_kgco2e, low=0) * share
    open_fraction = max(
        0.0, 1.0 - require_range("covered_kwh", covered_kwh, low=0) / market_energy_kwh
    )
    if open_fraction == 0:
        return conveyed_kgco2e
    if uncontracted_kgco2e is None:
        return None
    return uncontracted_kgco2e * open_fraction + conveyed_kgco2e

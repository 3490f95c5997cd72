"""Embodied carbon of an hour of an accelerator, and water, as figures with ranges; no tables."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from formulae.emissions import embodied_kgco2e_per_hour
from formulae.units import QuantityError, require_positive, require_range


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranged:
    """A quantity with the lowest and highest value that it may have; its unit is its name's."""

    low: float
    value: float
    high: float

    def __post_init__(self) -> None:
        """Refuse a value outside its own range."""
        if not (
            all(map(math.isfinite, (self.low, self.value, self.high)))
            and self.low <= self.value <= self.high
        ):
            raise QuantityError(
                f"a range runs from low over value to high, got {self.low!r}, {self.value!r}, "
                f"{self.high!r}"
            )

    @classmethod
    def exactly(cls, value: float) -> Self:
        """A value that is not in doubt."""
        return cls(low=value, value=value, high=value)


def embodied_kg_per_accelerator_h(
    *,
    server_kg: float,
    accelerators_per_server: float,
    accelerator_kg: float,
    lifetime_h: float,
    utilisation_fraction: float,
) -> float:
    """Manufacturing emissions that one hour of one accelerator carries, its server's share with it.

    rate = (server / accelerators_per_server + accelerator) / (lifetime * utilisation)

    Idle hours are carried by the hours of use: the less a server is used, the more each hour bears.

    Args:
        server_kg: of the server without its accelerators, kgCO2e, >= 0.
        accelerators_per_server: accelerators that share the server, > 0.
        accelerator_kg: of one accelerator, with its share of the board, kgCO2e, >= 0.
        lifetime_h: expected life of both, h, > 0 (5 years are 43,800 h).
        utilisation_fraction: share of its life in use, fraction, above 0 to 1.

    Returns:
        kgCO2e per accelerator-hour, kg/h.

    Raises:
        QuantityError: an input is outside its range.

    Source: Luccioni et al. 2023 (BLOOM), JMLR 24(253), section 4.1; ISO/IEC 21031:2024, embodied
    emissions. BLOOM: 1,082,990 accelerator-hours carry 11.2 t, 10.4 g an hour.

    >>> rate = embodied_kg_per_accelerator_h(
    ...     server_kg=2_500,
    ...     accelerators_per_server=8,
    ...     accelerator_kg=150,
    ...     lifetime_h=6 * 8_760,
    ...     utilisation_fraction=0.85,
    ... )
    >>> round(rate * 1000, 2), round(rate * 1_082_990 / 1000, 1)
    (10.35, 11.2)
    """
    share_kg = require_range("server_kg", server_kg, low=0) / require_positive(
        "accelerators_per_server", accelerators_per_server
    )
    return embodied_kgco2e_per_hour(
        total_embodied_kgco2e=share_kg + require_range("accelerator_kg", accelerator_kg, low=0),
        lifetime_h=lifetime_h,
        utilisation_fraction=utilisation_fraction,
    )


def embodied_range_kg_per_accelerator_h(
    *,
    server_kg: Ranged,
    accelerators_per_server: float,
    accelerator_kg: Ranged,
    lifetime_h: Ranged,
    utilisation_fraction: Ranged,
) -> Ranged:
    """The rate of embodied_kg_per_accelerator_h, with its extremes.

    low = lightest hardware over the longest, busiest life; high = heaviest over the shortest,
    idlest

    The extremes of all inputs at once: a bound, not a percentile.

    Args:
        server_kg: of the server without its accelerators, kgCO2e, >= 0.
        accelerators_per_server: accelerators that share the server, > 0.
        accelerator_kg: of one accelerator, kgCO2e, >= 0.
        lifetime_h: expected life, h, > 0.
        utilisation_fraction: share of its life in use, fraction, above 0 to 1.

    Returns:
        kgCO2e per accelerator-hour, kg/h: low, value, high.

    Raises:
        QuantityError: an input is outside its range.

    Source: interval arithmetic on the equation of embodied_kg_per_accelerator_h, which falls in
    life and utilisation and rises in the masses.

    >>> span = embodied_range_kg_per_accelerator_h(
    ...     server_kg=Ranged(low=1_688, value=2_500, high=5_699),
    ...     accelerators_per_server=8,
    ...     accelerator_kg=Ranged(low=164, value=164, high=575.1),
    ...     lifetime_h=Ranged(low=35_040, value=43_800, high=52_560),
    ...     utilisation_fraction=Ranged(low=0.7, value=0.85, high=1.0),
    ... )
    >>> [round(g * 1000, 1) for g in (span.low, span.value, span.high)]
    [7.1, 12.8, 52.5]
    """

    def rate(server: float, accelerator: float, life_h: float, utilisation: float) -> float:
        return embodied_kg_per_accelerator_h(
            server_kg=server,
            accelerators_per_server=accelerators_per_server,
            accelerator_kg=accelerator,
            lifetime_h=life_h,
            utilisation_fraction=utilisation,
        )

    life, use = lifetime_h, utilisation_fraction
    return Ranged(
        low=rate(server_kg.low, accelerator_kg.low, life.high, use.high),
        value=rate(server_kg.value, accelerator_kg.value, life.value, use.value),
        high=rate(server_kg.high, accelerator_kg.high, life.low, use.low),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """Hardware in its expected life: its footprint, kgCO2e, that life, h, and whom it serves."""

    kgco2e: float
    lifetime_h: float
    accelerators: int


def site_embodied_kg_per_accelerator_h(hardware: Sequence[Hardware], accelerators: int) -> float:
    """What each accelerator-hour of a site carries of the making of the site's hardware.

    rate = sum of (TE_i / lifetime_i) / N, N = the site's accelerators, at least those of the
    largest piece of hardware and at most those of all pieces together

    Hours without work carry their part too: it stays with nobody, it is not loaded upon others.

    Args:
        hardware: pieces within their life; a piece may serve all accelerators or some of them.
        accelerators: known at the site, >= 0.

    Returns:
        kgCO2e per accelerator-hour, kg/h; 0 when every piece has passed its life.

    Raises:
        QuantityError: a footprint is negative, a life or a count is not positive.

    Source: ISO/IEC 21031:2024, embodied emissions (TE * TS * RS), with RS by accelerators.

    >>> servers = Hardware(kgco2e=3_504, lifetime_h=35_040, accelerators=8)
    >>> network = Hardware(kgco2e=350.4, lifetime_h=35_040, accelerators=8)
    >>> site_embodied_kg_per_accelerator_h([servers], 8)
    0.0125
    >>> round(site_embodied_kg_per_accelerator_h([servers, network], 8), 6)
    0.01375
    """
    if not hardware:
        return 0.0
    served = [int(require_positive("accelerators", one.accelerators)) for one in hardware]
    count = min(max(accelerators, max(served)), sum(served))
    rates = (
        require_range("kgco2e", one.kgco2e, low=0) / require_positive("lifetime_h", one.lifetime_h)
        for one in hardware
    )
    return math.fsum(rates) / count


def water_range_l(it_energy_kwh: Ranged, wue_l_per_kwh: Ranged) -> Ranged:
    """Water of cooling on site, with its extremes; one figure without a range is emissions.water_l.

    on_site = E_it * WUE (not times PUE), at each end

    Args:
        it_energy_kwh: energy of the IT equipment, kWh, >= 0.
        wue_l_per_kwh: water usage effectiveness, L per kWh of IT energy, >= 0.

    Returns:
        Litres, L: low, value, high.

    Raises:
        QuantityError: an input is negative.

    Source: ISO/IEC 30134-9:2022, water usage effectiveness.

    >>> energy_kwh = Ranged(low=900, value=1_000, high=1_100)
    >>> water_range_l(energy_kwh, Ranged(low=0.125, value=0.25, high=0.5))
    Ranged(low=112.5, value=250.0, high=550.0)
    """
    require_range("it_energy_kwh", it_energy_kwh.low, low=0)
    require_range("wue_l_per_kwh", wue_l_per_kwh.low, low=0)
    return Ranged(
        low=it_energy_kwh.low * wue_l_per_kwh.low,
        value=it_energy_kwh.value * wue_l_per_kwh.value,
        high=it_energy_kwh.high * wue_l_per_kwh.high,
    )

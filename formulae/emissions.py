"""Emissions and water from energy and hardware; no grid data and no choice of fallback."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from formulae.units import kg_from_g, require_positive, require_range


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyEmissions:
    """Emissions of many hours; hours without energy or factor are counted apart, None when all lack
    one.
    """

    kgco2e: float | None
    covered_energy_kwh: float
    hours: int
    covered_hours: int

    @property
    def coverage_fraction(self) -> float | None:
        """Share of the hours that have energy and factor, 0 to 1; None for no hours."""
        return self.covered_hours / self.hours if self.hours else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractedEnergy:
    """Energy that a contractual instrument (certificate, PPA, supplier rate) covers, and the rate
    it conveys.
    """

    energy_kwh: float
    g_per_kwh: float


class ResidualBasis(StrEnum):
    """Which factor the energy outside contracts took."""

    NONE_LEFT = "none left"
    RESIDUAL_MIX = "residual mix"
    GRID_AVERAGE = "grid average"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketBasedEmissions:
    """Market-based emissions, None when the energy outside contracts has no factor."""

    kgco2e: float | None
    contracted_energy_kwh: float
    residual_energy_kwh: float
    residual_basis: ResidualBasis


@dataclass(frozen=True, slots=True, kw_only=True)
class WaterUse:
    """Water on site and at the power plants, each None when its factor is unknown; shown apart."""

    on_site_l: float | None
    source_l: float | None

    @property
    def total_l(self) -> float | None:
        """Both together; None when either is unknown."""
        if self.on_site_l is None or self.source_l is None:
            return None
        return self.on_site_l + self.source_l


def operational_kgco2e(energy_kwh: float | None, g_per_kwh: float | None) -> float | None:
    """Emissions of the energy of one hour (or of any period with one factor).

    C = E * I / 1000

    Args:
        energy_kwh: facility energy, kWh, >= 0; None when unknown.
        g_per_kwh: emission factor of that hour and zone, gCO2e/kWh, >= 0; None when unknown.

    Returns:
        kgCO2e, or None when either is unknown.

    Source: GHG Protocol Scope 2 Guidance 2015, section 6.3 (activity data times emission factor).

    >>> operational_kgco2e(199.68, 400)
    79.872
    """
    if energy_kwh is None or g_per_kwh is None:
        return None
    return kg_from_g(
        require_range("energy_kwh", energy_kwh, low=0)
        * require_range("g_per_kwh", g_per_kwh, low=0)
    )


def sum_hourly_kgco2e(hours: Iterable[tuple[float | None, float | None]]) -> HourlyEmissions:
    """Location-based emissions, hour by hour.

    C_L = sum over hours of E_h * I_h / 1000, not mean(I) * sum(E)

    Args:
        hours: (facility energy in kWh >= 0, factor in gCO2e/kWh >= 0) per hour; None where unknown.

    Returns:
        kgCO2e of the hours that have both, their energy, and how many hours have both.

    Source: GHG Protocol Scope 2 Guidance 2015, section 6.3, at hourly resolution.

    >>> sum_hourly_kgco2e([(10, 100), (30, 500)]).kgco2e
    16.0
    """
    emitted_kgco2e, energies_kwh, count = [], [], 0
    for energy_kwh, g_per_kwh in hours:
        count += 1
        hour_kgco2e = operational_kgco2e(energy_kwh, g_per_kwh)
        if energy_kwh is not None and hour_kgco2e is not None:
            emitted_kgco2e.append(hour_kgco2e)
            energies_kwh.append(energy_kwh)
    return HourlyEmissions(
        kgco2e=math.fsum(emitted_kgco2e) if emitted_kgco2e else None,
        covered_energy_kwh=math.fsum(energies_kwh),
        hours=count,
        covered_hours=len(emitted_kgco2e),
    )


def market_based_kgco2e(
    energy_kwh: float,
    instruments: Sequence[ContractedEnergy],
    *,
    residual_g_per_kwh: float | None,
    grid_average_g_per_kwh: float | None,
) -> MarketBasedEmissions:
    """Market-based emissions: contracts first, the residual mix for the rest.

    C_M = (sum_i min(E_i, remaining) * EF_i + (E - covered) * EF_residual) / 1000

    Surplus contracts are not used: the result never falls below zero and never offsets the
    location-based one.

    Args:
        energy_kwh: facility energy of the period and market, kWh, >= 0.
        instruments: eligible contracts in the order of the hierarchy (certificates first).
        residual_g_per_kwh: residual mix, gCO2e/kWh, >= 0; None where none is published.
        grid_average_g_per_kwh: taken, and named in the result, where there is no residual mix.

    Returns:
        kgCO2e (None when the rest has no factor), energy in and outside contracts, and the basis of
        the rest.

    Source: GHG Protocol Scope 2 Guidance 2015, table 6.3 and section 6.5.

    >>> rec = ContractedEnergy(energy_kwh=600_000, g_per_kwh=0)
    >>> market_based_kgco2e(
    ...     1_000_000, [rec], residual_g_per_kwh=460, grid_average_g_per_kwh=400
    ... ).kgco2e
    184000.0
    """
    remaining_kwh = require_range("energy_kwh", energy_kwh, low=0)
    contracted_kgco2e = []
    for instrument in instruments:
        used_kwh = min(
            require_range("instrument energy_kwh", instrument.energy_kwh, low=0), remaining_kwh
        )
        g_per_kwh = require_range("instrument g_per_kwh", instrument.g_per_kwh, low=0)
        contracted_kgco2e.append(kg_from_g(used_kwh * g_per_kwh))
        remaining_kwh -= used_kwh
    basis, rest_g_per_kwh = _residual_factor(
        remaining_kwh, residual_g_per_kwh, grid_average_g_per_kwh
    )
    rest_kgco2e = operational_kgco2e(remaining_kwh, rest_g_per_kwh)
    return MarketBasedEmissions(
        kgco2e=None if rest_kgco2e is None else math.fsum([*contracted_kgco2e, rest_kgco2e]),
        contracted_energy_kwh=energy_kwh - remaining_kwh,
        residual_energy_kwh=remaining_kwh,
        residual_basis=basis,
    )


def _residual_factor(
    remaining_kwh: float, residual_g_per_kwh: float | None, grid_average_g_per_kwh: float | None
) -> tuple[ResidualBasis, float | None]:
    """The factor of the energy outside contracts, with its name."""
    if remaining_kwh == 0:
        return ResidualBasis.NONE_LEFT, 0.0
    if residual_g_per_kwh is not None:
        return ResidualBasis.RESIDUAL_MIX, residual_g_per_kwh
    if grid_average_g_per_kwh is not None:
        return ResidualBasis.GRID_AVERAGE, grid_average_g_per_kwh
    return ResidualBasis.UNKNOWN, None


def embodied_kgco2e(
    *,
    total_embodied_kgco2e: float,
    reserved_h: float,
    lifetime_h: float,
    resource_share_fraction: float,
) -> float:
    """Share of a device's manufacturing emissions that a use of it carries.

    M = TE * TS * RS, with TS = reserved_h / lifetime_h

    Args:
        total_embodied_kgco2e: TE, of the whole device, kgCO2e, >= 0.
        reserved_h: time that the device is held, h, 0 to lifetime_h.
        lifetime_h: expected life in use, h, > 0 (4 years are 35,040 h).
        resource_share_fraction: RS, reserved share of the device, fraction, 0 to 1.

    Returns:
        kgCO2e.

    Source: ISO/IEC 21031:2024 (Software Carbon Intensity), embodied emissions.

    >>> embodied_kgco2e(
    ...     total_embodied_kgco2e=1_000,
    ...     reserved_h=3_504,
    ...     lifetime_h=35_040,
    ...     resource_share_fraction=0.5,
    ... )
    50.0
    """
    require_positive("lifetime_h", lifetime_h)
    time_share = require_range("reserved_h", reserved_h, low=0, high=lifetime_h) / lifetime_h
    return (
        require_range("total_embodied_kgco2e", total_embodied_kgco2e, low=0)
        * time_share
        * require_range("resource_share_fraction", resource_share_fraction, low=0, high=1)
    )


def embodied_kgco2e_per_hour(
    *, total_embodied_kgco2e: float, lifetime_h: float, utilisation_fraction: float
) -> float:
    """Manufacturing emissions per hour of use of a device that stands idle at times.

    rate = TE / (lifetime * utilisation)

    Args:
        total_embodied_kgco2e: of the whole device, kgCO2e, >= 0.
        lifetime_h: expected life, h, > 0.
        utilisation_fraction: share of its life in use, fraction, above 0 to 1.

    Returns:
        kgCO2e per hour of use, kg/h.

    Source: Luccioni et al. 2023 (BLOOM), JMLR 24(253), section 4.1.

    >>> rate = embodied_kgco2e_per_hour(
    ...     total_embodied_kgco2e=150, lifetime_h=52_560, utilisation_fraction=0.85
    ... )
    >>> round(rate, 4)
    0.0034
    """
    require_positive("lifetime_h", lifetime_h)
    require_positive("utilisation_fraction", utilisation_fraction, high=1)
    return require_range("total_embodied_kgco2e", total_embodied_kgco2e, low=0) / (
        lifetime_h * utilisation_fraction
    )


def water_l(
    *,
    it_energy_kwh: float | None,
    facility_energy_kwh: float | None,
    wue_l_per_kwh: float | None,
    source_l_per_kwh: float | None,
) -> WaterUse:
    """Water of cooling on site, and of generating the electricity.

    on_site = E_it * WUE (not times PUE); source = E_facility * EWIF

    Args:
        it_energy_kwh: energy of the IT equipment, kWh, >= 0; None when unknown.
        facility_energy_kwh: energy of the facility, kWh, >= 0; None when unknown.
        wue_l_per_kwh: water usage effectiveness of the site, L per kWh of IT energy, >= 0; None
            when unknown.
        source_l_per_kwh: EWIF, water of the grid's generation, L/kWh, >= 0; None when unknown.

    Returns:
        Litres on site and at the source, L, each None when unknown.

    Source: ISO/IEC 30134-9:2022, water usage effectiveness; Li et al. 2023, arXiv:2304.03271,
    section 3.

    >>> water_l(it_energy_kwh=100, facility_energy_kwh=120, wue_l_per_kwh=1.8, source_l_per_kwh=3.0)
    WaterUse(on_site_l=180.0, source_l=360.0)
    """
    return WaterUse(
        on_site_l=_litres(it_energy_kwh, wue_l_per_kwh),
        source_l=_litres(facility_energy_kwh, source_l_per_kwh),
    )


def _litres(energy_kwh: float | None, l_per_kwh: float | None) -> float | None:
    """Energy times a water factor, None when either is unknown."""
    if energy_kwh is None or l_per_kwh is None:
        return None
    return require_range("energy_kwh", energy_kwh, low=0) * require_range(
        "water factor (L/kWh)", l_per_kwh, low=0
    )

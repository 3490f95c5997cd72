"""What the same energy would have emitted elsewhere or at another time, and what it bought. Reads.

Advice, never books: nothing here enters an inventory. Averages say what the grid emitted, not what
one more kilowatt-hour would have caused; marginal signals, where a source tells them, stand apart.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from carbon.attribution import instant_of, microsecond_of
from carbon.factors import Zone, choose_grid, cloud_name, cloud_regions, zone_chain
from carbon.metering import HOUR_MICROSECOND
from carbon.models import HourlyIntensity
from carbon.selectors import current_entries
from carbon.site_factors import grid_factors
from formulae.units import kg_from_g
from runs.selectors import site_by_id

AVERAGE: Final = "average"
MARGINAL: Final = "marginal"
MOST_SHIFT_H: Final = 24
COVERED_ENOUGH: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentHour:
    """Facility energy of one hour at one site, and what it emitted; None where unknown."""

    hour: int  # microseconds
    site_id: UUID
    facility_energy_kwh: float | None
    kgco2e: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """The same hours on another grid; `level` says hour, or the yearly factor of which zone."""

    name: str
    level: str
    g_per_kwh: float
    kgco2e: float
    year: int | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifted:
    """The same work begun `shift_h` hours later (or earlier, below 0), on the same grid."""

    shift_h: int
    kgco2e: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftAdvice:
    """The best start within a day; `covered_fraction` is the energy whose hours are all known."""

    zone: str
    source: str
    signal: str
    as_it_was_kgco2e: float
    best: Shifted
    worst: Shifted
    covered_fraction: float


def spent_hours(
    organisation_id: UUID, project_id: UUID, *, start: datetime, end: datetime
) -> list[SpentHour]:
    """A project's energy by hour and site in [start, end)."""
    found: dict[tuple[int, UUID], list[tuple[float | None, float | None]]] = defaultdict(list)
    rows = current_entries().filter(
        organisation_id=organisation_id, project_id=project_id, hour__gte=start, hour__lt=end
    )
    columns = ("hour", "site_id", "facility_energy_kwh", "scope_2_location_kgco2e")
    for hour, site_id, kwh, kgco2e in rows.values_list(*columns).iterator(chunk_size=10_000):
        found[microsecond_of(hour), site_id].append((kwh, kgco2e))
    return [
        SpentHour(
            hour=hour,
            site_id=site_id,
            facility_energy_kwh=_whole(kwh for kwh, _kgco2e in parts),
            kgco2e=_whole(kgco2e for _kwh, kgco2e in parts),
        )
        for (hour, site_id), parts in sorted(found.items(), key=lambda one: one[0][0])
    ]


def _whole(values: Iterable[float | None]) -> float | None:
    """The sum; None when it misses a part."""
    known = list(values)
    return None if any(one is None for one in known) else math.fsum(one or 0.0 for one in known)


def elsewhere(organisation_id: UUID, hours: Sequence[SpentHour]) -> list[Elsewhere]:
    """The same facility energy on the grids of the provider's other regions, cleanest first.

    By the hour where a source of the organisation has told nearly every hour of the zone, else by
    the zone's yearly factor. The PUE stays that of the hours: another hall may need more or less.
    """
    energy = {one.hour: 0.0 for one in hours}
    for one in hours:
        if one.facility_energy_kwh is None:
            return []
        energy[one.hour] += one.facility_energy_kwh
    total_kwh = math.fsum(energy.values())
    if not total_kwh:
        return []
    found = [*_by_hour(organisation_id, energy), *_by_year(organisation_id, hours, total_kwh)]
    return sorted(found, key=lambda one: one.kgco2e)


def _by_hour(organisation_id: UUID, energy: Mapping[int, float]) -> list[Elsewhere]:
    """Zones whose hours are told by a source."""
    found = []
    for (zone, source, basis), told in _told(organisation_id, energy, AVERAGE).items():
        covered = math.fsum(kwh for hour, kwh in energy.items() if hour in told)
        if covered < COVERED_ENOUGH * math.fsum(energy.values()):
            continue
        emitted = math.fsum(kg_from_g(energy[hour] * told[hour]) for hour in energy if hour in told)
        g_per_kwh = emitted / covered * 1_000
        found.append(
            Elsewhere(
                name=zone,
                level="hour",
                g_per_kwh=g_per_kwh,
                kgco2e=kg_from_g(g_per_kwh * math.fsum(energy.values())),
                year=None,
                source=f"{source} ({basis})",
            )
        )
    return found


def _told(
    organisation_id: UUID, energy: Mapping[int, float], signal: str, *, margin_h: int = 0
) -> dict[tuple[str, str, str], dict[int, float]]:
    """What sources told about these hours, and some around them: by zone, source and basis."""
    margin = timedelta(hours=margin_h)
    rows = HourlyIntensity.objects.filter(
        organisation_id=organisation_id,
        signal=signal,
        superseded_at__isnull=True,
        hour__gte=instant_of(min(energy)) - margin,
        hour__lte=instant_of(max(energy)) + margin,
    ).select_related("source")
    told: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    for row in rows.iterator(chunk_size=10_000):
        key = (row.zone, row.source.name, row.basis)
        told[key][microsecond_of(row.hour)] = row.value_g_per_kwh
    return told


def _by_year(
    organisation_id: UUID, hours: Sequence[SpentHour], total_kwh: float
) -> list[Elsewhere]:
    """The regions of the site's own provider, by the yearly factor of their grid."""
    sites = {one.site_id for one in hours}
    records = [site_by_id(organisation_id, one) for one in sites]
    providers = {cloud_name(one.provider) for one in records if one is not None}
    year = instant_of(max(one.hour for one in hours)).year
    chains: dict[str, tuple[Zone, ...]] = {
        f"{region.region} ({region.location})": zone_chain(
            provider=provider, region=region.region, country=region.country, state=region.state
        )
        for (provider, _name), region in cloud_regions().items()
        if provider in providers
    }
    rows = grid_factors({zone.zone for chain in chains.values() for zone in chain})
    found = []
    for name, chain in chains.items():
        factor = choose_grid(rows, chain, year=year)
        if factor is not None and factor.level != "world":
            found.append(
                Elsewhere(
                    name=name,
                    level=factor.level,
                    g_per_kwh=factor.value,
                    kgco2e=kg_from_g(total_kwh * factor.value),
                    year=factor.year,
                    source=factor.source,
                )
            )
    return found


def shifts(organisation_id: UUID, hours: Sequence[SpentHour]) -> list[ShiftAdvice]:
    """The same work begun up to a day earlier or later, on each grid that is told by the hour.

    Only energy counts whose hours are told for every start: one span, so that starts compare.
    """
    energy: dict[int, float] = {}
    for one in hours:
        if one.facility_energy_kwh is not None:
            energy[one.hour] = energy.get(one.hour, 0.0) + one.facility_energy_kwh
    if not energy:
        return []
    found = []
    for signal in (AVERAGE, MARGINAL):
        told_by = _told(organisation_id, energy, signal, margin_h=MOST_SHIFT_H)
        for (zone, source, _basis), told in told_by.items():
            advice = _shift(energy, told, zone=zone, source=source, signal=signal)
            if advice is not None:
                found.append(advice)
    return found


def _shift(
    energy: Mapping[int, float],
    told: Mapping[int, float],
    *,
    zone: str,
    source: str,
    signal: str,
) -> ShiftAdvice | None:
    every = range(-MOST_SHIFT_H, MOST_SHIFT_H + 1)
    known = [
        hour for hour in energy if all(hour + shift * HOUR_MICROSECOND in told for shift in every)
    ]
    covered = math.fsum(energy[hour] for hour in known)
    if not covered:
        return None
    ends = [
        Shifted(
            shift_h=shift,
            kgco2e=math.fsum(
                kg_from_g(energy[hour] * told[hour + shift * HOUR_MICROSECOND]) for hour in known
            ),
        )
        for shift in every
    ]
    return ShiftAdvice(
        zone=zone,
        source=source,
        signal=signal,
        as_it_was_kgco2e=ends[MOST_SHIFT_H].kgco2e,
        best=min(ends, key=lambda one: (one.kgco2e, abs(one.shift_h))),
        worst=max(ends, key=lambda one: one.kgco2e),
        covered_fraction=covered / math.fsum(energy.values()),
    )

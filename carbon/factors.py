"""The choice of factors for a site and a day, and the shipped factor files; pure, no tables."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from carbon.records import PUE_NOT_SET, DatedFactor, FactorsUsed, FactorUsed, GridFactor
from formulae.units import strict_float

DATA: Final = Path(__file__).resolve().parent / "data"
_PROVIDERS: Final = {
    "amazon": "aws",
    "amazon web services": "aws",
    "google": "gcp",
    "google cloud": "gcp",
    "microsoft": "azure",
    "microsoft azure": "azure",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudRegion:
    """Where a provider's region stands."""

    provider: str
    region: str
    location: str
    country: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPue:
    """A PUE that somebody published; offered to people, never applied by itself."""

    provider: str
    about: str
    pue: float
    year: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """A zone to look in, and how near to the site it is."""

    level: str
    zone_type: str
    zone: str


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


@cache
def shipped_grid_factors() -> tuple[GridFactor, ...]:
    """The rows of carbon/data/grid_intensity.csv."""
    return tuple(
        GridFactor(
            factor_id=row["factor_id"],
            zone_type=row["zone_type"],
            zone=row["zone"],
            zone_name=row["zone_name"],
            year=int(row["year"]),
            value_g_per_kwh=strict_float(row["value_g_per_kwh"]),
            gas_scope=row["gas_scope"],
            method=row["method"],
            source=row["source"],
            licence=row["licence"],
            version=row["version"],
        )
        for row in _rows("grid_intensity.csv")
    )


@cache
def cloud_regions() -> Mapping[tuple[str, str], CloudRegion]:
    """Regions of the clouds with their country, and state in the United States."""
    names = ("provider", "region", "location", "country", "state")
    found = (
        CloudRegion(**{name: row[name] for name in names}) for row in _rows("cloud_regions.csv")
    )
    return MappingProxyType({(one.provider, one.region): one for one in found})


@cache
def published_pues() -> tuple[PublishedPue, ...]:
    """PUE values of fleets and surveys, to offer on the page of a site."""
    return tuple(
        PublishedPue(
            provider=row["provider"],
            about=row["about"],
            pue=strict_float(row["pue"]),
            year=int(row["year"]),
            source=row["source"],
        )
        for row in _rows("pue.csv")
    )


def cloud_name(provider: str) -> str:
    """A provider's short name, as in the table of regions: aws, azure, gcp; others as they are."""
    name = provider.strip().lower()
    return _PROVIDERS.get(name, name)


def zone_chain(*, provider: str, region: str, country: str, state: str) -> tuple[Zone, ...]:
    """The zones to look in, nearest first: cloud region, US state, country, world."""
    cloud = cloud_name(provider)
    known = cloud_regions().get((cloud, region.strip().lower()))
    country = country.upper() or (known.country if known else "")
    state = state.upper() or (known.state if known else "")
    chain = [
        Zone(level="cloud_region", zone_type="cloud_region", zone=f"{cloud}:{region.lower()}"),
        Zone(level="us_state", zone_type="us_state", zone=state),
        Zone(level="country", zone_type="country", zone=country),
        Zone(level="world", zone_type="world", zone="WORLD"),
    ]
    return tuple(one for one in chain if one.zone not in ("", ":"))


def choose_grid(
    rows: Iterable[GridFactor], chain: Sequence[Zone], *, year: int
) -> FactorUsed | None:
    """The grid factor of the nearest zone that has one: its last year <= `year`, else its first.

    Among vintages of one zone and year the one of the later version wins. None only without rows.
    """
    by_zone: dict[tuple[str, str], list[GridFactor]] = {}
    for row in rows:
        by_zone.setdefault((row.zone_type, row.zone), []).append(row)
    for zone in chain:
        found = by_zone.get((zone.zone_type, zone.zone))
        if found:
            past = [row for row in found if row.year <= year]
            wanted = max(row.year for row in past) if past else min(row.year for row in found)
            vintages = [row for row in found if row.year == wanted]
            return _grid_used(max(vintages, key=lambda row: row.version), zone.level)
    return None


def _grid_used(row: GridFactor, level: str) -> FactorUsed:
    return FactorUsed(
        factor_id=row.factor_id,
        kind="grid_intensity",
        value=row.value_g_per_kwh,
        unit="gCO2e/kWh",
        year=row.year,
        source=f"{row.source} ({row.zone_name}; {row.licence})",
        level=level,
        basis=f"{row.gas_scope}, {row.method}",
        version=row.version,
    )


def factor_on(dated: Iterable[DatedFactor], kind: str, day: date) -> DatedFactor | None:
    """The site's factor of this kind that holds on `day`; None before the first, or without any."""
    holding = [one for one in dated if one.kind == kind and one.valid_from <= day]
    return max(holding, key=lambda one: one.valid_from, default=None)


def site_factor_used(one: DatedFactor, kind: str, unit: str) -> FactorUsed:
    """A site's own dated factor, as an answer names it."""
    return FactorUsed(
        factor_id=one.factor_id,
        kind=kind,
        value=one.value,
        unit=unit,
        year=one.valid_from.year if one.valid_from.year > 1970 else None,
        source=one.source,
        level="site",
        basis=one.tier,
        version=one.valid_from.isoformat(),
    )


def factors_on(
    day: date,
    *,
    dated: Sequence[DatedFactor],
    grid: Sequence[GridFactor],
    chain: Sequence[Zone],
) -> FactorsUsed:
    """The factors of a site on a day; what is not set is None (PUE: 1.0, marked "not set")."""
    host = factor_on(dated, "host_factor", day)
    pue = factor_on(dated, "pue", day)
    own_grid = factor_on(dated, "grid_g_per_kwh", day)
    not_set = FactorUsed(
        factor_id="pue/not-set",
        kind="pue",
        value=PUE_NOT_SET,
        unit="ratio",
        year=None,
        source="",
        level="not set",
    )
    return FactorsUsed(
        host_factor=site_factor_used(host, "host_factor", "ratio") if host else None,
        pue=site_factor_used(pue, "pue", "ratio") if pue else not_set,
        grid=site_factor_used(own_grid, "grid_intensity", "gCO2e/kWh")
        if own_grid
        else choose_grid(grid, chain, year=day.year),
    )

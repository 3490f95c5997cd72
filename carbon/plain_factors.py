"""Which factors hold in an hour, chosen from the tables one by one in plain steps; no reads.

Slow and obvious, for `verify`: it shares nothing with the choice that posting makes, so that a
mistake there is found here. The order of precedence is that of docs/factors.md.
"""

import math
from bisect import bisect_right
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from carbon.models import HourlyIntensity, ResidualMix, SiteFactor
from carbon.plain_factor_tables import Tables, ToldZone, cloud_of

AMERICAS: Final = ["BRA", "CAN", "CHL", "MEX", "USA"]
ASIA_PACIFIC: Final = (
    *("AUS", "CHN", "HKG", "IDN", "IND", "JPN"),
    *("KOR", "MYS", "NZL", "SGP", "THA", "TWN"),
)
LEVELS_OF_PUBLISHED: Final = {
    "region": "provider_region",
    "geography": "provider_geography",
    "fleet": "fleet",
}
PERIODS: Final = {"hour": "%Y-%m-%dT%HZ", "month": "%Y-%m", "year": "%Y"}  # the narrowest first
SCOPES: Final = {
    "own": "scope_2",
    "colocation": "scope_2_colocation",
    "leased": "scope_3_category_8",
    "cloud": "scope_3_category_1",
}
Document = dict[str, Any]  # a factor as FactorSet.factors keeps it


def chosen(tables: Tables, hour: datetime) -> list[Document]:
    """The factors of an hour in the order in which entries name them; unknown ones are left out."""
    hour = hour.astimezone(UTC)
    told = _told_intensity(tables, hour)
    every = (
        _host_factor(tables, hour),
        _of_period(tables, hour, "pue")
        or _own(tables, hour, "pue", "pue", "ratio")
        or _published(tables, hour.year, "pue")
        or _document("pue/not-set", "pue", 1.0, "ratio", level="not set"),
        told
        or _own(tables, hour, "grid_g_per_kwh", "grid_intensity", "gCO2e/kWh")
        or _yearly(tables, hour.year),
        _upstream(tables, hour, told),
        _residual(tables, hour),
        _of_period(tables, hour, "wue_l_per_kwh")
        or _own(tables, hour, "wue_l_per_kwh", "wue", "L/kWh")
        or _published(tables, hour.year, "wue"),
        _own(tables, hour, "source_l_per_kwh", "source_water", "L/kWh"),
        _embodied(tables, hour),
    )
    return [one for one in every if one is not None]


def _document(  # noqa: PLR0913 - mirrors what is kept
    factor_id: str,
    kind: str,
    value: float,
    unit: str,
    *,
    year: int | None = None,
    source: str = "",
    level: str,
    basis: str = "",
    version: str = "",
) -> Document:
    return {
        "id": factor_id,
        "kind": kind,
        "value": value,
        "unit": unit,
        "year": year,
        "source": source,
        "level": level,
        "basis": basis,
        "version": version,
    }


def _host_factor(tables: Tables, hour: datetime) -> Document | None:
    """As nodes measured it; their lower bound only where the site has set nothing."""
    measured = _of_period(tables, hour, "host_factor")
    own = _own(tables, hour, "host_factor", "host_factor", "ratio")
    if measured is not None and (own is None or measured["basis"] != "estimated"):
        return measured
    return own


def _of_period(tables: Tables, hour: datetime, kind: str) -> Document | None:
    """The factor of the hour itself, else of its month, else of its year."""
    for level, pattern in PERIODS.items():
        for row in tables.of_periods.get(hour.date(), ()):
            if row.kind == kind and row.level == level and row.start <= hour < row.end:
                start = row.start.astimezone(UTC)
                return _document(
                    f"hourly-factor/{row.pk}",
                    "wue" if kind == "wue_l_per_kwh" else kind,
                    row.value,
                    "L/kWh" if kind == "wue_l_per_kwh" else "ratio",
                    year=start.year,
                    source=row.source,
                    level=level,
                    basis=row.tier,
                    version=start.strftime(pattern),
                )
    return None


def _own(tables: Tables, hour: datetime, column: str, kind: str, unit: str) -> Document | None:
    """What the site has set from a day on, the last day not after the hour's."""
    last: SiteFactor | None = None
    for row in sorted(tables.own, key=lambda row: row.valid_from):
        if row.kind == column and row.valid_from <= hour.date():
            last = row
    if last is None:
        return None
    return _document(
        f"site-factor/{last.pk}",
        kind,
        last.value,
        unit,
        year=last.valid_from.year if last.valid_from.year > 1970 else None,
        source=last.source,
        level="site",
        basis=last.tier,
        version=last.valid_from.isoformat(),
    )


def _published(tables: Tables, year: int, kind: str) -> Document | None:
    """What the provider of a cloud publishes of the region, its geography or its fleet."""
    if not tables.site.provider:
        return None
    cloud, column = cloud_of(tables.site), "pue" if kind == "pue" else "wue_l_per_kwh"
    region = tables.site.region.strip().lower()
    for place in (f"{cloud}:{region}", f"{cloud}/{_geography(tables.country)}", cloud):
        rows = [row for row in tables.published[kind] if row["applies_to"] == place]
        past = [row for row in rows if int(row["year"]) <= year]
        rows = sorted(past, key=lambda row: -int(row["year"])) or sorted(
            rows, key=lambda row: int(row["year"])
        )
        if rows and rows[0]["scope"] in LEVELS_OF_PUBLISHED:
            row = rows[0]
            return _document(
                f"published-{kind}/{place}/{row['year']}",
                kind,
                float(row[column]),
                "ratio" if kind == "pue" else "L/kWh",
                year=int(row["year"]),
                source=f"{row['source']} ({row['provider']}, {row['about']})",
                level=LEVELS_OF_PUBLISHED[row["scope"]],
                basis="published",
            )
    return None


def _geography(country: str) -> str:
    if country in AMERICAS:
        return "americas"
    if country in ASIA_PACIFIC:
        return "apac"
    return "emea" if country else ""


def _told_intensity(tables: Tables, hour: datetime) -> Document | None:
    """What the first source that knows the hour has told of it, direct before lifecycle."""
    for zone in tables.told:
        for basis in ("direct", "lifecycle"):
            told = _holding(zone, hour, basis)
            if told is not None:
                row, revision = told
                known = f"{row.known_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"
                source = zone.row.source
                quality = "estimated" if row.is_estimated else "measured"
                return _document(
                    f"intensity/{source.pk}/{zone.row.zone}/{hour:%Y-%m-%dT%HZ}/{known}",
                    "grid_intensity",
                    row.value_g_per_kwh,
                    "gCO2e/kWh",
                    year=hour.year,
                    source=f"{source.name} ({source.provider}, {zone.row.zone})",
                    level="hour",
                    basis=f"{basis}, average, {quality}{f' ({row.method})' if row.method else ''}",
                    version=f"{known}, revision {revision}" if revision else known,
                )
    return None


def _holding(zone: ToldZone, hour: datetime, basis: str) -> tuple[HourlyIntensity, int] | None:
    """The row that holds, and how many it revised."""
    rows = [row for row in zone.hours.get(hour, ()) if row.basis == basis]
    for place, row in enumerate(rows):
        if row.superseded_at is None:
            return row, place
    return None


def _yearly(tables: Tables, year: int) -> Document | None:
    """The yearly factor of the nearest zone: its last year not after the hour's, else its first."""
    for level, zone in tables.zones:
        rows = [row for row in tables.grid if (row.zone_type, row.zone) == (level, zone)]
        if rows:
            years = sorted({row.year for row in rows})
            past = [one for one in years if one <= year]
            wanted = past[-1] if past else years[0]
            row = max((row for row in rows if row.year == wanted), key=lambda row: row.version)
            return _document(
                row.factor_id,
                "grid_intensity",
                row.value_g_per_kwh,
                "gCO2e/kWh",
                year=row.year,
                source=f"{row.source} ({row.zone_name}; {row.licence})",
                level=level,
                basis=f"{row.gas_scope}, {row.method}",
                version=row.version,
            )
    return None


def _upstream(tables: Tables, hour: datetime, told: Document | None) -> Document | None:
    """Lifecycle less direct, where the source that is taken tells both; never below zero."""
    for zone in tables.told:
        direct, lifecycle = _holding(zone, hour, "direct"), _holding(zone, hour, "lifecycle")
        if told is not None and direct is not None and lifecycle is not None:
            more = lifecycle[0].value_g_per_kwh - direct[0].value_g_per_kwh
            changed = {"kind": "upstream", "value": more, "basis": "lifecycle less direct"}
            return {**told, "id": f"upstream/{told['id']}", **changed} if more >= 0 else None
        if direct is not None or lifecycle is not None:
            return None
    return None


def boundary(tables: Tables, day: date) -> tuple[str, str]:
    """The scope and market of a day: as stated last, else by whether a provider is named."""
    ownership, market_zone = "cloud" if tables.site.provider else "own", ""
    for row in sorted(tables.boundaries, key=lambda row: row.valid_from):
        if row.valid_from <= day:
            ownership, market_zone = row.ownership, row.market_zone
    if not market_zone and ownership in ("own", "colocation"):
        market_zone = tables.country
    return SCOPES[ownership], market_zone


def _residual(tables: Tables, hour: datetime) -> Document | None:
    """The residual mix of the market's last year not after the hour's."""
    market_zone = boundary(tables, hour.date())[1]
    last: ResidualMix | None = None
    for row in sorted(tables.mixes, key=lambda row: row.year):
        if row.market_zone == market_zone and row.year <= hour.year:
            last = row
    if last is None or not market_zone:
        return None
    return _document(
        f"residual-mix/{market_zone}/{last.year}/{last.pk}",
        "residual_mix",
        last.g_per_kwh,
        "gCO2e/kWh",
        year=last.year,
        source=last.source,
        level="market zone",
        basis="market-based, energy outside contracts",
    )


def _embodied(tables: Tables, hour: datetime) -> Document | None:
    """The footprints over their lives, shared by the accelerators known by the hour."""
    bought = [row for row in tables.assets if _midnight(row.purchased_on) <= hour]
    if not bought:
        return None
    living = [
        row
        for row in bought
        if hour < _midnight(row.purchased_on) + timedelta(hours=row.lifetime_h)
    ]
    known = bisect_right(tables.first_seen, hour)
    counts = [row.devices for row in living]
    shared_by = min(max(known, *counts), sum(counts)) if counts else 1
    ids = "+".join(str(row.pk) for row in living)
    return _document(
        f"embodied-assets/{ids or 'written-off'}",
        "embodied",
        math.fsum(row.kgco2e / row.lifetime_h for row in living) / shared_by,
        "kgCO2e/accelerator-hour",
        year=max((row.purchased_on.year for row in living), default=None),
        source="; ".join(f"{row.name}: {row.source}" for row in living),
        level="site",
        basis="ISO/IEC 21031, by accelerator-hours",
    )


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)

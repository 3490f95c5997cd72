"""Every factor used or usable, with its source, use and approval: the registry. Reads only."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.utils.translation import gettext as _

from audit.selectors import trail
from carbon.factors import cloud_name, published_pues, zone_chain
from carbon.intensity import series_id
from carbon.intensity_sources import CSV, ELECTRICITY_MAPS, UK, WATTTIME
from carbon.models import EmbodiedAsset, FactorApproval, GridIntensity, SiteFactor, SiteZone
from carbon.records import GridFactor
from carbon.site_factors import grid_factors
from runs.selectors import sites

SHOWN: Final = 300
TRAIL_READ: Final = 5_000
_UNITS: Final = {
    "grid_g_per_kwh": "gCO2e/kWh",
    "wue_l_per_kwh": "L/kWh",
    "source_l_per_kwh": "L/kWh",
    "max_gap_s": "s",
}
_OWN_KINDS: Final = {"grid_intensity": "grid_g_per_kwh", "wue": "wue_l_per_kwh"}
_LICENCES: Final[Mapping[str, Any]] = {
    ELECTRICITY_MAPS: "Electricity Maps: your contract",
    WATTTIME: "WattTime: your contract",
    UK: "CC BY 4.0 (NESO, Carbon Intensity API)",
    CSV: "own data",
}
# The hours of one series are one line: their ids end with the hour, or are told by kind alone.
_USED: Final = """
WITH used AS (
    SELECT entry.factor_set_id AS id, count(*) AS entries,
           sum(entry.facility_energy_kwh) AS kwh, min(entry.hour) AS first, max(entry.hour) AS last
    FROM carbon_emissionentry AS entry
    WHERE entry.organisation_id = %(organisation)s AND entry.reverses_id IS NULL
      AND NOT EXISTS (SELECT 1 FROM carbon_emissionentry AS back WHERE back.reverses_id = entry.id)
    GROUP BY entry.factor_set_id
), named AS (
    SELECT factor->>'level' = 'hour' AS is_hourly,
           CASE WHEN factor->>'level' = 'hour' THEN regexp_replace(regexp_replace(
                    factor->>'id', '/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}Z(/.*)?$', ''),
                    '^(hourly-factor|site-period-factor)/.*$', '\\1/hours')
                ELSE factor->>'id' END AS id,
           factor->>'kind' AS kind, (factor->>'value')::float8 AS value, factor->>'unit' AS unit,
           (factor->>'year')::int AS year, factor->>'source' AS source, factor->>'level' AS level,
           factor->>'basis' AS basis, factor->>'version' AS version,
           used.entries, used.kwh, used.first, used.last
    FROM used JOIN carbon_factorset AS held ON held.id = used.id,
         jsonb_array_elements(held.factors) AS factor
)
SELECT id, kind, min(value), max(value), unit, max(year), source, level,
       string_agg(DISTINCT basis, '; '), CASE WHEN is_hourly THEN '' ELSE version END,
       sum(entries), sum(kwh), min(first), max(last), is_hourly
FROM named GROUP BY is_hourly, id, kind, unit, source, level,
                    CASE WHEN is_hourly THEN '' ELSE version END
ORDER BY kind, sum(kwh) DESC NULLS LAST, id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """Somebody's word for a factor."""

    by: str
    at: datetime
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryRow:
    """One factor; of a series the lowest and the highest hour. None: not used, not known."""

    factor_id: str
    kind: str
    low: float | None
    high: float | None
    unit: str
    year: int | None
    source: str
    level: str
    basis: str
    version: str
    licence: str = ""
    valid_from: str = ""
    entries: int = 0
    used_kwh: float | None = None
    first_used: datetime | None = None
    last_used: datetime | None = None
    is_series: bool = False
    entered_by: str = ""
    approvals: tuple[Approval, ...] = ()

    @property
    def version_apart(self) -> str:
        """The version where it says more than the id: not of what holds always."""
        return (
            "" if self.version in self.factor_id or self.version == "1970-01-01" else self.version
        )

    @property
    def approved_value(self) -> float:
        """What an approval is about; a series is approved as a whole, under 0."""
        return 0.0 if self.is_series or self.low is None else self.low

    @property
    def key(self) -> tuple[str, str, float]:
        """What its approvals are kept under."""
        return (self.factor_id, self.version[:40], self.approved_value)


def registry(organisation_id: UUID, *, text: str = "") -> list[RegistryRow]:
    """The factors of an organisation: those in the books, then those that could be used.

    With a text, those that hold it; shipped yearly rows of all the world are searched then too.
    """
    used = _used(organisation_id)
    known = {row.factor_id for row in used}
    usable = [
        *_series(organisation_id),
        *_own(organisation_id),
        *_hardware(organisation_id),
        *_yearly(organisation_id, text),
        *_published(organisation_id, text),
    ]
    rows = [*used, *(row for row in usable if row.factor_id not in known)]
    rows = _with_licences(rows)
    if text:
        rows = [row for row in rows if _holds(row, text.lower())]
    return _with_people(organisation_id, rows)


def _holds(row: RegistryRow, text: str) -> bool:
    told = (row.factor_id, row.kind, row.source, row.level, row.basis, row.version, row.licence)
    return any(text in one.lower() for one in (*told, str(row.year or "")))


def _used(organisation_id: UUID) -> list[RegistryRow]:
    """What the entries that hold were computed with."""
    with connection.cursor() as cursor:
        cursor.execute(_USED, {"organisation": organisation_id})
        rows = cursor.fetchall()
    return [
        RegistryRow(
            factor_id=row[0],
            kind=row[1],
            low=row[2],
            high=row[3],
            unit=row[4],
            year=row[5],
            source=row[6] or "",
            level=row[7],
            basis=row[8] or "",
            version=row[9] or "",
            entries=int(row[10]),
            used_kwh=row[11],
            first_used=row[12],
            last_used=row[13],
            is_series=row[14],
        )
        for row in rows
    ]


def _series(organisation_id: UUID) -> list[RegistryRow]:
    """The zones of sites in hourly sources."""
    links = SiteZone.objects.filter(organisation_id=organisation_id).select_related("source")
    return [
        RegistryRow(
            factor_id=series_id(link.source_id, link.zone),
            kind="grid_intensity",
            low=None,
            high=None,
            unit="gCO2e/kWh",
            year=None,
            source=f"{link.source.name} ({link.source.provider}, {link.zone})",
            level="hour",
            basis=link.source.basis,
            version="",
            is_series=True,
        )
        for link in links
    ]


def _own(organisation_id: UUID) -> list[RegistryRow]:
    """The dated factors of sites that hold."""
    rows = SiteFactor.objects.filter(organisation_id=organisation_id, superseded_at__isnull=True)
    return [
        RegistryRow(
            factor_id=f"site-factor/{row.pk}",
            kind=row.kind,
            low=row.value,
            high=row.value,
            unit=_UNITS.get(row.kind, "ratio"),
            year=row.valid_from.year if row.valid_from.year > 1970 else None,
            source=row.source,
            level="site",
            basis=row.tier,
            version=row.valid_from.isoformat(),
            valid_from=row.valid_from.isoformat() if row.valid_from.year > 1970 else "",
        )
        for row in rows
    ]


def _yearly(organisation_id: UUID, text: str) -> list[RegistryRow]:
    """The shipped yearly rows of the sites' zones; with a text those of all zones that hold it."""
    zones: set[str] = {"WORLD"}
    for site in sites(organisation_id):
        chain = zone_chain(
            provider=site.provider, region=site.region, country=site.country, state=site.state
        )
        zones |= {zone.zone for zone in chain}
    found = grid_factors(zones)
    if text:
        more = GridIntensity.objects.filter(zone_name__icontains=text).values_list("zone")
        found = grid_factors({*zones, *(zone for (zone,) in more), text.upper()})
    return [_of_grid(row) for row in found]


def _hardware(organisation_id: UUID) -> list[RegistryRow]:
    """The hardware whose making is counted, with its range."""
    rows = EmbodiedAsset.objects.filter(organisation_id=organisation_id, superseded_at__isnull=True)
    return [
        RegistryRow(
            factor_id=f"embodied-asset/{row.pk}",
            kind="embodied",
            low=row.kgco2e_low if row.kgco2e_low is not None else row.kgco2e,
            high=row.kgco2e_high if row.kgco2e_high is not None else row.kgco2e,
            unit="kgCO2e",
            year=row.purchased_on.year,
            source=f"{row.name}: {row.source}",
            level="site",
            basis=f"{row.kgco2e:g} kgCO2e",
            version="",
            valid_from=row.purchased_on.isoformat(),
        )
        for row in rows
    ]


def _published(organisation_id: UUID, text: str) -> list[RegistryRow]:
    """Published PUE values of the sites' providers; with a text those of all."""
    clouds = {cloud_name(site.provider) for site in sites(organisation_id)}
    return [
        RegistryRow(
            factor_id=f"published-pue/{row.provider}/{row.about}/{row.year}",
            kind="pue",
            low=row.pue,
            high=row.pue,
            unit="ratio",
            year=row.year,
            source=f"{row.provider}, {row.about}: {row.source}",
            level="published",
            basis="published",
            version="",
            licence=_("a published figure, cited"),
        )
        for row in published_pues()
        if text or cloud_name(row.provider) in clouds
    ]


def _of_grid(row: GridFactor) -> RegistryRow:
    return RegistryRow(
        factor_id=row.factor_id,
        kind="grid_intensity",
        low=row.value_g_per_kwh,
        high=row.value_g_per_kwh,
        unit="gCO2e/kWh",
        year=row.year,
        source=f"{row.source} ({row.zone_name})",
        level=row.zone_type,
        basis=f"{row.gas_scope}, {row.method}",
        version=row.version,
        licence=row.licence,
        valid_from=f"{row.year}-01-01",
    )


def _with_licences(rows: Iterable[RegistryRow]) -> list[RegistryRow]:
    """The rows with the licence of where they come from."""
    found = list(rows)
    shipped = dict(
        GridIntensity.objects.filter(
            factor_id__in=[row.factor_id for row in found if not row.licence]
        ).values_list("factor_id", "licence")
    )
    return [
        row
        if row.licence
        else replace(row, licence=shipped.get(row.factor_id) or _licence_by_kind(row))
        for row in found
    ]


def _licence_by_kind(row: RegistryRow) -> str:
    if row.factor_id.startswith(("intensity/", "upstream/intensity/")):
        words = (text for provider, text in _LICENCES.items() if f"({provider}," in row.source)
        return next(words, "")
    return _("own data") if row.level == "site" else ""


def _with_people(organisation_id: UUID, rows: Iterable[RegistryRow]) -> list[RegistryRow]:
    """The rows with who entered and who approved them."""
    approvals: dict[tuple[str, str, float], list[Approval]] = defaultdict(list)
    for row in FactorApproval.objects.filter(organisation_id=organisation_id):
        key = (row.factor_id, row.version, row.value)
        approvals[key].append(Approval(by=row.approved_by, at=row.approved_at, note=row.note))
    entered = _entered(organisation_id)
    return [
        replace(
            row,
            approvals=tuple(approvals.get(row.key, ())),
            entered_by=entered.get(_entered_key(row), ""),
        )
        for row in rows
    ]


def _entered_key(row: RegistryRow) -> str:
    """What the trail calls the thing that somebody entered."""
    if row.factor_id.startswith("intensity/"):
        return row.factor_id.split("/")[1]
    if row.factor_id.startswith("site-factor/"):
        return f"{_OWN_KINDS.get(row.kind, row.kind)}/{row.version}/{row.low}"
    return ""


def _entered(organisation_id: UUID) -> dict[str, str]:
    """Who entered sites' factors, and who connected or last filled sources, by the trail."""
    found: dict[str, str] = {}
    for entry in reversed(trail(organisation_id, object_type="site", limit=TRAIL_READ)):
        after = entry.after
        if entry.action == "site_factor.changed" and isinstance(after, dict):
            key = f"{after.get('kind')}/{after.get('valid_from')}/{after.get('value')}"
            found[key] = entry.actor_label
    sources = trail(organisation_id, object_type="intensity_source", limit=TRAIL_READ)
    for entry in reversed(sources):
        if entry.action in ("intensity_source.connect", "intensity_source.import"):
            found[entry.object_id] = entry.actor_label
    return found

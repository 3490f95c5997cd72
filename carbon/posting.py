"""Posts emission entries: hours with owners and factors; changes reverse and repost."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any, Final
from uuid import UUID

import numpy as np
from django.db import connection

from carbon.adapters import binary_rows
from carbon.attribution import OwnedHour, attribute, instant_of, microsecond_of
from carbon.factors import factors_on, zone_chain
from carbon.metering import HOUR_MICROSECOND, HourTable
from carbon.models import EmissionEntry, FactorSet
from carbon.records import DatedFactor, FactorsUsed, GridFactor
from carbon.selectors import current_entries
from carbon.site_factors import dated_factors, grid_factors
from formulae.emissions import operational_kgco2e
from formulae.energy import facility_energy_kwh, it_energy_kwh
from formulae.units import kwh_from_millijoule
from runs.records import SiteRecord
from runs.selectors import assignments_between

MARKET_BASIS: Final = (
    "grid average"  # no instruments, no residual mix on file: GHG Protocol's last resort
)
COMPARED: Final = (
    "accelerator_energy_millijoule",
    "measured_millijoule",
    "spread_millijoule",
    "estimated_millijoule",
    "covered_microsecond",
    "expected_microsecond",
    "factor_set_id",
)
NEGATED: Final = (
    *COMPARED[:-1],
    "it_energy_kwh",
    "facility_energy_kwh",
    "scope_2_location_kgco2e",
    "scope_2_market_kgco2e",
)
Key = tuple[UUID | None, UUID | None, int]


def post_hours(site: SiteRecord, *, start: int, end: int, posted_at: datetime) -> int:
    """Bring the entries of [start, end) to what hours, assignments and factors say now.

    In the caller's transaction, under the site's lock. Hours between this window and its neighbours
    on the books are posted too, so that a gap in which devices were assigned shows as not covered.
    Says how many entries are new.
    """
    before, after = _neighbours(site.site_id, start, end)
    start, end = start if before is None else before, end if after is None else after
    owned = _owned(site, start=start, end=end)
    owned = _on_the_books(owned, from_start=before is not None, to_end=after is not None)
    wanted = _wanted(site, owned)
    current = {
        (row.project_id, row.run_id, microsecond_of(row.hour)): row
        for row in current_entries().filter(
            site_id=site.site_id, hour__gte=instant_of(start), hour__lt=instant_of(end)
        )
    }
    outdated = [
        row for key, row in current.items() if key not in wanted or _differs(row, wanted[key])
    ]
    fresh = [
        row for key, row in wanted.items() if key not in current or _differs(current[key], row)
    ]
    # Whoever asked earlier may post later: an entry must not be taken back before it was posted.
    posted_at = max([posted_at, *(row.posted_at for row in outdated)])
    for row in fresh:
        row.posted_at = posted_at
    reversals = [_reversal(row, posted_at=posted_at) for row in outdated]
    EmissionEntry.objects.bulk_create([*reversals, *fresh], batch_size=1_000)
    return len(fresh)


def _neighbours(site_id: UUID, start: int, end: int) -> tuple[int | None, int | None]:
    """The end of the last posted hour before the window, and the first posted hour after it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT max(hour) FILTER (WHERE hour < %(start)s), "
            "min(hour) FILTER (WHERE hour >= %(end)s) "
            "FROM carbon_emissionentry WHERE site_id = %(site)s",
            {"start": instant_of(start), "end": instant_of(end), "site": site_id},
        )
        before, after = cursor.fetchone()
    low = microsecond_of(before) + HOUR_MICROSECOND if before else None
    return low, microsecond_of(after) if after else None


def _differs(old: EmissionEntry, new: EmissionEntry) -> bool:
    return any(getattr(old, name) != getattr(new, name) for name in COMPARED)


def _reversal(row: EmissionEntry, *, posted_at: datetime) -> EmissionEntry:
    """The entry that takes back another one."""
    values: dict[str, Any] = {
        field.attname: getattr(row, field.attname)
        for field in EmissionEntry._meta.concrete_fields
        if field.attname != "id"
    }
    for name in NEGATED:
        if values[name] is not None:
            values[name] = -values[name]
    return EmissionEntry(**{**values, "posted_at": posted_at, "reverses_id": row.pk})


def _owned(site: SiteRecord, *, start: int, end: int) -> list[OwnedHour]:
    """Who used what in the hours of a window."""
    assignments = assignments_between(
        site.organisation_id, instant_of(start), instant_of(end), site.site_id
    )
    table = _site_hours(site.site_id, start=start, end=end)
    return attribute(table, assignments, start=start, end=end)


def _on_the_books(owned: Sequence[OwnedHour], *, from_start: bool, to_end: bool) -> list[OwnedHour]:
    """Without hours that lie outside all reported ones: nothing was due to be seen there."""
    reported = [one.hour for one in owned if one.covered_microsecond]
    if not reported:
        return list(owned) if from_start and to_end else []
    first, last = min(reported), max(reported)
    return [
        one for one in owned if (from_start or one.hour >= first) and (to_end or one.hour <= last)
    ]


def _wanted(site: SiteRecord, owned: Sequence[OwnedHour]) -> dict[Key, EmissionEntry]:
    """The entries that these hours should have."""
    sets = _factor_sets(site, {instant_of(one.hour).date() for one in owned})
    return {
        (*one.owner, one.hour): entry_of(site, one, *sets[instant_of(one.hour).date()])
        for one in owned
    }


def _site_hours(site_id: UUID, *, start: int, end: int) -> HourTable:
    """The current device-hours of the site, by device and hour."""
    kinds = {
        "device_id": "int8",
        "hour": "timestamptz",
        "measured_millijoule": "int8",
        "spread_millijoule": "int8",
        "estimated_millijoule": "int8",
        "covered_microsecond": "int8",
    }
    with connection.cursor() as cursor:
        found = binary_rows.read(
            cursor,
            kinds,
            "FROM carbon_energyhour WHERE site_id = %s AND hour >= %s AND hour < %s "
            "AND superseded_at IS NULL",
            [site_id, instant_of(start), instant_of(end)],
        )
    order = np.lexsort((found["hour"], found["device_id"]))
    found = {name: values[order] for name, values in found.items()}
    return HourTable(device=found.pop("device_id"), **found)


def entry_of(
    site: SiteRecord, one: OwnedHour, factors: FactorsUsed, factor_set: FactorSet
) -> EmissionEntry:
    """The entry of an owner's hour: three boundaries, then emissions; unknown stays None."""
    energy_millijoule = one.measured_millijoule + one.spread_millijoule + one.estimated_millijoule
    it_kwh = it_energy_kwh(
        kwh_from_millijoule(energy_millijoule),
        factors.host_factor.value if factors.host_factor else None,
    )
    facility_kwh = facility_energy_kwh(it_kwh, factors.pue.value)
    emitted_kgco2e = operational_kgco2e(facility_kwh, factors.grid.value if factors.grid else None)
    project_id, run_id = one.owner
    return EmissionEntry(
        organisation_id=site.organisation_id,
        site_id=site.site_id,
        project_id=project_id,
        run_id=run_id,
        hour=instant_of(one.hour),
        accelerator_energy_millijoule=energy_millijoule,
        measured_millijoule=one.measured_millijoule,
        spread_millijoule=one.spread_millijoule,
        estimated_millijoule=one.estimated_millijoule,
        covered_microsecond=one.covered_microsecond,
        expected_microsecond=one.expected_microsecond,
        it_energy_kwh=it_kwh,
        facility_energy_kwh=facility_kwh,
        scope_2_location_kgco2e=emitted_kgco2e,
        scope_2_market_kgco2e=emitted_kgco2e,
        market_basis=MARKET_BASIS if emitted_kgco2e is not None else "",
        factor_set_id=factor_set.pk,
    )


def factors_by_day(
    site: SiteRecord, days: Iterable[date], dated: Sequence[DatedFactor] | None = None
) -> dict[date, FactorsUsed]:
    """The factors of a site on each of these days."""
    chain = zone_chain(
        provider=site.provider, region=site.region, country=site.country, state=site.state
    )
    grid: list[GridFactor] = grid_factors(zone.zone for zone in chain)
    own = dated_factors(site.site_id) if dated is None else dated
    return {day: factors_on(day, dated=own, grid=grid, chain=chain) for day in days}


def _factor_sets(
    site: SiteRecord, days: Iterable[date]
) -> dict[date, tuple[FactorsUsed, FactorSet]]:
    """The factors of each day, kept as they are now for the entries to point at."""
    found: dict[date, tuple[FactorsUsed, FactorSet]] = {}
    by_digest: dict[str, FactorSet] = {}
    for day, used in factors_by_day(site, days).items():
        documents = [factor.as_json() for factor in used.named]
        text = json.dumps(documents, sort_keys=True, ensure_ascii=False)
        digest = hashlib.sha256(text.encode()).hexdigest()
        if digest not in by_digest:
            by_digest[digest], _created = FactorSet.objects.get_or_create(
                organisation_id=site.organisation_id,
                digest=digest,
                defaults={
                    "host_factor": used.host_factor.value if used.host_factor else None,
                    "pue": used.pue.value,
                    "grid_g_per_kwh": used.grid.value if used.grid else None,
                    "factors": documents,
                },
            )
        found[day] = (used, by_digest[digest])
    return found

"""Checks of energy and emissions: recomputed from the readings in pure Python; changes nothing."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from uuid import UUID

from audit.records import Finding
from carbon.entry_checks import verify_entries
from carbon.entry_queries import current_entries, held_spans, is_held
from carbon.factor_checks import verify_factors
from carbon.hour_checks import verify_hours
from carbon.market_checks import verify_locks, verify_market
from carbon.models import (
    EnergyHour,
)
from formulae.allocation import split_integer
from runs.records import AssignmentRecord, SiteRecord
from runs.selectors import assignments_of_site, sites

HOUR = timedelta(hours=1)
MICROSECOND = timedelta(microseconds=1)
OwnerHour = tuple[datetime, UUID | None, UUID | None]


def verify(organisation_id: UUID) -> tuple[Finding, ...]:
    """What differs between the books and an independent computation from the readings."""
    of_sites = (
        verify_hours,
        verify_entries,
        verify_sums,
        verify_owners,
        verify_factors,
    )
    found = [
        finding for site in sites(organisation_id) for check in of_sites for finding in check(site)
    ]
    return (*found, *verify_market(organisation_id), *verify_locks(organisation_id))


def verify_sums(site: SiteRecord) -> Iterator[Finding]:
    """Each hour's entries, over all owners, against the site's device-hours."""
    entries = current_entries().filter(site_id=site.site_id).order_by("hour")
    posted = {
        hour: sum(row.accelerator_energy_millijoule for row in rows)
        for hour, rows in groupby(entries, key=lambda row: row.hour)
    }
    metered: dict[datetime, int] = {}
    held = held_spans(site.site_id)
    hours = EnergyHour.objects.filter(site_id=site.site_id, superseded_at__isnull=True)
    columns = ("hour", "measured_millijoule", "spread_millijoule", "estimated_millijoule")
    for hour, *energies in hours.values_list(*columns).iterator(chunk_size=10_000):
        metered[hour] = metered.get(hour, 0) + sum(energies)
    for hour in {**metered, **posted}:
        if posted.get(hour, 0) != metered.get(hour, 0) and not is_held(held, hour):
            yield Finding(
                code="emission_sum",
                where=f"{site.slug}, {hour}",
                expected=f"{metered.get(hour, 0)} mJ",
                found=f"{posted.get(hour, 0)} mJ",
            )


def verify_owners(site: SiteRecord) -> Iterator[Finding]:
    """Each owner's energy of each hour against assignments and device-hours, device by device."""
    booked = {
        (row.hour, row.project_id, row.run_id): row.accelerator_energy_millijoule
        for row in current_entries().filter(site_id=site.site_id)
        if row.accelerator_energy_millijoule
    }
    owned = _owned_energy(site)
    held = held_spans(site.site_id)
    for key in sorted({*booked, *owned}, key=str) if booked != owned else ():
        hour, project_id, run_id = key
        if booked.get(key, 0) != owned.get(key, 0) and not is_held(held, hour):
            yield Finding(
                code="emission_owner",
                where=f"{site.slug}, project {project_id}, run {run_id}, {hour.isoformat()}",
                expected=f"{owned.get(key, 0)} mJ",
                found=f"{booked.get(key, 0)} mJ",
            )


def _owned_energy(site: SiteRecord) -> dict[OwnerHour, int]:
    """Energy by hour and owner: each device-hour split by time, the rest nobody's."""
    assigned: dict[int, list[AssignmentRecord]] = {}
    for assignment in assignments_of_site(site.site_id):
        assigned.setdefault(assignment.device_id, []).append(assignment)
    owned: dict[OwnerHour, int] = {}
    hours = EnergyHour.objects.filter(site_id=site.site_id, superseded_at__isnull=True)
    columns = ("measured_millijoule", "spread_millijoule", "estimated_millijoule")
    rows = hours.values_list("device_id", "hour", *columns)
    for device_id, hour, *energies in rows.iterator(chunk_size=10_000):
        owners, parts = _shares(assigned.get(device_id, ()), hour)
        for energy in energies:
            for owner, part in zip(owners, split_integer(energy, parts), strict=True):
                if part:
                    key = (hour, *owner)
                    owned[key] = owned.get(key, 0) + part
    return owned


def _shares(
    assignments: Sequence[AssignmentRecord], hour: datetime
) -> tuple[list[tuple[UUID | None, UUID | None]], list[int]]:
    """Whose a device is in an hour, and for how many microseconds."""
    owners: list[tuple[UUID | None, UUID | None]] = []
    parts: list[int] = []
    for one in assignments:
        low, high = max(one.start, hour), min(one.end or hour + HOUR, hour + HOUR)
        if low < high:
            owners.append((one.project_id, one.run_id))
            parts.append((high - low) // MICROSECOND)
    free = HOUR // MICROSECOND - sum(parts)
    return ([*owners, (None, None)], [*parts, free]) if free else (owners, parts)

"""Facility energy of a site's devices by UTC day and by whom they worked for; reads only.

Host factor and PUE are those of the books: a device has its share of its site's hour.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any, Final
from uuid import UUID

from django.db import connection

from carbon.device_energy import owner_parts, owners_in
from carbon.device_sql import HELD, MEASURES, RATED, RATES, asked_params
from carbon.energy_questions import EnergyQuestion
from carbon.energy_records import KNOWABLE
from runs.records import AssignmentRecord, SiteRecord
from runs.selectors import devices_of

Owner = tuple[UUID | None, UUID | None]
_ENERGY: Final = KNOWABLE.index("facility_energy_kwh")
_COLUMNS: Final = ", ".join(f"h.{name}" for name in MEASURES)
_SHARED: Final = """
shared AS (SELECT * FROM unnest(%(shared_devices)s::bigint[], %(shared_hours)s::timestamptz[])
  AS s(device_id, hour))
"""
# A device-hour that is not shared has one owner whole, or none.
_WHOLE: Final = f"""
WITH {RATES}, {_SHARED},
owned AS (SELECT * FROM unnest(%(owned_devices)s::bigint[], %(lows)s::timestamptz[],
  %(highs)s::timestamptz[], %(owners)s::int[]) AS a(device_id, low, high, owner)),
held AS (
  SELECT h.device_id, h.hour, {RATED}
  FROM carbon_energyhour h LEFT JOIN rates r ON r.site_id = h.site_id AND r.hour = h.hour
  WHERE {HELD} AND NOT EXISTS (
    SELECT 1 FROM shared s WHERE s.device_id = h.device_id AND s.hour = h.hour))
SELECT held.device_id, date_trunc('day', held.hour, 'UTC'), a.owner,
  CASE WHEN count(*) = count(facility_energy_kwh)
    THEN sum(facility_energy_kwh ORDER BY held.hour) END
FROM held LEFT JOIN owned a
  ON a.device_id = held.device_id AND a.low <= held.hour AND a.high > held.hour
GROUP BY 1, 2, 3
"""  # noqa: S608 - names of ours only
_PARTLY: Final = f"""
WITH {RATES}, {_SHARED}
SELECT h.device_id, h.hour, {_COLUMNS}, {RATED}
FROM carbon_energyhour h JOIN shared s ON s.device_id = h.device_id AND s.hour = h.hour
  LEFT JOIN rates r ON r.site_id = h.site_id AND r.hour = h.hour
WHERE {HELD}
ORDER BY h.device_id, h.hour
"""  # noqa: S608 - names of ours only
_FIRST: Final = """
SELECT d.id, (SELECT min(h.hour) FROM carbon_energyhour h WHERE h.device_id = d.id)
FROM runs_device d WHERE d.site_id = %(site)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEnergyDay:
    """What a device's work of a day for an owner, or for nobody, used; None where unknown."""

    device_id: int
    day: date
    project_id: UUID | None
    run_id: UUID | None
    facility_energy_kwh: float | None


def device_energy_by_day(
    site: SiteRecord, *, start_on: date, end_on: date
) -> list[DeviceEnergyDay]:
    """The facility energy of every device with energy in [start_on, end_on), by day and owner.

    A sum that misses a part is None, and a device that told nothing has no row.
    """
    question = EnergyQuestion(
        organisation_id=site.organisation_id,
        site=site.slug,
        site_id=site.site_id,
        start=_midnight(start_on),
        end=_midnight(end_on),
    )
    devices = {one.device_id: one for one in devices_of(site.site_id)}
    if not devices or start_on >= end_on:
        return []
    owners = owners_in(question, devices)
    params = {**asked_params(question, devices.values()), **_shared_params(owners)}
    parts: dict[tuple[int, date, Owner], list[float | None]] = {}
    for device_id, day, owner, energy_kwh in _whole(params, owners, question):
        parts.setdefault((device_id, day, owner), []).append(energy_kwh)
    if params["shared_devices"]:
        for device_id, hour, *values in _fetched(_PARTLY, params):
            for part in owner_parts(device_id, hour, values, owners.get(device_id, ())):
                key = (device_id, hour.astimezone(UTC).date(), part.owner)
                parts.setdefault(key, []).append(part.figures[_ENERGY])
    return [
        DeviceEnergyDay(
            device_id=device_id,
            day=day,
            project_id=project_id,
            run_id=run_id,
            facility_energy_kwh=_sum_known(parts[device_id, day, (project_id, run_id)]),
        )
        for device_id, day, (project_id, run_id) in sorted(parts, key=str)
    ]


def first_energy_by_device(site_id: UUID) -> dict[int, datetime]:
    """The first hour with energy of each device of a site that has any."""
    return {pk: hour for pk, hour in _fetched(_FIRST, {"site": site_id}) if hour is not None}


def _whole(
    params: Mapping[str, Any],
    owners: Mapping[int, Sequence[AssignmentRecord]],
    question: EnergyQuestion,
) -> list[tuple[int, date, Owner, float | None]]:
    """Sums of device-hours that one owner, or nobody, had whole."""
    rows = [one for some in owners.values() for one in some]
    named: list[Owner] = sorted({(one.project_id, one.run_id) for one in rows}, key=str)
    places = {owner: place for place, owner in enumerate(named)}
    owned = {
        "owned_devices": [one.device_id for one in rows],
        "lows": [one.start for one in rows],
        "highs": [one.end or question.end for one in rows],
        "owners": [places[one.project_id, one.run_id] for one in rows],
    }
    return [
        (device_id, day.astimezone(UTC).date(), (None, None) if at is None else named[at], energy)
        for device_id, day, at, energy in _fetched(_WHOLE, {**params, **owned})
    ]


def _shared_params(owners: Mapping[int, Sequence[AssignmentRecord]]) -> dict[str, Any]:
    """The device-hours in which a device changes hands."""
    shared = {
        (one.device_id, hour)
        for rows in owners.values()
        for one in rows
        for at in (one.start, one.end)
        if at is not None and (hour := at.replace(minute=0, second=0, microsecond=0)) != at
    }
    ordered = sorted(shared)
    return {
        "shared_devices": [device for device, _hour in ordered],
        "shared_hours": [hour for _device, hour in ordered],
    }


def _fetched(sql: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def _sum_known(parts: Sequence[float | None]) -> float | None:
    known = [one for one in parts if one is not None]
    return sum(known) if len(known) == len(parts) else None


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)

"""Since when the accelerators of a site are known to stand there. Reads; shares nothing out."""

from bisect import bisect_right
from datetime import datetime
from uuid import UUID

from django.db import connection

from carbon.attribution import microsecond_of
from carbon.metering import HOUR_MICROSECOND
from runs.selectors import assignments_of_site, devices_of


def first_hours(site_id: UUID) -> list[int]:
    """The first hour of each accelerator that used energy or was assigned, sorted, microseconds.

    Of an hour, the hours before it tell how many there were: who comes later changes no earlier
    one. Who falls silent stays: its share of the hardware is nobody's, not the others'.
    """
    first = _first_energy_hours(site_id)
    for one in assignments_of_site(site_id):
        hour = microsecond_of(one.start) // HOUR_MICROSECOND * HOUR_MICROSECOND
        first[one.device_id] = min(hour, first.get(one.device_id, hour))
    return sorted(first.values())


def _first_energy_hours(site_id: UUID) -> dict[int, int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT wanted.id, (SELECT hour FROM carbon_energyhour WHERE device_id = wanted.id "
            "AND site_id = %s AND superseded_at IS NULL ORDER BY hour LIMIT 1) "
            "FROM unnest(%s::bigint[]) AS wanted(id)",
            [site_id, [one.device_id for one in devices_of(site_id)]],
        )
        found: list[tuple[int, datetime | None]] = cursor.fetchall()
    return {device: microsecond_of(hour) for device, hour in found if hour is not None}


def accelerators_by(first: list[int], hour: int) -> int:
    """How many accelerators were known by the end of an hour."""
    return bisect_right(first, hour)

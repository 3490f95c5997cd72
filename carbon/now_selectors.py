"""Reads of what devices draw now, by site and node, with the factors of the hour."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import Max

from carbon.attribution import instant_of, microsecond_of
from carbon.intensity import intensities_for
from carbon.models import DeviceNow, EnergyHour
from carbon.now_records import DeviceReading, NodeReadings, SiteNow
from carbon.records import FactorUsed
from carbon.sender_selectors import health_by_site
from carbon.site_pages import current_factors
from projects.models import Project
from runs.records import AssignmentRecord, DeviceRecord, SiteRecord
from runs.selectors import assignments_between, devices_of, sites

STALE_AFTER_S: Final = 120.0
CADENCES: Final = 3
NOW_HOURS: Final = timedelta(hours=26)  # an hourly source may lag; older intensity is not "now"
FORGOTTEN: Final = timedelta(days=7)  # a device that has been silent for longer is not shown
_CADENCE: Final = """
SELECT one.site_id, percentile_disc(0.5) WITHIN GROUP (ORDER BY step.seconds)
FROM (SELECT DISTINCT ON (site_id, sender_id) site_id, sender_id, device_id, at
  FROM carbon_devicenow WHERE organisation_id = %(organisation)s
  ORDER BY site_id, sender_id, at DESC LIMIT 200) AS one
CROSS JOIN LATERAL (
  SELECT extract(epoch FROM lag(last.at) OVER (ORDER BY last.at DESC) - last.at) AS seconds
  FROM (SELECT at FROM carbon_powersample
      WHERE device_id = one.device_id AND at > one.at - interval '1 hour'
    UNION SELECT at FROM carbon_counterreading
      WHERE device_id = one.device_id AND at > one.at - interval '1 hour'
    ORDER BY at DESC LIMIT 5) AS last) AS step
WHERE step.seconds IS NOT NULL GROUP BY one.site_id
"""


def sites_now(organisation_id: UUID, *, now: datetime, slug: str = "") -> list[SiteNow]:
    """Every site, or one, with the newest readings of its devices."""
    places = [one for one in sites(organisation_id) if slug in ("", one.slug)]
    ids = [one.site_id for one in places]
    readings = _newest(ids, now)
    cadences = _cadences(organisation_id) if readings else {}
    health = health_by_site(organisation_id, now=now)
    owners = _owners(organisation_id, now) if readings else {}
    hours = _last_hours(ids)
    found = []
    for place in places:
        stale_after_s = max(STALE_AFTER_S, CADENCES * cadences.get(place.site_id, 0.0))
        mine = readings.get(place.site_id, {})
        factors = current_factors(place, now.date())
        grid, grid_hour = _grid_now(place, factors.grid, now)
        found.append(
            SiteNow(
                slug=place.slug,
                name=place.name,
                nodes=_nodes(place, mine, owners, now=now, stale_after_s=stale_after_s),
                stale_after_s=stale_after_s,
                host_factor=factors.host_factor,
                pue=factors.pue,
                grid=grid,
                grid_hour=grid_hour,
                last_hour=hours.get(place.site_id),
                health=health[place.site_id],
            )
        )
    return found


def _newest(site_ids: list[UUID], now: datetime) -> dict[UUID, dict[int, DeviceNow]]:
    """The newest readings by site and device."""
    found: dict[UUID, dict[int, DeviceNow]] = {}
    rows = DeviceNow.objects.filter(site_id__in=site_ids, at__gte=now - FORGOTTEN)
    for row in rows:
        found.setdefault(row.site_id, {})[row.device_id] = row
    return found


def _cadences(organisation_id: UUID) -> dict[UUID, float]:
    """How far apart the readings of each site lie, s: the median of its senders' last ones."""
    with connection.cursor() as cursor:
        cursor.execute(_CADENCE, {"organisation": organisation_id})
        return {site: float(seconds) for site, seconds in cursor.fetchall()}


def _last_hours(site_ids: list[UUID]) -> dict[UUID, datetime]:
    """The last hour with energy of each site."""
    found = {}
    for site_id in site_ids:
        hours = EnergyHour.objects.filter(
            site_id=site_id, superseded_at__isnull=True, covered_microsecond__gt=0
        )
        last = hours.aggregate(last=Max("hour"))["last"]
        if last is not None:
            found[site_id] = last
    return found


def _owners(organisation_id: UUID, now: datetime) -> dict[int, str]:
    """For whom each device works now."""
    rows: list[AssignmentRecord] = assignments_between(
        organisation_id, now, now + timedelta(microseconds=1)
    )
    names = dict(Project.objects.filter(organisation_id=organisation_id).values_list("pk", "name"))
    return {one.device_id: names.get(one.project_id, "") for one in rows}


def _nodes(
    place: SiteRecord,
    readings: Mapping[int, DeviceNow],
    owners: Mapping[int, str],
    *,
    now: datetime,
    stale_after_s: float,
) -> tuple[NodeReadings, ...]:
    """The devices of a site by node, in the order of their names."""
    if not readings:
        return ()
    by_node: dict[str, list[DeviceReading]] = {}
    for device in devices_of(place.site_id):
        row = readings.get(device.device_id)
        if row is not None:
            one = _reading(device, row, now=now, stale_after_s=stale_after_s)
            one = replace(one, owner=owners.get(device.device_id, ""))
            by_node.setdefault(device.node, []).append(one)
    return tuple(
        NodeReadings(name=node, devices=tuple(devices)) for node, devices in sorted(by_node.items())
    )


def _reading(
    device: DeviceRecord, row: DeviceNow, *, now: datetime, stale_after_s: float
) -> DeviceReading:
    use: Mapping[str, Any] = row.use
    energy_at = use.get("energy_at")
    at = instant_of(energy_at) if isinstance(energy_at, int) else row.at
    age_s = max(0.0, (now - at).total_seconds())
    job = use.get("job") or {}
    return DeviceReading(
        device_id=device.device_id,
        device_uuid=device.device_uuid,
        model=device.model,
        node=device.node,
        power_w=row.power_w,
        limit_w=use.get("power_limit_w") or device.power_limit_w,
        power_field=row.power_field,
        utilisation_fraction=use.get("utilisation_fraction"),
        temperature_c=use.get("temperature_c"),
        job=str(job.get("run") or job.get("job") or ""),
        owner="",
        at=at,
        age_s=age_s,
        is_stale=age_s > stale_after_s,
    )


def _grid_now(
    place: SiteRecord, yearly: FactorUsed | None, now: datetime
) -> tuple[FactorUsed | None, datetime | None]:
    """The newest hourly intensity of the last day and its hour, else the yearly value."""
    low, high = microsecond_of(now - NOW_HOURS), microsecond_of(now) + 1
    told = intensities_for(place, low, high)
    if not told:
        return yearly, None
    hour = max(told)
    return told[hour], instant_of(hour)

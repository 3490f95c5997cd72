"""Energy that bought little: idle, throttled and capped device time of a project, by run. Reads."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import Sum

from carbon.selectors import current_entries
from formulae.units import MILLIJOULE_PER_KWH, S_PER_HOUR, kwh_from_millijoule
from runs.records import AssignmentRecord
from runs.selectors import assignments_between

KINDS: Final = ("idle", "throttled", "capped")

# A device-hour belongs to a run by the share of its time; what was seen stands for all its energy.
_BY_RUN_HOUR: Final = """
WITH mine AS (
    SELECT * FROM unnest(%(devices)s::bigint[], %(starts)s::timestamptz[], %(ends)s::timestamptz[],
        %(runs)s::uuid[]) AS a(device_id, start, stop, run_id)
), part AS (
    SELECT mine.run_id, used.site_id, used.hour, used.seen_s, used.idle_s, used.throttled_s,
        used.capped_s, used.seen_j, used.idle_j, used.throttled_j, used.capped_j,
        extract(epoch FROM least(mine.stop, used.hour + interval '1 hour')
            - greatest(mine.start, used.hour))::float8 / 3600 AS share,
        (energy.measured_millijoule + energy.spread_millijoule + energy.estimated_millijoule)
            ::float8 AS millijoule
    FROM mine
    JOIN carbon_deviceusehour used ON used.device_id = mine.device_id
        AND used.hour < mine.stop AND used.hour + interval '1 hour' > mine.start
    JOIN carbon_energyhour energy ON energy.device_id = used.device_id
        AND energy.hour = used.hour AND energy.superseded_at IS NULL
    WHERE used.hour >= %(start)s AND used.hour < %(end)s AND used.seen_j > 0
)
SELECT run_id, site_id, hour, sum(millijoule * share), sum(seen_s * share),
    sum(idle_s * share), sum(millijoule * share * idle_j / seen_j),
    sum(throttled_s * share), sum(millijoule * share * throttled_j / seen_j),
    sum(capped_s * share), sum(millijoule * share * capped_j / seen_j)
FROM part GROUP BY run_id, site_id, hour
"""
_BY_LIMIT: Final = """
SELECT used.power_limit_w, device.model, sum(used.seen_s), sum(used.seen_j),
    sum(used.busy_fraction * used.seen_s),
    sum(used.sm_clock_hz * used.seen_s) FILTER (WHERE used.sm_clock_hz IS NOT NULL),
    sum(used.seen_s) FILTER (WHERE used.sm_clock_hz IS NOT NULL)
FROM carbon_deviceusehour used JOIN runs_device device ON device.id = used.device_id
WHERE used.device_id = ANY(%(devices)s) AND used.hour >= %(start)s AND used.hour < %(end)s
    AND used.power_limit_w IS NOT NULL AND used.busy_fraction >= %(busy)s
GROUP BY used.power_limit_w, device.model ORDER BY device.model, used.power_limit_w
"""
BUSY_FRACTION: Final = 0.5  # hours in which a device mostly worked


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Device time, and its energy at the accelerator and the facility; kgCO2e; None if unknown."""

    device_h: float
    accelerator_energy_kwh: float
    facility_energy_kwh: float | None
    kgco2e: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUse:
    """How a run's devices spent what was seen of them; parts overlap, they are not to be added."""

    run_id: UUID | None
    seen: Spent
    idle: Spent
    throttled: Spent
    capped: Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class CapPoint:
    """What busy devices of a model did at a power limit: a measured point of the trade-off."""

    model: str
    power_limit_w: float
    device_h: float
    mean_power_w: float
    busy_fraction: float
    sm_clock_hz: float | None

    @property
    def sm_clock_megahertz(self) -> float | None:
        """The mean clock as people name it."""
        return None if self.sm_clock_hz is None else self.sm_clock_hz / 1e6

    @property
    def j_per_gigacycle(self) -> float | None:
        """Energy for each billion clock cycles, J: the work's stand-in where no tokens are told."""
        return self.mean_power_w / (self.sm_clock_hz / 1e9) if self.sm_clock_hz else None


def use_of_project(
    organisation_id: UUID, project_id: UUID, *, start: datetime, end: datetime
) -> list[RunUse]:
    """How a project's devices spent [start, end), by run; what no run claims stands under None."""
    mine = _assigned(organisation_id, project_id, start, end)
    if not mine:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            _BY_RUN_HOUR,
            {
                "devices": [one.device_id for one in mine],
                "starts": [max(one.start, start) for one in mine],
                "ends": [min(one.end or end, end) for one in mine],
                "runs": [one.run_id for one in mine],
                "start": start,
                "end": end,
            },
        )
        rows = cursor.fetchall()
    ratios = _ratios(organisation_id, project_id, start=start, end=end)
    by_run: dict[UUID | None, list[Any]] = defaultdict(list)
    for row in rows:
        by_run[row[0]].append(row)
    return [
        RunUse(
            run_id=run_id,
            seen=_spent(parts, 4, 3, ratios),
            idle=_spent(parts, 5, 6, ratios),
            throttled=_spent(parts, 7, 8, ratios),
            capped=_spent(parts, 9, 10, ratios),
        )
        for run_id, parts in sorted(by_run.items(), key=lambda one: str(one[0]))
    ]


def _assigned(
    organisation_id: UUID, project_id: UUID, start: datetime, end: datetime
) -> list[AssignmentRecord]:
    found = assignments_between(organisation_id, start, end)
    return [one for one in found if one.project_id == project_id]


Ratio = tuple[float | None, float | None]  # facility kWh and kgCO2e for each accelerator kWh


def _ratios(
    organisation_id: UUID, project_id: UUID, *, start: datetime, end: datetime
) -> dict[tuple[UUID, datetime], Ratio]:
    """What the books made of each accelerator kilowatt-hour, by site and hour."""
    entries = current_entries().filter(
        organisation_id=organisation_id, project_id=project_id, hour__gte=start, hour__lt=end
    )
    rows = entries.values("site_id", "hour").annotate(
        energy=Sum("accelerator_energy_millijoule"),
        facility=Sum("facility_energy_kwh"),
        kg=Sum("scope_2_location_kgco2e"),
    )
    found = {}
    for row in rows:
        kwh = kwh_from_millijoule(int(row["energy"]))
        if kwh:
            found[row["site_id"], row["hour"]] = (
                None if row["facility"] is None else row["facility"] / kwh,
                None if row["kg"] is None else row["kg"] / kwh,
            )
    return found


def _spent(
    rows: Sequence[Any], time: int, energy: int, ratios: Mapping[tuple[UUID, datetime], Ratio]
) -> Spent:
    kwh = [float(row[energy]) / MILLIJOULE_PER_KWH for row in rows]
    held = [ratios.get((row[1], row[2]), (None, None)) for row in rows]
    return Spent(
        device_h=math.fsum(float(row[time]) for row in rows) / S_PER_HOUR,
        accelerator_energy_kwh=math.fsum(kwh),
        facility_energy_kwh=_weighted(kwh, (one[0] for one in held)),
        kgco2e=_weighted(kwh, (one[1] for one in held)),
    )


def _weighted(kwh: Sequence[float], ratios: Iterable[float | None]) -> float | None:
    """Energy times ratio, summed; None where energy lacks its ratio."""
    parts = []
    for energy, ratio in zip(kwh, ratios, strict=True):
        if ratio is None and energy:
            return None
        parts.append(energy * (ratio or 0.0))
    return math.fsum(parts)


def cap_points(
    organisation_id: UUID, project_id: UUID, *, start: datetime, end: datetime
) -> list[CapPoint]:
    """What a project's busy devices did at each power limit that they had."""
    mine = _assigned(organisation_id, project_id, start, end)
    with connection.cursor() as cursor:
        cursor.execute(
            _BY_LIMIT,
            {
                "devices": sorted({one.device_id for one in mine}),
                "start": start,
                "end": end,
                "busy": BUSY_FRACTION,
            },
        )
        rows = cursor.fetchall()
    return [
        CapPoint(
            model=model,
            power_limit_w=limit_w,
            device_h=seen_s / S_PER_HOUR,
            mean_power_w=seen_j / seen_s,
            busy_fraction=busy_s / seen_s,
            sm_clock_hz=clock / clocked_s if clocked_s else None,
        )
        for limit_w, model, seen_s, seen_j, busy_s, clock, clocked_s in rows
    ]

"""Reads how many devices worked for a project's runs, and when; not what they did meanwhile."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from django.db.models import Count, Q

from runs.models import Assignment
from runs.progress_rows import DAY, midnight


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """So many devices worked for a run, or for the project alone, in [start, end)."""

    run_id: UUID | None
    start: datetime
    end: datetime
    devices: int


def fleets(
    project_id: UUID, start: datetime, end: datetime, run_id: UUID | None = None
) -> list[Fleet]:
    """The devices assigned to a project, or to one of its runs, within [start, end)."""
    found = Assignment.objects.filter(project_id=project_id, start__lt=end)
    found = found.filter(Q(end__isnull=True) | Q(end__gt=start))
    if run_id is not None:
        found = found.filter(run_id=run_id)
    groups = found.order_by().values_list("run_id", "start", "end").annotate(Count("pk"))
    return [
        Fleet(run_id=of_run, start=max(began, start), end=min(ended or end, end), devices=devices)
        for of_run, began, ended, devices in groups
    ]


def allocated_device_s(
    project_id: UUID, start: datetime, end: datetime
) -> dict[UUID, dict[date, float]]:
    """The device-seconds allocated to each run by UTC day within [start, end)."""
    found: defaultdict[UUID, defaultdict[date, float]] = defaultdict(lambda: defaultdict(float))
    if end <= start:
        return {}
    for fleet in fleets(project_id, start, end):
        if fleet.run_id is None:
            continue
        at = fleet.start
        while at < fleet.end:
            until = min(midnight(at.date()) + DAY, fleet.end)
            found[fleet.run_id][at.date()] += fleet.devices * (until - at).total_seconds()
            at = until
    return {run_id: dict(days) for run_id, days in found.items()}

"""Reads how accelerators spent the time that a project had them; the main run's by bucket."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Final
from uuid import UUID

from formulae.time_ledger import HOUR_MICROSECOND, Bucket
from planning.work_done import MAIN_RUN, runs_by_line
from projects.models import Project
from runs.progress_devices import fleets
from runs.progress_selectors import ledger_by_hour
from runs.records import RunRecord
from runs.selectors import runs_of

FIRST_INSTANT: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND_PER_S: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedTime:
    """Device-time of a project, us: of the main run by bucket and day, of other runs, of no run."""

    main_by_day: Mapping[date, Mapping[Bucket, int]]
    other_microsecond: int
    unassigned_microsecond: int
    main_runs: tuple[RunRecord, ...]
    other_run_ids: tuple[UUID, ...]

    @property
    def main(self) -> dict[Bucket, int]:
        """The main run's time by bucket."""
        return {
            bucket: sum(day.get(bucket, 0) for day in self.main_by_day.values())
            for bucket in Bucket
        }

    @property
    def total_h(self) -> Fraction:
        """All hours for which devices were assigned to the project."""
        of_runs = sum(self.main.values()) + self.other_microsecond
        return hours_of(of_runs + self.unassigned_microsecond)


def hours_of(microsecond: int) -> Fraction:
    """The same in hours, exactly.

    >>> hours_of(5_400_000_000)
    Fraction(3, 2)
    """
    return Fraction(microsecond, HOUR_MICROSECOND)


def used_time(project: Project, *, until: datetime) -> UsedTime | None:
    """The device-time that the project was assigned up to `until`; None when it never was any."""
    spans = fleets(project.pk, FIRST_INSTANT, until)
    if not spans:
        return None
    main = runs_by_line(runs_of(project.pk)).get(MAIN_RUN, [])
    main_ids = {run.run_id for run in main}
    by_run: defaultdict[UUID | None, int] = defaultdict(int)
    starts: dict[UUID, datetime] = {}
    for one in spans:
        length = one.end - one.start
        seconds = length.days * 86_400 + length.seconds
        microsecond = seconds * _MICROSECOND_PER_S + length.microseconds
        by_run[one.run_id] += microsecond * one.devices
        if one.run_id in main_ids and one.run_id is not None:
            starts[one.run_id] = min(starts.get(one.run_id, one.start), one.start)
    days: defaultdict[date, defaultdict[Bucket, int]] = defaultdict(lambda: defaultdict(int))
    for run_id, start in starts.items():
        for hour in ledger_by_hour(project.organisation_id, project.pk, start, until, run_id):
            for bucket, spent in hour.device_microseconds.items():
                days[hour.hour.astimezone(UTC).date()][bucket] += spent
    others = {run_id: spent for run_id, spent in by_run.items() if run_id not in main_ids}
    unassigned = others.pop(None, 0)
    return UsedTime(
        main_by_day={day: dict(buckets) for day, buckets in days.items()},
        other_microsecond=sum(others.values()),
        unassigned_microsecond=unassigned,
        main_runs=tuple(main),
        other_run_ids=tuple(run_id for run_id in others if run_id is not None),
    )

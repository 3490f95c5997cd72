"""Reads what was kept of a run's progress as the sums need it; what the numbers mean is not here.

The sums of a day are taken as they were kept, or made anew from the readings where they are stale
or hold what was not known yet at the instant asked for.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet

from formulae.units import MICROSECOND_PER_S
from runs.day_records import DaySums, Happened, Reading, sums_from
from runs.day_sums import Finder, sum_day
from runs.models import RunDay, RunHappening, StepReading
from runs.progress_checks import FUTURE

MICROSECOND: Final = timedelta(microseconds=1)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
DAY: Final = timedelta(days=1)
READING: Final = (
    "at",
    "step",
    "tokens_total",
    "step_time_s",
    "world_size",
    "loss",
    "data_s",
    "checkpoint_s",
    "source_id",
)
HAPPENED: Final = ("at", "kind", "step", "to_step", "duration_s")


def microsecond_of(at: datetime) -> int:
    """Whole microseconds since 1970."""
    return (at - EPOCH) // MICROSECOND


def instant_of(microsecond: int) -> datetime:
    """The UTC instant so many microseconds after 1970."""
    return EPOCH + microsecond * MICROSECOND


def midnight(day: date) -> datetime:
    """The UTC instant at which a day begins."""
    return datetime.combine(day, time(), tzinfo=UTC)


def reading_of(row: tuple[Any, ...]) -> Reading:
    """A row of `READING`."""
    return Reading(microsecond_of(row[0]), *row[1:])


def happened_of(row: tuple[Any, ...]) -> Happened:
    """A row of `HAPPENED`."""
    at, kind, step, to_step, duration_s = row
    duration = None if duration_s is None else round(duration_s * MICROSECOND_PER_S)
    return Happened(microsecond_of(at), kind, step, to_step, duration)


def readings_of(run_id: UUID, as_of: datetime | None) -> QuerySet[StepReading]:
    """The run's readings that were known at an instant, else all."""
    found = StepReading.objects.filter(run_id=run_id)
    return found if as_of is None else found.filter(known_at__lte=as_of)


def happenings_of(run_id: UUID, as_of: datetime | None) -> QuerySet[RunHappening]:
    """The run's events that were known at an instant, else all."""
    found = RunHappening.objects.filter(run_id=run_id)
    return found if as_of is None else found.filter(known_at__lte=as_of)


def _first(found: QuerySet[StepReading], *order: str) -> Reading | None:
    row = found.order_by(*order).values_list(*READING).first()
    return None if row is None else reading_of(row)


def last_reading(run_id: UUID, before: datetime, as_of: datetime | None = None) -> Reading | None:
    """The run's last reading before an instant."""
    return _first(readings_of(run_id, as_of).filter(at__lt=before), "-at", "-step")


def _finder(run_id: UUID, as_of: datetime | None) -> Finder:
    def find(step: int, before: int) -> tuple[Reading | None, Reading | None]:
        known = readings_of(run_id, as_of)
        earlier = known.filter(at__lt=instant_of(before))
        found = _first(earlier.filter(step__lte=step), "-at", "-step")
        if found is None:
            return None, None
        return found, _first(known.filter(at__gt=instant_of(found.at)), "at", "step")

    return find


def read_day(
    run_id: UUID, day: date, *, as_of: datetime | None = None, until: datetime | None = None
) -> DaySums:
    """The sums of a run's day from its readings, or of its hours before `until`."""
    start, end = midnight(day), until or midnight(day) + DAY
    before = last_reading(run_id, start, as_of)
    happened = happenings_of(run_id, as_of).filter(at__lt=end)
    if before is not None:
        happened = happened.filter(at__gte=instant_of(before.at))
    rows = readings_of(run_id, as_of).filter(at__gte=start, at__lt=end)
    return sum_day(
        [reading_of(row) for row in rows.order_by().values_list(*READING)],
        [happened_of(row) for row in happened.order_by().values_list(*HAPPENED)],
        day=(microsecond_of(start), microsecond_of(end)),
        before=before,
        find=_finder(run_id, as_of),
    )


def sums_of(row: RunDay, as_of: datetime | None, *, with_claims: bool = False) -> DaySums:
    """The sums of a kept day as they were known at an instant, else now."""
    if row.is_stale or (as_of is not None and row.known_at > as_of):
        return read_day(row.run_id, row.day, as_of=as_of)
    return sums_from(row.sums, row.claims if with_claims else None)


def _known(as_of: datetime | None) -> QuerySet[RunDay]:
    """The days of which something can have been known at an instant."""
    if as_of is None:
        return RunDay.objects.all()
    return RunDay.objects.filter(day__lte=(as_of + FUTURE).astimezone(UTC).date())


def day_sums(
    run_ids: Iterable[UUID],
    *,
    start_on: date,
    end_on: date,
    as_of: datetime | None = None,
    with_claims: bool = False,
) -> dict[UUID, dict[date, DaySums]]:
    """The sums of the runs' days in [start_on, end_on) that hold something, by day, ascending."""
    rows = _known(as_of).filter(run_id__in=list(run_ids), day__gte=start_on, day__lt=end_on)
    found: dict[UUID, dict[date, DaySums]] = {}
    if not with_claims:
        rows = rows.defer("claims")
    for row in rows.order_by("day"):
        sums = sums_of(row, as_of, with_claims=with_claims)
        if sums.last_step is not None or sums.spans:
            found.setdefault(row.run_id, {})[row.day] = sums
    return found


def sums_before(run_id: UUID, day: date, as_of: datetime | None = None) -> DaySums | None:
    """The sums of the run's last day before this one on which it stood at a step."""
    rows = _known(as_of).filter(run_id=run_id, day__lt=day).order_by("-day")
    for row in rows.defer("claims").iterator(chunk_size=8):
        sums = sums_of(row, as_of)
        if sums.last_step is not None:
            return sums
    return None

"""Reads of runs' progress: tokens at an instant, days, events, where runs stand; no writes."""

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Final
from uuid import UUID

from django.utils import timezone

from runs.day_records import Back, DaySums
from runs.models import RunHappening
from runs.progress_basis import mfu_bases, mfu_basis
from runs.progress_devices import allocated_device_s
from runs.progress_ledger import ledger_by_hour
from runs.progress_now import latest_of
from runs.progress_records import EventKind, MfuBasis, ProgressDay, RunEvent
from runs.progress_rows import (
    day_sums,
    instant_of,
    midnight,
    read_day,
    sums_before,
)
from runs.records import RunRecord
from runs.selectors import run_by_id, runs_of

__all__ = [
    "events_of",
    "latest_of",
    "ledger_by_hour",
    "mfu_basis",
    "progress_by_day",
    "tokens_by",
]

LONGEST_BEFORE_S: Final = 86_400.0
"""Steps before the first report count for its day when they fit into so much time."""

# A run that is first heard of by this step is heard of from its beginning.
FIRST_STEPS: Final = 1_000


def tokens_by(run_id: UUID, at: datetime, as_of: datetime | None = None) -> int | None:
    """The run's net tokens at an instant, after rollbacks the lower count; None if not told."""
    run = run_by_id(run_id)
    if run is None:
        return None
    day = at.astimezone(UTC).date()
    sums = None
    if at > midnight(day):
        found = read_day(run_id, day, as_of=as_of, until=at)
        sums = found if found.last_step is not None else None
    sums = sums or sums_before(run_id, day, as_of)
    return None if sums is None else tokens_of(sums, run)


def tokens_of(sums: DaySums, run: RunRecord) -> int | None:
    """The net tokens at the end of a day: as told, else its step times the tokens of a step."""
    if sums.last_tokens is not None:
        return sums.last_tokens
    return _of_steps(sums.last_step, run)


def _of_steps(steps: int | None, run: RunRecord) -> int | None:
    if steps is None or run.tokens_per_step is None:
        return None
    return steps * run.tokens_per_step


def progress_by_day(
    project_id: UUID,
    *,
    start_on: date,
    end_on: date,
    run_id: UUID | None = None,
    as_of: datetime | None = None,
) -> list[ProgressDay]:
    """The days in [start_on, end_on) of a project's runs, or of one, that something tells of.

    `as_of`: as it was known at that instant.
    """
    runs = {
        run.run_id: run for run in runs_of(project_id) if run_id is None or run.run_id == run_id
    }
    sums = day_sums(runs, start_on=start_on, end_on=end_on, as_of=as_of)
    if not sums:
        return []
    until = min(midnight(end_on), as_of or timezone.now())
    allocated = allocated_device_s(project_id, midnight(start_on), until)
    bases = mfu_bases(runs[one] for one in sums)
    days: list[ProgressDay] = []
    for one, of_run in sums.items():
        before = _tokens_before(runs[one], start_on, of_run, as_of)
        days += _days_of(runs[one], of_run, before, allocated.get(one, {}), bases.get(one))
    return sorted(days, key=lambda found: (found.day, str(found.run_id)))


def _tokens_before(
    run: RunRecord, start_on: date, sums: Mapping[date, DaySums], as_of: datetime | None
) -> int | None:
    """The tokens at which the run stood before the first of the days.

    Steps from before the first report count for its day, unless that day cannot hold them.
    """
    older = sums_before(run.run_id, start_on, as_of)
    if older is not None:
        return tokens_of(older, run)
    first = next((one for one in sums.values() if one.first_step is not None), None)
    if first is None:
        return 0
    if first.first_need_s is None:
        # Without a step time nobody can tell what the day holds; a run heard from its start does.
        if (first.first_step or 0) <= FIRST_STEPS:
            return 0
    elif first.first_need_s <= LONGEST_BEFORE_S:
        return 0
    return (
        first.first_tokens if first.first_tokens is not None else _of_steps(first.first_step, run)
    )


def _days_of(
    run: RunRecord,
    sums: Mapping[date, DaySums],
    before: int | None,
    allocated: Mapping[date, float],
    basis: MfuBasis | None,
) -> Iterable[ProgressDay]:
    for day, one in sums.items():
        if one.last_step is None:
            continue
        total = tokens_of(one, run)
        net = None if total is None or before is None else total - before
        yield _day(run, day, one, net, allocated.get(day), basis)
        before = total


def _day(  # noqa: PLR0913  # a day is what these say of it
    run: RunRecord,
    day: date,
    sums: DaySums,
    net: int | None,
    allocated_s: float | None,
    basis: MfuBasis | None,
) -> ProgressDay:
    mean, p50, p90, p99 = sums.step_time_s or (None, None, None, None)
    rework = _thrown_away(sums.backs, run)
    processed = None if net is None or rework is None else net + rework
    return ProgressDay(
        run_id=run.run_id,
        day=day,
        tokens=net,
        rework_tokens=rework,
        steps=sums.steps,
        step_time_mean_s=mean,
        step_time_p50_s=p50,
        step_time_p90_s=p90,
        step_time_p99_s=p99,
        mfu_fraction=_utilisation(processed, allocated_s, basis),
        step_mfu_fraction=_utilisation(*_in_steps(sums, run), basis),
        last_step=sums.last_step,
        last_tokens_total=tokens_of(sums, run),
        loss=sums.loss,
        allocated_device_s=allocated_s,
        last_at=None if sums.last_at is None else instant_of(sums.last_at),
    )


def _thrown_away(backs: Iterable[Back], run: RunRecord) -> int | None:
    """The tokens of the steps that are done again."""
    found = [
        back.tokens if back.tokens is not None else _of_steps(back.from_step - back.to_step, run)
        for back in backs
    ]
    return None if None in found else sum(one for one in found if one is not None)


def _in_steps(sums: DaySums, run: RunRecord) -> tuple[int | None, float | None]:
    """The tokens done inside steps of known time, and the device-seconds of those steps."""
    inside = sums.in_steps
    seconds = inside.device_seconds
    if inside.seconds:
        if not run.accelerator_count:
            return None, None
        seconds += inside.seconds * run.accelerator_count
    if not inside.bare_steps:
        return inside.tokens, seconds
    bare = _of_steps(inside.bare_steps, run)
    return (None if bare is None else inside.tokens + bare), seconds


def _utilisation(
    tokens: int | None, device_s: float | None, basis: MfuBasis | None
) -> float | None:
    """Model FLOP over what the devices could have done at their dense peak."""
    if tokens is None or not device_s or basis is None:
        return None
    return tokens * basis.flop_per_token / (device_s * basis.peak_flop_per_s)


def events_of(
    project_id: UUID, start: datetime, end: datetime, run_id: UUID | None = None
) -> list[tuple[RunRecord, RunEvent]]:
    """What happened to a project's runs, or to one, in [start, end), by instant."""
    runs = {run.run_id: run for run in runs_of(project_id)}
    wanted = [one for one in runs if run_id is None or one == run_id]
    found = RunHappening.objects.filter(run_id__in=wanted, at__gte=start, at__lt=end)
    return [
        (
            runs[row.run_id],
            RunEvent(
                at=row.at,
                kind=EventKind(row.kind),
                step=row.step,
                to_step=row.to_step,
                detail=row.detail,
                duration_s=row.duration_s,
            ),
        )
        for row in found.order_by("at", "kind", "step")
    ]

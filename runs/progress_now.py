"""Where a project's runs stand by the last that they said; nothing is summed here."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import Max
from django.utils import timezone

from runs.models import RunHappening
from runs.progress_basis import mfu_bases
from runs.progress_records import EventKind, MfuBasis, RunNow
from runs.progress_rows import day_sums
from runs.records import RunRecord
from runs.selectors import runs_of

SILENT_AFTER: Final = timedelta(minutes=15)
SILENT_STEPS: Final = 10
LAST_TWO: Final = (
    "SELECT run.id, last.at, last.step, last.tokens_total, last.loss, last.step_time_s, "
    "last.world_size FROM unnest(%s::uuid[]) AS run(id) CROSS JOIN LATERAL ("
    "SELECT * FROM runs_stepreading AS reading WHERE reading.run_id = run.id AND reading.at <= %s "
    "ORDER BY reading.at DESC, reading.step DESC LIMIT 2) AS last"
)


def latest_of(project_id: UUID, as_of: datetime | None = None) -> list[RunNow]:
    """Where each run of a project stands now, or stood at an instant."""
    at = as_of or timezone.now()
    runs = runs_of(project_id)
    last = _last_two([run.run_id for run in runs], at)
    broken = RunHappening.objects.filter(run_id__in=list(last), at__lte=at).order_by()
    backs = dict(broken.filter(to_step__isnull=False).values_list("run_id").annotate(Max("at")))
    stops = dict(broken.filter(kind=EventKind.STOP).values_list("run_id").annotate(Max("at")))
    bases = mfu_bases(run for run in runs if run.run_id in last)
    return [
        _now(
            run,
            last.get(run.run_id, ()),
            basis=bases.get(run.run_id),
            at=at,
            back_at=backs.get(run.run_id),
            stop_at=stops.get(run.run_id),
        )
        for run in runs
    ]


def _last_two(run_ids: Sequence[UUID], at: datetime) -> Mapping[UUID, list[tuple[Any, ...]]]:
    """The last two readings of each run, the last first."""
    found: dict[UUID, list[tuple[Any, ...]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(LAST_TWO, [list(run_ids), at])
        for row in cursor.fetchall():
            found.setdefault(row[0], []).append(row[1:])
    return found


def _now(  # noqa: PLR0913  # what is known of a run, from several tables
    run: RunRecord,
    last: Sequence[tuple[Any, ...]],
    *,
    basis: MfuBasis | None,
    at: datetime,
    back_at: datetime | None,
    stop_at: datetime | None,
) -> RunNow:
    if not last:
        return RunNow(
            run=run,
            at=None,
            step=None,
            tokens_total=None,
            loss=None,
            step_time_s=None,
            mfu_fraction=None,
            is_silent=False,
        )
    said_at, step, tokens, loss, step_time_s, _world = last[0]
    if back_at is not None and back_at > said_at:
        step, tokens = _after_a_step_back(run, back_at, step, tokens)
    if tokens is None and run.tokens_per_step is not None:
        tokens = step * run.tokens_per_step
    patience = max(SILENT_AFTER, SILENT_STEPS * timedelta(seconds=step_time_s or 0.0))
    is_over = (run.end is not None and run.end <= at) or (stop_at is not None and stop_at > said_at)
    return RunNow(
        run=run,
        at=said_at,
        step=step,
        tokens_total=tokens,
        loss=loss,
        step_time_s=step_time_s,
        mfu_fraction=_mfu(run, last, basis),
        is_silent=not is_over and at - said_at > patience,
    )


def _after_a_step_back(
    run: RunRecord, back_at: datetime, step: int, tokens: int | None
) -> tuple[int, int | None]:
    """Where a run stands that went back after its last word."""
    day = back_at.date()
    sums = day_sums([run.run_id], start_on=day, end_on=day + timedelta(days=1))
    found = sums.get(run.run_id, {}).get(day)
    if found is None or found.last_step is None:
        return step, tokens
    return found.last_step, found.last_tokens


def _mfu(run: RunRecord, last: Sequence[tuple[Any, ...]], basis: MfuBasis | None) -> float | None:
    """The utilisation in the last steps, by the tokens of a step as told or as counted."""
    _at, step, tokens, _loss, step_time_s, world = last[0]
    devices = world or run.accelerator_count
    if basis is None or not step_time_s or not devices:
        return None
    of_a_step: float | None = run.tokens_per_step
    if len(last) > 1:
        before_step, before_tokens = last[1][1], last[1][2]
        if tokens is not None and before_tokens is not None and step > before_step:
            of_a_step = (tokens - before_tokens) / (step - before_step)
    if not of_a_step or of_a_step < 0:
        return None
    flop_per_s: float = of_a_step * basis.flop_per_token / step_time_s
    return flop_per_s / (devices * basis.peak_flop_per_s)

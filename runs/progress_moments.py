"""A run's progress in moments for charts: by UTC day, or by hour for a run of a few days."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from django.db import connection

from runs.progress_records import ProgressDay
from runs.records import RunRecord

SHORT: Final = timedelta(days=7)
"""A run of so little time is shown by hour."""
BY_HOUR: Final = (
    "SELECT date_trunc('hour', at AT TIME ZONE 'UTC') AS hour, "
    "(array_agg(tokens_total ORDER BY at DESC, step DESC))[1], "
    "(array_agg(step ORDER BY at DESC, step DESC))[1], "
    "(array_agg(loss ORDER BY at DESC, step DESC))[1], "
    "percentile_cont(ARRAY[0.5, 0.9, 0.99]) WITHIN GROUP (ORDER BY step_time_s) "
    "FROM runs_stepreading WHERE run_id = %s GROUP BY hour ORDER BY hour"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What was known at the end of a day, or of an hour (without its zone, UTC)."""

    at: date
    tokens_total: int | None
    loss: float | None
    p50_s: float | None
    p90_s: float | None
    p99_s: float | None
    mfu_fraction: float | None = None
    step_mfu_fraction: float | None = None


def moments_of(run: RunRecord, days: Sequence[ProgressDay]) -> list[Moment]:
    """The run's moments; its days as they were read."""
    if not days:
        return []
    if (days[-1].day - days[0].day) < SHORT:
        return _by_hour(run)
    return [
        Moment(
            at=day.day,
            tokens_total=day.last_tokens_total,
            loss=day.loss,
            p50_s=day.step_time_p50_s,
            p90_s=day.step_time_p90_s,
            p99_s=day.step_time_p99_s,
            mfu_fraction=day.mfu_fraction,
            step_mfu_fraction=day.step_mfu_fraction,
        )
        for day in days
    ]


def _by_hour(run: RunRecord) -> list[Moment]:
    with connection.cursor() as cursor:
        cursor.execute(BY_HOUR, [run.run_id])
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    found = []
    for hour, tokens, step, loss, times in rows:
        total = tokens
        if total is None and run.tokens_per_step is not None:
            total = step * run.tokens_per_step
        p50, p90, p99 = times or (None, None, None)
        found.append(
            Moment(at=hour, tokens_total=total, loss=loss, p50_s=p50, p90_s=p90, p99_s=p99)
        )
    return found


def moment_of(at: datetime, moments: Sequence[Moment]) -> date:
    """The place of an instant on the axis of these moments."""
    plain = at.astimezone(UTC).replace(tzinfo=None)
    is_by_hour = bool(moments) and isinstance(moments[0].at, datetime)
    return plain if is_by_hour else plain.date()

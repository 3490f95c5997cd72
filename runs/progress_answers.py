"""What is known of runs as documents for programs: the API, the command line; no HTTP here."""

import math
from dataclasses import asdict, fields
from datetime import date, datetime
from typing import Any, Final

from runs.progress_records import ProgressDay, RunEvent, RunNow
from runs.progress_rows import midnight
from runs.progress_selectors import events_of, latest_of, mfu_basis, progress_by_day
from runs.records import RunRecord

FIRST_DAY: Final = date(2010, 1, 1)
LAST_DAY: Final = date(9999, 12, 31)
_LEFT_OUT: Final = frozenset({"run_id", "last_at"})
_OF_A_RUN: Final = (
    "slug",
    "name",
    "accelerator_count",
    "precision",
    "start",
    "end",
    "parameters_active",
    "flop_per_token",
    "tokens_planned",
    "tokens_per_step",
    "plan_line_key",
    "git_commit",
    "external_url",
)


def plain_number(value: float | None) -> float | str | None:
    """A number, or the name of what is none, since JSON has no NaN."""
    return value if value is None or math.isfinite(value) else str(value)


def run_document(now: RunNow) -> dict[str, Any]:
    """A run and where it stands."""
    said = {one.name: getattr(now, one.name) for one in fields(now) if one.name != "run"}
    found = {name: getattr(now.run, name) for name in _OF_A_RUN}
    return {
        **found,
        "accelerator": now.run.accelerator_key,
        **said,
        "loss": plain_number(now.loss),
    }


def day_document(day: ProgressDay) -> dict[str, Any]:
    """A day of a run."""
    found = {one.name: getattr(day, one.name) for one in fields(day) if one.name not in _LEFT_OUT}
    return {**found, "loss": plain_number(day.loss)}


def event_document(event: RunEvent) -> dict[str, Any]:
    """An event of a run."""
    return {**asdict(event), "kind": event.kind.value}


def progress_document(
    run: RunRecord,
    *,
    start_on: date | None = None,
    end_on: date | None = None,
    as_of: datetime | None = None,
) -> dict[str, Any]:
    """A run's progress by day."""
    first, end = start_on or FIRST_DAY, end_on or LAST_DAY
    (now,) = (one for one in latest_of(run.project_id, as_of) if one.run.run_id == run.run_id)
    basis = mfu_basis(run)
    days = progress_by_day(
        run.project_id, start_on=first, end_on=end, run_id=run.run_id, as_of=as_of
    )
    events = events_of(run.project_id, midnight(first), midnight(end), run.run_id)
    return {
        "run": run_document(now),
        "mfu_basis": basis and asdict(basis),
        "days": [day_document(day) for day in days],
        "events": [
            event_document(event) for _run, event in events if as_of is None or event.at <= as_of
        ],
    }

"""Writes progress that comes apart, measure by measure, as a Prometheus sends it.

The measures of one instant may come in several requests. They wait at their source until the step
is told, and fill what a stored reading does not say yet; what was told first stays.
"""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from projects.models import Project
from projects.records import Actor
from runs.models import ProgressSource, StepReading
from runs.progress import ensure_run, heard, mark_changed, record_progress
from runs.progress_checks import point_refusal
from runs.progress_records import ProgressPoint
from runs.progress_rows import instant_of, microsecond_of
from runs.records import RunRecord

MOST_WAITING: Final = 500
COUNTS: Final = frozenset({"step", "tokens_total", "world_size"})
_SLUG: Final = re.compile(r"[-a-zA-Z0-9_]{1,80}")

Moments = Mapping[int, Mapping[str, float]]
Refusals = list[tuple[str, int, str, float]]  # reason, instant in us, measure, value


def record_series(
    actor: Actor, named: tuple[str, str], moments: Moments, *, source: str, now: datetime
) -> Refusals:
    """Keep what series say of the run PROJECT/RUN in the caller's transaction; what was refused.

    A run is made by its first word, of a project that is there.
    """
    project = Project.objects.filter(
        organisation_id=actor.organisation_id, slug=named[0], archived_at__isnull=True
    ).first()
    if project is None or not _SLUG.fullmatch(named[1]):
        reason = "no_such_project" if project is None else "no_such_run"
        return [(reason, at, name, value) for at, name, value in _flat(moments)]
    run = ensure_run(actor, project, named[1])
    key = heard(actor, run, source, now)
    row = ProgressSource.objects.select_for_update().get(pk=key)
    good, refused = _sound(moments, now)
    left = _fill_known(run, key, good, now)
    waiting = {int(at): dict(values) for at, values in row.waiting.items()}
    for at, values in left.items():
        waiting[at] = {**values, **waiting.get(at, {})}
    points = [point for at in sorted(waiting) if (point := _point(run, at, waiting[at]))]
    if points:
        record_progress(actor, run, points=points, source=row.name, now=now)
    told = {microsecond_of(point.at) for point in points}
    rest = sorted(at for at in waiting if at not in told)[-MOST_WAITING:]
    kept = {str(at): waiting[at] for at in rest}
    if kept != row.waiting:
        ProgressSource.objects.filter(pk=key).update(waiting=kept)
    return refused


def _flat(moments: Moments) -> Iterator[tuple[int, str, float]]:
    for at, values in moments.items():
        for name, value in values.items():
            yield at, name, value


def _sound(moments: Moments, now: datetime) -> tuple[dict[int, dict[str, Any]], Refusals]:
    """The measures that can be true, as a point takes them; each is looked at by itself."""
    good: dict[int, dict[str, Any]] = {}
    refused: Refusals = []
    for at, name, value in _flat(moments):
        found: Any = value
        if name in COUNTS:
            found = round(value) if math.isfinite(value) and abs(value) < 2**63 else -1
        alone: dict[str, Any] = {"at": instant_of(at), "step": 0} | {name: found}
        if point_refusal(0, ProgressPoint(**alone), now):
            refused.append(("out_of_range", at, name, value))
        else:
            good.setdefault(at, {})[name] = _kept(found)
    return good, refused


def _kept(value: Any) -> Any:
    """A value as JSON can hold it while it waits."""
    is_no_number = isinstance(value, float) and not math.isfinite(value)
    return str(value) if is_no_number else value


def _fill_known(
    run: RunRecord, source_id: int, moments: Mapping[int, dict[str, Any]], now: datetime
) -> dict[int, dict[str, Any]]:
    """Fill stored readings of these instants with what they lack; the instants without one."""
    stored = {
        microsecond_of(one.at): one
        for one in StepReading.objects.filter(
            run_id=run.run_id,
            source_id=source_id,
            at__in=[instant_of(at) for at in moments],
        )
    }
    changed: list[datetime] = []
    for at, reading in stored.items():
        missing = {
            name: _read(value)
            for name, value in moments[at].items()
            if name != "step" and getattr(reading, name) is None
        }
        if missing:
            StepReading.objects.filter(pk=reading.pk).update(**missing)
            changed.append(reading.at)
    mark_changed(run.run_id, changed, now)
    return {at: values for at, values in moments.items() if at not in stored}


def _read(value: Any) -> Any:
    return float(value) if isinstance(value, str) else value


def _point(run: RunRecord, at: int, values: Mapping[str, Any]) -> ProgressPoint | None:
    """The point of an instant; None while its step is not told."""
    found = {name: _read(value) for name, value in values.items()}
    tokens = found.get("tokens_total")
    if "step" not in found and tokens is not None and run.tokens_per_step:
        found["step"] = tokens // run.tokens_per_step
    return ProgressPoint(at=instant_of(at), **found) if "step" in found else None

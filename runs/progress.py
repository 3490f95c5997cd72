"""Writes of a run's progress: what training code reports, kept once, and the sums of its days."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from jobs.services import enqueue
from projects.models import Project
from projects.records import Actor
from projects.trail import note
from runs.models import ProgressSource, Run, RunDay
from runs.progress_checks import event_refusal, point_refusal
from runs.progress_records import EventKind, ProgressPoint, Recorded, RunEvent
from runs.records import RunRecord
from runs.selectors import run_by_slug
from runs.services import save_run

JOB: Final = "runs.sum_progress"
LONGEST_SOURCE: Final = 120
POINT_COLUMNS: Final = (
    ("at", "timestamptz"),
    ("step", "bigint"),
    ("tokens_total", "bigint"),
    ("step_time_s", "float8"),
    ("world_size", "int"),
    ("loss", "float8"),
    ("grad_norm", "float8"),
    ("learning_rate", "float8"),
    ("data_s", "float8"),
    ("communication_s", "float8"),
    ("checkpoint_s", "float8"),
    ("reported_mfu_fraction", "float8"),
    ("data_shard", "text"),
)
EVENT_COLUMNS: Final = (
    ("at", "timestamptz"),
    ("kind", "text"),
    ("step", "bigint"),
    ("to_step", "bigint"),
    ("detail", "text"),
    ("duration_s", "float8"),
)
MARK_DAYS: Final = (
    "INSERT INTO runs_runday (run_id, day, is_stale, known_at, sums, claims) "
    "SELECT %s, day, true, %s, '{}', '{}' FROM unnest(%s::date[]) AS day ORDER BY day "
    "ON CONFLICT (run_id, day) DO UPDATE "
    "SET is_stale = true, known_at = greatest(runs_runday.known_at, excluded.known_at)"
)


def ensure_run(  # noqa: PLR0913  # what a first report may know of its run
    actor: Actor,
    project: Project,
    slug: str,
    *,
    name: str = "",
    accelerator_key: str = "",
    accelerator_count: int = 0,
    precision: str = "",
) -> RunRecord:
    """The project's run with this slug, created with what is known when there is none."""
    found = run_by_slug(project.pk, slug)
    if found is not None:
        return found
    return save_run(
        actor,
        RunRecord(
            run_id=UUID(int=0),
            project_id=project.pk,
            slug=slug,
            name=name or slug,
            accelerator_key=accelerator_key,
            accelerator_count=accelerator_count,
            precision=precision,
            start=None,
            end=None,
        ),
    )


@transaction.atomic
def record_progress(  # noqa: PLR0913  # the contract of every door of progress
    actor: Actor,
    run: RunRecord,
    *,
    points: Sequence[ProgressPoint],
    events: Sequence[RunEvent] = (),
    source: str,
    now: datetime | None = None,
) -> Recorded:
    """Keep what a source reports of a run; what is known already stays as it first came.

    A point is known by its instant, step and source, an event by its instant, kind and step: a
    delivery may come twice, in pieces and in any order. Impossible records are named and left out.
    """
    at = now or timezone.now()
    refused = [
        *(one for index, point in enumerate(points) if (one := point_refusal(index, point, at))),
        *(one for index, event in enumerate(events) if (one := event_refusal(index, event, at))),
    ]
    bad_points = {one.index for one in refused if not one.field.startswith("events.")}
    bad_events = {one.index for one in refused if one.field.startswith("events.")}
    good = [point for index, point in enumerate(points) if index not in bad_points]
    told = [event for index, event in enumerate(events) if index not in bad_events]
    if not good and not told:
        return Recorded(points_new=0, points_known=0, events_new=0, refused=tuple(refused))
    source_id = heard(actor, run, source, at)
    keys = (run.run_id, source_id, at)
    new_points = _insert("runs_stepreading", POINT_COLUMNS, keys, good)
    new_events = _insert("runs_runhappening", EVENT_COLUMNS, keys, told)
    if new_points or new_events:
        mark_changed(run.run_id, (*new_points, *new_events), at)
        enqueue(
            organisation_id=actor.organisation_id,
            kind=JOB,
            scope=f"project:{run.project_id}",
            payload={"run": str(run.run_id)},
            dedupe_key=f"{JOB}:{run.run_id}",
            title=_("Progress of {run}").format(run=run.name),
        )
    return Recorded(
        points_new=len(new_points),
        points_known=len(good) - len(new_points),
        events_new=len(new_events),
        events_known=len(told) - len(new_events),
        refused=tuple(refused),
    )


def heard(actor: Actor, run: RunRecord, source: str, at: datetime) -> int:
    """The key of a source of the run, whose first report is noted in the trail."""
    name = source.strip()[:LONGEST_SOURCE] or "unnamed"
    found, is_new = ProgressSource.objects.get_or_create(
        run_id=run.run_id, name=name, defaults={"heard_at": at}
    )
    if is_new:
        note(actor, "run.source_added", subject=("run", run.run_id), after={"source": name})
    elif found.heard_at < at:
        ProgressSource.objects.filter(pk=found.pk).update(heard_at=at)
    return found.pk


def _insert(
    table: str,
    columns: Sequence[tuple[str, str]],
    keys: tuple[UUID, int, datetime],
    records: Sequence[ProgressPoint] | Sequence[RunEvent],
) -> list[datetime]:
    """The instants of those records that were not there."""
    if not records:
        return []
    names = ", ".join(name for name, _type in columns)
    arrays = ", ".join(f"%s::{kind}[]" for _name, kind in columns)
    sql = (
        f"INSERT INTO {table} (run_id, source_id, known_at, {names}) "  # noqa: S608  # our own names
        f"SELECT %s, %s, %s, * FROM unnest({arrays}) ON CONFLICT DO NOTHING RETURNING at"
    )
    values = [[_plain(getattr(one, name)) for one in records] for name, _type in columns]
    with connection.cursor() as cursor:
        cursor.execute(sql, [*keys, *values])
        return [row[0] for row in cursor.fetchall()]


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, EventKind) else value


def mark_changed(run_id: UUID, instants: Sequence[datetime], at: datetime) -> None:
    """Mark the days whose sums change: a step back, and the next point, look at what was before."""
    touched = sorted({one.astimezone(UTC).date() for one in instants})
    if not touched:
        return
    later = RunDay.objects.filter(run_id=run_id, day__gt=touched[0]).order_by("day")
    known = [
        (day, bool(sums.get("points")), bool(sums.get("backs")))
        for day, sums in later.values_list("day", "sums")
    ]
    also = {day for day, _has_points, has_backs in known if has_backs}
    for one in touched:
        for day, has_points, _has_backs in known:
            if day > one:
                also.add(day)
                if has_points:
                    break
    with connection.cursor() as cursor:
        cursor.execute(MARK_DAYS, [run_id, at, sorted({*touched, *also})])


def runs_to_sum() -> Iterable[UUID]:
    """The runs with days whose sums are stale."""
    stale = RunDay.objects.filter(is_stale=True)
    return Run.objects.filter(pk__in=stale.values("run_id")).values_list("pk", flat=True)


def change_run(actor: Actor, run: RunRecord, **changes: Any) -> RunRecord:
    """Set what people know of a run; the rest stays."""
    return save_run(actor, replace(run, **changes))

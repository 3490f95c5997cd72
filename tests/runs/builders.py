"""Builders of runs that report their progress."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from projects.models import Project
from runs.progress import ensure_run, record_progress
from runs.progress_records import EventKind, ProgressPoint, Recorded, RunEvent
from runs.records import RunRecord
from runs.services import assign_devices, ensure_devices, save_run
from tests.builders import project
from tests.carbon.builders import operator, site

T0 = datetime(2026, 9, 14, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
TOKENS_PER_STEP = 1_000_000
STEP_S = 10.0


def the_project() -> Project:
    """The project of these tests."""
    return Project.objects.filter(slug="moe").first() or project("moe")


def make_run(slug: str = "main", **changes) -> RunRecord:
    """A run of 1B parameters on eight H100 in BF16."""
    found = ensure_run(
        operator(),
        the_project(),
        slug,
        accelerator_key="h100-sxm-80gb",
        accelerator_count=8,
        precision="bf16",
    )
    wanted = {"parameters_active": 1e9, "tokens_planned": 10**12, **changes}
    return save_run(operator(), replace(found, **wanted))


def assign(
    run: RunRecord,
    start: datetime,
    end: datetime | None,
    *,
    devices: int = 8,
    named: str = "GPU",
) -> None:
    """Devices of one site for a run."""
    uuids = [f"{named}-{number}" for number in range(devices)]
    keys = ensure_devices(site(), [(uuid, "n1", "NVIDIA H100 80GB HBM3") for uuid in uuids])
    assign_devices(
        operator(),
        device_ids=keys.values(),
        project_id=run.project_id,
        run_id=run.run_id,
        start=start,
        end=end,
    )


def steps(
    first: int, last: int, *, at: datetime, every: int = 60, step_s: float = STEP_S, **changes
) -> list[ProgressPoint]:
    """Points from step `first` to `last`; the first is reached at `at`, steps take step_s."""
    return [
        ProgressPoint(
            **{
                "at": at + timedelta(seconds=(step - first) * step_s),
                "step": step,
                "tokens_total": step * TOKENS_PER_STEP,
                "step_time_s": step_s,
                "world_size": 8,
                "loss": 2.5,
                **changes,
            }
        )
        for step in range(first, last + 1, every)
    ]


def event(kind: EventKind, at: datetime, **fields) -> RunEvent:
    """Something that happened."""
    return RunEvent(kind=kind, at=at, **fields)


def record(run: RunRecord, points=(), events=(), *, source="tail", now=None) -> Recorded:
    """Hand a delivery in, as known at `now`."""
    return record_progress(
        operator(), run, points=list(points), events=list(events), source=source, now=now
    )

"""Brings what was read of a sender's document to a run; names refusals by their place in it."""

from dataclasses import replace

from projects.records import Actor
from runs.progress import record_progress
from runs.progress_documents import ReadProgress
from runs.progress_records import Recorded
from runs.records import RunRecord


def record_read(actor: Actor, run: RunRecord, read: ReadProgress, *, default: str) -> Recorded:
    """Record what could be read; `default` names the source of a document without one."""
    recorded = record_progress(
        actor,
        run,
        points=read.points,
        events=read.events,
        source=read.source.strip() or default,
    )
    placed = [
        replace(
            one,
            index=(read.events_at if one.field.startswith("events.") else read.points_at)[
                one.index
            ],
        )
        for one in recorded.refused
    ]
    refused = sorted((*read.refused, *placed), key=lambda one: (one.index, one.field))
    return replace(recorded, refused=tuple(refused))

"""Hands what a remote-write request says of training runs to the room that keeps their progress."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from carbon.adapters.remote_write import Decoded
from carbon.adapters.remote_write_runs import RunSample
from carbon.refusals import sender_name
from projects.records import Actor, Scope
from runs.progress_series import record_series


def store_run_samples(actor: Actor, decoded: Decoded, *, name: str, now: datetime) -> int:
    """Keep the samples of runs in the caller's transaction; says how many. Refusals are noted.

    A token without the scope `ingest:runs` brings power only: what it says of runs is ignored.
    """
    if Scope.INGEST_RUNS not in actor.scopes:
        return 0
    by_run: defaultdict[tuple[str, str, str], list[RunSample]] = defaultdict(list)
    for one in decoded.runs:
        by_run[one.project, one.run, one.replica].append(one)
    stored = 0
    # In one order: two requests that lock the same runs wait for each other, and never in a ring.
    for (project, run, replica), samples in sorted(by_run.items(), key=lambda one: one[0]):
        refused = record_series(
            actor,
            (project, run),
            _moments(samples),
            source=sender_name(name, replica),
            now=now,
        )
        for reason, at, measure, value in refused:
            decoded.refused.add(
                reason,
                series=f"{measure} of {project}/{run}",
                device=f"{project}/{run}",
                at_ms=at // 1_000,
                value=value,
            )
        stored += max(0, len(samples) - len(refused))
    return stored


def _moments(samples: Sequence[RunSample]) -> dict[int, dict[str, float]]:
    """The measures by instant; of two for one instant the lower rank counts, then the first."""
    moments: dict[int, dict[str, float]] = {}
    for one in sorted(samples, key=lambda one: one.rank):
        moments.setdefault(one.at, {}).setdefault(one.measure, one.value)
    return moments

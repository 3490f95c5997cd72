"""What the pages of runs show, put together from selectors; nothing is written."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone

from formulae.time_ledger import Bucket
from projects.models import Project
from runs.models import ProgressSource
from runs.progress_answers import FIRST_DAY, LAST_DAY
from runs.progress_basis import mfu_bases
from runs.progress_charts import MARKED, charts_of
from runs.progress_moments import moments_of
from runs.progress_records import EventKind, MfuBasis, ProgressDay, RunEvent, RunNow
from runs.progress_rows import midnight
from runs.progress_selectors import events_of, latest_of, ledger_by_hour, progress_by_day
from runs.progress_words import bucket_name, event_name, state_of
from runs.records import RunRecord

MICROSECOND_PER_H: Final = 3_600_000_000
LONGEST_LEDGER: Final = timedelta(days=750)
EVENTS_SHOWN: Final = 50
DAYS_SHOWN: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """A run as the list shows it."""

    now: RunNow
    badge: str
    state: str
    done_fraction: float | None
    denominator: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLine:
    """Device-time in one bucket."""

    name: str
    device_h: float
    fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLine:
    """An event as a table shows it."""

    event: RunEvent
    name: str
    is_marked: bool


def run_lines(project: Project) -> list[RunLine]:
    """A project's runs, those that speak first."""
    at = timezone.now()
    found = latest_of(project.pk, at)
    bases = mfu_bases(now.run for now in found)
    lines = [_line(now, bases.get(now.run.run_id), at) for now in found]
    return sorted(lines, key=lambda one: one.now.at or midnight(FIRST_DAY), reverse=True)


def _line(now: RunNow, basis: MfuBasis | None, at: datetime) -> RunLine:
    badge, state = state_of(now, at)
    return RunLine(
        now=now,
        badge=badge,
        state=state,
        done_fraction=_done(now.tokens_total, now.run.tokens_planned),
        denominator=basis.denominator if basis else "",
    )


def _done(tokens: int | None, planned: int | None) -> float | None:
    return tokens / planned if tokens is not None and planned else None


def run_page(project: Project, run: RunRecord) -> dict[str, Any]:
    """All that the page of a run shows."""
    at = timezone.now()
    (now,) = (one for one in latest_of(project.pk, at) if one.run.run_id == run.run_id)
    basis = mfu_bases([run]).get(run.run_id)
    days = progress_by_day(project.pk, start_on=FIRST_DAY, end_on=LAST_DAY, run_id=run.run_id)
    told = events_of(project.pk, midnight(FIRST_DAY), midnight(LAST_DAY), run.run_id)
    events = [event for _run, event in told]
    moments = moments_of(run, days)
    denominator = f"{basis.denominator}; {basis.flop_basis}" if basis else ""
    return {
        "line": _line(now, basis, at),
        "basis": basis,
        "denominator": basis.denominator.split(" per ")[0] if basis else "",
        "days": days[::-1][:DAYS_SHOWN],
        "last_day": days[-1] if days else None,
        "moments": moments,
        "charts": charts_of(run, moments, events, denominator) if moments else [],
        **_event_parts(events),
        "ledger": _ledger(project, run, days, events, at),
        "sources": list(ProgressSource.objects.filter(run_id=run.run_id)),
    }


def _event_parts(events: Sequence[RunEvent]) -> dict[str, Any]:
    """The last events, the newest first; checkpoints, of which there are many, as a count."""
    saved = [event for event in events if event.kind is EventKind.CHECKPOINT]
    others = [event for event in events if event.kind is not EventKind.CHECKPOINT]
    return {
        "events": [
            EventLine(event=event, name=event_name(event.kind), is_marked=event.kind in MARKED)
            for event in others[::-1][:EVENTS_SHOWN]
        ],
        "events_hidden": max(0, len(others) - EVENTS_SHOWN),
        "checkpoints": len(saved),
        "last_checkpoint_at": saved[-1].at if saved else None,
    }


def _ledger(
    project: Project,
    run: RunRecord,
    days: Sequence[ProgressDay],
    events: Sequence[RunEvent],
    at: datetime,
) -> list[LedgerLine]:
    """The run's device-time by bucket, from its start or first word until its end or now."""
    first = run.start or _first_word(days, events)
    if first is None:
        return []
    end = min(run.end or at, at)
    hours = ledger_by_hour(
        project.organisation_id,
        project.pk,
        max(first, end - LONGEST_LEDGER),
        end,
        run.run_id,
    )
    spent: defaultdict[Bucket, int] = defaultdict(int)
    for hour in hours:
        for bucket, amount in hour.device_microseconds.items():
            spent[bucket] += amount
    whole = sum(spent.values())
    return [
        LedgerLine(
            name=bucket_name(bucket),
            device_h=spent[bucket] / MICROSECOND_PER_H,
            fraction=spent[bucket] / whole,
        )
        for bucket in Bucket
        if spent[bucket]
    ]


def _first_word(days: Sequence[ProgressDay], events: Sequence[RunEvent]) -> datetime | None:
    """When anything was first told of a run."""
    first: list[datetime] = [midnight(day.day) for day in days[:1]]
    first += [event.at for event in events[:1]]
    return min(first, default=None)

"""How a project's allocated device-time was spent, hour by hour; what it cost is not here.

What the steps and events of a run claim is laid on the time for which devices were assigned to it.
Time of which nothing is told, and all time of devices without a run, is unknown.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from statistics import median_low
from typing import Final
from uuid import UUID

import numpy as np
import numpy.typing as npt

from formulae.spans import Span
from formulae.time_ledger import HOUR_MICROSECOND, Bucket, ledger_spans
from formulae.units import MICROSECOND_PER_S
from runs.day_records import DaySums, Segment
from runs.day_sums import BREAKS, STOP, precedes
from runs.progress_devices import Fleet, fleets
from runs.progress_records import EventKind, LedgerHour
from runs.progress_rows import (
    HAPPENED,
    day_sums,
    happened_of,
    happenings_of,
    instant_of,
    last_reading,
    microsecond_of,
)
from runs.selectors import runs_of

BASELINE_DAYS: Final = 28
"""A step is slow against the middle of the run's daily median steps of so many days (the lower
of two, so that a slow day does not excuse itself)."""
END_OF_DAYS: Final = date(9999, 12, 31)
NOTHING: Final = dict.fromkeys(Bucket, 0)

Claims = dict[Bucket, list[Span]]
Ints = npt.NDArray[np.int64]


def ledger_by_hour(
    organisation_id: UUID,
    project_id: UUID,
    start: datetime,
    end: datetime,
    run_id: UUID | None = None,
) -> list[LedgerHour]:
    """The hours of [start, end) in which devices were assigned, and how their time was spent.

    Each hour sums exactly to the device-time allocated in it, in microseconds.
    """
    if end <= start:
        return []
    known = {run.run_id for run in runs_of(project_id, organisation_id)}
    window = (microsecond_of(start), microsecond_of(end))
    by_run: defaultdict[UUID | None, list[Fleet]] = defaultdict(list)
    for fleet in fleets(project_id, start, end, run_id):
        if fleet.run_id is None or fleet.run_id in known:
            by_run[fleet.run_id].append(fleet)
    of_runs = [one for one in by_run if one is not None]
    sums = day_sums(
        of_runs,
        start_on=start.date() - timedelta(days=BASELINE_DAYS),
        end_on=END_OF_DAYS,
        with_claims=True,
    )
    hours: dict[int, dict[Bucket, int]] = {}
    for one, of_run in by_run.items():
        claims: Claims = {}
        if one is not None:
            claims = claims_of(sums.get(one, {}), window)
            _add_tail(claims, one, window)
        _add(hours, of_run, claims, window)
    return [
        LedgerHour(hour=instant_of(hour), device_microseconds=buckets)
        for hour, buckets in sorted(hours.items())
    ]


def claims_of(sums: Mapping[date, DaySums], window: Span) -> Claims:
    """What a run's days claim of the time in a window."""
    claims: Claims = {bucket: [] for bucket in Bucket}
    baselines = _baselines(sums)
    for day, one in sums.items():
        for bucket, spans in one.spans.items():
            claims[Bucket(bucket)] += _within(spans, window)
        claims[Bucket.REWORK] += _within([(back.since, back.until) for back in one.backs], window)
        for piece in one.segments:
            if piece.start < window[1] and piece.end > window[0]:
                _claim_steps(claims, piece, baselines[day])
    return claims


def _within(spans: Iterable[Span], window: Span) -> list[Span]:
    return [span for span in spans if span[0] < window[1] and span[1] > window[0]]


def _baselines(sums: Mapping[date, DaySums]) -> dict[date, float | None]:
    """The usual time of a step of each day: the middle of the daily medians up to it, s."""
    recent: deque[tuple[date, float]] = deque()
    found: dict[date, float | None] = {}
    for day, one in sums.items():  # ascending
        if one.step_time_s is not None:
            recent.append((day, one.step_time_s[1]))
        while recent and recent[0][0] <= day - timedelta(days=BASELINE_DAYS):
            recent.popleft()
        found[day] = median_low(time_s for _day, time_s in recent) if recent else None
    return found


def _claim_steps(claims: Claims, piece: Segment, baseline_s: float | None) -> None:
    """Split a stretch of steps: waits first, then what was too slow, then useful work.

    slow = stretch - waits - steps x usual time of a step, where above 0
    """
    checkpoint = min(piece.checkpoint, piece.end - piece.start)
    after_checkpoint = piece.start + checkpoint
    after_stall = min(after_checkpoint + piece.stall, piece.end)
    claims[Bucket.CHECKPOINT].append((piece.start, after_checkpoint))
    claims[Bucket.DATA_STALL].append((after_checkpoint, after_stall))
    if baseline_s is not None:
        usual = round(piece.steps * baseline_s * MICROSECOND_PER_S)
        slow = max(0, piece.end - after_stall - usual)
        claims[Bucket.SLOW].append((after_stall, after_stall + slow))
    claims[Bucket.PRODUCTIVE].append((after_stall, piece.end))


def _add_tail(claims: Claims, run_id: UUID, window: Span) -> None:
    """Claim what events after a run's last reading say: idle after a stop, started as long as told.

    A stop that is followed by a restart is down until then.
    """
    last = last_reading(run_id, instant_of(window[1]))
    found = happenings_of(run_id, None).filter(kind__in=BREAKS, at__lt=instant_of(window[1]))
    if last is not None:
        found = found.filter(at__gte=instant_of(last.at))
    rows = found.order_by("at", "kind").values_list(*HAPPENED)
    events = [one for one in map(happened_of, rows) if last is None or not precedes(one, last)]
    later = last_reading(run_id, instant_of(_LAST))
    if later is not None and later.at >= window[1]:
        return  # its next reading has told what these events meant
    for place, event in enumerate(events):
        following = events[place + 1] if place + 1 < len(events) else None
        until = following.at if following is not None else window[1]
        if event.kind == STOP:
            is_idle = (
                following is None or following.kind == EventKind.START
            )  # as once its reading came
            bucket = Bucket.IDLE if is_idle else Bucket.DOWN
            claims[bucket].append((event.at, until))
        elif event.duration:
            claims[Bucket.STARTUP].append((event.at, min(event.at + event.duration, until)))


_LAST: Final = 253_402_214_400_000_000  # 9999-12-31


def _add(
    hours: dict[int, dict[Bucket, int]],
    of_run: Sequence[Fleet],
    claims: Claims,
    window: Span,
) -> None:
    """Add a run's device-time: between two cuts the same devices work, and share its claims."""
    bounds = np.array(
        [[microsecond_of(one.start), microsecond_of(one.end), one.devices] for one in of_run],
        dtype=np.int64,
    )
    first = window[0] // HOUR_MICROSECOND * HOUR_MICROSECOND
    full = np.arange(first, window[1] + HOUR_MICROSECOND, HOUR_MICROSECOND, dtype=np.int64)
    cuts = np.unique(np.concatenate([np.clip(full, *window), bounds[:, 0], bounds[:, 1]]))
    change = np.zeros(len(cuts), dtype=np.int64)
    np.add.at(change, np.searchsorted(cuts, bounds[:, 0]), bounds[:, 2])
    np.subtract.at(change, np.searchsorted(cuts, bounds[:, 1]), bounds[:, 2])
    devices = np.cumsum(change)[:-1]
    hour_of = cuts[:-1] // HOUR_MICROSECOND * HOUR_MICROSECOND
    for hour in np.unique(hour_of[devices > 0]).tolist():
        hours.setdefault(hour, dict(NOTHING))
    for bucket, spans in ledger_spans([window], claims).items():
        spent = np.diff(_measure(spans, cuts)) * devices
        told = np.flatnonzero(spent)
        for hour, amount in zip(hour_of[told].tolist(), spent[told].tolist(), strict=True):
            hours[hour][bucket] += amount


def _measure(spans: Sequence[Span], cuts: Ints) -> Ints:
    """How much of the spans lies before each cut, us."""
    if not spans:
        return np.zeros(len(cuts), dtype=np.int64)
    edges = np.array(spans, dtype=np.int64)
    whole = np.concatenate([[0], np.cumsum(edges[:, 1] - edges[:, 0])])
    begun = np.searchsorted(edges[:, 0], cuts, side="right")
    over = np.where(begun > 0, np.maximum(0, edges[begun - 1, 1] - cuts), 0)
    measured: Ints = whole[begun] - over
    return measured

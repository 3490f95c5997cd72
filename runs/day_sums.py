"""Sums a run's day from its readings and events: steps, tokens, times, stretches; no Django.

Readings come in any order and from several sources; the sums are the same whatever the order.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from formulae.spans import Span
from formulae.time_ledger import HOUR_MICROSECOND, Bucket
from formulae.units import MICROSECOND_PER_S
from runs.day_records import Back, DaySums, Happened, Reading, Segment
from runs.progress_records import EventKind

SILENCE: Final = 15 * 60 * MICROSECOND_PER_S
"""After so long without a word another source speaks for the run."""
LONGEST_STEP: Final = 30 * 60 * MICROSECOND_PER_S
"""Points further apart, without the time of a step, do not say that the run went on meanwhile."""
WHOLE: Final = 0.95
"""Steps that take up so much of an interval fill it: logging and rounding take the rest."""
LOADER_LIMIT_FRACTION: Final = 0.10
"""A loader may take so much of a step; what is above is a data stall."""
LONGEST_BEFORE_S: Final = 86_400.0

STARTS: Final = (EventKind.START.value, EventKind.RESTART.value)
STOP: Final = EventKind.STOP.value
BREAKS: Final = (*STARTS, STOP)
Finder = Callable[[int, int], tuple[Reading | None, Reading | None]]
"""(step, instant) -> the last reading before the instant not past the step, and the one after."""


def nothing_found(_step: int, _before: int) -> tuple[Reading | None, Reading | None]:
    """For a run of which nothing older is known."""
    return None, None


def one_voice(readings: Iterable[Reading]) -> list[Reading]:
    """The readings of one source at a time: another is heard while the first is silent for long."""
    ordered = sorted(readings, key=lambda one: (one.at, one.step, one.source))
    by_source: dict[int, list[int]] = {}
    for one in ordered:
        by_source.setdefault(one.source, []).append(one.at)
    if len(by_source) <= 1:
        return ordered
    heard: list[Reading] = []
    for one in ordered:
        if heard and one.source != heard[-1].source:
            instants = by_source[heard[-1].source]
            place = bisect_right(instants, one.at)
            following = instants[place] if place < len(instants) else None
            if following is not None and following - heard[-1].at <= SILENCE:
                continue
        heard.append(one)
    return heard


def sum_day(
    readings: Sequence[Reading],
    events: Sequence[Happened],
    *,
    day: Span,
    before: Reading | None = None,
    find: Finder = nothing_found,
) -> DaySums:
    """The sums of the day [start, end).

    Args:
        readings: those of the day.
        events: those since the reading before the day, or of the day.
        day: start and end, us.
        before: the last reading before the day.
        find: looks up older readings, for a step back that reaches behind the day.
    """
    walk = _Walk(day=day, before=before, find=find)
    voice = one_voice(readings)
    happened = sorted(
        (one for one in events if before is None or not precedes(one, before)),
        key=lambda one: (one.at, one.kind, one.to_step or 0),
    )
    place = 0
    for reading in voice:
        until = place
        while until < len(happened) and precedes(happened[until], reading):
            until += 1
        walk.hear(reading, happened[place:until])
        place = until
    walk.end(happened[place:])
    return walk.sums


def precedes(event: Happened, reading: Reading) -> bool:
    """Whether an event came before a reading; at one instant, what the reading shows decides."""
    if event.at != reading.at:
        return event.at < reading.at
    if event.to_step is not None and event.kind in (EventKind.ROLLBACK, EventKind.RESTART):
        return reading.step <= event.to_step
    return event.kind in STARTS or event.kind == EventKind.CHECKPOINT


class _Walk:
    """One pass over a day in the order of time."""

    def __init__(self, *, day: Span, before: Reading | None, find: Finder) -> None:
        self.sums = DaySums()
        self.day = day
        self.find = find
        self.last = before  # the last reading
        self.marks = [] if before is None else [before]  # where the run stood; after rollbacks too
        self.stopped: int | None = None
        self.times: list[float] = []
        self.is_broken = True  # the next stretch of steps does not go on from the last

    def hear(self, reading: Reading, events: Sequence[Happened]) -> None:
        """Take a reading and what happened since the one before it."""
        for event in events:
            self._go_back_to(event)
        stood = self.marks[-1] if self.marks else None
        went_back = stood is not None and reading.step < stood.step
        if stood is not None and went_back:
            self._back(reading.at, stood, reading.step, reading.tokens, until=stood.at)
            stood = self.marks[-1]
        steps = reading.step - stood.step if stood is not None else 0
        if not steps and not events and not went_back and stood is not None:
            # Said again before the next step is done: the time until then is the next step's.
            self.sums.loss = reading.loss if reading.loss is not None else self.sums.loss
            return
        self._spend_time(reading, steps, events, went_back=went_back)
        self._count(reading, stood, steps)
        self.last = reading
        self.marks.append(reading)

    def end(self, events: Sequence[Happened]) -> None:
        """Take what happened after the last reading."""
        for event in events:
            self._go_back_to(event)
        if self.times:
            mean, quantiles = float(np.mean(self.times)), np.percentile(self.times, (50, 90, 99))
            p50, p90, p99 = (float(one) for one in quantiles)
            self.sums.step_time_s = (mean, p50, p90, p99)
        last = self.marks[-1] if self.marks else None
        if last is not None and (self.sums.points or self.sums.backs):
            self.sums.last_at, self.sums.last_step = last.at, last.step
            self.sums.last_tokens = last.tokens

    def _count(self, reading: Reading, stood: Reading | None, steps: int) -> None:
        """Add a reading to the day's numbers."""
        sums = self.sums
        if stood is None:
            sums.first_step, sums.first_tokens = reading.step, reading.tokens
            if reading.step_s is not None:
                sums.first_need_s = reading.step * reading.step_s
        sums.points += 1
        sums.loss = reading.loss if reading.loss is not None else sums.loss
        sums.steps += steps
        if reading.step_s is None:
            return
        self.times.append(reading.step_s)
        if stood is None or not steps:
            return
        inside, seconds = sums.in_steps, steps * reading.step_s
        if reading.world is None:
            inside.seconds += seconds
        else:
            inside.device_seconds += seconds * reading.world
        if reading.tokens is None or stood.tokens is None:
            inside.bare_steps += steps
        else:
            inside.tokens += max(0, reading.tokens - stood.tokens)

    # --- steps back

    def _go_back_to(self, event: Happened) -> None:
        """Stand where a rollback, or a restart that names its step, goes on from."""
        stood = self.marks[-1] if self.marks else None
        if event.kind == STOP:
            self.stopped = event.at
        if event.to_step is None or stood is None or event.to_step >= stood.step:
            return
        if event.kind not in (EventKind.ROLLBACK, EventKind.RESTART):
            return
        until = min(event.at, stood.at + LONGEST_STEP)
        if event.kind == EventKind.RESTART:
            until = stood.at
        self._back(event.at, stood, event.to_step, None, until=until)

    def _back(
        self, at: int, stood: Reading, to_step: int, tokens: int | None, *, until: int
    ) -> None:
        """Stand at an earlier step; what was done since it was first reached is done again."""
        since, reached = self._when_at(to_step)
        known = tokens if tokens is not None else reached
        self.marks.append(Reading(at=at, step=to_step, tokens=known))
        self.is_broken = True
        if at < self.day[0]:
            return  # told with the day before
        lost = None
        if stood.tokens is not None and known is not None:
            lost = max(0, stood.tokens - known)
        stop = self.stopped
        fault = stop if stop is not None and stood.at <= stop <= at else until
        self.sums.backs.append(
            Back(
                at=at,
                since=min(since if since is not None else fault, fault),
                until=fault,
                from_step=stood.step,
                to_step=to_step,
                tokens=lost,
            )
        )

    def _when_at(self, step: int) -> tuple[int | None, int | None]:
        """When the run last passed a step, and its tokens there."""
        following: Reading | None = None
        for mark in reversed(self.marks):
            if mark.step <= step:
                return _between(mark, following, step)
            following = mark
        if following is None:
            return None, None
        found, after = self.find(step, following.at)
        if found is None:
            return following.at, None
        return _between(found, after or following, step)

    # --- how the time went

    def _spend_time(
        self, reading: Reading, steps: int, events: Sequence[Happened], *, went_back: bool
    ) -> None:
        """Say how the time since the last reading was spent, as far as it is known."""
        breaks = [one for one in events if one.kind in BREAKS]
        if self.last is None and not breaks:
            self.is_broken = True
            return
        began = self.last.at if self.last is not None else breaks[0].at
        free = breaks[-1].at if breaks else began
        if breaks and breaks[-1].duration:
            free = min(free + breaks[-1].duration, reading.at)
        if self.last is None:
            steps = reading.step
        busy_from = _busy_from(reading, steps, free, is_broken=bool(breaks) or went_back)
        if breaks:
            self._claim_breaks(breaks, busy_from)
        elif went_back:
            self._claim(Bucket.DOWN, began, busy_from)
        self.is_broken = self.is_broken or bool(breaks) or went_back
        held = self._claim_checkpoints(events)
        self._add_steps(reading, steps, busy_from, held)

    def _claim_breaks(self, breaks: Sequence[Happened], busy_from: int) -> None:
        """Down from a stop to its restart, idle to a new start, starting until steps begin."""
        first = breaks[0]
        if self.last is not None and first.kind in STARTS:
            self._claim(Bucket.DOWN, self.last.at, first.at)
        for one, following in pairwise([*breaks, None]):
            if one is None:
                continue
            until = following.at if following is not None else busy_from
            if one.kind == STOP:
                is_new = following is not None and following.kind == EventKind.START
                self._claim(Bucket.IDLE if is_new else Bucket.DOWN, one.at, until)
            else:
                told = one.at + one.duration if one.duration else until
                self._claim(Bucket.STARTUP, one.at, min(told, until))

    def _claim_checkpoints(self, events: Sequence[Happened]) -> int:
        """Claim what events say that checkpoints took; the sum, us."""
        held = 0
        for one in events:
            if one.kind == EventKind.CHECKPOINT and one.duration:
                self._claim(Bucket.CHECKPOINT, one.at, one.at + one.duration)
                held += one.duration
        return held

    def _claim(self, bucket: Bucket, start: int, end: int) -> None:
        if start < end:
            self.sums.spans.setdefault(bucket.value, []).append((start, end))

    def _add_steps(self, reading: Reading, steps: int, busy_from: int, held: int) -> None:
        """Add the stretch in which steps were taken, hour by hour."""
        whole = reading.at - busy_from
        if whole <= 0:
            return
        stall = 0.0
        if reading.data_s is not None and reading.step_s is not None:
            stall = steps * max(0.0, reading.data_s - LOADER_LIMIT_FRACTION * reading.step_s)
        checkpoint = max(0, round((reading.checkpoint_s or 0.0) * MICROSECOND_PER_S) - held)
        waits = (round(stall * MICROSECOND_PER_S), checkpoint)
        for start, end in _by_hour(busy_from, reading.at):
            share = (end - start) / whole
            piece = Segment(start, end, steps * share, *(round(one * share) for one in waits))
            self._join(piece)

    def _join(self, piece: Segment) -> None:
        """Put a stretch to the one before it in the same hour, unless the run broke between."""
        segments = self.sums.segments
        last = segments[-1] if segments and not self.is_broken else None
        self.is_broken = False
        if last is None or last.start // HOUR_MICROSECOND != piece.start // HOUR_MICROSECOND:
            segments.append(piece)
            return
        last.start, last.end = last.start + (piece.start - last.end), piece.end
        last.steps += piece.steps
        last.stall += piece.stall
        last.checkpoint += piece.checkpoint


def _busy_from(reading: Reading, steps: int, free: int, *, is_broken: bool) -> int:
    """From when on the steps before a reading were taken, not before the run was free to."""
    whole = reading.at - free
    if steps <= 0 or whole <= 0:
        return reading.at
    if reading.step_s is None:
        return reading.at if is_broken or whole > LONGEST_STEP else free
    need = round((steps * reading.step_s + (reading.checkpoint_s or 0.0)) * MICROSECOND_PER_S)
    if need >= (1.0 if is_broken else WHOLE) * whole:
        return free
    return reading.at - need


def _between(mark: Reading, following: Reading | None, step: int) -> tuple[int, int | None]:
    """The instant and tokens at a step between two readings, in proportion."""
    if following is None or following.step <= mark.step or step == mark.step:
        return mark.at, mark.tokens
    share = (step - mark.step) / (following.step - mark.step)
    at = mark.at + round(share * (following.at - mark.at))
    if mark.tokens is None or following.tokens is None:
        return at, None
    return at, mark.tokens + round(share * (following.tokens - mark.tokens))


def _by_hour(start: int, end: int) -> list[Span]:
    """A stretch cut at the full hours."""
    first, last = start // HOUR_MICROSECOND, -(-end // HOUR_MICROSECOND)
    inner = [hour * HOUR_MICROSECOND for hour in range(first + 1, last)]
    return list(pairwise((start, *inner, end)))

"""A device's hours before estimates, from its readings by formulae, one by one; no tables.

What carbon.cascade computes for many devices at once is held against this.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from formulae.allocation import split_integer
from formulae.metering import (
    Piece,
    cascade,
    counter_step,
    most_millijoule,
    shortest_microsecond,
)
from formulae.spans import Span, common_spans, merged_spans, uncovered_spans
from formulae.units import MICROSECOND_PER_S, MILLIJOULE_PER_J, S_PER_DAY, S_PER_HOUR

HOUR: Final = S_PER_HOUR * MICROSECOND_PER_S
DAY: Final = S_PER_DAY * MICROSECOND_PER_S
LONGEST: Final = 31 * DAY
KINDS: Final = ("placed", "spread", "interval", "long_interval", "power")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReadings:
    """All readings of one device; `sender` is the place in precedence, 0 the best."""

    samples: Sequence[tuple[int, int, float]] = ()  # sender, at, W
    intervals: Sequence[tuple[int, int, int, int]] = ()  # sender, start, end, mJ
    counters: Sequence[tuple[int, int, int, int]] = ()  # sender, at, mJ, epoch


@dataclass(slots=True)
class PlainHour:
    """An hour of a device; `present` and `assigned` are unseen time, as in cascade.Metered."""

    measured: int = 0
    spread: int = 0
    integrated: int = 0
    reset: int = 0
    covered: int = 0
    present: int = 0
    assigned: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainDevice:
    """What a device's readings say, and where they say nothing."""

    hours: Mapping[int, PlainHour]
    covered: Sequence[Span]
    present: Sequence[Span]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tiers:
    """Pieces by kind and sender."""

    pieces: dict[str, dict[int, list[Piece]]] = field(
        default_factory=lambda: {kind: defaultdict(list) for kind in (*KINDS, "reset")}
    )

    def add(self, kind: str, sender: int, piece: Piece) -> None:
        self.pieces[kind][sender].append(piece)

    def ordered(self, *kinds: str) -> Iterator[tuple[str, list[Piece]]]:
        """Kinds in order, in each the senders in order."""
        for kind in kinds:
            for sender in sorted(self.pieces[kind]):
                yield kind, self.pieces[kind][sender]


def plain_device(readings: DeviceReadings, *, limit_w: float, max_gap: int) -> PlainDevice:
    """The device's hours, each second from the best reading that knows it.

    Pieces are split at hours before they are cut: what is cut in one hour leaves the others.
    """
    tiers = _Tiers()
    _add_counters(tiers, readings.counters, limit_w=limit_w, max_gap=max_gap)
    for sender, start, end, energy in readings.intervals:
        tiers.add(
            "long_interval" if end - start > HOUR else "interval", sender, (start, end, energy)
        )
    _add_power(tiers, readings.samples, max_gap=max_gap)
    named = [
        *tiers.ordered("placed"),
        *tiers.ordered("spread"),
        *_intervals_by_sender(tiers),
        *tiers.ordered("power"),
    ]
    named = [
        (kind, [part for piece in tier for part in split_piece(piece)]) for kind, tier in named
    ]
    counted, covered = cascade(tier for _kind, tier in named)
    resets = [(kind, _by_hour(tier)) for kind, tier in tiers.ordered("reset")]
    beyond, _covered = cascade([*counted, *(tier for _kind, tier in resets)])
    hours: defaultdict[int, PlainHour] = defaultdict(PlainHour)
    for (kind, _tier), pieces in zip([*named, *resets], beyond, strict=True):
        _book(hours, kind, pieces)
    return PlainDevice(hours=hours, covered=covered, present=_presence(readings))


def _by_hour(tier: Sequence[Piece]) -> list[Piece]:
    return [part for piece in tier for part in split_piece(piece)]


def _intervals_by_sender(tiers: _Tiers) -> Iterator[tuple[str, list[Piece]]]:
    """A sender's intervals of up to an hour and its longer ones before those of the next."""
    for sender in sorted({*tiers.pieces["interval"], *tiers.pieces["long_interval"]}):
        for kind in ("interval", "long_interval"):
            yield kind, tiers.pieces[kind].get(sender, [])


def _add_counters(
    tiers: _Tiers,
    counters: Sequence[tuple[int, int, int, int]],
    *,
    limit_w: float,
    max_gap: int,
) -> None:
    """The differences of each sender's neighbouring readings, where they can be."""
    instants = sorted({at for _sender, at, _counter, _epoch in counters})
    holes = [(low, high) for low, high in pairwise(instants) if high - low > max_gap]
    by_sender: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for sender, at, counter, epoch in counters:
        by_sender[sender].append((at, counter, epoch))
    for sender, readings in by_sender.items():
        for (start, *was), (end, *is_) in pairwise(sorted(readings)):
            is_long = end - start > max_gap
            if is_long and not _crosses_one_hole((start, end), holes, max_gap=max_gap):
                continue
            energy, is_reset = counter_step((was[0], was[1]), (is_[0], is_[1]))
            if energy > most_millijoule(end - start, limit_w=limit_w):
                continue
            if is_reset and energy:
                taken = shortest_microsecond(energy, limit_w=limit_w, at_most=end - start)
                tiers.add("reset", sender, (end - taken, end, energy))
            elif not is_reset:
                tiers.add("spread" if is_long else "placed", sender, (start, end, energy))


def _crosses_one_hole(pair: Span, holes: Sequence[Span], *, max_gap: int) -> bool:
    """Whether the sender read the counter right before and right after the first hole in it."""
    start, end = pair
    inside = [(low, high) for low, high in holes if low >= start]
    if end - start > LONGEST or not inside:
        return False
    low, high = inside[0]
    return low - start <= max_gap and high <= end and end - high <= max_gap


def _add_power(tiers: _Tiers, samples: Iterable[tuple[int, int, float]], *, max_gap: int) -> None:
    """Trapezoids between each sender's neighbouring samples."""
    by_sender: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
    for sender, at, power_w in samples:
        by_sender[sender].append((at, power_w))
    for sender, readings in by_sender.items():
        for (start, start_w), (end, end_w) in pairwise(sorted(readings)):
            if end - start <= max_gap:
                energy_j = (start_w + end_w) / 2 * ((end - start) / MICROSECOND_PER_S)
                tiers.add("power", sender, (start, end, round(energy_j * MILLIJOULE_PER_J)))


def _presence(readings: DeviceReadings) -> list[Span]:
    """Stretches between the device's own readings that lie less than a day apart."""
    spans = [(at, at) for _sender, at, _power_w in readings.samples]
    spans += [(at, at) for _sender, at, _counter, _epoch in readings.counters]
    spans += [(start, end) for _sender, start, end, _energy in readings.intervals]
    return [span for span in merged_spans(spans, slack=DAY - 1) if span[0] < span[1]]


def _book(hours: defaultdict[int, PlainHour], kind: str, pieces: Iterable[Piece]) -> None:
    """Book pieces, each within an hour."""
    for start, end, energy in pieces:
        hour = hours[start // HOUR * HOUR]
        if kind == "reset":
            hour.reset += energy
        else:
            hour.covered += end - start
        if kind in ("spread", "long_interval"):
            hour.spread += energy
        else:
            hour.measured += energy
        if kind == "power":
            hour.integrated += energy


def split_piece(piece: Piece) -> list[Piece]:
    """A piece cut at whole hours, by time and largest remainder, so that the parts sum."""
    start, end, energy = piece
    if start // HOUR == (end - 1) // HOUR:
        return [piece]
    cuts = [start, *range((start // HOUR + 1) * HOUR, end, HOUR), end]
    spans = list(pairwise(cuts))
    parts = split_integer(energy, [high - low for low, high in spans])
    return [(low, high, part) for (low, high), part in zip(spans, parts, strict=True)]


def add_gaps(
    device: PlainDevice, *, within: Span, assigned: Sequence[Span]
) -> dict[int, PlainHour]:
    """The device's hours with the unseen time in whole hours of `within`."""
    hours = defaultdict(PlainHour, device.hours)
    free = uncovered_spans(within, device.covered)
    for name, allowed in (
        ("present", device.present),
        ("assigned", merged_spans([*device.present, *assigned])),
    ):
        for start, end in common_spans(free, allowed):
            for low, high, _nothing in split_piece((start, end, 0)):
                hour = hours[low // HOUR * HOUR]
                setattr(hour, name, getattr(hour, name) + high - low)
    return dict(hours)

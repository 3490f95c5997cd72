"""Energy over stretches of device time: cut, taken out, split at hours; numpy, no tables.

The rules are those of formulae.energy and formulae.metering, which property tests and
`manage.py verify` hold against this faster form.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carbon.metering import HOUR_MICROSECOND, Floats, Ints, Mask
from formulae.allocation import split_integer
from formulae.units import MICROSECOND_PER_S, MILLIJOULE_PER_J

INT64_SAFE: Final = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The time of many devices laid end to end, so that one number says device and instant.

    `origin` and `span` are whole hours; the time of each device ends long before that of the next
    begins, so that nothing reaches from one to another.
    """

    devices: Ints  # ascending
    origin: int
    span: int

    @classmethod
    def around(cls, devices: Ints, first: int, last: int) -> "Line":
        """A line for instants from `first` to `last`, with two days to spare on both sides."""
        spare = 48 * HOUR_MICROSECOND
        origin = (first - spare) // HOUR_MICROSECOND * HOUR_MICROSECOND
        span = -(-(last + spare - origin) // HOUR_MICROSECOND) * HOUR_MICROSECOND
        if span * (len(devices) + 1) > INT64_SAFE:
            raise OverflowError(f"{len(devices)} devices over {span} us do not fit one line")
        return cls(devices=devices, origin=origin, span=span)

    def index(self, device: Ints) -> Ints:
        """The position of each device among the devices."""
        return np.searchsorted(self.devices, device)

    def place(self, device: Ints, at: Ints) -> Ints:
        """Instants of devices on the line."""
        return self.index(device) * self.span + (at - self.origin)

    def index_at(self, place: Ints) -> Ints:
        """The position among the devices of a place on the line."""
        return place // self.span

    def instant(self, place: Ints) -> Ints:
        """The instant of a place on the line."""
        return place % self.span + self.origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """Energy over [start, end) on a line, in whole millijoules."""

    start: Ints
    end: Ints
    energy_millijoule: Ints

    def only(self, mask: Mask | Ints) -> "Pieces":
        """The pieces that a mask or an order picks."""
        return Pieces(
            start=self.start[mask],
            end=self.end[mask],
            energy_millijoule=self.energy_millijoule[mask],
        )

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Stretches of a line, ascending, that neither overlap nor touch."""

    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.start)


def joined(*parts: Pieces) -> Pieces:
    """Several sets of pieces as one."""
    return Pieces(
        start=np.concatenate([part.start for part in parts]),
        end=np.concatenate([part.end for part in parts]),
        energy_millijoule=np.concatenate([part.energy_millijoule for part in parts]),
    )


def pieces_from_rows(rows: list[tuple[int, int, int]]) -> Pieces:
    """Pieces from (start, end, millijoule) rows."""
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return Pieces(start=table[:, 0], end=table[:, 1], energy_millijoule=table[:, 2])


def merged(start: Ints, end: Ints, *, slack: int = 0) -> Runs:
    """Stretches as runs: those that overlap, touch, or lie no further apart than `slack`."""
    if not len(start):
        return Runs(start=start, end=end)
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    heads = np.append(0, 1 + np.flatnonzero(start[1:] > reach[:-1] + slack))
    return Runs(start=start[heads], end=reach[np.append(heads[1:], len(reach)) - 1])


def union(one: Runs, other: Runs, *, slack: int = 0) -> Runs:
    """What lies in either."""
    return merged(
        np.concatenate([one.start, other.start]),
        np.concatenate([one.end, other.end]),
        slack=slack,
    )


def common(one: Runs, other: Runs) -> Runs:
    """What lies in both."""
    at = np.concatenate([one.start, other.start, one.end, other.end])
    step = np.repeat([1, -1], len(one) + len(other))
    order = np.lexsort((step, at))
    at, inside = at[order], np.flatnonzero(np.cumsum(step[order]) == 2)
    start, end = at[inside], at[inside + 1]
    return Runs(start=start[start < end], end=end[start < end])


def without(one: Runs, other: Runs) -> Runs:
    """What lies in the first and not in the other."""
    if not len(one) or not len(other):
        return one
    low, high = one.start[0], one.end[-1]
    start = np.append(low, np.clip(other.end, low, high))
    end = np.append(np.clip(other.start, low, high), high)
    return common(one, Runs(start=start[start < end], end=end[start < end]))


def cut(pieces: Pieces, border: Ints) -> tuple[Pieces, Pieces]:
    """Pieces cut once; the odd millijoule goes to the larger remainder, at a tie to the earlier."""
    duration, before = pieces.end - pieces.start, border - pieces.start
    energy: npt.NDArray[Any] = pieces.energy_millijoule
    if len(pieces) and float(energy.max()) * float(duration.max()) > INT64_SAFE:
        energy = energy.astype(object)  # exact beyond 64 bits, slower
    share_before, share_after = energy * before, energy * (duration - before)
    floor_before, rest_before = share_before // duration, share_before % duration
    floor_after, rest_after = share_after // duration, share_after % duration
    odd = energy - floor_before - floor_after
    first = (floor_before + np.where(rest_before >= rest_after, odd, 0)).astype(np.int64)
    left = Pieces(start=pieces.start, end=border, energy_millijoule=first)
    right = Pieces(start=border, end=pieces.end, energy_millijoule=pieces.energy_millijoule - first)
    return left, right


def outside(pieces: Pieces, cover: Runs) -> Pieces:
    """The pieces without what the runs cover; energy is cut by time and largest remainder."""
    if not len(pieces) or not len(cover):
        return pieces
    first = np.searchsorted(cover.end, pieces.start, side="right")
    count = np.searchsorted(cover.start, pieces.end, side="left") - first
    touched = count > 0
    if not touched.any():
        return pieces
    at = np.minimum(first, len(cover) - 1)
    from_start = touched & (cover.start[at] <= pieces.start)
    to_end = touched & (cover.end[at] >= pieces.end)
    tail = (count == 1) & from_start & ~to_end
    head = (count == 1) & to_end & ~from_start
    rest = touched & ~tail & ~head & ~((count == 1) & from_start & to_end)
    many = [
        part
        for row in np.flatnonzero(rest)
        for part in _free_parts(pieces, cover, int(row), (int(first[row]), int(count[row])))
    ]
    return joined(
        pieces.only(~touched),
        cut(pieces.only(tail), cover.end[at[tail]])[1],
        cut(pieces.only(head), cover.start[at[head]])[0],
        pieces_from_rows(many),
    )


def _free_parts(
    pieces: Pieces, cover: Runs, row: int, touching: tuple[int, int]
) -> list[tuple[int, int, int]]:
    """A piece cut at the runs that touch it: its free parts."""
    start, end = int(pieces.start[row]), int(pieces.end[row])
    first, count = touching
    covered = [
        (max(start, int(cover.start[one])), min(end, int(cover.end[one])))
        for one in range(first, first + count)
    ]
    cuts = sorted({start, end, *(at for pair in covered for at in pair)})
    spans = list(pairwise(cuts))
    parts = split_integer(int(pieces.energy_millijoule[row]), [high - low for low, high in spans])
    taken = set(covered)
    return [
        (low, high, part)
        for (low, high), part in zip(spans, parts, strict=True)
        if (low, high) not in taken
    ]


def split_at_hours(pieces: Pieces) -> Pieces:
    """The pieces cut at whole hours, their energy by time and largest remainder, so parts sum."""
    first, last = pieces.start // HOUR_MICROSECOND, (pieces.end - 1) // HOUR_MICROSECOND
    whole, two = first == last, last == first + 1
    if whole.all():
        return pieces
    parts = [pieces.only(whole), *cut(pieces.only(two), last[two] * HOUR_MICROSECOND)]
    many = np.flatnonzero(~whole & ~two)
    rows = [part for row in many for part in _hour_parts(pieces, int(row))]
    return joined(*parts, pieces_from_rows(rows))


def _hour_parts(pieces: Pieces, row: int) -> list[tuple[int, int, int]]:
    """One long piece cut at every whole hour."""
    start, end = int(pieces.start[row]), int(pieces.end[row])
    borders = range(start // HOUR_MICROSECOND + 1, -(-end // HOUR_MICROSECOND))
    cuts = [start, *(border * HOUR_MICROSECOND for border in borders), end]
    spans = list(pairwise(cuts))
    parts = split_integer(int(pieces.energy_millijoule[row]), [high - low for low, high in spans])
    return [(low, high, part) for (low, high), part in zip(spans, parts, strict=True)]


def integrated(series: Ints, at: Ints, power_w: Floats, *, max_gap: int) -> tuple[Pieces, Mask]:
    """Trapezoids between neighbouring samples of a series no further apart than max_gap.

    E = (P0 + P1) / 2 * (t1 - t0), rounded to a whole millijoule; a longer gap gives nothing

    Takes samples ordered by series and instant; the mask says which of them begin a piece.
    """
    duration = np.diff(at)
    follows = (series[1:] == series[:-1]) & (duration > 0) & (duration <= max_gap)
    energy_j = (power_w[:-1] + power_w[1:]) / 2 * (duration / MICROSECOND_PER_S)
    pairs = Pieces(
        start=at[:-1],
        end=at[1:],
        energy_millijoule=np.rint(energy_j * MILLIJOULE_PER_J).astype(np.int64),
    )
    return pairs.only(follows), np.append(follows, False)

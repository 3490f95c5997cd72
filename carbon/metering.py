"""From readings of power and metered energy to energy by device and hour; numpy, no tables.

Instants are whole microseconds since 1970-01-01 UTC. The rules are those of formulae.energy, which
a property test and `manage.py verify` hold against this faster form.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from formulae.allocation import split_integer
from formulae.units import MICROSECOND_PER_S, MILLIJOULE_PER_J, S_PER_HOUR

HOUR_MICROSECOND: Final = S_PER_HOUR * MICROSECOND_PER_S
INT64_SAFE: Final = 2**62

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """Energy of devices over [start, end), in whole millijoules."""

    device: Ints
    start: Ints
    end: Ints
    energy_millijoule: Ints

    def only(self, mask: Mask | Ints) -> "Pieces":
        """The pieces that a mask or an order picks."""
        return Pieces(
            device=self.device[mask],
            start=self.start[mask],
            end=self.end[mask],
            energy_millijoule=self.energy_millijoule[mask],
        )

    def __len__(self) -> int:
        return len(self.device)


@dataclass(frozen=True, slots=True, kw_only=True)
class HourTable:
    """Energy of one device in one hour a row, ordered by device and hour."""

    device: Ints
    hour: Ints
    measured_millijoule: Ints
    spread_millijoule: Ints
    estimated_millijoule: Ints
    covered_microsecond: Ints

    def __len__(self) -> int:
        return len(self.device)


def joined(*parts: Pieces) -> Pieces:
    """Several sets of pieces as one."""
    return Pieces(
        device=np.concatenate([part.device for part in parts]),
        start=np.concatenate([part.start for part in parts]),
        end=np.concatenate([part.end for part in parts]),
        energy_millijoule=np.concatenate([part.energy_millijoule for part in parts]),
    )


def pieces_from_rows(rows: list[tuple[int, int, int, int]]) -> Pieces:
    """Pieces from (device, start, end, millijoule) rows."""
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    return Pieces(
        device=table[:, 0], start=table[:, 1], end=table[:, 2], energy_millijoule=table[:, 3]
    )


def integrate_samples(device: Ints, at: Ints, power_w: Floats, *, max_gap_s: float) -> Pieces:
    """Trapezoids between neighbouring samples of a device no further apart than max_gap_s.

    E = (P0 + P1) / 2 * (t1 - t0), rounded to a whole millijoule; a longer gap gives nothing
    """
    order = np.lexsort((at, device))
    device, at, power_w = device[order], at[order], power_w[order]
    duration_s = np.diff(at) / MICROSECOND_PER_S
    follows = (device[1:] == device[:-1]) & (duration_s > 0) & (duration_s <= max_gap_s)
    energy_j = (power_w[:-1] + power_w[1:]) / 2 * duration_s
    pairs = Pieces(
        device=device[:-1],
        start=at[:-1],
        end=at[1:],
        energy_millijoule=np.rint(energy_j * MILLIJOULE_PER_J).astype(np.int64),
    )
    return pairs.only(follows)


def outside_metered(pairs: Pieces, metered: Pieces) -> Pieces:
    """The pairs without what metered intervals cover: a device-second counts once."""
    both = np.intersect1d(pairs.device, metered.device)
    if not len(both):
        return pairs
    untouched = np.ones(len(pairs), dtype=np.bool_)
    rest: list[tuple[int, int, int, int]] = []
    for device in both:
        of_device = np.flatnonzero(pairs.device == device)
        meter = metered.only(metered.device == device)
        order = np.argsort(meter.start)
        starts, ends = meter.start[order], meter.end[order]
        first = np.searchsorted(ends, pairs.start[of_device], side="right")
        last = np.searchsorted(starts, pairs.end[of_device], side="left")
        for row, low, high in zip(of_device, first, last, strict=True):
            if high > low:
                untouched[row] = False
                rest += _free_parts(
                    pairs, int(row), list(zip(starts[low:high], ends[low:high], strict=True))
                )
    return joined(pairs.only(untouched), pieces_from_rows(rest))


def _free_parts(
    pairs: Pieces, row: int, covered: list[tuple[Any, Any]]
) -> list[tuple[int, int, int, int]]:
    """A pair cut at the metered intervals: its free parts, their energy by time."""
    start, end = int(pairs.start[row]), int(pairs.end[row])
    cuts = sorted(
        {start, end, *(min(max(int(cut), start), end) for pair in covered for cut in pair)}
    )
    spans = list(pairwise(cuts))
    parts = split_integer(int(pairs.energy_millijoule[row]), [high - low for low, high in spans])
    device = int(pairs.device[row])
    return [
        (device, low, high, part)
        for (low, high), part in zip(spans, parts, strict=True)
        if not any(int(a) <= low and high <= int(b) for a, b in covered)
    ]


def split_at_hours(pieces: Pieces) -> Pieces:
    """The pieces cut at whole hours, their energy by time and largest remainder, so parts sum."""
    first, last = pieces.start // HOUR_MICROSECOND, (pieces.end - 1) // HOUR_MICROSECOND
    whole, two = first == last, last == first + 1
    if whole.all():
        return pieces
    parts = [pieces.only(whole), *_halves(pieces.only(two), last[two] * HOUR_MICROSECOND)]
    many = np.flatnonzero(~whole & ~two)
    rows = [part for row in many for part in _hour_parts(pieces, int(row))]
    return joined(*parts, pieces_from_rows(rows))


def _halves(pieces: Pieces, border: Ints) -> tuple[Pieces, Pieces]:
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
    left = Pieces(device=pieces.device, start=pieces.start, end=border, energy_millijoule=first)
    right = Pieces(
        device=pieces.device,
        start=border,
        end=pieces.end,
        energy_millijoule=pieces.energy_millijoule - first,
    )
    return left, right


def _hour_parts(pieces: Pieces, row: int) -> list[tuple[int, int, int, int]]:
    """One long piece cut at every whole hour."""
    start, end = int(pieces.start[row]), int(pieces.end[row])
    borders = range(start // HOUR_MICROSECOND + 1, -(-end // HOUR_MICROSECOND))
    cuts = [start, *(border * HOUR_MICROSECOND for border in borders), end]
    spans = list(pairwise(cuts))
    parts = split_integer(int(pieces.energy_millijoule[row]), [high - low for low, high in spans])
    device = int(pieces.device[row])
    return [(device, low, high, part) for (low, high), part in zip(spans, parts, strict=True)]


def energy_by_hour(sampled: Pieces, metered: Pieces, *, start: int, end: int) -> HourTable:
    """Energy by device and hour in [start, end), whole hours; metered intervals win over samples.

    An interval longer than an hour is measured, but its place in time is not: its parts are spread.
    """
    free = outside_metered(sampled, metered)
    is_long = metered.end - metered.start > HOUR_MICROSECOND
    measured = split_at_hours(joined(free, metered.only(~is_long)))
    spread = split_at_hours(metered.only(is_long))
    every = joined(measured, spread)
    is_spread = np.arange(len(every)) >= len(measured)
    hour = every.start // HOUR_MICROSECOND * HOUR_MICROSECOND
    inside = (hour >= start) & (hour < end)
    return _grouped(every.only(inside), hour[inside], is_spread[inside])


def _grouped(pieces: Pieces, hour: Ints, is_spread: Mask) -> HourTable:
    """Sums by device and hour."""
    order = np.lexsort((hour, pieces.device))
    pieces, hour, is_spread = pieces.only(order), hour[order], is_spread[order]
    is_first = np.ones(len(pieces), dtype=np.bool_)
    is_first[1:] = (pieces.device[1:] != pieces.device[:-1]) | (hour[1:] != hour[:-1])
    heads = np.flatnonzero(is_first)
    energy = pieces.energy_millijoule

    def total(values: Ints) -> Ints:
        return np.add.reduceat(values, heads) if len(heads) else values

    return HourTable(
        device=pieces.device[heads],
        hour=hour[heads],
        measured_millijoule=total(np.where(is_spread, 0, energy)),
        spread_millijoule=total(np.where(is_spread, energy, 0)),
        estimated_millijoule=np.zeros(len(heads), dtype=np.int64),
        covered_microsecond=total(pieces.end - pieces.start),
    )

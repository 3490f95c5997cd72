"""Energy from readings of counters, ordered on a line; numpy, no tables.

The rules of one pair are formulae.metering's `counter_step`, `most_millijoule` and
`shortest_microsecond`.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from carbon.lines import (
    Line,
    Pieces,
)
from carbon.metering import (
    Floats,
    Ints,
    Mask,
)
from formulae.metering import SHORTEST_JUDGED_S
from formulae.units import MICROSECOND_PER_S, MILLIJOULE_PER_J, S_PER_DAY

LONGEST_MICROSECOND: Final = 31 * S_PER_DAY * MICROSECOND_PER_S
ASSUMED_LIMIT_W: Final = 5_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterSeries:
    """Readings of counters by device, sender and instant.

    `series` names device and sender, `order` is the sender's place among those of its device.
    """

    series: Ints
    order: Ints
    at: Ints  # on the line
    counter_millijoule: Ints
    epoch: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Implausible:
    """Differences that no device can have drawn, kept aside with their instants on the line."""

    start: Ints
    end: Ints
    energy_millijoule: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterEnergy:
    """What counters say: placed in time, spread over gaps, since a reset; and what cannot be."""

    placed: Pieces
    placed_order: Ints
    spread: Pieces
    spread_order: Ints
    resets: Pieces
    resets_order: Ints
    implausible: Implausible


def counter_energy(
    readings: CounterSeries, line: Line, *, limit_w: Floats, max_gap: int
) -> CounterEnergy:
    """Energy between neighbouring readings of each device and sender.

    E = c1 - c0 in one epoch; what a counter that began again shows counts at the end of the pair.
    """
    pairs = np.flatnonzero(readings.series[1:] == readings.series[:-1])
    start, end = readings.at[pairs], readings.at[pairs + 1]
    before, after = readings.counter_millijoule[pairs], readings.counter_millijoule[pairs + 1]
    was, is_ = readings.epoch[pairs], readings.epoch[pairs + 1]
    is_reset = (after < before) | ((was != is_) & (was != 0) & (is_ != 0))
    whole = Pieces(
        start=start, end=end, energy_millijoule=np.where(is_reset, after, after - before)
    )
    is_long = end - start > max_gap
    counts = ~is_long
    if is_long.any():
        counts[is_long] = _spans_a_hole(readings.at, whole.only(is_long), line, max_gap=max_gap)
    limits = limit_w[line.index_at(start)]
    seconds = np.maximum((end - start) / MICROSECOND_PER_S, SHORTEST_JUDGED_S)
    possible = whole.energy_millijoule <= limits * 1.2 * seconds * MILLIJOULE_PER_J
    good, order = counts & possible, readings.order[pairs]
    placed, spread = good & ~is_reset & ~is_long, good & ~is_reset & is_long
    reset = good & is_reset & (whole.energy_millijoule > 0)
    aside = whole.only(counts & ~possible)
    return CounterEnergy(
        placed=whole.only(placed),
        placed_order=order[placed],
        spread=whole.only(spread),
        spread_order=order[spread],
        resets=_at_the_end(whole.only(reset), limits[reset]),
        resets_order=order[reset],
        implausible=Implausible(
            start=aside.start, end=aside.end, energy_millijoule=aside.energy_millijoule
        ),
    )


def _at_the_end(pairs: Pieces, limit_w: Floats) -> Pieces:
    """What was drawn since a reset in the shortest time before its reading that it can take."""
    factor = MICROSECOND_PER_S / MILLIJOULE_PER_J
    needed = np.ceil(pairs.energy_millijoule * factor / limit_w)
    taken = np.clip(np.minimum(needed, pairs.end - pairs.start), 1, None).astype(np.int64)
    return Pieces(start=pairs.end - taken, end=pairs.end, energy_millijoule=pairs.energy_millijoule)


def _spans_a_hole(at: Ints, pairs: Pieces, line: Line, *, max_gap: int) -> Mask:
    """Which long pairs cross one hole in all readings of their device, whoever read it.

    The sender must have read the counter right before the hole and right after it. What other
    senders read in between says more than a difference across it.
    """
    everything = np.unique(at)
    same = line.index_at(everything[1:]) == line.index_at(everything[:-1])
    wide = np.flatnonzero(same & (np.diff(everything) > max_gap))
    low, high = everything[wide], everything[wide + 1]
    if not len(wide):
        return np.zeros(len(pairs), dtype=np.bool_)
    first = np.minimum(np.searchsorted(low, pairs.start), len(wide) - 1)
    return np.asarray(
        (pairs.end - pairs.start <= LONGEST_MICROSECOND)
        & (low[first] >= pairs.start)
        & (low[first] - pairs.start <= max_gap)
        & (high[first] <= pairs.end)
        & (pairs.end - high[first] <= max_gap),
        dtype=np.bool_,
    )

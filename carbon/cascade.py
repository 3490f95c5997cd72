"""Readings of all senders to energy by device and hour, each second once; numpy, no tables.

The order of precedence is that of formulae.metering's `cascade`: counters read in time, counters
across a gap, intervals, power; of each, the senders by kind, and of one kind the older one first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carbon.counters import CounterEnergy, CounterSeries, Implausible, counter_energy
from carbon.lines import (
    Line,
    Pieces,
    Runs,
    common,
    integrated,
    joined,
    merged,
    outside,
    split_at_hours,
    union,
    without,
)
from carbon.metering import (
    HOUR_MICROSECOND,
    Floats,
    Ints,
)
from formulae.units import MICROSECOND_PER_S, S_PER_DAY

PRECEDENCE: Final = ("agent", "remote_write", "promql", "api", "file")
PRESENCE_MICROSECOND: Final = S_PER_DAY * MICROSECOND_PER_S
CROSS_CHECKED_MICROSECOND: Final = 300 * MICROSECOND_PER_S
NO_RUNS: Final = Runs(start=np.zeros(0, dtype=np.int64), end=np.zeros(0, dtype=np.int64))
NO_PIECES: Final = Pieces(start=NO_RUNS.start, end=NO_RUNS.start, energy_millijoule=NO_RUNS.start)

Table = Mapping[str, npt.NDArray[Any]]
Tier = tuple[Pieces, Ints]  # pieces, and the place of the sender of each


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What is stored of some devices: tables of columns, `sender` by its place in precedence."""

    samples: Table  # device, at, sender, power_w
    intervals: Table  # device, start, end, sender, energy_millijoule
    counters: Table  # device, at, sender, counter_millijoule, epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Device-hours: device i and hour j of a window stand at i * hours + j."""

    devices: Ints
    start: int
    hours: int

    @property
    def size(self) -> int:
        return len(self.devices) * self.hours

    @property
    def end(self) -> int:
        return self.start + self.hours * HOUR_MICROSECOND

    def cells(self, line: Line, place: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """The cells of places on the line, and which of them lie in the window."""
        hour = (line.instant(place) - self.start) // HOUR_MICROSECOND
        inside = (hour >= 0) & (hour < self.hours)
        return (line.index_at(place) * self.hours + hour)[inside], inside

    def sums(self, line: Line, pieces: Pieces) -> tuple[Ints, Ints]:
        """Energy and time of pieces by cell; sums below 2**53 are exact."""
        parts = split_at_hours(pieces)
        cells, inside = self.cells(line, parts.start)
        energy, time = parts.energy_millijoule[inside], (parts.end - parts.start)[inside]
        return (
            np.bincount(cells, weights=energy, minlength=self.size).astype(np.int64),
            np.bincount(cells, weights=time, minlength=self.size).astype(np.int64),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Metered:
    """Energy by cell of a grid, before anything is estimated.

    `measured` holds `integrated` (by power) and `reset` (a lower bound, not covered) too. `present`
    and `assigned`: unseen time between the device's own readings, and of that or assigned.
    """

    measured: Ints
    spread: Ints
    integrated: Ints
    reset: Ints
    covered: Ints
    present: Ints
    assigned: Ints
    counter_checked: Ints
    power_checked: Ints
    checked: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What holds for the devices of a line: limits in W by device, the longest gap, assignments."""

    limit_w: Floats
    max_gap: int
    assigned: Runs  # on the line


def line_of(readings: Readings, grid: Grid) -> Line:
    """A line that holds the readings and the window."""
    ats = [
        readings.samples["at"],
        readings.counters["at"],
        readings.intervals["start"],
        readings.intervals["end"],
    ]
    known = [one for one in ats if len(one)]
    return Line.around(
        grid.devices,
        min([grid.start, *(int(one.min()) for one in known)]),
        max([grid.end, *(int(one.max()) for one in known)]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What counts of all readings: pieces of energy by how they are known, and their time."""

    placed: Pieces  # counters
    spread: Pieces  # counters across a gap
    intervals: Pieces
    long_intervals: Pieces  # longer than an hour, so spread too
    power: Pieces
    resets: Pieces
    cover: Runs
    every_counter: Pieces
    first_power: Pieces
    implausible: Implausible


def counted_of(readings: Readings, line: Line, rules: Rules) -> Counted:
    """What counts, each device-second from the best that knows it; and what cannot be."""
    counters = _counter_energy(readings.counters, line, rules)
    power, power_order = _power(readings.samples, line, rules)
    short, long = _intervals(readings.intervals, line)
    (placed,), cover = _fill([(counters.placed, counters.placed_order)], NO_RUNS)
    (spread,), cover = _fill([(counters.spread, counters.spread_order)], cover)
    (intervals, long_intervals), cover = _fill([short, long], cover)
    (by_power,), cover = _fill([(power, power_order)], cover)
    (resets,), _cover = _fill([(counters.resets, counters.resets_order)], cover)
    return Counted(
        placed=placed,
        spread=spread,
        intervals=intervals,
        long_intervals=long_intervals,
        power=by_power,
        resets=resets,
        cover=cover,
        every_counter=counters.placed.only(counters.placed_order == 0),
        first_power=power.only(power_order == 0),
        implausible=counters.implausible,
    )


def metered(
    readings: Readings, grid: Grid, line: Line, rules: Rules
) -> tuple[Metered, Implausible]:
    """Energy by device and hour from all readings; and the differences that cannot be."""
    counted = counted_of(readings, line, rules)
    present = _presence(readings, line)
    return Metered(
        **_energies(grid, line, counted),
        **_gaps(grid, line, counted.cover, present=present, assigned=rules.assigned),
        **_cross_check(grid, line, counted.every_counter, counted.first_power),
    ), counted.implausible


def _series(table: Table, line: Line) -> tuple[Ints, Ints, Ints, Ints]:
    """The order of rows by device, sender and instant; with it series, sender's place, place."""
    at = line.place(table["device"], table["at"])
    order = np.argsort(at, kind="stable")
    index, senders = line.index_at(at[order]), table["sender"][order]
    if not ((senders[1:] != senders[:-1]) & (index[1:] == index[:-1])).any():
        return order, index, np.zeros(len(at), dtype=np.int64), at[order]
    code, place = _places(line.index_at(at), table["sender"])
    order = np.lexsort((at, code))
    return order, code[order], place[order], at[order]


def _places(index: Ints, sender: Ints) -> tuple[Ints, Ints]:
    """Numbers of (device, sender), and the sender's place among the senders of its device."""
    width = int(sender.max()) + 1
    found, code = np.unique(index * width + sender, return_inverse=True)
    of_device = found // width
    place = np.arange(len(found)) - np.searchsorted(of_device, of_device)
    return code, place[code]


def _counter_energy(table: Table, line: Line, rules: Rules) -> CounterEnergy:
    order, series, place, at = _series(table, line)
    readings = CounterSeries(
        series=series,
        order=place,
        at=at,
        counter_millijoule=table["counter_millijoule"][order],
        epoch=table["epoch"][order],
    )
    return counter_energy(readings, line, limit_w=rules.limit_w, max_gap=rules.max_gap)


def _power(table: Table, line: Line, rules: Rules) -> tuple[Pieces, Ints]:
    order, series, place, at = _series(table, line)
    if not len(at):
        return NO_PIECES, place
    pieces, begins = integrated(series, at, table["power_w"][order], max_gap=rules.max_gap)
    return pieces, place[begins]


def _intervals(table: Table, line: Line) -> tuple[Tier, Tier]:
    """Intervals of up to an hour, and longer ones, each with its sender's place."""
    start = line.place(table["device"], table["start"])
    pieces = Pieces(
        start=start,
        end=start + (table["end"] - table["start"]),
        energy_millijoule=table["energy_millijoule"],
    )
    if not len(pieces):
        return (pieces, pieces.start), (pieces, pieces.start)
    _code, place = _places(line.index_at(start), table["sender"])
    is_long = pieces.end - pieces.start > HOUR_MICROSECOND
    return (pieces.only(~is_long), place[~is_long]), (pieces.only(is_long), place[is_long])


def _fill(tiers: Sequence[Tier], cover: Runs) -> tuple[list[Pieces], Runs]:
    """What counts of pieces, sender by sender, and the cover with them.

    They are split at hours before they are cut, so that what is cut in one hour leaves the others.
    """
    split = [_split(pieces, order) for pieces, order in tiers]
    counted: list[list[Pieces]] = [[NO_PIECES] for _tier in tiers]
    last = max(int(order.max(initial=-1)) for _pieces, order in split)
    for place in range(last + 1):
        free = [outside(pieces.only(order == place), cover) for pieces, order in split]
        for parts, part in zip(counted, free, strict=True):
            parts.append(part)
        for part in free:
            cover = union(cover, merged(part.start, part.end))
    return [joined(*parts) for parts in counted], cover


def _split(pieces: Pieces, order: Ints) -> Tier:
    """Pieces split at hours, each part with the place of its piece."""
    crosses = pieces.start // HOUR_MICROSECOND != (pieces.end - 1) // HOUR_MICROSECOND
    if not crosses.any():
        return pieces, order
    parts, places = [pieces.only(~crosses)], [order[~crosses]]
    for place in np.unique(order[crosses]):
        part = split_at_hours(pieces.only(crosses & (order == place)))
        parts.append(part)
        places.append(np.full(len(part), place))
    return joined(*parts), np.concatenate(places)


def _presence(readings: Readings, line: Line) -> Runs:
    """Stretches between a device's own readings that lie less than a day apart."""
    slack = PRESENCE_MICROSECOND - 1
    found = NO_RUNS
    for table, first, last in (
        (readings.counters, "at", "at"),
        (readings.samples, "at", "at"),
        (readings.intervals, "start", "end"),
    ):
        start = line.place(table["device"], table[first])
        end = start + (table[last] - table[first])
        found = union(found, merged(start, end, slack=slack), slack=slack)
    lasts = found.start < found.end  # a reading alone is between nothing
    return Runs(start=found.start[lasts], end=found.end[lasts])


def _energies(grid: Grid, line: Line, counted: Counted) -> dict[str, Ints]:
    placed, placed_time = grid.sums(line, joined(counted.placed, counted.intervals))
    spread, spread_time = grid.sums(line, joined(counted.spread, counted.long_intervals))
    power, power_time = grid.sums(line, counted.power)
    reset, _time = grid.sums(line, counted.resets)
    return {
        "measured": placed + power + reset,
        "spread": spread,
        "integrated": power,
        "reset": reset,
        "covered": placed_time + spread_time + power_time,
    }


def _gaps(grid: Grid, line: Line, cover: Runs, *, present: Runs, assigned: Runs) -> dict[str, Ints]:
    """Unseen time by cell: between own readings, and of that or assigned."""
    first = line.place(grid.devices, np.full(len(grid.devices), grid.start))
    free = without(Runs(start=first, end=first + (grid.end - grid.start)), cover)
    return {
        "present": _time_of(grid, line, common(free, present)),
        "assigned": _time_of(grid, line, common(free, union(present, assigned))),
    }


def _time_of(grid: Grid, line: Line, runs: Runs) -> Ints:
    nothing = np.zeros(len(runs), dtype=np.int64)
    pieces = Pieces(start=runs.start, end=runs.end, energy_millijoule=nothing)
    return grid.sums(line, pieces)[1]


def _cross_check(grid: Grid, line: Line, counters: Pieces, power: Pieces) -> dict[str, Ints]:
    """Energy by counters and by power over the time that both know."""
    by_counter, by_power = merged(counters.start, counters.end), merged(power.start, power.end)
    if not len(by_counter) or not len(by_power):
        nothing = np.zeros(grid.size, dtype=np.int64)
        return {"counter_checked": nothing, "power_checked": nothing, "checked": nothing}
    everything = union(by_counter, by_power)
    one_only = without(everything, common(by_counter, by_power))
    counted, time = grid.sums(line, outside(counters, one_only))
    return {
        "counter_checked": counted,
        "power_checked": grid.sums(line, outside(power, one_only))[0],
        "checked": time,
    }

"""Estimates of device time that nobody saw, by whom it is like; numpy, no tables.

The order: the mean power in that hour of the same run; of the device itself, where it was seen for
at least as long as not; of the same model at the site; the device's limit times its utilisation. A
device of which neither run nor model is known is like nothing, not even itself.

The arithmetic of one gap is formulae.metering's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from carbon.attribution import Owner, microsecond_of
from carbon.cascade import Grid
from carbon.lines import (
    Line,
    Runs,
    merged,
)
from carbon.metering import (
    HOUR_MICROSECOND,
    Ints,
    Mask,
)
from formulae.metering import estimated_gap_millijoule, estimated_use_millijoule
from runs.records import AssignmentRecord

METHODS: Final = ("", "run", "own", "model", "use")
RUN, OWN, MODEL, USE = 1, 2, 3, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenHours:
    """What was seen of devices in hours; without what counters counted since a reset."""

    device: Ints
    hour: Ints  # its place in the window
    energy_millijoule: Ints
    covered_microsecond: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """Unseen time of device-hours, with what their counters counted since a reset in it."""

    device: Ints
    hour: Ints
    gap_microsecond: Ints
    reset_millijoule: Ints

    def __len__(self) -> int:
        return len(self.device)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """Energy of gaps, row by row; method 0: nobody knows, the time stays missing."""

    energy_millijoule: Ints
    method: Ints


class _Means:
    """Energy and time seen, by group and hour."""

    def __init__(self, group: Ints, seen: SeenHours, hours: int) -> None:
        known = group >= 0
        self.hours = hours
        size = (int(group.max(initial=-1)) + 1) * hours
        key = group[known] * hours + seen.hour[known]
        self.energy, self.time = np.zeros(size, np.int64), np.zeros(size, np.int64)
        np.add.at(self.energy, key, seen.energy_millijoule[known])
        np.add.at(self.time, key, seen.covered_microsecond[known])

    def of(self, group: Ints, hour: Ints) -> tuple[Ints, Ints]:
        """Energy and time of each row's group in its hour; time 0 where nobody saw any."""
        if not len(self.time):
            return np.zeros_like(group), np.zeros_like(group)
        key = np.clip(group, 0, len(self.time) // self.hours - 1) * self.hours + hour
        known = (group >= 0) & (group < len(self.time) // self.hours)
        return np.where(known, self.energy[key], 0), np.where(known, self.time[key], 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Which run and which model devices belong to; -1 where that is not known.

    `owners` holds a row for each of `devices` and a column for each hour: the run, or else the
    project, for which the device worked longest in the hour.
    """

    devices: Ints
    owners: Ints
    models: Ints

    def of(self, device: Ints, hour: Ints) -> tuple[Ints, Ints]:
        """Owner and model of each row."""
        index = np.searchsorted(self.devices, device)
        return self.owners[index, hour], self.models[index]


def groups_of(
    grid: Grid, assignments: Sequence[AssignmentRecord], models: Mapping[int, str]
) -> Groups:
    """The groups of a grid's devices in its hours."""
    numbers: dict[Owner, int] = {}
    owners = np.full((len(grid.devices), grid.hours), -1, dtype=np.int64)
    longest = np.zeros_like(owners)
    places = {int(device): row for row, device in enumerate(grid.devices)}
    for one in sorted(assignments, key=lambda one: (one.device_id, one.start)):
        row = places.get(one.device_id)
        low, high = _clipped(one, grid)
        if row is None or low >= high:
            continue
        owner = numbers.setdefault((one.project_id, one.run_id), len(numbers))
        first, last = low // HOUR_MICROSECOND, -(-high // HOUR_MICROSECOND)
        hours = np.arange(first, last) * HOUR_MICROSECOND
        inside = np.minimum(hours + HOUR_MICROSECOND, high) - np.maximum(hours, low)
        better = inside > longest[row, first:last]
        owners[row, first:last][better] = owner
        longest[row, first:last][better] = inside[better]
    names = {name: number for number, name in enumerate(sorted(set(models.values()) - {""}))}
    numbered = [names.get(models.get(int(device), ""), -1) for device in grid.devices]
    return Groups(devices=grid.devices, owners=owners, models=np.array(numbered, dtype=np.int64))


def assigned_runs(line: Line, grid: Grid, assignments: Sequence[AssignmentRecord]) -> Runs:
    """The time in which the devices of a line are assigned, within the window."""
    rows = [
        (one.device_id, grid.start + low, grid.start + high)
        for one in assignments
        for low, high in [_clipped(one, grid)]
        if low < high
    ]
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    known = np.isin(table[:, 0], line.devices)
    start = line.place(table[known, 0], table[known, 1])
    return merged(start, start + table[known, 2] - table[known, 1])


def _clipped(one: AssignmentRecord, grid: Grid) -> tuple[int, int]:
    """An assignment within the window, microseconds from its start."""
    end = grid.end if one.end is None else min(microsecond_of(one.end), grid.end)
    return max(microsecond_of(one.start), grid.start) - grid.start, end - grid.start


def estimated(gaps: Gaps, seen: SeenHours, groups: Groups, *, hours: int) -> Estimates:
    """Estimate each gap by the nearest likeness that was seen in its hour."""
    owner, model = groups.of(seen.device, seen.hour)
    own_seen = np.searchsorted(groups.devices, seen.device)
    mine, my_model = groups.of(gaps.device, gaps.hour)
    is_known = (mine >= 0) | (my_model >= 0)  # of what nobody knows, nothing is assumed
    itself = np.where(is_known, np.searchsorted(groups.devices, gaps.device), -1)
    energy, time = np.zeros(len(gaps), np.int64), np.zeros(len(gaps), np.int64)
    method = np.zeros(len(gaps), np.int64)
    for code, of_seen, of_gap in (
        (RUN, owner, mine),
        (OWN, own_seen, itself),
        (MODEL, model, my_model),
    ):
        found, seen_time = _Means(of_seen, seen, hours).of(of_gap, gaps.hour)
        enough = gaps.gap_microsecond if code == OWN else np.ones(len(gaps), np.int64)
        fits: Mask = (method == 0) & (seen_time >= enough) & (seen_time > 0)
        energy[fits], time[fits], method[fits] = found[fits], seen_time[fits], code
    return Estimates(energy_millijoule=_by_mean(gaps, energy, time), method=method)


def _by_mean(gaps: Gaps, energy: Ints, time: Ints) -> Ints:
    """The energy of each gap at its reference's mean power; 0 without a reference."""
    columns = (gaps.gap_microsecond, energy, time, gaps.reset_millijoule)
    values = [
        estimated_gap_millijoule(
            gap, reference_millijoule=total, reference_microsecond=seen, known_millijoule=reset
        )
        if seen
        else 0
        for gap, total, seen, reset in zip(*(one.tolist() for one in columns), strict=True)
    ]
    return np.array(values, dtype=np.int64)


def with_use(
    gaps: Gaps, estimates: Estimates, use: Mapping[tuple[int, int], tuple[float, float]]
) -> Estimates:
    """The estimates, with gaps that nothing is like by their use: (utilisation, limit in W)."""
    energy, method = estimates.energy_millijoule.copy(), estimates.method.copy()
    for row in np.flatnonzero(method == 0):
        known = use.get((int(gaps.device[row]), int(gaps.hour[row])))
        if known is not None:
            energy[row] = estimated_use_millijoule(
                int(gaps.gap_microsecond[row]),
                utilisation_fraction=known[0],
                limit_w=known[1],
                known_millijoule=int(gaps.reset_millijoule[row]),
            )
            method[row] = USE
    return Estimates(energy_millijoule=energy, method=method)

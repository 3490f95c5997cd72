"""Energy of device-hours shared out to those for whom the devices worked; numpy, no tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import numpy as np

from carbon.metering import HOUR_MICROSECOND, HourTable, Ints
from formulae.allocation import split_integer
from runs.records import AssignmentRecord

Owner = tuple[UUID | None, UUID | None]  # project, run
NOBODY: Final[Owner] = (None, None)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MEASURES: Final = ("measured", "spread", "estimated", "covered", "expected")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedHour:
    """What one owner's devices used in one hour; `expected`: the device time to be seen."""

    owner: Owner
    hour: int
    measured_millijoule: int
    spread_millijoule: int
    estimated_millijoule: int
    covered_microsecond: int
    expected_microsecond: int


def microsecond_of(at: datetime) -> int:
    """Whole microseconds since 1970-01-01 UTC."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def instant_of(microsecond: int) -> datetime:
    """The aware UTC instant."""
    return _EPOCH + timedelta(microseconds=int(microsecond))


class _Ledger:
    """Sums by owner and hour over a window of hours."""

    def __init__(self, owners: Sequence[Owner], *, start: int, end: int) -> None:
        self.owners, self.start = owners, start
        hours = (end - start) // HOUR_MICROSECOND
        self.sums = {name: np.zeros((len(owners), hours), dtype=np.int64) for name in _MEASURES}

    def position(self, hour: Ints) -> Ints:
        return (hour - self.start) // HOUR_MICROSECOND

    def add(self, name: str, owner: int, hour: Ints, values: Ints) -> None:
        np.add.at(self.sums[name][owner], self.position(hour), values)

    def rows(self) -> list[OwnedHour]:
        used = np.argwhere(sum(np.abs(values) for values in self.sums.values()) > 0)
        return [
            OwnedHour(
                owner=self.owners[owner],
                hour=self.start + int(hour) * HOUR_MICROSECOND,
                measured_millijoule=int(self.sums["measured"][owner, hour]),
                spread_millijoule=int(self.sums["spread"][owner, hour]),
                estimated_millijoule=int(self.sums["estimated"][owner, hour]),
                covered_microsecond=int(self.sums["covered"][owner, hour]),
                expected_microsecond=int(self.sums["expected"][owner, hour]),
            )
            for owner, hour in used
        ]


def attribute(
    table: HourTable, assignments: Sequence[AssignmentRecord], *, start: int, end: int
) -> list[OwnedHour]:
    """Share the device-hours in [start, end) out to projects and runs, the rest to nobody.

    An hour in which a device changes hands is split pro rata by time; parts sum to the whole.
    """
    owners = [NOBODY, *sorted({(a.project_id, a.run_id) for a in assignments}, key=str)]
    index = {owner: position for position, owner in enumerate(owners)}
    ledger = _Ledger(owners, start=start, end=end)
    whole_owner = np.zeros(len(table), dtype=np.int64)
    shared: dict[int, list[tuple[int, int]]] = {}
    for one in assignments:
        owner = index[one.project_id, one.run_id]
        low = max(microsecond_of(one.start), start)
        high = min(microsecond_of(one.end), end) if one.end else end
        if low >= high:
            continue
        _expect(ledger, owner, low, high)
        first, last = np.searchsorted(table.device, [one.device_id, one.device_id + 1])
        hours = table.hour[first:last]
        touched = first + np.flatnonzero((hours < high) & (hours + HOUR_MICROSECOND > low))
        inside = np.minimum(table.hour[touched] + HOUR_MICROSECOND, high) - np.maximum(
            table.hour[touched], low
        )
        is_whole = inside == HOUR_MICROSECOND
        whole_owner[touched[is_whole]] = owner
        for row, part in zip(touched[~is_whole], inside[~is_whole], strict=True):
            shared.setdefault(int(row), []).append((owner, int(part)))
    _book_whole(ledger, table, whole_owner, set(shared))
    for row, parts in shared.items():
        _book_shared(ledger, table, row, parts)
    return ledger.rows()


def _expect(ledger: _Ledger, owner: int, low: int, high: int) -> None:
    """Note that a device works for an owner in [low, high), whether or not it reports."""
    first, last = low // HOUR_MICROSECOND, -(-high // HOUR_MICROSECOND)
    hours = np.arange(first, last, dtype=np.int64) * HOUR_MICROSECOND
    inside = np.minimum(hours + HOUR_MICROSECOND, high) - np.maximum(hours, low)
    ledger.add("expected", owner, hours, inside)


def _book_whole(ledger: _Ledger, table: HourTable, owner: Ints, shared: set[int]) -> None:
    """Book the device-hours that have one owner, or none."""
    is_whole = np.ones(len(table), dtype=np.bool_)
    is_whole[list(shared)] = False
    for position in np.unique(owner[is_whole]):
        mine = is_whole & (owner == position)
        for name, values in _columns(table).items():
            ledger.add(name, int(position), table.hour[mine], values[mine])
        if position == 0:
            full = np.full(int(mine.sum()), HOUR_MICROSECOND, dtype=np.int64)
            ledger.add("expected", 0, table.hour[mine], full)


def _columns(table: HourTable) -> dict[str, Ints]:
    return {
        "measured": table.measured_millijoule,
        "spread": table.spread_millijoule,
        "estimated": table.estimated_millijoule,
        "covered": table.covered_microsecond,
    }


def _book_shared(
    ledger: _Ledger, table: HourTable, row: int, parts: Sequence[tuple[int, int]]
) -> None:
    """Split one device-hour by time among its owners and nobody."""
    free = HOUR_MICROSECOND - sum(part for _owner, part in parts)
    shares = [*parts, (0, free)] if free else list(parts)
    hour = table.hour[row : row + 1]
    for name, values in _columns(table).items():
        split = split_integer(int(values[row]), [part for _owner, part in shares])
        for (owner, _part), amount in zip(shares, split, strict=True):
            ledger.add(name, owner, hour, np.array([amount], dtype=np.int64))
    if free:
        ledger.add("expected", 0, hour, np.array([free], dtype=np.int64))

"""The readings of an agent's batch as numpy columns; what cannot have been read is set aside."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carbon.packed import (
    MEASURES,
    METERS,
    CounterColumns,
    NodeColumns,
    PowerColumns,
    SetAside,
    UseColumns,
    no_nodes,
)

TOLERANCE: Final = 1.2  # as in booking, which knows more limits
ASSUMED_LIMIT_W: Final = 5_000.0
EARLIEST: Final = 1_262_304_000_000_000  # 2010: before that a unit is wrong

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


class AgentBatchError(ValueError):
    """A batch that no retry can mend; for people, names the field."""

    def __init__(self, problem: str, *, field: str = "", code: str = "invalid") -> None:
        self.problem, self.field, self.code = problem, field, code
        super().__init__(f"{field}: {problem}" if field else problem)


@dataclass(slots=True, kw_only=True)
class Columns:
    """Readings by column; `good` tells which rows may be true, power and counter each apart."""

    uuids: Sequence[str]
    epochs: Ints
    device: npt.NDArray[np.int32]
    at: Ints
    power_w: Floats
    counter: Ints
    has_counter: Mask
    measures: dict[str, Floats]
    good: Mask
    good_power: Mask
    good_counter: Mask
    aside: list[SetAside] = field(default_factory=list)

    def set_impossible_aside(self, *, newest: int, limits_w: Sequence[float | None]) -> None:
        """Set aside what lies ahead of our clock or before 2010, and impossible values."""
        limit_w = np.array([one or ASSUMED_LIMIT_W for one in limits_w], dtype=np.float64)
        self._set_rows_aside(self.at > newest, "in_the_future")
        self._set_rows_aside(self.at < EARLIEST, "before_2010")
        with np.errstate(invalid="ignore"):
            negative = self.good_power & (self.power_w < 0)
            highest = limit_w[self.device] * TOLERANCE if len(self.device) else self.power_w
            too_high = self.good_power & (self.power_w > highest)
        falls = self.good_counter & (self.counter < 0)
        for mask, reason in ((negative, "negative"), (too_high, "above_the_power_limit")):
            self._keep(mask, reason, of_power=True)
            self.good_power &= ~mask
        self._keep(falls, "negative", of_power=False)
        self.good_counter &= ~falls

    def _set_rows_aside(self, mask: Mask, reason: str) -> None:
        mask = mask & self.good
        for row in np.flatnonzero(mask):
            texts = [self._power(row), self._counter(row)]
            self._add(row, "; ".join(text for text in texts if text), reason)
        self.good &= ~mask
        self.good_power &= ~mask
        self.good_counter &= ~mask

    def _keep(self, mask: Mask, reason: str, *, of_power: bool) -> None:
        for row in np.flatnonzero(mask):
            self._add(row, self._power(row) if of_power else self._counter(row), reason)

    def _add(self, row: Any, reading: str, reason: str) -> None:
        uuid = self.uuids[self.device[row]]
        at = int(self.at[row])
        self.aside.append(SetAside(device_uuid=uuid, at=at, reading=reading, reason=reason))

    def _power(self, row: Any) -> str:
        return "" if np.isnan(self.power_w[row]) else f"{self.power_w[row]:.15g} W"

    def _counter(self, row: Any) -> str:
        return f"{self.counter[row]} mJ" if self.has_counter[row] else ""

    def power(self) -> PowerColumns:
        """The power readings that may be true."""
        good = self.good_power
        return PowerColumns(device=self.device[good], at=self.at[good], power_w=self.power_w[good])

    def counters(self) -> CounterColumns:
        """The counters that may be true, each in the life that its device tells."""
        good = self.good_counter
        device = self.device[good]
        return CounterColumns(
            device=device,
            at=self.at[good],
            counter_millijoule=self.counter[good],
            epoch=self.epochs[device] if len(device) else np.zeros(0, dtype=np.int64),
        )

    def use(self) -> UseColumns:
        """What devices did, of rows in which anything was read."""
        read = np.zeros(len(self.at), dtype=np.bool_)
        for values in self.measures.values():
            read |= ~np.isnan(values)
        good = self.good & read
        return UseColumns(
            device=self.device[good],
            at=self.at[good],
            measures={name: values[good] for name, values in self.measures.items()},
        )

    def first(self) -> int | None:
        """The earliest good reading."""
        return int(self.at[self.good].min()) if self.good.any() else None

    def last(self) -> int | None:
        """The latest good reading."""
        return int(self.at[self.good].max()) if self.good.any() else None


def columns_of(readings: Any, at: Ints, *, uuids: Sequence[str], epochs: Ints) -> Columns:
    """The columns of a batch's readings, all of one length.

    Raises:
        AgentBatchError: columns of unequal length, or a device that the batch does not name.
    """
    rows = len(at)
    device = np.array(readings.device, dtype=np.int64)
    for name in ("device", "counter_millijoule", "power_w", *MEASURES):
        values = getattr(readings, name)
        if values is not None and len(values) != rows:
            raise AgentBatchError(
                f"{len(values)} values where at_ms has {rows}", field=f"readings.{name}"
            )
    unknown = np.flatnonzero((device < 0) | (device >= len(uuids)))
    if len(unknown):
        raise AgentBatchError("no such device", field=f"readings.device[{unknown[0]}]")
    power_w = _floats(readings.power_w, rows)
    counter, has_counter = _counters(readings.counter_millijoule, rows)
    return Columns(
        uuids=uuids,
        epochs=epochs,
        device=device.astype(np.int32),
        at=at,
        power_w=power_w,
        counter=counter,
        has_counter=has_counter,
        measures={
            name: _floats(values, rows)
            for name in MEASURES
            if (values := getattr(readings, name)) is not None
        },
        good=np.ones(rows, dtype=np.bool_),
        good_power=~np.isnan(power_w),
        good_counter=has_counter.copy(),
    )


def _floats(values: Sequence[float | None] | None, rows: int) -> Floats:
    """A column with NaN where nothing was read."""
    if values is None:
        return np.full(rows, np.nan)
    return np.array(values, dtype=np.float64)


def _counters(values: Sequence[int | None] | None, rows: int) -> tuple[Ints, Mask]:
    """Counters exactly, and which of them were read."""
    if values is None:
        return np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.bool_)
    read = np.array([value is not None for value in values], dtype=np.bool_)
    try:
        return np.array([value or 0 for value in values], dtype=np.int64), read
    except OverflowError as error:
        raise AgentBatchError(
            "a counter has more than 63 bits", field="readings.counter_millijoule"
        ) from error


def node_columns(
    node: str, readings: Sequence[Any], columns: Columns, *, newest: int
) -> NodeColumns:
    """The power of the host; what cannot be true joins what is set aside.

    Raises:
        AgentBatchError: readings of a node without its name.
    """
    if not readings:
        return no_nodes()
    if not node:
        raise AgentBatchError("give the node's name with its readings", field="node")
    good = []
    for one in readings:
        at = one.at_ms * 1_000
        reason = "in_the_future" if at > newest else "before_2010" if at < EARLIEST else ""
        reason = reason or ("negative" if one.power_w < 0 else "")
        if reason:
            text = f"{one.power_w:.15g} W ({one.meter})"
            columns.aside.append(SetAside(device_uuid=node, at=at, reading=text, reason=reason))
        else:
            good.append((at, METERS.index(one.meter), one.power_w, one.includes_accelerators))
    return NodeColumns(
        names=(node,),
        node=np.zeros(len(good), dtype=np.int32),
        at=np.array([one[0] for one in good], dtype=np.int64),
        meter=np.array([one[1] for one in good], dtype=np.int8),
        power_w=np.array([one[2] for one in good], dtype=np.float64),
        includes_accelerators=np.array([one[3] for one in good], dtype=np.bool_),
    )

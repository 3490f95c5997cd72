"""What each series meant the last time, by the bytes of its labels; bounded, one a process.

It holds nothing that matters: another process, or this one after a restart, learns it anew. So any
number of web processes may share the senders.
"""

import threading
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carbon.adapters.metric_names import Table
from carbon.adapters.remote_write_series import Series
from carbon.packed import MEASURES, METERS, DeviceAbout

MAX_SERIES: Final = 500_000
MAX_PREFIX_BYTES: Final = 128 << 20
IGNORED: Final = 0  # the number of every series that policy ignores
INSTANT: Final = 1  # the code of a power that is not averaged by the driver
NEVER: Final = np.iinfo(np.int64).min // 2

ROW: Final = np.dtype(
    [
        ("table", np.int8),
        ("code", np.int8),  # the measure of a use, the meter of a node, whether a power is instant
        ("rank", np.int8),
        ("gpus", np.bool_),  # a node's power includes its accelerators
        ("job", np.bool_),
        ("stream", np.int32),
        ("thing", np.int32),  # the device or node, by number
        ("factor", np.float64),
        ("low", np.float64),
        ("high", np.float64),
        ("noted_at", np.int64),  # when its job was last passed on
    ]
)


class SeriesBook:
    """Numbers of series, devices, nodes and streams; threads may share it."""

    def __init__(self) -> None:
        self.ids: dict[bytes, int] = {}
        self.series: list[Series | None] = [None]
        self.devices: list[DeviceAbout] = []
        self.nodes: list[str] = []
        self.streams: list[tuple[str, str]] = []
        self.rows: npt.NDArray[Any] = np.zeros(1024, dtype=ROW)
        self._things: dict[tuple[int, bool, str], int] = {}
        self._stream_ids: dict[tuple[str, str], int] = {}
        self._prefix_bytes = 0
        self._lock = threading.Lock()

    @property
    def is_full(self) -> bool:
        """Whether it has grown to its bound and a new one is to be begun."""
        return len(self.ids) >= MAX_SERIES or self._prefix_bytes >= MAX_PREFIX_BYTES

    def learn(self, prefix: bytes, series: Series | None) -> int:
        """The number of a series whose labels are these bytes."""
        with self._lock:
            known = self.ids.get(prefix)
            if known is not None:
                return known
            self._prefix_bytes += len(prefix)
            number = IGNORED if series is None else self._add(series)
            self.ids[prefix] = number
            return number

    def _add(self, series: Series) -> int:
        number = len(self.series)
        if number == len(self.rows):
            grown = np.zeros(2 * number, dtype=ROW)
            grown[:number] = self.rows
            self.rows = grown
        self.series.append(series)
        row, metric = self.rows[number], series.metric
        row["table"], row["rank"] = metric.table, metric.rank
        row["factor"], row["low"], row["high"] = metric.factor, metric.low, metric.high
        row["stream"] = self._stream(series.stream)
        row["job"], row["noted_at"] = series.job is not None, NEVER
        row["gpus"] = metric.includes_accelerators
        if metric.table is Table.NODE:
            row["code"] = METERS.index(metric.meter)
        elif metric.table is Table.USE:
            row["code"] = MEASURES.index(metric.measure)
        elif metric.power_field == "instant":
            row["code"] = INSTANT
        row["thing"] = self._thing(int(row["stream"]), series)
        return number

    def _stream(self, stream: tuple[str, str]) -> int:
        if stream not in self._stream_ids:
            self._stream_ids[stream] = len(self.streams)
            self.streams.append(stream)
        return self._stream_ids[stream]

    def _thing(self, stream: int, series: Series) -> int:
        about = series.device
        key = (stream, about is None, about.uuid if about else series.node)
        if about is None:
            if key not in self._things:
                self._things[key] = len(self.nodes)
                self.nodes.append(series.node)
        elif key not in self._things:
            self._things[key] = len(self.devices)
            self.devices.append(about)
        elif about != self.devices[self._things[key]]:
            known = self.devices[self._things[key]]
            self.devices[self._things[key]] = DeviceAbout(
                uuid=about.uuid, node=about.node or known.node, model=about.model or known.model
            )
        return self._things[key]


class _Shelf:
    """The book that is in use."""

    def __init__(self) -> None:
        self.book = SeriesBook()

    def current(self) -> SeriesBook:
        """The book; a new one where the last is full. Who holds the old one may go on with it."""
        if self.book.is_full:
            self.book = SeriesBook()
        return self.book


_shelf = _Shelf()
current_book = _shelf.current

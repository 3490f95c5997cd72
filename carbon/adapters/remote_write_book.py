"""What each series meant the last time, by the bytes of its labels; bounded, one a site.

It holds nothing that matters: another process, or this one after a restart, learns it anew. So any
number of web processes may share the senders.
"""

import threading
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt

from carbon.adapters.metric_names import Table
from carbon.adapters.remote_write_series import Series
from carbon.packed import MEASURES, METERS, DeviceAbout

MAX_SERIES: Final = 500_000
MAX_PREFIX_BYTES: Final = 128 << 20
MAX_BOOKS: Final = 64
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
        ("thing", np.int32),  # the device (by UUID) or node, by number
        ("about", np.int32),  # what this series says of its device
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
        self._uuids: dict[str, int] = {}
        self._numbers: dict[object, int] = {}  # of abouts, nodes and streams
        self.prefix_bytes = 0
        self._lock = threading.Lock()

    @property
    def is_full(self) -> bool:
        """Whether it has grown to its bound and a new one is to be begun."""
        return len(self.ids) >= MAX_SERIES or self.prefix_bytes >= MAX_PREFIX_BYTES

    def learn(self, prefix: bytes, series: Series | None) -> int:
        """The number of a series whose labels are these bytes."""
        with self._lock:
            known = self.ids.get(prefix)
            if known is not None:
                return known
            self.prefix_bytes += len(prefix)
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
        row["stream"] = self._number(self.streams, series.stream, series.stream)
        row["job"], row["noted_at"] = series.job is not None, NEVER
        row["gpus"] = metric.includes_accelerators
        if series.run is not None:
            return number  # read by its series, not by columns
        if series.device is None:
            row["code"] = METERS.index(metric.meter)
            row["thing"] = self._number(self.nodes, series.node, series.node)
            return number
        if metric.table is Table.USE:
            row["code"] = MEASURES.index(metric.measure)
        elif metric.power_field == "instant":
            row["code"] = INSTANT
        about = series.device
        row["thing"] = self._uuids.setdefault(about.uuid, len(self._uuids))
        row["about"] = self._number(self.devices, (about.uuid, about.node, about.model), about)
        return number

    def _number(self, listed: list[Any], key: object, thing: object) -> int:
        """The place of a thing in its list, where it is put at its first sight."""
        place = self._numbers.setdefault(key, len(listed))
        if place == len(listed):
            listed.append(thing)
        return place


class _Shelf:
    """The books that are in use, one a site, so that none learns from another's series."""

    def __init__(self) -> None:
        self.books: dict[UUID, SeriesBook] = {}
        self._lock = threading.Lock()

    def book_of(self, owner: UUID) -> SeriesBook:
        """A site's book; a new one where the last is full. Who holds the old one may go on."""
        with self._lock:
            book = self.books.pop(owner, None)
            if book is None or book.is_full:
                book = SeriesBook()
            self.books[owner] = book  # the last in the order of use
            while len(self.books) > MAX_BOOKS or self._is_over():
                self.books.pop(next(iter(self.books)))
        return book

    def _is_over(self) -> bool:
        whole = sum(book.prefix_bytes for book in self.books.values())
        return len(self.books) > 1 and whole > MAX_PREFIX_BYTES


_shelf = _Shelf()
book_of = _shelf.book_of

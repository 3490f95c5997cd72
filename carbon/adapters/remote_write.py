"""Reads remote-write 1.0 bodies into what a request brought; stores nothing.

The fast path takes a series whose labels are known and that ends in one sample of the usual 18
bytes; numpy reads those of all series at once. Everything else (a value of 0, which is left out of
the message; several samples; unknown labels) is read by the message itself.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt

from carbon.adapters.metric_names import Table
from carbon.adapters.remote_write_book import IGNORED, SeriesBook, book_of
from carbon.adapters.remote_write_columns import Kept, brought_of
from carbon.adapters.remote_write_runs import RunSample, run_samples
from carbon.adapters.remote_write_series import SeriesError, series_of
from carbon.adapters.remote_write_wire import (
    RemoteWriteError,
    labels_end,
    raw_series,
    read_series,
    unpacked,
)
from carbon.packed import Brought, SetAside

__all__ = ["Decoded", "RemoteWriteError", "decode"]

LATE: Final = timedelta(hours=24)
FUTURE: Final = timedelta(minutes=5)
EARLIEST_MS: Final = 1_262_304_000_000  # 2010: before that a unit is wrong
STALE_BITS: Final = 0x7FF0000000000002  # "this series ends here"
MICROSECOND_PER_MS: Final = 1_000
KEPT_ASIDE: Final = 1_000  # refused samples of one request that are kept to look at
EXAMPLES: Final = 3
SAMPLE_BYTES: Final = 18
ZERO_BYTES: Final = 9
_SAMPLE: Final = np.dtype([("head", "u1", 3), ("value", "<f8"), ("tag", "u1"), ("time", "u1", 6)])
_VARINT: Final = np.array([1 << (7 * place) for place in range(6)], dtype=np.int64)
_ZERO_HEAD: Final = b"\x12\x07\x10"

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_NONE: Final = np.zeros(1, dtype=np.bool_)  # of none of the samples


@dataclass(slots=True)
class Refused:
    """Samples that could not be taken, by reason, with the first few in words."""

    reasons: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    set_aside: list[SetAside] = field(default_factory=list)

    def add(self, reason: str, *, series: str, device: str, at_ms: int, value: float) -> None:
        """Note one sample."""
        self.reasons[reason] += 1
        if self.reasons[reason] == 1 and len(self.examples) < EXAMPLES:
            self.examples.append(f"{reason}: {series}, value {value:g} at {at_ms} ms")
        is_instant = EARLIEST_MS // 100 <= at_ms < EARLIEST_MS * 8
        self.set_aside.append(
            SetAside(
                device_uuid=device[:200],
                at=at_ms * MICROSECOND_PER_MS if is_instant else None,
                reading=f"{series.partition(' ')[0][:40]} {value:g} {at_ms}"[:80],
                reason=reason,
            )
        )

    def add_more(self, reason: str, count: int) -> None:
        """Count samples that are not looked at one by one."""
        if count > 0:
            self.reasons[reason] += count


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What a body brought, by stream (exporter, replica).

    `written` samples are kept. Call `remember` when they are committed.
    """

    streams: tuple[tuple[tuple[str, str], Brought], ...]
    samples: int
    written: int
    ignored: int
    refused: Refused
    book: SeriesBook
    noted: tuple[Ints, Ints]
    runs: tuple[RunSample, ...] = ()

    def remember(self) -> None:
        """Note which jobs were passed on, so that they are not with every request."""
        series, at = self.noted
        self.book.rows["noted_at"][series] = at

    @property
    def complaint(self) -> str:
        """Why samples were refused, in words; empty when none was."""
        count = self.refused.reasons.total()
        if not count:
            return ""
        reasons = ", ".join(f"{many} {reason}" for reason, many in self.refused.reasons.items())
        return (
            f"{count} of {self.samples} samples refused ({reasons}), "
            f"{self.written} kept; {'; '.join(self.refused.examples)}"
        )


@dataclass(slots=True)
class _Samples:
    """Samples by column, as they are read."""

    series: list[int] = field(default_factory=list)
    at_ms: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    ignored: int = 0
    unusable: int = 0  # of refused series


def decode(body: bytes, *, owner: UUID, now: datetime) -> Decoded:
    """What a snappy-packed remote-write 1.0 body of a site (`owner`) brought.

    Raises:
        RemoteWriteError: it is none; nothing of it may be stored.
    """
    raws = raw_series(unpacked(body))
    book = book_of(owner)
    refused = Refused()
    series, at_ms, value, slow = _read(book, raws, refused)
    samples = len(series) + slow.ignored + slow.unusable
    found = Kept(series=series, at_ms=at_ms, value=value, rows=book.rows[series])
    meant = found.rows["table"] != IGNORED
    ignored = slow.ignored + len(series) - int(np.count_nonzero(meant))
    meant &= value.view(np.int64) != STALE_BITS
    found = found if meant.all() else found.only(meant)
    runs: tuple[RunSample, ...] = ()
    of_runs = found.rows["table"] == Table.RUN
    if of_runs.any():
        runs = run_samples(book, found.only(of_runs))
        found = found.only(~of_runs)
    kept = _kept(book, found, refused, now=now)
    streams, noted = brought_of(book, kept)
    return Decoded(
        streams=_with_rest(streams, refused=refused, ignored=ignored),
        samples=samples,
        written=len(kept.series),
        ignored=ignored,
        refused=refused,
        book=book,
        noted=noted,
        runs=runs,
    )


def _with_rest(
    streams: list[tuple[tuple[str, str], Brought]], *, refused: Refused, ignored: int
) -> tuple[tuple[tuple[str, str], Brought], ...]:
    """The streams; what was refused or ignored goes with the first."""
    if not refused.set_aside and not ignored:
        return tuple(streams)
    stream, first = streams[0] if streams else (("", ""), Brought())
    first = replace(first, set_aside=tuple(refused.set_aside), ignored=ignored)
    return ((stream, first), *streams[1:])


def _read(
    book: SeriesBook, raws: Sequence[bytes], refused: Refused
) -> tuple[Ints, Ints, Floats, _Samples]:
    """The samples of all series: number of the series, milliseconds, value."""
    get = book.ids.get
    tails = b"".join([raw[-SAMPLE_BYTES:] for raw in raws])
    slow = _Samples()
    if len(tails) != SAMPLE_BYTES * len(raws):  # a series shorter than a sample
        for raw in raws:
            _read_one(book, raw, slow, refused)
        return _array(slow.series), _array(slow.at_ms), np.array(slow.value, dtype=float), slow
    known = np.array([get(raw[:-SAMPLE_BYTES], -1) for raw in raws], dtype=np.int64)
    usual = np.frombuffer(tails, dtype=_SAMPLE)
    head, time = usual["head"], usual["time"]
    is_usual = (
        (known >= 0)
        & (head[:, 0] == 0x12)
        & (head[:, 1] == 0x10)
        & (head[:, 2] == 0x09)
        & (usual["tag"] == 0x10)
        & (time[:, :5] >= 0x80).all(axis=1)
        & (time[:, 5] < 0x80)
    )
    at_ms = (time & 0x7F).astype(np.int64) @ _VARINT
    value = usual["value"].astype(np.float64)
    if is_usual.all():
        return known, at_ms, value, slow
    for place in np.flatnonzero(~is_usual).tolist():
        _read_one(book, raws[place], slow, refused)
    return (
        np.concatenate([known[is_usual], _array(slow.series)]),
        np.concatenate([at_ms[is_usual], _array(slow.at_ms)]),
        np.concatenate([value[is_usual], np.array(slow.value, dtype=float)]),
        slow,
    )


def _array(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _read_one(book: SeriesBook, raw: bytes, into: _Samples, refused: Refused) -> None:
    """The samples of one series, of any shape."""
    time = raw[-6:]
    if raw[-ZERO_BYTES:-6] == _ZERO_HEAD and min(time[:5]) >= 0x80 > time[5]:
        number = book.ids.get(raw[:-ZERO_BYTES])
        if number is not None:  # one sample of value 0, which its sender leaves out
            into.series.append(number)
            into.at_ms.append(sum((byte & 0x7F) << (7 * at) for at, byte in enumerate(time)))
            into.value.append(0.0)
            return
    end = labels_end(raw)
    number = book.ids.get(raw[:end]) if end else None
    message = read_series(raw if number is None else raw[end:])
    if number is None or message.labels:
        message = read_series(raw)
        try:
            number = _learn(book, raw, end, message)
        except SeriesError as error:
            _refuse_series(message, error, into, refused)
            return
    into.ignored += len(message.histograms)
    for sample in message.samples:
        into.series.append(number)
        into.at_ms.append(sample.timestamp)
        into.value.append(sample.value)


def _learn(book: SeriesBook, raw: bytes, end: int, message: Any) -> int:
    """The number of a series that is new."""
    series = series_of([(label.name, label.value) for label in message.labels])
    if read_series(raw[end:]).labels:
        raise SeriesError("labels", "a series has labels after its samples")
    return book.learn(raw[:end], series)


def _refuse_series(message: Any, error: SeriesError, into: _Samples, refused: Refused) -> None:
    for sample in message.samples[:KEPT_ASIDE]:
        refused.add(
            error.reason,
            series=str(error),
            device="",
            at_ms=sample.timestamp,
            value=sample.value,
        )
    refused.add_more(error.reason, len(message.samples) - KEPT_ASIDE)
    into.unusable += len(message.samples)


def _kept(book: SeriesBook, samples: Kept, refused: Refused, *, now: datetime) -> Kept:
    """The samples that can be true, their values in our units; the others are refused."""
    if not len(samples.series):
        return samples
    scaled = replace(samples, value=samples.value * samples.rows["factor"])
    newest_ms = int((now + FUTURE).timestamp() * 1000)
    oldest_ms = int((now - LATE).timestamp() * 1000)
    in_range = (scaled.value >= samples.rows["low"]) & (scaled.value <= samples.rows["high"])
    in_time = oldest_ms <= samples.at_ms.min() and samples.at_ms.max() <= newest_ms
    one_each = samples.is_one_each
    if in_time and one_each and in_range.all() and np.isfinite(scaled.value).all():
        return scaled
    conflict, repeat = (_NONE, _NONE) if one_each else _seen_before(samples)
    tests = (
        (~np.isfinite(samples.value), "not_a_number"),
        (samples.at_ms < EARLIEST_MS, "before_2010_seconds_for_milliseconds"),
        (samples.at_ms > newest_ms, "in_the_future"),
        (samples.at_ms < oldest_ms, "older_than_24_hours"),
        (scaled.value < samples.rows["low"], "negative"),
        (~in_range, "out_of_range"),
        (conflict, "another_value_at_the_same_time"),
    )
    wrong = np.zeros(len(samples.series), dtype=np.bool_)
    for mask, reason in tests:
        new = mask & ~wrong
        wrong |= new
        _refuse(book, samples, np.flatnonzero(new), reason, refused)
    return scaled.only(~(wrong | repeat))


def _refuse(book: SeriesBook, samples: Kept, places: Ints, reason: str, refused: Refused) -> None:
    for place in places[:KEPT_ASIDE]:
        series = book.series[int(samples.series[place])]
        device = series.device if series else None
        refused.add(
            reason,
            series=series.label if series else "",
            device=device.uuid if device else series.node if series else "",
            at_ms=int(samples.at_ms[place]),
            value=float(samples.value[place]),
        )
    refused.add_more(reason, len(places) - KEPT_ASIDE)


def _seen_before(samples: Kept) -> tuple[Mask, Mask]:
    """Samples whose series and instant came before in this request: with another value, or not."""
    first: dict[tuple[int, int], float] = {}
    conflict, repeat = [], []
    for series, at_ms, value in zip(
        samples.series.tolist(), samples.at_ms.tolist(), samples.value.tolist(), strict=True
    ):
        known = first.get((series, at_ms))
        first.setdefault((series, at_ms), value)
        conflict.append(known is not None and known != value)
        repeat.append(known is not None)
    return np.array(conflict), np.array(repeat)

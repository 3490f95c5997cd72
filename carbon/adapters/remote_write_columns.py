"""Samples of understood series as the columns that one request brought, by stream."""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carbon.adapters.metric_names import Table
from carbon.adapters.remote_write_book import INSTANT, SeriesBook
from carbon.packed import (
    MEASURES,
    Brought,
    CounterColumns,
    JobNote,
    NodeColumns,
    PowerColumns,
    UseColumns,
)

MICROSECOND_PER_MS: Final = 1_000
JOB_EVERY_MICROSECOND: Final = 60_000_000  # a job is noted at most so often for each series
FULL_USE: Final = 1.0

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def are_distinct(values: npt.NDArray[np.integer[Any]]) -> bool:
    """Whether none comes twice; sorting tells it sooner than hashing."""
    ordered = np.sort(values)
    return not (ordered[1:] == ordered[:-1]).any()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Samples by column: number of the series, milliseconds since 1970, value, the series' row."""

    series: Ints
    at_ms: Ints
    value: Floats
    rows: npt.NDArray[Any]

    def only(self, mask: npt.NDArray[np.bool_]) -> "Kept":
        """Those of the mask."""
        return Kept(
            series=self.series[mask],
            at_ms=self.at_ms[mask],
            value=self.value[mask],
            rows=self.rows[mask],
        )

    @property
    def is_one_each(self) -> bool:
        """Whether no series has two samples."""
        return are_distinct(self.series)


@dataclass(slots=True, kw_only=True)
class _Part:
    """Samples of one stream with what is known of their series; `thing` is a local index."""

    rows: npt.NDArray[Any]
    at: Ints
    value: Floats
    thing: npt.NDArray[np.int32]

    def of(self, table: Table) -> "_Part | None":
        mask = self.rows["table"] == table
        if not mask.any():
            return None
        return self if mask.all() else self.at_places(mask)

    def at_places(self, places: Any) -> "_Part":
        return _Part(
            rows=self.rows[places],
            at=self.at[places],
            value=self.value[places],
            thing=self.thing[places],
        )

    def keys(self) -> Ints:
        """A number for each (thing, instant)."""
        key: Ints = self.thing + (self.at - self.at.min()) * (int(self.thing.max()) + 1)
        return key

    def once(self) -> "_Part":
        """One sample of each (thing, instant): of the lowest rank, then the first."""
        keys = self.keys()
        if are_distinct(keys):
            return self
        order = np.lexsort((np.arange(len(keys)), self.rows["rank"], keys))
        first = np.append(True, np.diff(keys[order]) != 0)
        return self.at_places(np.sort(order[first]))


def brought_of(
    book: SeriesBook, kept: Kept
) -> tuple[list[tuple[tuple[str, str], Brought]], tuple[Ints, Ints]]:
    """What each stream brought, and the series (with instants) whose jobs are among it."""
    if not len(kept.series):
        return [], (kept.series, kept.at_ms)
    rows = kept.rows
    at = kept.at_ms * MICROSECOND_PER_MS
    is_noted = rows["job"] & (np.abs(at - rows["noted_at"]) >= JOB_EVERY_MICROSECOND)
    found = []
    streams = rows["stream"]
    one_for_all = (streams == streams[0]).all()
    for stream in (streams[:1] if one_for_all else np.unique(streams)).tolist():
        here = streams == stream
        whole = _Part(rows=rows, at=at, value=kept.value, thing=rows["thing"])
        brought = _of_stream(book, whole if here.all() else whole.at_places(here))
        jobs = np.flatnonzero(here & is_noted)
        if len(jobs):
            brought = _with_jobs(book, brought, kept.series[jobs], at[jobs])
        found.append((book.streams[stream], brought))
    return found, (kept.series[is_noted], at[is_noted])


def _of_stream(book: SeriesBook, part: _Part) -> Brought:
    """The columns of one stream; things get numbers of this request."""
    is_node = part.rows["table"] == Table.NODE
    thing = np.empty(len(part.at), dtype=np.int32)
    first, thing[~is_node] = _first_places(part.thing[~is_node])
    abouts = part.rows["about"][~is_node][first].tolist()
    nodes, thing[is_node] = np.unique(part.thing[is_node], return_inverse=True)
    part = replace(part, thing=thing)
    columns: dict[str, Any] = {}
    if power := part.of(Table.POWER):
        columns["power"], columns["power_field"] = _power(power.once())
    if counters := part.of(Table.COUNTER):
        columns["counters"] = _counters(counters.once())
    if use := part.of(Table.USE):
        columns["use"] = _use(use)
    if of_nodes := part.of(Table.NODE):
        names = tuple(book.nodes[number] for number in nodes.tolist())
        columns["nodes"] = _nodes(names, of_nodes)
    return Brought(devices=tuple([book.devices[number] for number in abouts]), **columns)


def _first_places(things: npt.NDArray[np.int32]) -> tuple[Ints, Ints]:
    """Where each thing comes first, and the number of each row's thing among them."""
    _things, first, number = np.unique(things, return_index=True, return_inverse=True)
    return first, number


def _power(part: _Part) -> tuple[PowerColumns, str]:
    """Power, and which of the driver's readings it is."""
    columns = PowerColumns(device=part.thing, at=part.at, power_w=part.value)
    return columns, "instant" if (part.rows["code"] == INSTANT).all() else "average"


def _counters(part: _Part) -> CounterColumns:
    return CounterColumns(
        device=part.thing,
        at=part.at,
        counter_millijoule=np.rint(part.value).astype(np.int64),
        epoch=np.zeros(len(part.at), dtype=np.int64),
    )


def _use(part: _Part) -> UseColumns:
    """One row for each device and instant; of several metrics of a measure the best counts."""
    _keys, first, row = np.unique(part.keys(), return_index=True, return_inverse=True)
    best_last = np.argsort(-part.rows["rank"], kind="stable")
    measures: dict[str, Floats] = {}
    for code in np.unique(part.rows["code"]):
        places = best_last[part.rows["code"][best_last] == code]
        column = np.full(len(first), np.nan)
        column[row[places]] = part.value[places]
        measures[MEASURES[int(code)]] = column
    if "utilisation_fraction" in measures:
        column = measures["utilisation_fraction"]
        measures["utilisation_fraction"] = np.minimum(column, FULL_USE)
    return UseColumns(device=part.thing[first], at=part.at[first], measures=measures)


def _nodes(names: tuple[str, ...], part: _Part) -> NodeColumns:
    """Power of nodes; of several readings of one meter at one instant the first counts."""
    many = len(names)
    by_meter = _Part(
        rows=part.rows,
        at=part.at,
        value=part.value,
        thing=(part.thing + many * part.rows["code"].astype(np.int32)).astype(np.int32),
    ).once()
    return NodeColumns(
        names=names,
        node=(by_meter.thing % many).astype(np.int32),
        at=by_meter.at,
        meter=by_meter.rows["code"],
        power_w=by_meter.value,
        includes_accelerators=by_meter.rows["gpus"],
    )


def _with_jobs(book: SeriesBook, brought: Brought, series: Ints, at: Ints) -> Brought:
    """The same with the jobs that the series name."""
    places = {one.uuid: place for place, one in enumerate(brought.devices)}
    notes: dict[tuple[int, str, str], int] = {}
    for number, instant in zip(series.tolist(), at.tolist(), strict=True):
        one = book.series[number]
        if one is None or one.job is None or one.device is None:
            continue
        key = (places[one.device.uuid], one.job.kind, one.job.job)
        notes[key] = max(instant, notes.get(key, instant))
    jobs = tuple(
        JobNote(device=device, kind=kind, job=job, run_name="", at=instant)
        for (device, kind, job), instant in notes.items()
    )
    return replace(brought, jobs=jobs)

"""Reads of readings for the hours of a window, with the neighbours beyond its ends."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt
from django.db import connection

from carbon.adapters import binary_rows
from carbon.attribution import instant_of, microsecond_of
from carbon.cascade import PRECEDENCE, PRESENCE_MICROSECOND, Grid, Readings
from carbon.counters import LONGEST_MICROSECOND
from carbon.metering import (
    HOUR_MICROSECOND,
    Ints,
)
from carbon.models import CounterReading, PowerSample, Sender, UseReading

_OF_DEVICE: Final = {"device_id": "int8", "at": "timestamptz", "sender_id": "int4"}
SAMPLES: Final = {**_OF_DEVICE, "power_w": "float8"}
COUNTERS: Final = {**_OF_DEVICE, "counter_millijoule": "int8", "epoch": "int8"}
INTERVALS: Final = {
    "device_id": "int8",
    "start": "timestamptz",
    "end": "timestamptz",
    "sender_id": "int4",
    "energy_millijoule": "int8",
}
Columns = dict[str, npt.NDArray[Any]]


def read_columns(kinds: Mapping[str, str], source: str, params: Sequence[object]) -> Columns:
    """Columns of a table of ours, as binary_rows reads them."""
    with connection.cursor() as cursor:
        return binary_rows.read(cursor, kinds, source, params)


@dataclass(frozen=True, slots=True, kw_only=True)
class Senders:
    """The senders of a site by their place in precedence."""

    ids: Ints  # ascending
    places: Ints

    def place(self, sender_id: npt.NDArray[Any]) -> Ints:
        """Each sender's place; of one that is not on file, as of the youngest file."""
        at = np.minimum(np.searchsorted(self.ids, sender_id), len(self.ids) - 1)
        return np.where(self.ids[at] == sender_id, self.places[at], len(self.ids))


def senders_of(site_id: UUID) -> Senders:
    """The senders of a site; 0 is a file's, or a batch's without one, and the oldest of these."""
    rows = Sender.objects.filter(site_id=site_id).values_list("pk", "kind")
    ordered = sorted(
        [(PRECEDENCE.index("file"), 0), *((PRECEDENCE.index(kind), pk) for pk, kind in rows)]
    )
    ids = np.array([pk for _rank, pk in ordered], dtype=np.int64)
    order = np.argsort(ids)
    return Senders(ids=ids[order], places=order.astype(np.int64))


def read_window(grid: Grid, senders: Senders, *, max_gap: int) -> Readings:
    """All readings that can say something about the hours of a grid."""
    return Readings(
        samples=_of_table(
            "carbon_powersample", SAMPLES, grid, senders, (max_gap, PRESENCE_MICROSECOND)
        ),
        counters=_of_table(
            "carbon_counterreading", COUNTERS, grid, senders, (max_gap, LONGEST_MICROSECOND)
        ),
        intervals=_intervals(grid, senders),
    )


def _of_table(
    table: str, kinds: Mapping[str, str], grid: Grid, senders: Senders, reach: tuple[int, int]
) -> Columns:
    """Rows of the window and a gap around it; where a device has none there, its nearest beyond."""
    near, far = reach
    low, high = grid.start - near, grid.end + near
    devices = grid.devices.tolist()
    found = read_columns(
        kinds,
        f"FROM {table} WHERE device_id = ANY(%s) AND at >= %s AND at < %s",
        [devices, instant_of(low), instant_of(high)],
    )
    before = _lacking(grid, found, found["at"] < grid.start)
    after = _lacking(grid, found, found["at"] >= grid.end)
    parts = [
        found,
        _nearest(table, kinds, before, ("max", low - far, low, near)),
        _nearest(table, kinds, after, ("min", high, high + far, near)),
    ]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in kinds}
    columns["device"], columns["sender"] = columns["device_id"], senders.place(columns["sender_id"])
    return columns


def _lacking(grid: Grid, found: Columns, beyond: npt.NDArray[np.bool_]) -> list[int]:
    """The devices without a reading just beyond an end of the window."""
    return [int(one) for one in np.setdiff1d(grid.devices, found["device_id"][beyond])]


def _nearest(
    table: str, kinds: Mapping[str, str], devices: list[int], where: tuple[str, int, int, int]
) -> Columns:
    """Each device's nearest reading in [low, high), and what others read within `near` beyond."""
    end, low, high, near = where
    names = ", ".join(f'beyond."{name}"' for name in kinds)
    first, last = (f"nearest.at - {near} * interval '1 microsecond'", "nearest.at")
    if end == "min":
        first, last = "nearest.at", f"nearest.at + {near} * interval '1 microsecond'"
    return read_columns(
        kinds,
        f"FROM (SELECT {names} FROM unnest(%s::bigint[]) AS wanted(id) "  # noqa: S608 - our names
        f"CROSS JOIN LATERAL (SELECT {end}(at) AS at FROM {table} "
        "WHERE device_id = wanted.id AND at >= %s AND at < %s) nearest "
        f"JOIN {table} beyond ON beyond.device_id = wanted.id "
        f"AND beyond.at >= {first} AND beyond.at <= {last}) rows",
        [devices, instant_of(low), instant_of(high)],
    )


def _intervals(grid: Grid, senders: Senders) -> Columns:
    """Intervals that touch the window or lie within a day of it."""
    low, high = grid.start - PRESENCE_MICROSECOND, grid.end + PRESENCE_MICROSECOND
    columns = read_columns(
        INTERVALS,
        "FROM carbon_meteredinterval "
        'WHERE device_id = ANY(%s) AND start >= %s AND start < %s AND "end" > %s',
        [
            grid.devices.tolist(),
            instant_of(low - LONGEST_MICROSECOND),
            instant_of(high),
            instant_of(low),
        ],
    )
    columns["device"], columns["sender"] = columns["device_id"], senders.place(columns["sender_id"])
    return columns


def is_sampled(device_ids: Sequence[int], start: int, end: int) -> bool:
    """Whether there are readings at instants in [start, end): they take far more than intervals."""
    wanted = {
        "device_id__in": device_ids,
        "at__gte": instant_of(start),
        "at__lt": instant_of(end),
    }
    return (
        PowerSample.objects.filter(**wanted).exists()
        or CounterReading.objects.filter(**wanted).exists()
    )


def mean_use(wanted: Iterable[tuple[int, int]], start: int) -> dict[tuple[int, int], float]:
    """Mean utilisation of (device, hour of the window), where it was read."""
    found: dict[tuple[int, int], float] = {}
    for device_id, hour in wanted:
        low = start + hour * HOUR_MICROSECOND
        rows = UseReading.objects.filter(
            device_id=device_id,
            at__gte=instant_of(low),
            at__lt=instant_of(low + HOUR_MICROSECOND),
            utilisation_fraction__isnull=False,
        )
        read = rows.values_list("utilisation_fraction", flat=True)
        values = [one for one in read if one is not None]
        if values:
            found[device_id, hour] = min(1.0, math.fsum(values) / len(values))
    return found


def site_span(site_id: UUID, device_ids: Sequence[int]) -> tuple[int, int] | None:
    """The first hour and the end of the last one on the books or with readings, microseconds."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT min(first), max(last) FROM ("
            "SELECT min(hour), max(hour) FROM carbon_energyhour "
            "WHERE site_id = %(site)s AND superseded_at IS NULL "
            "UNION ALL SELECT min(at), max(at) FROM carbon_powersample "
            "WHERE device_id = ANY(%(devices)s) "
            "UNION ALL SELECT min(at), max(at) FROM carbon_counterreading "
            "WHERE device_id = ANY(%(devices)s) "
            'UNION ALL SELECT min(start), max("end") FROM carbon_meteredinterval '
            "WHERE device_id = ANY(%(devices)s)) AS spans(first, last)",
            {"site": site_id, "devices": list(device_ids)},
        )
        first, last = cursor.fetchone()
    if first is None:
        return None
    start = microsecond_of(first) // HOUR_MICROSECOND * HOUR_MICROSECOND
    return start, (microsecond_of(last) // HOUR_MICROSECOND + 1) * HOUR_MICROSECOND

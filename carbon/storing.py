"""Stores columns of readings under their keys: repeats change nothing, the first received stays.

What the readings mean, and whether they can be true, is told before.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import psycopg
from django.db import connection, transaction

from carbon.adapters import binary_rows
from carbon.attribution import instant_of, microsecond_of
from carbon.metering import HOUR_MICROSECOND, Ints
from carbon.models import OpenHours, QuarantinedPower
from runs.records import SiteRecord

CONTRADICTION: Final = "another_value_is_stored"
_INCOMING: Final = "carbon_incoming"

Columns = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of readings: its keys and values with their kinds in COPY.

    Values in `told` contradict what is stored when they differ; `made` says how a column is made of
    what COPY brings, where it is not taken as it comes.
    """

    name: str
    keys: Mapping[str, str]
    values: Mapping[str, str]
    told: tuple[str, ...]
    made: Mapping[str, str] = field(default_factory=dict)


_OF_DEVICE: Final = {"device_id": "int8", "at": "timestamptz", "sender_id": "int4"}
POWER: Final = Table(
    name="carbon_powersample", keys=_OF_DEVICE, values={"power_w": "float8"}, told=("power_w",)
)
INTERVALS: Final = Table(
    name="carbon_meteredinterval",
    keys={"device_id": "int8", "start": "timestamptz", "end": "timestamptz", "sender_id": "int4"},
    values={"energy_millijoule": "int8"},
    told=("energy_millijoule",),
)
COUNTERS: Final = Table(
    name="carbon_counterreading",
    keys=_OF_DEVICE,
    values={"counter_millijoule": "int8", "epoch": "int8"},
    told=("counter_millijoule", "epoch"),
)
USE_KINDS: Final = {
    "utilisation_fraction": "float8",
    "memory_used_bytes": "bigint",
    "temperature_c": "float8",
    "sm_clock_hz": "bigint",
    "power_limit_w": "float8",
    "throttle_reasons": "bigint",
    "xid": "integer",
    "ecc_errors": "bigint",
}
USE: Final = Table(
    name="carbon_usereading",
    keys=_OF_DEVICE,
    values=dict.fromkeys(USE_KINDS, "float8"),
    told=(),
    made={
        name: f"nullif({name}, 'NaN'::float8)::{kind}"  # NaN: unread
        for name, kind in USE_KINDS.items()
    },
)
NODES: Final = Table(
    name="carbon_nodereading",
    keys={"node_id": "int8", "at": "timestamptz", "meter": "int2", "sender_id": "int4"},
    values={"power_w": "float8", "includes_accelerators": "int2"},
    told=("power_w",),
    made={
        "meter": "(ARRAY['bmc', 'rapl', 'pdu'])[meter + 1]",
        "includes_accelerators": "includes_accelerators <> 0",
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What became of rows: how many are new by sender, and which contradict what is stored."""

    new_by_sender: Mapping[int, int]
    contradicting: Ints

    @property
    def new(self) -> int:
        """Rows that were not known."""
        return sum(self.new_by_sender.values())


def store(
    table: Table,
    columns: Columns,
    *,
    site: SiteRecord,
    received_at: Ints | datetime,
    unseen: npt.NDArray[np.bool_] | None = None,
) -> Stored:
    """Store rows in the caller's transaction. Of one key the first row stays.

    `received_at` is that of every row, or one of each in microseconds. `unseen` says of each row
    that nothing so new is stored of its device and sender: such rows need no look at the table.
    """
    rows = len(columns["sender_id"])
    if not rows:
        return Stored(new_by_sender={}, contradicting=np.zeros(0, dtype=np.int64))
    order = _ordered(table, columns)
    first, contradicting = _first_of_each(table, columns, order)
    received = (
        np.full(rows, microsecond_of(received_at))
        if isinstance(received_at, datetime)
        else received_at
    )
    new: dict[int, int] = {}
    if unseen is not None and not table.made and unseen[first].any():
        direct = first[unseen[first]]
        if _copied(table, columns, direct, site=site, received=received):
            new = _counted(columns["sender_id"][direct])
            first = first[~unseen[first]]
    if len(first):
        by_sender, stored_otherwise = _merged(table, columns, first, site=site, received=received)
        new = {one: new.get(one, 0) + by_sender.get(one, 0) for one in {*new, *by_sender}}
        contradicting = np.append(contradicting, stored_otherwise)
    return Stored(new_by_sender=new, contradicting=contradicting)


def _counted(sender_ids: Ints) -> dict[int, int]:
    ids, counts = np.unique(sender_ids, return_counts=True)
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))


def _copied(
    table: Table, columns: Columns, rows: Ints, *, site: SiteRecord, received: Ints
) -> bool:
    """Copy rows straight into the table; False, and nothing copied, where one is stored already."""
    incoming = _incoming(table, columns, rows, received)
    incoming["organisation_id"] = ("uuid", site.organisation_id)
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            binary_rows.write(cursor, table.name, incoming, rows=len(rows))
    except psycopg.errors.UniqueViolation:  # COPY is the driver's own: Django does not wrap it
        return False
    return True


def _incoming(table: Table, columns: Columns, rows: Ints, received: Ints) -> dict[str, Any]:
    """The columns of rows with their kinds, as COPY takes them."""
    kinds = {**table.keys, **table.values}
    incoming: dict[str, Any] = {name: (kind, columns[name][rows]) for name, kind in kinds.items()}
    incoming["received_at"] = ("timestamptz", received[rows])
    return incoming


def _merged(
    table: Table, columns: Columns, rows: Ints, *, site: SiteRecord, received: Ints
) -> tuple[dict[int, int], Ints]:
    """Store rows of which some may be known: new ones by sender, and those that contradict."""
    incoming = _incoming(table, columns, rows, received)
    with connection.cursor() as cursor:
        _create_incoming(cursor, {name: kind for name, (kind, _values) in incoming.items()})
        incoming["row"] = ("int8", rows)
        binary_rows.write(cursor, _INCOMING, incoming, rows=len(rows))
        new = _insert(cursor, table, site)
        contradicting = np.zeros(0, dtype=np.int64)
        if sum(new.values()) < len(rows):
            contradicting = _contradicting(cursor, table)
        cursor.execute(f"DROP TABLE {_INCOMING}")
    return new, contradicting


def _ordered(table: Table, columns: Columns) -> Ints:
    """The rows in the order of their keys, those of one key as they came."""
    keys = [columns[name] for name in reversed(list(table.keys))]
    return np.lexsort([one for one in keys if (one != one[0]).any()] or keys[:1])


def _first_of_each(table: Table, columns: Columns, order: Ints) -> tuple[Ints, Ints]:
    """The first row of each key, ordered by key, and the later rows that tell another value."""
    repeats = np.ones(len(order) - 1, dtype=np.bool_)
    for name in table.keys:
        values = columns[name][order]
        repeats &= values[1:] == values[:-1]
    if not repeats.any():
        return order, np.zeros(0, dtype=np.int64)
    is_first = np.append(True, ~repeats)
    head = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    differs = np.zeros(len(order), dtype=np.bool_)
    for name in table.told:
        values = columns[name][order]
        differs |= values != values[head]
    return order[is_first], order[differs]


def _create_incoming(cursor: Any, kinds: Mapping[str, str]) -> None:
    columns = ", ".join(f'"{name}" {kind}' for name, kind in {**kinds, "row": "int8"}.items())
    cursor.execute(f"CREATE TEMPORARY TABLE {_INCOMING} ({columns}) ON COMMIT DROP")


def _made(table: Table, name: str) -> str:
    """The expression over what COPY brought that gives a column."""
    return table.made.get(name, f'"{name}"')


def _insert(cursor: Any, table: Table, site: SiteRecord) -> dict[int, int]:
    """Take over what is not known yet; how many rows of each sender that were."""
    names = [*table.keys, *table.values, "received_at"]
    made = ", ".join(_made(table, name) for name in names)
    listed = ", ".join(f'"{name}"' for name in names)
    cursor.execute(
        f"WITH stored AS (INSERT INTO {table.name} (organisation_id, {listed}) "  # noqa: S608 - our names
        f"SELECT %s, {made} FROM {_INCOMING} ON CONFLICT DO NOTHING RETURNING sender_id) "
        "SELECT sender_id, count(*) FROM stored GROUP BY sender_id",
        [site.organisation_id],
    )
    return dict(cursor.fetchall())


def _contradicting(cursor: Any, table: Table) -> Ints:
    """The rows for which another value is stored."""
    if not table.told:
        return np.zeros(0, dtype=np.int64)
    made = ", ".join(f'{_made(table, name)} AS "{name}"' for name in (*table.keys, *table.told))
    keys = ", ".join(f'"{name}"' for name in table.keys)
    differs = " OR ".join(f"incoming.{name} <> stored.{name}" for name in table.told)
    cursor.execute(
        f"SELECT row FROM (SELECT row, {made} FROM {_INCOMING}) incoming "  # noqa: S608 - our names
        f"JOIN {table.name} stored USING ({keys}) WHERE {differs}"
    )
    return np.array([row for (row,) in cursor.fetchall()], dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """A reading for the quarantine; instants in microseconds."""

    device_uuid: str
    start: int | None
    end: int | None
    reading: str
    reason: str


def quarantine(site: SiteRecord, rows: Iterable[Aside], *, received_at: datetime) -> None:
    """Keep impossible readings to look at, each once."""
    QuarantinedPower.objects.bulk_create(
        (
            QuarantinedPower(
                organisation_id=site.organisation_id,
                site_id=site.site_id,
                device_uuid=row.device_uuid[:200],
                start=None if row.start is None else instant_of(row.start),
                end=None if row.end is None else instant_of(row.end),
                reading=row.reading[:80],
                reason=row.reason[:40],
                received_at=received_at,
            )
            for row in rows
        ),
        batch_size=2_000,
        ignore_conflicts=True,
    )


def open_hours(
    site: SiteRecord, device_ids: Sequence[int], start: int, end: int, *, received_at: datetime
) -> int:
    """Note that the whole hours around [start, end) are to be closed again; give the first.

    Marks of the same hours become one. It is a new row: a closing that has read the older ones and
    strikes them out leaves it standing.
    """
    first = start // HOUR_MICROSECOND * HOUR_MICROSECOND
    wanted = {
        "site_id": site.site_id,
        "start": instant_of(first),
        "end": instant_of(-(-end // HOUR_MICROSECOND) * HOUR_MICROSECOND),
    }
    known = list(OpenHours.objects.filter(**wanted))
    devices = set(device_ids).union(*(mark.device_ids for mark in known))
    OpenHours.objects.filter(pk__in=[mark.pk for mark in known]).delete()
    OpenHours.objects.create(
        organisation_id=site.organisation_id,
        device_ids=sorted(devices),
        marked_at=received_at,
        **wanted,
    )
    return first

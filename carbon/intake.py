"""Stores readings of power; a repeat changes nothing, what cannot be true is set aside."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt
from django.db import connection

from carbon.adapters import binary_rows
from carbon.adapters.power_texts import Readings
from carbon.attribution import instant_of, microsecond_of
from carbon.metering import Ints, Mask
from carbon.site_factors import dated_factors, max_gap_s
from carbon.storing import (
    CONTRADICTION,
    INTERVALS,
    POWER,
    Aside,
    open_hours,
    quarantine,
    store,
)
from formulae.units import MICROSECOND_PER_S, MILLIJOULE_PER_J, S_PER_DAY
from runs.records import SiteRecord
from runs.selectors import devices_by_uuid
from runs.services import ensure_devices

LOCK_CLASS: Final = 0x706F7765  # "powe": keeps our advisory locks apart from everybody else's
ASSUMED_LIMIT_W: Final = 5_000.0
TOLERANCE: Final = 1.2
FUTURE: Final = timedelta(minutes=5)
EARLIEST_MICROSECOND: Final = 1_262_304_000 * MICROSECOND_PER_S  # 2010: before that a unit is wrong
LONGEST_MICROSECOND: Final = 31 * S_PER_DAY * MICROSECOND_PER_S
QUARANTINE_KEPT: Final = 10_000  # rows of one delivery that are kept to look at; all are counted
SAMPLE_KINDS: Final = {"device_id": "int8", "at": "timestamptz", "power_w": "float8"}
INTERVAL_KINDS: Final = {
    "device_id": "int8",
    "start": "timestamptz",
    "end": "timestamptz",
    "energy_millijoule": "int8",
}


@dataclass(slots=True)
class Intake:
    """What has become of a delivery so far."""

    rows: int = 0
    rejected: int = 0
    duplicates: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    device_ids: set[int] = field(default_factory=set)
    start: int | None = None
    end: int | None = None
    opened: int | None = None  # the first hour that is to be closed again

    def add(self, other: "Intake") -> None:
        """Count another part of the same delivery."""
        self.rows += other.rows
        self.rejected += other.rejected
        self.duplicates += other.duplicates
        for reason, count in other.reasons.items():
            self.reasons[reason] = self.reasons.get(reason, 0) + count
        self.device_ids |= other.device_ids
        if other.start is not None and other.end is not None:
            self.start = min(other.start, self.start if self.start is not None else other.start)
            self.end = max(other.end, self.end if self.end is not None else other.end)
        opened = [one for one in (self.opened, other.opened) if one is not None]
        self.opened = min(opened, default=None)


def lock_site(site_id: UUID) -> None:
    """Wait for the site's energy books; PostgreSQL lets go at commit or rollback."""
    key = int.from_bytes(site_id.bytes[:4], "big", signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [LOCK_CLASS, key])


def store_readings(
    site: SiteRecord, readings: Readings, *, received_at: datetime, sender_id: int = 0
) -> Intake:
    """Store readings in the caller's transaction, and open the hours that they touch."""
    lock_site(site.site_id)
    ids = ensure_devices(
        site, [(uuid, *readings.about.get(uuid, ("", ""))) for uuid in readings.uuids]
    )
    device = np.array([ids.get(uuid, -1) for uuid in readings.uuids], dtype=np.int64)
    limits = _limits_w(site, readings.uuids)
    reasons = _impossible(readings, device, limits, received_at=received_at)
    rows = _Rows(
        readings=readings, device=device[readings.device], sender_id=sender_id, reasons=reasons
    )
    if not readings.is_samples:
        _mark_overlaps(rows)
    stored = _store(site, rows, received_at=received_at)
    _quarantine(site, rows, received_at=received_at)
    counted = _counted(rows, stored)
    if stored:
        counted.opened = _open_hours(site, rows, counted, received_at=received_at)
    return counted


@dataclass(slots=True)
class _Rows:
    """Readings on the way: `reasons` holds "" for what may be stored."""

    readings: Readings
    device: Ints
    sender_id: int
    reasons: npt.NDArray[Any]

    @property
    def good(self) -> Mask:
        return np.asarray(self.reasons == "", dtype=np.bool_)


def _limits_w(site: SiteRecord, uuids: tuple[str, ...]) -> npt.NDArray[np.float64]:
    """The highest power that each device may read, tolerance included."""
    known = devices_by_uuid(site.organisation_id, uuids)
    limits = ((known[uuid].power_limit_w if uuid in known else None) for uuid in uuids)
    return np.array([(limit or ASSUMED_LIMIT_W) * TOLERANCE for limit in limits])


def _impossible(
    readings: Readings, device: Ints, limits: npt.NDArray[np.float64], *, received_at: datetime
) -> npt.NDArray[Any]:
    """The reason why a row cannot be true, "" where nothing speaks against it."""
    limit_w = limits[readings.device]
    newest = microsecond_of(received_at + FUTURE)
    duration = readings.end - readings.start
    if readings.is_samples:
        too_high, wrong = readings.values > limit_w, np.zeros(len(readings), dtype=np.bool_)
    else:
        seconds = duration / MICROSECOND_PER_S
        too_high = readings.values > limit_w * seconds * MILLIJOULE_PER_J
        wrong = duration <= 0
    tests = [
        (readings.unreadable, "not_a_number"),
        (device[readings.device] < 0, "device_of_another_site"),
        (wrong, "end_not_after_start"),
        (duration > LONGEST_MICROSECOND, "longer_than_31_days"),
        (readings.end > newest, "in_the_future"),
        (readings.start < EARLIEST_MICROSECOND, "before_2010"),
        (readings.values < 0, "negative"),
        (too_high, "above_the_power_limit"),
    ]
    return np.select(
        [mask for mask, _ in tests], [reason for _, reason in tests], default=""
    ).astype(object)


def _mark_overlaps(rows: _Rows) -> None:
    """Mark intervals that overlap an earlier one of device and sender, here or stored."""
    good = np.flatnonzero(rows.good)
    start, end, device = rows.readings.start, rows.readings.end, rows.device
    order = good[np.lexsort((end[good], start[good], device[good]))]
    same = device[order][1:] == device[order][:-1]
    repeat = same & (start[order][1:] == start[order][:-1]) & (end[order][1:] == end[order][:-1])
    if (same & ~repeat & (start[order][1:] < end[order][:-1])).any():
        _mark_overlaps_slowly(rows, order)
    for row in _clashes_with_stored(rows, np.flatnonzero(rows.good)):
        rows.reasons[row] = "overlaps_another_interval"


def _mark_overlaps_slowly(rows: _Rows, order: Ints) -> None:
    """Accept intervals of each device by start; mark what overlaps an accepted one."""
    kept: tuple[int, int, int] | None = None
    for row in order:
        this = (int(rows.device[row]), int(rows.readings.start[row]), int(rows.readings.end[row]))
        if kept is not None and this[0] == kept[0] and this != kept and this[1] < kept[2]:
            rows.reasons[row] = "overlaps_another_interval"
        else:
            kept = this


def _clashes_with_stored(rows: _Rows, good: Ints) -> Iterable[int]:
    """The rows that overlap a stored interval of their device without being the same one."""
    if not len(good):
        return []
    start, end, device = rows.readings.start, rows.readings.end, rows.device
    stored = _read(
        INTERVAL_KINDS,
        "FROM carbon_meteredinterval "
        'WHERE device_id = ANY(%s) AND sender_id = %s AND start < %s AND start > %s AND "end" > %s',
        [
            [int(one) for one in np.unique(device[good])],
            rows.sender_id,
            instant_of(int(end[good].max())),
            instant_of(int(start[good].min()) - LONGEST_MICROSECOND - 1),
            instant_of(int(start[good].min())),
        ],
    )
    if not len(stored["device_id"]):
        return []
    return [int(row) for row in good[_overlaps(device[good], start[good], end[good], stored)]]


def _read(kinds: dict[str, str], source: str, params: list[Any]) -> dict[str, Ints]:
    """Columns of a table of ours."""
    with connection.cursor() as cursor:
        return binary_rows.read(cursor, kinds, source, params)


def _overlaps(device: Ints, start: Ints, end: Ints, stored: dict[str, Ints]) -> Mask:
    """Which intervals overlap a stored one of their device that is not the same interval."""
    order = np.lexsort((stored["start"], stored["device_id"]))
    known = {name: values[order] for name, values in stored.items()}
    clash = np.zeros(len(device), dtype=np.bool_)
    for one in np.unique(device):
        mine = np.flatnonzero(device == one)
        low, high = np.searchsorted(known["device_id"], [one, one + 1])
        if low == high:
            continue
        starts, ends = known["start"][low:high], known["end"][low:high]
        first = np.searchsorted(ends, start[mine], side="right")
        count = np.searchsorted(starts, end[mine], side="left") - first
        at = np.minimum(first, len(starts) - 1)
        same = (count == 1) & (starts[at] == start[mine]) & (ends[at] == end[mine])
        clash[mine] = (count > 0) & ~same
    return clash


def _store(site: SiteRecord, rows: _Rows, *, received_at: datetime) -> int:
    """Store what may be stored, mark rows that contradict it; say how many are new."""
    good = np.flatnonzero(rows.good)
    readings = rows.readings
    columns: dict[str, npt.NDArray[Any]] = {
        "device_id": rows.device[good],
        "sender_id": np.full(len(good), rows.sender_id, dtype=np.int64),
    }
    if readings.is_samples:
        columns |= {"at": readings.start[good], "power_w": readings.values[good]}
    else:
        columns |= {
            "start": readings.start[good],
            "end": readings.end[good],
            "energy_millijoule": readings.values[good],
        }
    stored = store(
        POWER if readings.is_samples else INTERVALS, columns, site=site, received_at=received_at
    )
    rows.reasons[good[stored.contradicting]] = CONTRADICTION
    return stored.new


def _quarantine(site: SiteRecord, rows: _Rows, *, received_at: datetime) -> None:
    """Keep rejected rows to look at."""
    rejected = np.flatnonzero(~rows.good)[:QUARANTINE_KEPT]
    readings = rows.readings
    quarantine(
        site,
        (
            Aside(
                device_uuid=readings.uuids[readings.device[row]],
                start=int(readings.start[row]),
                end=int(readings.end[row]),
                reading="" if readings.unreadable[row] else str(readings.values[row]),
                reason=rows.reasons[row],
            )
            for row in rejected
        ),
        received_at=received_at,
    )


def _counted(rows: _Rows, stored: int) -> Intake:
    """The counts of this delivery."""
    good = rows.good
    reasons, counts = np.unique(rows.reasons[~good].astype(str), return_counts=True)
    accepted = int(good.sum())
    readings = rows.readings
    return Intake(
        rows=len(readings),
        rejected=len(readings) - accepted,
        duplicates=accepted - stored,
        reasons={str(reason): int(count) for reason, count in zip(reasons, counts, strict=True)},
        device_ids={int(one) for one in np.unique(rows.device[good])},
        start=int(readings.start[good].min()) if accepted else None,
        end=int(readings.end[good].max()) if accepted else None,
    )


def _open_hours(
    site: SiteRecord, rows: _Rows, counted: Intake, *, received_at: datetime
) -> int | None:
    """Note which hours must be closed again, those of neighbouring samples too; give the first."""
    if counted.start is None or counted.end is None:
        return None
    gap_s = max_gap_s(dated_factors(site.site_id))  # an interval cuts samples across its ends
    reach = int(gap_s * MICROSECOND_PER_S)
    return open_hours(
        site,
        sorted(counted.device_ids),
        counted.start - reach,
        counted.end + reach,
        received_at=received_at,
    )

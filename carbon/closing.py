"""Closes hours: readings to energy by device and hour; a changed hour gets a new version."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import numpy as np
from django.db import connection, transaction

from carbon.adapters import binary_rows
from carbon.attribution import instant_of, microsecond_of
from carbon.intake import (
    INTERVAL_KINDS,
    LONGEST_MICROSECOND,
    SAMPLE_KINDS,
    lock_site,
)
from carbon.metering import (
    HOUR_MICROSECOND,
    HourTable,
    Ints,
    Pieces,
    energy_by_hour,
    integrate_samples,
)
from carbon.models import OpenHours, PowerSample
from carbon.posting import post_hours
from carbon.site_factors import dated_factors, max_gap_s
from formulae.units import MICROSECOND_PER_S
from runs.records import SiteRecord

DEVICE_HOURS_AT_ONCE: Final = 500_000
SAMPLED_DEVICE_HOURS_AT_ONCE: Final = 20_000
MEASURES: Final = (
    "measured_millijoule",
    "spread_millijoule",
    "estimated_millijoule",
    "covered_microsecond",
)
HOUR_KINDS: Final = {
    "device_id": "int8",
    "hour": "timestamptz",
    "version": "int2",
    **dict.fromkeys(MEASURES, "int8"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Hours [start, end) of some devices, in microseconds."""

    device_ids: tuple[int, ...]
    start: int
    end: int


def close_site(
    site: SiteRecord,
    *,
    now: datetime,
    until: datetime | None = None,
    on_window: Callable[[int, int], None] | None = None,
    before_commit: Callable[[], None] | None = None,
) -> int:
    """Close the site's open hours that end by `until`, all when None; say how many changed.

    `on_window` hears of device-hours done and in all; `before_commit` may refuse to publish.
    """
    marks = list(OpenHours.objects.filter(site_id=site.site_id).order_by("start"))
    limit = microsecond_of(until) // HOUR_MICROSECOND * HOUR_MICROSECOND if until else None
    windows = list(_windows(marks, limit))
    total = sum(len(one.device_ids) * (one.end - one.start) // HOUR_MICROSECOND for one in windows)
    changed = done = 0
    for window in windows:
        with transaction.atomic():
            changed += close_window(site, window, now=now)
            if before_commit is not None:
                before_commit()
        done += len(window.device_ids) * (window.end - window.start) // HOUR_MICROSECOND
        if on_window is not None:
            on_window(done, total)
    _settle(marks, limit)
    return changed


def _windows(marks: Sequence[OpenHours], limit: int | None) -> Iterator[Window]:
    """The marked hours as few windows, each small enough to hold in memory."""
    for start, end, devices in _merged(marks, limit):
        yield from windows_of(Window(device_ids=tuple(sorted(devices)), start=start, end=end))


def windows_of(whole: Window) -> Iterator[Window]:
    """A window cut into such as can be held in memory; samples take far more than intervals."""
    sampled = PowerSample.objects.filter(
        device_id__in=whole.device_ids,
        at__gte=instant_of(whole.start),
        at__lt=instant_of(whole.end),
    ).exists()
    at_once = SAMPLED_DEVICE_HOURS_AT_ONCE if sampled else DEVICE_HOURS_AT_ONCE
    hours = max(1, at_once // max(1, len(whole.device_ids))) * HOUR_MICROSECOND
    for low in range(whole.start, whole.end, hours):
        yield replace(whole, start=low, end=min(low + hours, whole.end))


def _merged(marks: Sequence[OpenHours], limit: int | None) -> list[tuple[int, int, set[int]]]:
    """Overlapping marks as one, with the devices of all."""
    merged: list[tuple[int, int, set[int]]] = []
    for mark in marks:
        start, end = microsecond_of(mark.start), microsecond_of(mark.end)
        end = min(end, limit) if limit is not None else end
        if start >= end:
            continue
        if merged and start < merged[-1][1]:
            low, high, devices = merged[-1]
            merged[-1] = (low, max(high, end), devices | set(mark.device_ids))
        else:
            merged.append((start, end, set(mark.device_ids)))
    return merged


def _settle(marks: Sequence[OpenHours], limit: int | None) -> None:
    """Strike out what is closed; a mark that reaches beyond the limit keeps its rest."""
    for mark in marks:
        if limit is None or microsecond_of(mark.end) <= limit:
            mark.delete()
        elif microsecond_of(mark.start) < limit:
            # Booking may have put a new mark in its place meanwhile: that one stays whole.
            OpenHours.objects.filter(pk=mark.pk).update(start=instant_of(limit))


def close_window(site: SiteRecord, window: Window, *, now: datetime) -> int:
    """Recompute the hours of a window, in the caller's transaction; say how many changed."""
    lock_site(site.site_id)
    table = computed_hours(site, window)
    changed = _store_versions(site, window, table, now=now)
    if changed:
        post_hours(site, start=window.start, end=window.end, posted_at=now)
    return changed


def computed_hours(site: SiteRecord, window: Window) -> HourTable:
    """Energy by device and hour of a window, from the stored readings."""
    gap_s = max_gap_s(dated_factors(site.site_id))
    reach = int(gap_s * MICROSECOND_PER_S)
    devices = list(window.device_ids)
    samples = _read(
        SAMPLE_KINDS,
        "FROM carbon_powersample WHERE device_id = ANY(%s) AND at >= %s AND at < %s",
        [devices, instant_of(window.start - reach), instant_of(window.end + reach)],
    )
    metered = _read(
        INTERVAL_KINDS,
        "FROM carbon_meteredinterval "
        'WHERE device_id = ANY(%s) AND start >= %s AND start < %s AND "end" > %s',
        [
            devices,
            instant_of(window.start - LONGEST_MICROSECOND),
            instant_of(window.end + reach),
            instant_of(window.start - reach),
        ],
    )
    sampled = integrate_samples(
        samples["device_id"], samples["at"], samples["power_w"], max_gap_s=gap_s
    )
    pieces = Pieces(
        device=metered["device_id"],
        start=metered["start"],
        end=metered["end"],
        energy_millijoule=metered["energy_millijoule"],
    )
    return energy_by_hour(sampled, pieces, start=window.start, end=window.end)


def _read(kinds: dict[str, str], source: str, params: list[Any]) -> dict[str, Any]:
    with connection.cursor() as cursor:
        return binary_rows.read(cursor, kinds, source, params)


def stored_hours(window: Window) -> dict[str, Ints]:
    """The current versions of a window, by device and hour."""
    found = _read(
        HOUR_KINDS,
        "FROM carbon_energyhour WHERE device_id = ANY(%s) "
        "AND hour >= %s AND hour < %s AND superseded_at IS NULL",
        [list(window.device_ids), instant_of(window.start), instant_of(window.end)],
    )
    order = np.lexsort((found["hour"], found["device_id"]))
    return {name: values[order] for name, values in found.items()}


def _store_versions(site: SiteRecord, window: Window, table: HourTable, *, now: datetime) -> int:
    """Write a version for every hour that differs from its current one."""
    old = stored_hours(window)
    new = _with_lost_hours(table, old)
    position = _positions(new, old)
    known = position >= 0
    differs = ~known
    for name in MEASURES:
        differs[known] |= getattr(new, name)[known] != old[name][position[known]]
    if not differs.any():
        return 0
    outdated = differs & known
    version = np.ones(len(new), dtype=np.int64)
    version[known] = old["version"][position[known]].astype(np.int64) + 1
    with connection.cursor() as cursor:
        if outdated.any():
            _supersede(cursor, new, outdated, now=now)
        count = int(differs.sum())
        columns: dict[str, tuple[str, Any]] = {
            "organisation_id": ("uuid", site.organisation_id),
            "site_id": ("uuid", site.site_id),
            "device_id": ("int8", new.device[differs]),
            "hour": ("timestamptz", new.hour[differs]),
            "version": ("int2", version[differs]),
            **{name: ("int8", getattr(new, name)[differs]) for name in MEASURES},
            "known_at": ("timestamptz", np.full(count, microsecond_of(now))),
        }
        binary_rows.write(cursor, "carbon_energyhour", columns, rows=count)
    return count


def _with_lost_hours(table: HourTable, old: dict[str, Ints]) -> HourTable:
    """The new hours, and nothing (0, covered 0) for hours that had energy and have none now."""
    held = (
        set(zip(table.device.tolist(), table.hour.tolist(), strict=True))
        if len(old["device_id"])
        else set()
    )
    lost = [
        row
        for row, key in enumerate(zip(old["device_id"].tolist(), old["hour"].tolist(), strict=True))
        if key not in held
    ]
    if not lost:
        return table
    device = np.concatenate([table.device, old["device_id"][lost]])
    hour = np.concatenate([table.hour, old["hour"][lost]])
    order = np.lexsort((hour, device))
    nothing = np.zeros(len(lost), dtype=np.int64)
    measures = {name: np.concatenate([getattr(table, name), nothing])[order] for name in MEASURES}
    return HourTable(device=device[order], hour=hour[order], **measures)


def _positions(new: HourTable, old: dict[str, Ints]) -> Ints:
    """The row of each new hour among the old ones, -1 where it is not there."""
    position = np.full(len(new), -1, dtype=np.int64)
    for device in np.unique(old["device_id"]):
        low, high = np.searchsorted(old["device_id"], [device, device + 1])
        first, last = np.searchsorted(new.device, [device, device + 1])
        hours = old["hour"][low:high]
        at = np.minimum(np.searchsorted(hours, new.hour[first:last]), len(hours) - 1)
        position[first:last] = np.where(hours[at] == new.hour[first:last], low + at, -1)
    return position


def _supersede(cursor: Any, new: HourTable, outdated: Any, *, now: datetime) -> None:
    """Mark the current versions of these hours as replaced at `now`."""
    cursor.execute(
        "UPDATE carbon_energyhour AS stored SET superseded_at = %s "
        "FROM unnest(%s::bigint[], %s::timestamptz[]) AS outdated(device_id, hour) "
        "WHERE stored.device_id = outdated.device_id AND stored.hour = outdated.hour "
        "AND stored.superseded_at IS NULL",
        [now, new.device[outdated].tolist(), [instant_of(one) for one in new.hour[outdated]]],
    )


def site_window(site_id: UUID, device_ids: Sequence[int]) -> Window | None:
    """All hours of a site that are on the books or have readings; None when there are none."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT min(first), max(last) FROM ("
            "SELECT min(hour), max(hour) FROM carbon_energyhour "
            "WHERE site_id = %(site)s AND superseded_at IS NULL "
            "UNION ALL SELECT min(at), max(at) FROM carbon_powersample "
            "WHERE device_id = ANY(%(devices)s) "
            'UNION ALL SELECT min(start), max("end") FROM carbon_meteredinterval '
            "WHERE device_id = ANY(%(devices)s)) AS spans(first, last)",
            {"site": site_id, "devices": list(device_ids)},
        )
        first, last = cursor.fetchone()
    if first is None:
        return None
    return Window(
        device_ids=tuple(device_ids),
        start=microsecond_of(first) // HOUR_MICROSECOND * HOUR_MICROSECOND,
        end=(microsecond_of(last) // HOUR_MICROSECOND + 1) * HOUR_MICROSECOND,
    )

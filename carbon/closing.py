"""Closes hours: readings to energy by device and hour; a changed hour gets a new version."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Final
from uuid import UUID

from django.db import connection, transaction

from carbon.attribution import instant_of, microsecond_of
from carbon.cascade import PRESENCE_MICROSECOND
from carbon.counters import LONGEST_MICROSECOND
from carbon.hardware_shares import share_hardware_anew
from carbon.host_power import measure_host_factors
from carbon.hour_versions import store_versions
from carbon.hours import DEVICE_HOURS_AT_ONCE, Window, recomputed
from carbon.instants import announce
from carbon.intake import lock_site
from carbon.metering import (
    HOUR_MICROSECOND,
)
from carbon.models import OpenHours
from carbon.posting import post_hours
from carbon.site_factors import dated_factors, max_gap_s
from carbon.storing import quarantine
from carbon.use_hours import sum_use
from carbon.window_readings import is_sampled, site_span
from formulae.units import MICROSECOND_PER_S
from runs.records import SiteRecord

SAMPLED_HOURS_AT_ONCE: Final = 24
__all__ = ["Window", "close_site", "close_window", "site_window", "windows_of"]
_SPAN: Final = {
    # What a counter counted since its last reading; only where the stretch has a reading of it.
    "carbon_counterreading": (
        "at",
        "at",
        LONGEST_MICROSECOND,
        "EXISTS (SELECT 1 FROM carbon_counterreading WHERE device_id = wanted.id "
        "AND at >= %(start)s AND at < %(end)s)",
    ),
    # A device is there between two readings less than a day apart.
    "carbon_powersample": ("at", "at", PRESENCE_MICROSECOND, "true"),
    "carbon_meteredinterval": ("start", '"end"', PRESENCE_MICROSECOND, "true"),
}
Stretch = tuple[int, int, frozenset[int]]  # hours [start, end) of devices


def close_site(
    site: SiteRecord,
    *,
    now: datetime | None,
    until: datetime | None = None,
    on_window: Callable[[int, int], None] | None = None,
    before_commit: Callable[[], None] | None = None,
) -> int:
    """Close the site's open hours that end by `until`, all when None; say how many changed.

    They are known from `now` on; None: from the database's clock in each window's transaction.
    `on_window` hears of device-hours done and in all; `before_commit` may refuse to publish.
    """
    marks = list(OpenHours.objects.filter(site_id=site.site_id).order_by("start"))
    limit = microsecond_of(until) // HOUR_MICROSECOND * HOUR_MICROSECOND if until else None
    windows = list(_windows(site, marks, limit))
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
    if windows:  # also where an attempt before this one closed them and then broke off
        share_hardware_anew(site, windows[0].start, now=now, before_commit=before_commit)
    _settle(marks, limit)
    return changed


def _windows(site: SiteRecord, marks: Sequence[OpenHours], limit: int | None) -> Iterator[Window]:
    """The marked hours as few windows, each small enough to hold in memory."""
    marked = [
        (microsecond_of(mark.start), microsecond_of(mark.end), frozenset(mark.device_ids))
        for mark in marks
    ]
    stretches = list(_merged(marked, limit))
    reaching = [one for stretch in stretches for one in _beyond(site, stretch)]
    for start, end, devices in _merged([*stretches, *reaching], limit):
        yield from windows_of(Window(device_ids=tuple(sorted(devices)), start=start, end=end))


def windows_of(whole: Window) -> Iterator[Window]:
    """A window cut into such as can be held in memory; a day at a time where there are samples."""
    hours = max(1, DEVICE_HOURS_AT_ONCE // max(1, len(whole.device_ids)))
    if is_sampled(whole.device_ids, whole.start, whole.end):
        hours = min(hours, SAMPLED_HOURS_AT_ONCE)
    for low in range(whole.start, whole.end, hours * HOUR_MICROSECOND):
        yield replace(whole, start=low, end=min(low + hours * HOUR_MICROSECOND, whole.end))


def _merged(stretches: Iterable[Stretch], limit: int | None) -> Iterator[Stretch]:
    """Stretches without overlap: each hour with the devices of all that hold it."""
    known = [
        (start, end if limit is None else min(end, limit), devices)
        for start, end, devices in set(stretches)
        if start < (end if limit is None else min(end, limit))
    ]
    borders = sorted({at for start, end, _devices in known for at in (start, end)})
    held: Stretch | None = None
    for low, high in pairwise(borders):
        sets = [devices for start, end, devices in known if start <= low and high <= end]
        if not sets:
            continue
        devices = frozenset().union(*sets)
        if held is not None and held[1] == low and held[2] == devices:
            held = (held[0], high, devices)
            continue
        if held is not None:
            yield held
        held = (low, high, devices)
    if held is not None:
        yield held


def _beyond(site: SiteRecord, stretch: Stretch) -> Iterator[Stretch]:
    """The hours between a stretch and its devices' nearest readings beyond it, table by table.

    New readings say what a counter counted since then, and that the device was there.
    """
    start, end, _devices = stretch
    reach = int(max_gap_s(dated_factors(site.site_id)) * MICROSECOND_PER_S)
    spans: dict[tuple[int, int], set[int]] = {}
    for table in _SPAN:
        for device, before, after in _nearest(table, stretch):
            if before is not None and microsecond_of(before) < start - reach:
                first = microsecond_of(before) // HOUR_MICROSECOND * HOUR_MICROSECOND
                spans.setdefault((first, start), set()).add(device)
            if after is not None and microsecond_of(after) > end + reach:
                last = -(-microsecond_of(after) // HOUR_MICROSECOND) * HOUR_MICROSECOND
                spans.setdefault((end, last), set()).add(device)
    for (low, high), found in spans.items():
        yield low, high, frozenset(found)


def _nearest(table: str, stretch: Stretch) -> list[tuple[int, datetime | None, datetime | None]]:
    """Each device's nearest readings of a table before and after a stretch."""
    start, end, devices = stretch
    first, last, far, condition = _SPAN[table]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT wanted.id, (SELECT {last} FROM {table} WHERE device_id = wanted.id "  # noqa: S608 - our names
            f"AND {first} < %(start)s AND {first} >= %(earliest)s ORDER BY {first} DESC LIMIT 1), "
            f"(SELECT {first} FROM {table} WHERE device_id = wanted.id "
            f"AND {first} >= %(end)s AND {first} < %(latest)s ORDER BY {first} LIMIT 1) "
            f"FROM unnest(%(devices)s::bigint[]) AS wanted(id) WHERE {condition}",
            {
                "devices": sorted(devices),
                "start": instant_of(start),
                "end": instant_of(end),
                "earliest": instant_of(start - far),
                "latest": instant_of(end + far),
            },
        )
        return list(cursor.fetchall())


def _settle(marks: Sequence[OpenHours], limit: int | None) -> None:
    """Strike out what is closed; a mark that reaches beyond the limit keeps its rest."""
    for mark in marks:
        if limit is None or microsecond_of(mark.end) <= limit:
            mark.delete()
        elif microsecond_of(mark.start) < limit:
            mark.start = instant_of(limit)
            mark.save(update_fields=["start"])


def close_window(site: SiteRecord, window: Window, *, now: datetime | None) -> int:
    """Recompute the hours of a window, in the caller's transaction; say how many changed."""
    lock_site(site.site_id)
    now = announce(now)
    last = _last_hour_before(site.site_id, window)
    changed = _close(site, window, now=now)
    if last is not None:
        silent = Window(device_ids=(), start=last, end=last + HOUR_MICROSECOND)
        changed += _close(site, silent, now=now)
    return changed


def _close(site: SiteRecord, window: Window, *, now: datetime) -> int:
    found = recomputed(site, window)
    quarantine(site, found.aside, received_at=now)
    changed = store_versions(site, found.table, found.old, now=now)
    factors = measure_host_factors(site, window.start, window.end, now=now)
    sum_use(
        window.device_ids,
        start=instant_of(window.start),
        end=instant_of(window.end),
        gap_s=max_gap_s(dated_factors(site.site_id)),
    )
    if changed or factors:
        post_hours(site, start=window.start, end=window.end, posted_at=now)
    return changed


def _last_hour_before(site_id: UUID, window: Window) -> int | None:
    """The hour in which the site was last seen, if that was before the window.

    While it was the last, what was assigned and silent at its end was not estimated.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT max(hour) FROM carbon_energyhour WHERE site_id = %s "
            "AND superseded_at IS NULL AND covered_microsecond > 0",
            [site_id],
        )
        (last,) = cursor.fetchone()
    if last is None or microsecond_of(last) >= window.start:
        return None
    return microsecond_of(last)


def site_window(site_id: UUID, device_ids: Sequence[int]) -> Window | None:
    """All hours of a site that are on the books or have readings; None when there are none."""
    span = site_span(site_id, device_ids)
    return Window(device_ids=tuple(device_ids), start=span[0], end=span[1]) if span else None

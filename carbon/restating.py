"""Brings posted hours up to date after a change of readings, factors, places or assignments."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from django.db import transaction

from carbon.attribution import microsecond_of
from carbon.closing import Window, close_window, site_window, windows_of
from carbon.instants import announce
from carbon.intake import lock_site
from carbon.metering import HOUR_MICROSECOND
from carbon.posting import post_hours
from jobs.records import JobContext
from runs.records import SiteRecord
from runs.selectors import devices_of

DEVICE_HOURS_AT_ONCE: Final = 500_000


def repost_site(  # noqa: PLR0913  # which hours, and on whose account
    site: SiteRecord,
    *,
    now: datetime | None,
    context: JobContext | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    entries_only: bool = False,
) -> int:
    """Recompute hours and entries of a site after a change of factors, region or assignments.

    Known from `now` on; None: from the database's clock in each transaction.
    Every hour, or those that [start, end) touches. What changed is reversed and posted anew; what
    did not is left alone. Says how many are new. `entries_only`: the hours are as they were.
    """
    whole = site_window(site.site_id, [one.device_id for one in devices_of(site.site_id)])
    whole = within(whole, start, end) if whole else None
    posted = 0
    for window in _windows(whole, entries_only=entries_only) if whole else ():
        with transaction.atomic():
            if entries_only:
                lock_site(site.site_id)
            else:
                close_window(site, window, now=now)
            posted += post_hours(site, start=window.start, end=window.end, posted_at=announce(now))
            if context is not None:
                context.assert_still_mine()
    return posted


def _windows(whole: Window, *, entries_only: bool) -> Iterator[Window]:
    """The window cut for memory: entries take a device-hour each, readings far more."""
    if not entries_only:
        yield from windows_of(whole)
        return
    hours = max(24, DEVICE_HOURS_AT_ONCE // max(1, len(whole.device_ids)))
    for low in range(whole.start, whole.end, hours * HOUR_MICROSECOND):
        yield replace(whole, start=low, end=min(low + hours * HOUR_MICROSECOND, whole.end))


def within(whole: Window, start: datetime | None, end: datetime | None) -> Window | None:
    """The part of a window that lies in the hours that [start, end) touches; None when none."""
    low, high = whole.start, whole.end
    if start is not None:
        low = max(low, microsecond_of(start) // HOUR_MICROSECOND * HOUR_MICROSECOND)
    if end is not None:
        high = min(high, -(-microsecond_of(end) // HOUR_MICROSECOND) * HOUR_MICROSECOND)
    return replace(whole, start=low, end=high) if low < high else None

"""Posts emission entries: what changed reverses and reposts; a locked period holds it instead."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Any, Final
from uuid import UUID

from django.db import connection

from carbon.attribution import OwnedHour, instant_of, microsecond_of
from carbon.entries import COMPARED, NEGATED, Key, owned_hours, wanted_entries
from carbon.entry_queries import current_entries
from carbon.factor_chains import factors_by_day
from carbon.locks import Spans, allow_release, is_locked, locked_spans
from carbon.metering import HOUR_MICROSECOND
from carbon.models import EmissionEntry
from carbon.restatement_log import Change, Release, hold, note_posted, of_hours
from runs.records import SiteRecord

__all__ = ["Release", "factors_by_day", "post_hours"]

DAY_MICROSECOND: Final = 24 * HOUR_MICROSECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class _Differences:
    """Entries that hold and that should hold; those to take back, and those to post."""

    current: Mapping[Key, EmissionEntry]
    wanted: Mapping[Key, EmissionEntry]
    outdated: Sequence[EmissionEntry]
    fresh: Sequence[EmissionEntry]

    def within(self, spans: Spans, *, inside: bool) -> "_Differences":
        """Those of the hours that lie inside these spans, or outside of them."""

        def is_meant(row: EmissionEntry) -> bool:
            return is_locked(spans, microsecond_of(row.hour)) == inside

        return _Differences(
            current=self.current,
            wanted=self.wanted,
            outdated=[row for row in self.outdated if is_meant(row)],
            fresh=[row for row in self.fresh if is_meant(row)],
        )

    def change(self) -> Change:
        """The changed hours that had been posted, as they were and should be."""
        posted = {row.hour for row in self.current.values()}
        hours = {row.hour for row in (*self.outdated, *self.fresh)} & posted
        return Change(
            before=of_hours(self.current.values(), hours),
            after=of_hours(self.wanted.values(), hours),
            moves=sum(row.hour in hours for row in (*self.outdated, *self.fresh)),
        )

    def changes_by_day(self) -> dict[datetime, Change]:
        """All changes, first postings too, by UTC day."""
        hours = {row.hour for row in (*self.outdated, *self.fresh)}
        before, after, moves = (
            _by_day(row for row in rows if row.hour in hours)
            for rows in (
                self.current.values(),
                self.wanted.values(),
                (*self.outdated, *self.fresh),
            )
        )
        return {
            day: Change(before=before[day], after=after[day], moves=len(moves[day]))
            for day in sorted(moves)
        }


def _by_day(rows: Iterable[EmissionEntry]) -> Mapping[datetime, list[EmissionEntry]]:
    found: defaultdict[datetime, list[EmissionEntry]] = defaultdict(list)
    for row in rows:
        found[datetime.combine(row.hour.astimezone(UTC).date(), time(), UTC)].append(row)
    return found


def post_hours(
    site: SiteRecord,
    *,
    start: int,
    end: int,
    posted_at: datetime,
    release: Release | None = None,
) -> int:
    """Bring the entries of [start, end) to what hours, assignments and factors say now.

    In the caller's transaction, under the site's lock. Hours between this window and its neighbours
    on the books are posted too, so that a gap in which devices were assigned shows as not covered.
    What would change a locked period is held until somebody releases it. Says how many entries are
    new.
    """
    asked = (start, end)
    before, after = _neighbours(site.site_id, start, end)
    start, end = start if before is None else before, end if after is None else after
    spans = locked_spans(site.organisation_id, instant_of(start), instant_of(end))
    start, end = _whole_days(spans, start, end)
    found = _differences(
        site,
        start=start,
        end=end,
        owned=_on_the_books(
            owned_hours(site, start=start, end=end),
            from_start=before is not None,
            to_end=after is not None,
        ),
    )
    if release is not None:  # of what was asked for, not of a locked period next to it
        spans = tuple(one for one in spans if not (asked[0] <= one[0] and one[1] <= asked[1]))
    held = found.within(spans, inside=True)
    found = found.within(spans, inside=False) if spans else found
    hold(
        site,
        held.changes_by_day(),
        window=(instant_of(start), instant_of(end)),
        noted_at=posted_at,
    )
    return _post(site, found, posted_at=posted_at, release=release)


def _post(
    site: SiteRecord, found: _Differences, *, posted_at: datetime, release: Release | None
) -> int:
    """Post reversals and new entries, and log which posted hours they restate."""
    if not found.outdated and not found.fresh:
        return 0
    # Whoever asked earlier may post later: an entry must not be taken back before it was posted.
    posted_at = max([posted_at, *(row.posted_at for row in found.outdated)])
    for row in found.fresh:
        row.posted_at = posted_at
    reversals = [_reversal(row, posted_at=posted_at) for row in found.outdated]
    if release is not None:
        allow_release(True)
    EmissionEntry.objects.bulk_create([*reversals, *found.fresh], batch_size=1_000)
    if release is not None:
        allow_release(False)
    note_posted(site, found.change(), noted_at=posted_at, release=release)
    return len(found.fresh)


def _differences(
    site: SiteRecord, *, start: int, end: int, owned: Sequence[OwnedHour]
) -> _Differences:
    wanted = wanted_entries(site, owned)
    current = {
        (row.project_id, row.run_id, microsecond_of(row.hour)): row
        for row in current_entries().filter(
            site_id=site.site_id, hour__gte=instant_of(start), hour__lt=instant_of(end)
        )
    }
    return _Differences(
        current=current,
        wanted=wanted,
        outdated=[
            row for key, row in current.items() if key not in wanted or _differs(row, wanted[key])
        ],
        fresh=[
            row for key, row in wanted.items() if key not in current or _differs(current[key], row)
        ],
    )


def _neighbours(site_id: UUID, start: int, end: int) -> tuple[int | None, int | None]:
    """The end of the last posted hour before the window, and the first posted hour after it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT max(hour) FILTER (WHERE hour < %(start)s), "
            "min(hour) FILTER (WHERE hour >= %(end)s) "
            "FROM carbon_emissionentry WHERE site_id = %(site)s",
            {"start": instant_of(start), "end": instant_of(end), "site": site_id},
        )
        before, after = cursor.fetchone()
    low = microsecond_of(before) + HOUR_MICROSECOND if before else None
    return low, microsecond_of(after) if after else None


def _whole_days(spans: Spans, start: int, end: int) -> tuple[int, int]:
    """The window, widened to whole UTC days where it begins or ends in a locked period.

    Held changes are kept by the day: a part of a day would hide what the rest of it holds.
    """
    if is_locked(spans, start):
        start -= start % DAY_MICROSECOND
    if is_locked(spans, end - 1):
        end = -(-end // DAY_MICROSECOND) * DAY_MICROSECOND
    return start, end


def _differs(old: EmissionEntry, new: EmissionEntry) -> bool:
    return any(getattr(old, name) != getattr(new, name) for name in COMPARED)


def _reversal(row: EmissionEntry, *, posted_at: datetime) -> EmissionEntry:
    """The entry that takes back another one."""
    values: dict[str, Any] = {
        field.attname: getattr(row, field.attname)
        for field in EmissionEntry._meta.concrete_fields
        if field.attname != "id"
    }
    for name in NEGATED:
        if values[name] is not None:
            values[name] = -values[name]
    return EmissionEntry(**{**values, "posted_at": posted_at, "reverses_id": row.pk})


def _on_the_books(owned: Sequence[OwnedHour], *, from_start: bool, to_end: bool) -> list[OwnedHour]:
    """Without hours that lie outside all reported ones: nothing was due to be seen there."""
    reported = [one.hour for one in owned if one.covered_microsecond]
    if not reported:
        return list(owned) if from_start and to_end else []
    first, last = min(reported), max(reported)
    return [
        one for one in owned if (from_start or one.hour >= first) and (to_end or one.hour <= last)
    ]

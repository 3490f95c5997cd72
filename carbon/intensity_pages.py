"""What the pages of grid intensity show: sources with their freshness, zones, calendars. Reads."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Any

from django.db.models import Count, Max, Min, Q
from django.utils.translation import gettext as _

from carbon.intensity import AVERAGE, IntensityDay
from carbon.intensity_forms import PROVIDERS
from carbon.intensity_sources import CSV
from carbon.intensity_store import newest_hours
from carbon.models import HourlyIntensity, IntensitySource, SiteZone
from runs.selectors import site_by_id

EVERY: timedelta = timedelta(minutes=30)
FRESH: timedelta = timedelta(hours=6)
LONGEST_MONTH = 31


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """A source as the list shows it."""

    source: IntensitySource
    provider: str
    zones: tuple[str, ...]
    newest: datetime | None
    badge: str
    state: str
    next_at: datetime | None  # None: nothing is asked


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneRow:
    """A zone of a source, and which of its hours are on file."""

    zone: str
    sites: tuple[str, ...]
    first: datetime | None
    last: datetime | None
    hours: int
    estimated: int
    revised: int
    backfilled_from: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCell:
    """A day of the calendar: `tone` is the calendar's class, `mark` its letter."""

    day: date
    tone: str
    mark: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """A month of the calendar."""

    month: str
    cells: tuple[DayCell | None, ...]
    hourly: int
    hours: int


def source_rows(sources: Sequence[IntensitySource], now: datetime) -> list[SourceRow]:
    """The sources with state, freshness and when they are asked next."""
    newest = newest_hours(source.pk for source in sources)
    zones: dict[object, set[str]] = {}
    for row in SiteZone.objects.filter(source__in=[source.pk for source in sources]):
        zones.setdefault(row.source_id, set()).add(row.zone)
    return [
        _source_row(source, tuple(sorted(zones.get(source.pk, ()))), newest.get(source.pk), now=now)
        for source in sources
    ]


def _source_row(
    source: IntensitySource, zones: tuple[str, ...], newest: datetime | None, *, now: datetime
) -> SourceRow:
    tone, words = _state(source, zones, newest, now=now)
    asked = source.enabled and source.provider != CSV and bool(zones)
    usual = (source.last_ok_at or now) + EVERY
    return SourceRow(
        source=source,
        provider=str(PROVIDERS[source.provider]),
        zones=zones,
        newest=newest,
        badge=tone,
        state=words,
        next_at=max(now, source.not_before or usual) if asked else None,
    )


def _state(
    source: IntensitySource, zones: tuple[str, ...], newest: datetime | None, *, now: datetime
) -> tuple[str, str]:
    if not source.enabled:
        return "neutral", _("paused")
    if not zones:
        return "warn", _("no site uses it")
    if source.state == IntensitySource.State.BROKEN:
        return "bad", _("fails")
    if newest is None:
        return "neutral", _("not asked yet")
    if source.provider != CSV and now - newest > FRESH:
        return "warn", _("late")
    return "good", _("works")


def zone_rows(source: IntensitySource, now: datetime) -> list[ZoneRow]:
    """The zones of a source with what is on file of each."""
    links = list(SiteZone.objects.filter(source=source).order_by("zone"))
    rows = (
        HourlyIntensity.objects.filter(source=source, signal=AVERAGE, hour__lte=now)
        .values("zone")
        .annotate(
            first=Min("hour"),
            last=Max("hour"),
            told=Count("hour", distinct=True),
            estimated=Count("id", filter=Q(is_estimated=True, superseded_at__isnull=True)),
            revised=Count("id", filter=Q(superseded_at__isnull=False)),
        )
    )
    facts = {row["zone"]: row for row in rows}
    found = []
    for zone in sorted({link.zone for link in links} | facts.keys()):
        of_zone = [link for link in links if link.zone == zone]
        named = (site_by_id(source.organisation_id, link.site_id) for link in of_zone)
        fact: dict[str, Any] = dict(facts.get(zone, {}))
        reached = [link.backfilled_from for link in of_zone if link.backfilled_from]
        found.append(
            ZoneRow(
                zone=zone,
                sites=tuple(site.name for site in named if site is not None),
                first=fact.get("first"),
                last=fact.get("last"),
                hours=fact.get("told", 0),
                estimated=fact.get("estimated", 0),
                revised=fact.get("revised", 0),
                backfilled_from=min(reached) if reached else None,
            )
        )
    return found


def calendar_months(days: Iterable[IntensityDay]) -> list[Month]:
    """Months of days, the newest first; cells before the first day are empty."""
    found = []
    for month, group in groupby(days, key=lambda one: one.day.replace(day=1)):
        of_month = list(group)
        before: list[DayCell | None] = [None] * (of_month[0].day.day - 1)
        cells = [*before, *(_cell(one) for one in of_month)]
        cells += [None] * (LONGEST_MONTH - len(cells))
        found.append(
            Month(
                month=f"{month:%Y-%m}",
                cells=tuple(cells),
                hourly=sum(one.measured + one.estimated for one in of_month),
                hours=sum(one.hours for one in of_month),
            )
        )
    return found[::-1]


def _cell(one: IntensityDay) -> DayCell:
    told = _("{measured} h measured, {estimated} h estimated, {yearly} h by the year").format(
        measured=one.measured, estimated=one.estimated, yearly=one.yearly
    )
    if one.yearly == one.hours:
        tone, mark = "day-due", "…"
    elif one.yearly:
        tone, mark = "day-gap", "!"
    elif one.estimated:
        tone, mark = "day-late", "~"
    else:
        tone, mark = "day-charged", "✓"
    return DayCell(day=one.day, tone=tone, mark=mark, words=told)

"""Reads of the calendar of meters: device time with energy against that to be seen, by day."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import Count, Max, Min, Sum
from django.db.models.functions import TruncDay

from carbon.models import OpenHours, QuarantinedPower, SenderGap
from carbon.selectors import current_entries
from formulae.spans import Span, common_spans, merged_spans
from runs.records import DeviceRecord
from runs.selectors import assignments_between, devices_of

DAY: Final = timedelta(days=1)
HOUR_US: Final = 3_600_000_000
DAY_US: Final = 24 * HOUR_US
ALL_HOURS: Final = (1 << 24) - 1
FULL: Final = 0.999  # a reading's second or two a day is no gap
_HOURS_SEEN: Final = """
SELECT device_id, date_trunc('day', hour, 'UTC'), sum(least(covered_microsecond, 3600000000)),
  bit_or(1 << extract(hour FROM hour AT TIME ZONE 'UTC')::int)
FROM carbon_energyhour
WHERE site_id = %s AND hour >= %s AND hour < %s AND superseded_at IS NULL
GROUP BY 1, 2
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverDay:
    """A day: expected and covered device time in microseconds."""

    day: date
    expected: int
    covered: int
    reasons: tuple[str, ...] = ()

    @property
    def fraction(self) -> float | None:
        return min(1.0, self.covered / self.expected) if self.expected else None

    @property
    def percent(self) -> int:
        """Whole percent, rounded down: 100 means all of it."""
        return int(100 * (self.fraction or 0.0))

    @property
    def state(self) -> str:
        """full, part, none, or outside where nothing was to be seen."""
        if not self.expected:
            return "outside"
        if not self.covered:
            return "none"
        return "full" if self.covered >= FULL * self.expected else "part"


@dataclass(slots=True, kw_only=True)
class CoverRow:
    """A site, node or device with its days."""

    key: str
    name: str
    days: dict[date, CoverDay] = field(default_factory=dict)

    @property
    def fraction(self) -> float | None:
        expected = sum(one.expected for one in self.days.values())
        covered = sum(one.covered for one in self.days.values())
        return min(1.0, covered / expected) if expected else None


def site_days(organisation_id: UUID, site_id: UUID, start: date, end: date) -> dict[date, CoverDay]:
    """The days of a site in [start, end), from the entries of the books."""
    rows = (
        current_entries()
        .filter(organisation_id=organisation_id, site_id=site_id)
        .filter(hour__gte=_midnight(start), hour__lt=_midnight(end))
        .annotate(day=TruncDay("hour", tzinfo=UTC))
        .values("day")
        .annotate(expected=Sum("expected_microsecond"), covered=Sum("covered_microsecond"))
    )
    return {
        row["day"].date(): CoverDay(
            day=row["day"].date(), expected=row["expected"], covered=row["covered"]
        )
        for row in rows.order_by("day")
    }


def device_rows(
    organisation_id: UUID, site_id: UUID, start: date, end: date
) -> list[tuple[DeviceRecord, dict[date, CoverDay]]]:
    """The days of each device of a site: what was to be seen is assigned or reported hours."""
    with connection.cursor() as cursor:
        cursor.execute(_HOURS_SEEN, [site_id, _midnight(start), _midnight(end)])
        seen = {
            (device, at.date()): (int(covered), int(hours))
            for device, at, covered, hours in cursor.fetchall()
        }
    posted = site_days(organisation_id, site_id, start, end)
    books = _books(organisation_id, site_id)
    assigned = _assigned(organisation_id, site_id, start, end)
    found = []
    for device in devices_of(site_id):
        days = {}
        for day in posted:
            covered, hours = seen.get((device.device_id, day), (0, 0))
            expected = _expected(day, hours, assigned.get(device.device_id, ()), books)
            if expected:
                days[day] = CoverDay(day=day, expected=expected, covered=covered)
        if days:
            found.append((device, days))
    return found


def _books(organisation_id: UUID, site_id: UUID) -> Span:
    """From the first to the last hour of a site on the books: nothing was due outside."""
    entries = current_entries().filter(organisation_id=organisation_id, site_id=site_id)
    span = entries.aggregate(first=Min("hour"), last=Max("hour"))
    if span["first"] is None:
        return (0, 0)
    return (_us(span["first"]), _us(span["last"]) + HOUR_US)


def _assigned(
    organisation_id: UUID, site_id: UUID, start: date, end: date
) -> dict[int, list[Span]]:
    """When each device was assigned to anybody, in microseconds."""
    spans: dict[int, list[Span]] = defaultdict(list)
    low, high = _midnight(start), _midnight(end)
    for one in assignments_between(organisation_id, low, high, site_id):
        first, last = max(one.start, low), min(one.end or high, high)
        spans[one.device_id].append((_us(first), _us(last)))
    return {device: merged_spans(found) for device, found in spans.items()}


def _expected(day: date, hours: int, assigned: Iterable[Span], books: Span) -> int:
    """The device time to be seen in a day: its assigned time and the hours that it reported."""
    start = _us(_midnight(day))
    if hours == ALL_HOURS or any(
        low <= start and start + DAY_US <= high for low, high in assigned_on(assigned, books)
    ):
        return DAY_US
    reported = [
        (start + hour * HOUR_US, start + (hour + 1) * HOUR_US)
        for hour in range(24)
        if hours >> hour & 1
    ]
    low, high = max(start, books[0]), min(start + DAY_US, books[1])
    inside = common_spans([(low, high)] if low < high else [], list(assigned))
    return sum(high - low for low, high in merged_spans([*reported, *inside]))


def assigned_on(assigned: Iterable[Span], books: Span) -> list[Span]:
    """Assigned time as far as the books reach."""
    return [(max(low, books[0]), min(high, books[1])) for low, high in assigned]


def by_node(
    rows: Iterable[tuple[DeviceRecord, Mapping[date, CoverDay]]],
) -> list[CoverRow]:
    """The devices' days added up by node."""
    nodes: dict[str, CoverRow] = {}
    for device, days in rows:
        node = nodes.setdefault(device.node, CoverRow(key=device.node, name=device.node))
        for day, one in days.items():
            before = node.days.get(day, CoverDay(day=day, expected=0, covered=0))
            node.days[day] = CoverDay(
                day=day,
                expected=before.expected + one.expected,
                covered=before.covered + one.covered,
            )
    return sorted(nodes.values(), key=lambda row: row.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A day of a site that lacks device time, and what is known of why."""

    day: date
    missing_h: float
    rejected: int
    missing_batches: int
    is_open: bool


def gaps_of(site_id: UUID, days: Iterable[CoverDay]) -> list[Gap]:
    """The days that lack device time, each with what was rejected, missing, or not closed yet."""
    lacking = [one for one in days if one.state in ("part", "none")]
    if not lacking:
        return []
    low, high = _midnight(lacking[0].day), _midnight(lacking[-1].day) + DAY
    rejected = dict(
        QuarantinedPower.objects.filter(site_id=site_id, start__gte=low, start__lt=high)
        .annotate(day=TruncDay("start", tzinfo=UTC))
        .values_list("day")
        .annotate(rows=Count("pk"))
    )
    batches: dict[date, int] = defaultdict(int)
    for gap in SenderGap.objects.filter(
        sender__site_id=site_id, filled_at__isnull=True, seen_at__gte=low, seen_at__lt=high
    ):
        batches[gap.seen_at.date()] += gap.last_sequence - gap.first_sequence + 1
    open_spans = list(OpenHours.objects.filter(site_id=site_id).values_list("start", "end"))
    return [
        Gap(
            day=one.day,
            missing_h=(one.expected - one.covered) / HOUR_US,
            rejected=rejected.get(_midnight(one.day), 0),
            missing_batches=batches.get(one.day, 0),
            is_open=any(
                start < _midnight(one.day) + DAY and end > _midnight(one.day)
                for start, end in open_spans
            ),
        )
        for one in lacking
    ]


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _us(at: datetime) -> int:
    return int((at - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))

"""Half-open UTC periods, their splits, and the strict readers of instants; no clock."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from formulae.units import MICROSECOND_PER_S

_MICROSECOND: Final = timedelta(microseconds=1)
_CLOCK: Final = r"(?P<clock>[0-9]{2}:[0-9]{2}(:[0-9]{2})?)(\.(?P<fraction>[0-9]{1,6})0{0,3})?"
_DAY: Final = r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
_ZONE: Final = r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})"
_STRICT: Final = re.compile(rf"{_DAY}T{_CLOCK}{_ZONE}")
_LENIENT: Final = re.compile(rf"{_DAY}([T ]{_CLOCK} ?({_ZONE}|UTC)?)?")
_MONTH: Final = re.compile(r"[0-9]{4}-[0-9]{2}")


class InstantError(ValueError):
    """A text or datetime that does not name one instant."""


class PeriodError(ValueError):
    """A period that does not start before it ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """The half-open period [start, end); given in any zone, held in UTC.

    >>> day = Period(start=parse_utc("2026-10-01T00:00:00Z"), end=parse_utc("2026-10-02T00:00:00Z"))
    >>> day.duration_s, day.contains(day.start), day.contains(day.end)
    (86400.0, True, False)
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        """Refuse naive instants and periods that do not start before they end; hold UTC."""
        object.__setattr__(self, "start", as_utc(self.start))
        object.__setattr__(self, "end", as_utc(self.end))
        if self.start >= self.end:
            raise PeriodError(f"a period must start before it ends, not {self.start} to {self.end}")

    @property
    def duration_microsecond(self) -> int:
        """Length in whole microseconds, exact."""
        return (self.end - self.start) // _MICROSECOND

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return self.duration_microsecond / MICROSECOND_PER_S

    def contains(self, at: datetime) -> bool:
        """Whether start <= at < end."""
        return self.start <= at < self.end

    def covers(self, other: "Period") -> bool:
        """Whether the other period lies wholly inside this one."""
        return self.start <= other.start and other.end <= self.end

    def overlap(self, other: "Period") -> "Period | None":
        """The common part, None where there is none (touching periods share nothing)."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        return Period(start=start, end=end) if start < end else None


def overlap_s(first: Period, second: Period) -> float:
    """Length of the common part of two periods.

    overlap = max(0, min(end1, end2) - max(start1, start2))

    Args:
        first: any period.
        second: any period.

    Returns:
        Seconds, >= 0.

    Source: ISO 8601-1:2019, 5.5 (time intervals), read half-open.

    >>> night = Period(start=parse_utc("2026-10-01T22:00Z"), end=parse_utc("2026-10-02T06:00Z"))
    >>> overlap_s(night, day_of(parse_utc("2026-10-02T12:00:00Z")))
    21600.0
    """
    common = first.overlap(second)
    return common.duration_s if common else 0.0


def as_utc(at: datetime) -> datetime:
    """The same instant in UTC; a naive datetime is refused.

    >>> as_utc(parse_utc("2026-10-01T02:00:00+02:00"))
    datetime.datetime(2026, 10, 1, 0, 0, tzinfo=datetime.timezone.utc)
    """
    if at.tzinfo is UTC:
        return at
    if at.utcoffset() is None:
        raise InstantError(f"{at} has no time zone; give an aware datetime")
    return at.astimezone(UTC)


def parse_utc(text: str) -> datetime:
    """Read one ISO 8601 instant that names its zone.

    instant = local time - offset

    Args:
        text: ``2026-10-01T00:00:00Z``, also with an offset, a fraction, or without seconds.

    Returns:
        The instant, aware, UTC.

    Raises:
        InstantError: another shape, no zone, no such date, or finer than a microsecond.

    Source: ISO 8601-1:2019, 5.4.2.1; RFC 3339, section 5.6.

    >>> parse_utc("2026-10-01T02:00:00+02:00")
    datetime.datetime(2026, 10, 1, 0, 0, tzinfo=datetime.timezone.utc)
    """
    found = _STRICT.fullmatch(text)
    if not found:
        raise InstantError(f"{text[:60]!r} is not an instant; write it as 2026-10-01T00:00:00Z")
    return _instant(text, found)


def parse_utc_lenient(text: str) -> datetime:
    """Read an instant as exports write it: with a blank for the T, without a zone (then UTC), or a
    bare day.

    instant = local time - offset, with offset 0 where none is written

    Args:
        text: ``2026-10-01 00:00:00``, ``2026-10-01 00:00:00 UTC``, ``2026-10-01`` or the strict
            form.

    Returns:
        The instant, aware, UTC; a bare day is its midnight.

    Raises:
        InstantError: another shape, or no such date.

    Source: RFC 3339, section 5.6 (the blank); FOCUS 1.2, date/time format (UTC).

    >>> parse_utc_lenient("2026-10-01 00:00:00") == parse_utc("2026-10-01T00:00:00Z")
    True
    """
    found = _LENIENT.fullmatch(text)
    if not found:
        raise InstantError(
            f"{text[:60]!r} is not an instant; write it as 2026-10-01 00:00:00, in UTC"
        )
    return _instant(text, found)


def _instant(text: str, found: re.Match[str]) -> datetime:
    """Build the instant from the parts that a reader matched."""
    clock = found["clock"] or "00:00"
    fraction = f".{found['fraction'].ljust(6, '0')}" if found["fraction"] else ""
    seconds = "" if len(clock) == len("00:00:00") else ":00"
    try:
        at = datetime.fromisoformat(
            f"{found['day']}T{clock}{seconds}{fraction}{found['zone'] or 'Z'}"
        )
        return at.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InstantError(f"{text[:60]!r} is not an instant: {error}") from error


def hour_of(at: datetime) -> Period:
    """The UTC hour that holds the instant.

    >>> hour_of(parse_utc("2026-10-01T13:45:00Z")).start.isoformat()
    '2026-10-01T13:00:00+00:00'
    """
    start = as_utc(at).replace(minute=0, second=0, microsecond=0)
    return Period(start=start, end=start + timedelta(hours=1))


def day_of(at: datetime) -> Period:
    """The UTC day that holds the instant.

    >>> day_of(parse_utc("2026-10-01T01:00:00+02:00")).start.isoformat()
    '2026-09-30T00:00:00+00:00'
    """
    start = as_utc(at).replace(hour=0, minute=0, second=0, microsecond=0)
    return Period(start=start, end=start + timedelta(days=1))


def month_of(at: datetime) -> Period:
    """The UTC calendar month that holds the instant.

    >>> month_of(parse_utc("2026-12-31T23:59:59Z")).end.isoformat()
    '2027-01-01T00:00:00+00:00'
    """
    start = day_of(at).start.replace(day=1)
    return Period(start=start, end=(start + timedelta(days=31)).replace(day=1))


def month_label(period: Period) -> str:
    """The month in which the period starts, as text.

    >>> month_label(month_of(parse_utc("2026-10-05T00:00:00Z")))
    '2026-10'
    """
    return f"{period.start.year:04d}-{period.start.month:02d}"


def month_from_label(text: str) -> Period:
    """The calendar month of a label such as ``2026-10``.

    >>> month_from_label("2026-02").duration_s / 86400
    28.0
    """
    if not _MONTH.fullmatch(text):
        raise InstantError(f"{text[:60]!r} is not a month; write it as 2026-10")
    return month_of(parse_utc_lenient(f"{text}-01"))


def month_periods(period: Period) -> list[Period]:
    """The whole calendar months that the period touches, in order.

    >>> quarter = Period(start=parse_utc("2026-01-31T00:00Z"), end=parse_utc("2026-03-01T00:00Z"))
    >>> [month_label(month) for month in month_periods(quarter)]
    ['2026-01', '2026-02']
    """
    return [month_of(part.start) for part in split_by_month(period)]


def split_by_hour(period: Period) -> list[Period]:
    """The parts of the period between whole UTC hours; they follow each other without hole or
    overlap.

    >>> stretch = Period(start=parse_utc("2026-10-01T00:30Z"), end=parse_utc("2026-10-01T02:15Z"))
    >>> [part.duration_s for part in split_by_hour(stretch)]
    [1800.0, 3600.0, 900.0]
    """
    return _split(period, hour_of)


def split_by_day(period: Period) -> list[Period]:
    """The parts of the period between UTC midnights; they follow each other without hole or
    overlap.

    >>> stretch = Period(start=parse_utc("2026-10-01T18:00Z"), end=parse_utc("2026-10-02T06:00Z"))
    >>> [part.duration_s for part in split_by_day(stretch)]
    [21600.0, 21600.0]
    """
    return _split(period, day_of)


def split_by_month(period: Period) -> list[Period]:
    """The parts of the period between UTC calendar months; they follow each other without hole or
    overlap.

    >>> stretch = Period(start=parse_utc("2026-09-30T00:00Z"), end=parse_utc("2026-10-02T00:00Z"))
    >>> [part.duration_s for part in split_by_month(stretch)]
    [86400.0, 86400.0]
    """
    return _split(period, month_of)


def _split(period: Period, unit_of: Callable[[datetime], Period]) -> list[Period]:
    """Cut the period at the ends of the calendar units that it touches."""
    parts: list[Period] = []
    start = period.start
    while start < period.end:
        end = min(unit_of(start).end, period.end)
        parts.append(Period(start=start, end=end))
        start = end
    return parts

"""Which days of a source hold charges, which are missing, which may still come. No tables here."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import Final

# Providers finish a day's charges within two days; what is missing after that is late.
USUAL_DELAY_DAYS: Final = 3
ONE_DAY: Final = timedelta(days=1)


class DayState(StrEnum):
    """What is known of a day."""

    CHARGED = "charged"
    GAP = "gap"  # between days with charges
    LATE = "late"  # after the last day with charges, and due by now
    DUE = "due"  # may still come
    OUTSIDE = "outside"  # before the first charge, or yet to be


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveredDay:
    """One day of the calendar."""

    day: date
    state: DayState


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveredMonth:
    """One row of the calendar."""

    month: str
    days: tuple[CoveredDay, ...]

    @property
    def start(self) -> date:
        """Its first day."""
        return self.days[0].day

    @property
    def filler(self) -> range:
        """One for each day that this month lacks of 31, so that rows are equally long."""
        return range(31 - len(self.days))

    @property
    def charged(self) -> int:
        """How many of its days hold charges."""
        return sum(one.state == DayState.CHARGED for one in self.days)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Days on end without charges, both ends included."""

    first: date
    last: date
    is_late: bool = False

    @property
    def days(self) -> int:
        """How many days."""
        return (self.last - self.first).days + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The calendar of a source, newest month first, and its gaps by name."""

    months: tuple[CoveredMonth, ...]
    stretches: tuple[Stretch, ...]
    charged_through: date | None


def coverage_of(charged: Collection[date], *, as_of: date, months: int = 12) -> Coverage:
    """The last `months` months up to `as_of`, from the days that hold charges."""
    if not charged:
        return Coverage(months=(), stretches=(), charged_through=None)
    held = frozenset(charged)
    first, last = min(held), max(held)
    start = max(_month_start(first), _back(_month_start(as_of), months - 1))
    end = max(as_of, last)
    days = [
        CoveredDay(day=day, state=_state(day, held, first=first, last=last, as_of=as_of))
        for day in _days(start, _next_month(end) - ONE_DAY)
    ]
    return Coverage(
        months=tuple(reversed(list(_by_month(days)))),
        stretches=tuple(_stretches(days)),
        charged_through=last,
    )


def _state(day: date, held: Collection[date], *, first: date, last: date, as_of: date) -> DayState:
    if day in held:
        return DayState.CHARGED
    if day < first or day >= as_of:
        return DayState.OUTSIDE
    if day < last:
        return DayState.GAP
    return DayState.LATE if (as_of - day).days > USUAL_DELAY_DAYS else DayState.DUE


def _stretches(days: list[CoveredDay]) -> Iterator[Stretch]:
    missing = [one for one in days if one.state in (DayState.GAP, DayState.LATE)]
    begin = 0
    for index, one in enumerate(missing):
        follows = missing[index + 1] if index + 1 < len(missing) else None
        if follows is not None and follows.day - one.day == ONE_DAY and follows.state == one.state:
            continue
        yield Stretch(first=missing[begin].day, last=one.day, is_late=one.state == DayState.LATE)
        begin = index + 1


def _by_month(days: list[CoveredDay]) -> Iterator[CoveredMonth]:
    month: list[CoveredDay] = []
    for one in days:
        if month and one.day.month != month[-1].day.month:
            yield CoveredMonth(month=f"{month[0].day:%Y-%m}", days=tuple(month))
            month = []
        month.append(one)
    if month:
        yield CoveredMonth(month=f"{month[0].day:%Y-%m}", days=tuple(month))


def _days(first: date, last: date) -> Iterator[date]:
    for number in range((last - first).days + 1):
        yield first + timedelta(days=number)


def _month_start(day: date) -> date:
    return day.replace(day=1)


def _next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def _back(start: date, months: int) -> date:
    number = start.year * 12 + start.month - 1 - months
    return date(number // 12, number % 12 + 1, 1)

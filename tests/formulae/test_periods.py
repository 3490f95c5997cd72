"""Periods are half-open, in UTC, and split without hole or overlap."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae import periods
from formulae.periods import InstantError, Period, PeriodError
from tests.formulae.builders import at, instants, make_period
from tests.formulae.builders import periods as any_period

SPLITS = [
    (periods.split_by_hour, periods.hour_of),
    (periods.split_by_day, periods.day_of),
    (periods.split_by_month, periods.month_of),
]


@pytest.mark.parametrize(("split", "unit_of"), SPLITS)
@given(period=any_period(max_days=20))
def test_parts_of_a_split_cover_the_period_and_stay_in_their_unit(
    split: Callable[[Period], list[Period]],
    unit_of: Callable[[datetime], Period],
    period: Period,
) -> None:
    parts = split(period)
    assert (parts[0].start, parts[-1].end) == (period.start, period.end)
    assert all(left.end == right.start for left, right in pairwise(parts))
    assert all(unit_of(part.start).covers(part) for part in parts)
    assert sum(part.duration_microsecond for part in parts) == period.duration_microsecond


@given(first=any_period(), second=any_period())
def test_overlap_is_symmetric_and_inside_both(first: Period, second: Period) -> None:
    common = first.overlap(second)
    assert common == second.overlap(first)
    assert periods.overlap_s(first, second) == (common.duration_s if common else 0)
    assert common is None or (first.covers(common) and second.covers(common))


@given(period=any_period(), instant=instants)
def test_an_instant_is_in_exactly_one_of_two_touching_periods(
    period: Period, instant: datetime
) -> None:
    following = Period(start=period.end, end=period.end + timedelta(days=1))
    assert not (period.contains(instant) and following.contains(instant))
    assert following.contains(period.end)
    assert not period.contains(period.end)


def test_touching_periods_do_not_overlap() -> None:
    assert make_period(0, 10).overlap(make_period(10, 20)) is None
    assert periods.overlap_s(make_period(0, 10), make_period(10, 20)) == 0


def test_a_period_in_another_zone_is_held_in_utc() -> None:
    east = timezone(timedelta(hours=8))
    period = Period(
        start=datetime(2026, 10, 1, 8, tzinfo=east), end=datetime(2026, 10, 1, 9, tzinfo=east)
    )
    assert period == make_period(0, 3600)
    assert period.start.tzinfo is UTC


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(InstantError, match="no time zone"):
        Period(start=datetime(2026, 10, 1), end=at(10))


@pytest.mark.parametrize("end_s", [0, -1])
def test_a_period_that_does_not_start_before_its_end_is_refused(end_s: float) -> None:
    with pytest.raises(PeriodError):
        make_period(0, end_s)


@pytest.mark.parametrize(
    "text",
    [
        "2026-10-01T00:00:00Z",
        "2026-10-01T00:00Z",
        "2026-10-01T02:00:00+02:00",
        "2026-09-30T19:00:00-05:00",
        "2026-10-01T00:00:00.000000000Z",
        "2026-10-01T00:00:00.0Z",
    ],
)
def test_the_same_instant_is_read_from_every_strict_form(text: str) -> None:
    assert periods.parse_utc(text) == at(0)


@pytest.mark.parametrize(
    "text",
    [
        "", "2026-10-01", "2026-10-01T00:00:00", "2026-10-01 00:00:00Z", "20261001T000000Z",
        "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-10-01T24:00:00Z",
        "2026-10-01T00:00:60Z", "2026-10-01T00:00:00.0000001Z", "2026-10-01T00:00:00+2:00",
        "2026-10-01T00:00:00+25:00", "0001-01-01T00:00:00+01:00", "2026-10-01T00:00:00Z ",
        "\u0662026-10-01T00:00:00Z",
    ],
)  # fmt: skip
def test_text_that_names_no_instant_is_refused(text: str) -> None:
    with pytest.raises(InstantError):
        periods.parse_utc(text)


@pytest.mark.parametrize(
    "text",
    ["2026-10-01 00:00:00", "2026-10-01", "2026-10-01T00:00:00", "2026-10-01 00:00:00 UTC",
     "2026-10-01 00:00:00.000", "2026-10-01 02:00:00+02:00", "2026-10-01T00:00:00Z"],
)  # fmt: skip
def test_the_lenient_reader_takes_what_exports_write(text: str) -> None:
    assert periods.parse_utc_lenient(text) == at(0)


@pytest.mark.parametrize("text", ["", "NULL", "01/10/2026", "2026-10-01 00:00:00 CET", "2026-10"])
def test_the_lenient_reader_refuses_the_rest(text: str) -> None:
    with pytest.raises(InstantError):
        periods.parse_utc_lenient(text)


@given(instants)
def test_isoformat_round_trips(instant: datetime) -> None:
    assert periods.parse_utc(instant.isoformat()) == instant


@given(any_period(max_days=800))
def test_month_periods_are_whole_months_that_cover_the_period(period: Period) -> None:
    months = periods.month_periods(period)
    assert all(periods.month_from_label(periods.month_label(month)) == month for month in months)
    assert all(left.end == right.start for left, right in pairwise(months))
    assert Period(start=months[0].start, end=months[-1].end).covers(period)


@pytest.mark.parametrize("label", ["2026", "2026-1", "2026-13", "2026-10-01", "10-2026"])
def test_a_text_that_is_no_month_is_refused(label: str) -> None:
    with pytest.raises(InstantError):
        periods.month_from_label(label)


@given(st.integers(min_value=1, max_value=12))
def test_a_month_ends_where_the_next_begins(month: int) -> None:
    this = periods.month_from_label(f"2026-{month:02d}")
    assert this.end.day == 1
    assert this.end.month == month % 12 + 1

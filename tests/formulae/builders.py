"""Plain builders of periods and samples for the tests of formulae."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from formulae.periods import Period

START = datetime(2026, 10, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def make_period(start_s: float = 0.0, end_s: float = 3_600.0) -> Period:
    return Period(start=at(start_s), end=at(end_s))


instants = st.datetimes(
    min_value=datetime(2024, 1, 1), max_value=datetime(2027, 1, 1), timezones=st.just(UTC)
)


@st.composite
def periods(draw: st.DrawFn, *, max_days: int = 100) -> Period:
    start = draw(instants)
    length = draw(
        st.timedeltas(min_value=timedelta(microseconds=1), max_value=timedelta(days=max_days))
    )
    return Period(start=start, end=start + length)

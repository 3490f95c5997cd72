"""The fast metering agrees with the plain formulae, and parts always sum."""

from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from carbon.attribution import microsecond_of
from carbon.metering import (
    HOUR_MICROSECOND,
    energy_by_hour,
    integrate_samples,
    pieces_from_rows,
    split_at_hours,
)
from formulae.energy import EnergyInterval, integrate_power
from formulae.energy import energy_by_hour as plain_hours
from formulae.periods import Period

T0 = datetime(2026, 10, 1, tzinfo=UTC)
NOTHING = pieces_from_rows([])
FAR = 2**61


def at(second: float) -> int:
    return microsecond_of(T0 + timedelta(seconds=second))


sample_lists = st.lists(
    st.tuples(
        st.integers(0, 3 * 3_600 * 1_000_000),
        st.floats(0, 1_000, allow_nan=False, allow_subnormal=False),
    ),
    min_size=2,
    max_size=40,
    unique_by=lambda pair: pair[0],
)


@given(sample_lists, st.sampled_from([10.0, 120.0, 3_600.0]))
def test_samples_become_the_same_hours_as_by_the_plain_formula(pairs, max_gap_s):
    origin = microsecond_of(T0)
    instants = np.array([origin + offset for offset, _ in pairs])
    powers = np.array([power for _, power in pairs])
    pieces = integrate_samples(
        np.ones(len(pairs), dtype=np.int64), instants, powers, max_gap_s=max_gap_s
    )
    table = energy_by_hour(pieces, NOTHING, start=0, end=FAR)
    whole = integrate_power(
        [(T0 + timedelta(microseconds=offset), power) for offset, power in pairs],
        max_gap_s=max_gap_s,
    )
    expected = plain_hours(whole.intervals)
    assert [microsecond_of(hour.hour.start) for hour in expected] == table.hour.tolist()
    assert [hour.energy_millijoule for hour in expected] == table.measured_millijoule.tolist()
    assert [round(hour.covered_s * 1e6) for hour in expected] == table.covered_microsecond.tolist()


@given(
    st.integers(0, 4 * 3_600_000_000),
    st.integers(1, 5 * 3_600_000_000),
    st.integers(0, 10**13),
)
def test_an_interval_splits_at_hours_as_by_the_plain_formula(offset, duration, energy):
    start = microsecond_of(T0) + offset
    parts = split_at_hours(pieces_from_rows([(1, start, start + duration, energy)]))
    begin = T0 + timedelta(microseconds=offset)
    period = Period(start=begin, end=begin + timedelta(microseconds=duration))
    expected = plain_hours([EnergyInterval(period=period, energy_millijoule=energy)])
    order = np.argsort(parts.start)
    assert [hour.energy_millijoule for hour in expected] == parts.energy_millijoule[order].tolist()
    assert parts.energy_millijoule.sum() == energy


def test_a_metered_interval_wins_over_the_samples_of_the_same_seconds():
    sampled = pieces_from_rows([(1, at(0), at(100), 1_000)])
    metered = pieces_from_rows([(1, at(40), at(60), 77)])
    table = energy_by_hour(sampled, metered, start=0, end=FAR)
    assert table.measured_millijoule.tolist() == [400 + 77 + 400]
    assert table.covered_microsecond.tolist() == [100_000_000]


def test_an_interval_longer_than_an_hour_is_spread():
    metered = pieces_from_rows([(1, at(0), at(7_200), 1_001)])
    table = energy_by_hour(NOTHING, metered, start=0, end=FAR)
    assert table.spread_millijoule.tolist() == [501, 500]
    assert table.measured_millijoule.tolist() == [0, 0]


def test_only_the_hours_asked_for_are_given():
    metered = pieces_from_rows([(1, at(0), at(3_600), 5), (1, at(3_600), at(7_200), 7)])
    table = energy_by_hour(NOTHING, metered, start=at(3_600), end=at(3_600) + HOUR_MICROSECOND)
    assert table.measured_millijoule.tolist() == [7]


def test_a_gap_longer_than_allowed_gives_neither_energy_nor_cover():
    pieces = integrate_samples(
        np.array([1, 1, 1]), np.array([at(0), at(60), at(300)]), np.full(3, 100.0), max_gap_s=120
    )
    assert pieces.energy_millijoule.tolist() == [6_000_000]

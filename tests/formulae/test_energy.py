"""Energy adds up, gaps stay gaps, and unknown stays unknown."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae import energy
from formulae.emissions import operational_kgco2e
from formulae.energy import EnergyInterval, Quality
from formulae.units import QuantityError, kwh_from_millijoule
from tests.formulae.builders import at, make_period, periods

power = st.floats(min_value=0, max_value=2_000)
series = st.dictionaries(
    st.integers(min_value=0, max_value=50_000), power, min_size=3, max_size=40
).map(lambda points: [(at(second), watts) for second, watts in sorted(points.items())])


def steady(
    power_w: float = 650.0, *, step_s: int = 15, until_s: int = 3600
) -> list[tuple[datetime, float]]:
    return [(at(second), power_w) for second in range(0, until_s + 1, step_s)]


def test_256_gpus_at_650_w_for_an_hour_are_166_4_kwh_and_79_872_kg() -> None:
    one = energy.integrate_power(steady(), max_gap_s=30)
    assert len(one.intervals) == 240
    assert one.coverage_fraction == 1.0
    accelerator_kwh = kwh_from_millijoule(256 * one.energy_millijoule)
    assert accelerator_kwh == 166.4
    facility_kwh = energy.facility_energy_kwh(energy.it_energy_kwh(accelerator_kwh, 1.0), 1.2)
    assert operational_kgco2e(facility_kwh, 400) == pytest.approx(79.872, rel=1e-12)


@given(samples=series, data=st.data())
def test_a_series_in_two_parts_that_share_a_sample_sums_to_the_whole(
    samples: list[tuple[datetime, float]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(min_value=1, max_value=len(samples) - 2))
    whole = energy.integrate_power(samples, max_gap_s=900)
    left = energy.integrate_power(samples[: cut + 1], max_gap_s=900)
    right = energy.integrate_power(samples[cut:], max_gap_s=900)
    assert whole.energy_millijoule == left.energy_millijoule + right.energy_millijoule
    assert whole.covered_s == pytest.approx(left.covered_s + right.covered_s)


@given(samples=series, data=st.data())
def test_order_and_repeats_change_nothing(
    samples: list[tuple[datetime, float]], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(samples + samples[:2]))
    assert energy.integrate_power(shuffled, max_gap_s=900) == energy.integrate_power(
        samples, max_gap_s=900
    )


@given(samples=series, gap_s=st.floats(min_value=1, max_value=60_000))
def test_a_wider_trusted_gap_never_lowers_energy_or_coverage(
    samples: list[tuple[datetime, float]], gap_s: float
) -> None:
    narrow = energy.integrate_power(samples, max_gap_s=gap_s)
    wide = energy.integrate_power(samples, max_gap_s=gap_s * 2)
    assert wide.energy_millijoule >= narrow.energy_millijoule
    assert 0 <= (narrow.coverage_fraction or 0) <= (wide.coverage_fraction or 0) <= 1


def test_a_gap_is_not_bridged_and_lowers_the_coverage() -> None:
    samples = [(at(0), 600.0), (at(60), 600.0), (at(180), 600.0), (at(240), 600.0)]
    result = energy.integrate_power(samples, max_gap_s=60)
    assert result.energy_millijoule == 2 * 600 * 60 * 1000
    assert result.covered_s == 120
    assert result.coverage_fraction == 0.5


def test_a_ramp_is_its_mean() -> None:
    result = energy.integrate_power([(at(0), 0.0), (at(60), 700.0)], max_gap_s=60)
    assert result.energy_millijoule == 350 * 60 * 1000


@pytest.mark.parametrize("samples", [[], [(at(0), 650.0)], [(at(0), 650.0), (at(0), 650.0)]])
def test_fewer_than_two_instants_tell_nothing(samples: list[tuple[datetime, float]]) -> None:
    result = energy.integrate_power(samples, max_gap_s=60)
    assert result.energy_kwh is None
    assert result.coverage_fraction is None


@pytest.mark.parametrize("watts", [-1.0, float("nan"), float("inf")])
def test_impossible_power_is_refused(watts: float) -> None:
    with pytest.raises(QuantityError, match="power sample"):
        energy.integrate_power([(at(0), watts)], max_gap_s=60)


def test_two_powers_at_one_instant_are_refused() -> None:
    with pytest.raises(QuantityError, match="two readings"):
        energy.integrate_power([(at(0), 1.0), (at(0), 2.0)], max_gap_s=60)


def test_a_counter_is_exact_and_its_long_gap_is_spread() -> None:
    readings = [(at(0), 5_000), (at(60), 45_000), (at(660), 445_000)]
    result = energy.integrate_counter(readings, max_gap_s=120)
    assert result.energy_millijoule == 440_000
    assert [item.quality for item in result.intervals] == [Quality.MEASURED, Quality.SPREAD]
    assert result.coverage_fraction == 1.0


def test_a_reset_keeps_what_came_after_it_and_is_not_covered() -> None:
    result = energy.integrate_counter([(at(0), 9_000), (at(60), 1_000)], max_gap_s=120)
    assert result.energy_millijoule == 1_000
    assert result.intervals[0].quality is Quality.RESET
    assert result.coverage_fraction == 0.0
    [hour] = energy.energy_by_hour(result.intervals)
    assert (hour.energy_millijoule, hour.covered_s) == (1_000, 0)


@given(st.lists(st.integers(min_value=0, max_value=10**15), min_size=2, max_size=30))
def test_a_rising_counter_gives_last_minus_first(values: list[int]) -> None:
    readings = [(at(index), value) for index, value in enumerate(sorted(values))]
    result = energy.integrate_counter(readings, max_gap_s=60)
    assert result.energy_millijoule == max(values) - min(values)


def test_a_negative_counter_is_refused() -> None:
    with pytest.raises(QuantityError, match="counter"):
        energy.counter_delta(-1, 5)


@given(period=periods(max_days=10), energy_millijoule=st.integers(min_value=0, max_value=10**18))
def test_parts_by_hour_sum_to_the_interval(period: object, energy_millijoule: int) -> None:
    interval = EnergyInterval(period=period, energy_millijoule=energy_millijoule)  # type: ignore[arg-type]
    parts = energy.split_energy_by_hour(interval)
    assert sum(part.energy_millijoule for part in parts) == energy_millijoule
    hours = energy.energy_by_hour([interval])
    assert sum(hour.energy_millijoule for hour in hours) == energy_millijoule
    assert all(0 < hour.coverage_fraction <= 1 for hour in hours)
    covered_s = sum(hour.covered_s for hour in hours)
    assert covered_s == pytest.approx(interval.period.duration_s)


def test_a_full_hour_of_samples_covers_its_hour_wholly() -> None:
    [hour] = energy.energy_by_hour(energy.integrate_power(steady(), max_gap_s=15).intervals)
    assert hour.hour == make_period(0, 3600)
    assert hour.coverage_fraction == 1.0
    assert hour.energy_millijoule == 2_340_000_000


def test_an_hour_without_intervals_is_absent() -> None:
    early = EnergyInterval(period=make_period(0, 60), energy_millijoule=1)
    late = EnergyInterval(period=make_period(7200, 7260), energy_millijoule=1)
    hours = energy.energy_by_hour([late, early])
    assert [hour.hour.start - at(0) for hour in hours] == [timedelta(0), timedelta(hours=2)]


@pytest.mark.parametrize(("factor", "known"), [(None, 1.2), (1.5, None)])
def test_energy_is_unknown_where_a_factor_is(factor: float | None, known: float | None) -> None:
    it_kwh = energy.it_energy_kwh(100.0, factor)
    assert energy.facility_energy_kwh(it_kwh, known) is None
    assert energy.it_energy_kwh(None, 1.5) is None


@pytest.mark.parametrize("factor", [0.9, float("nan"), -1])
def test_factors_below_one_are_refused(factor: float) -> None:
    with pytest.raises(QuantityError, match="host_factor"):
        energy.it_energy_kwh(1.0, factor)
    with pytest.raises(QuantityError, match="pue"):
        energy.facility_energy_kwh(1.0, factor)


@pytest.mark.parametrize(
    ("watts", "plausible"), [(0, True), (700, True), (840, True), (900, False)]
)
def test_energy_beyond_a_fifth_over_the_limit_is_implausible(watts: int, plausible: bool) -> None:
    got = energy.is_plausible_energy(watts * 60_000, duration_s=60, power_limit_w=700)
    assert got is plausible

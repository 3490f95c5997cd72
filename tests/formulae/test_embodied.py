"""Embodied carbon and water keep published totals and bounds; thresholds of compute are exact."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae.embodied import (
    Ranged,
    embodied_kg_per_accelerator_h,
    embodied_range_kg_per_accelerator_h,
    water_range_l,
)
from formulae.emissions import operational_kgco2e, water_l
from formulae.energy import facility_energy_kwh
from formulae.thresholds import (
    GENERAL_PURPOSE,
    SYSTEMIC_RISK,
    ThresholdState,
    training_compute_threshold,
)
from formulae.units import QuantityError

BLOOM = {
    "server_kg": 2_500.0,
    "accelerators_per_server": 8.0,
    "accelerator_kg": 150.0,
    "lifetime_h": 6 * 8_760.0,
    "utilisation_fraction": 0.85,
}


def test_bloom_carries_11_2_tonnes_at_10_3_grams_an_hour() -> None:
    rate = embodied_kg_per_accelerator_h(**BLOOM)
    assert rate * 1_082_990 == pytest.approx(11_200, rel=0.002)
    assert rate * 1_000 == pytest.approx(10.3, abs=0.06)


def test_bloom_splits_into_the_published_server_and_gpu_parts() -> None:
    server = embodied_kg_per_accelerator_h(**{**BLOOM, "accelerator_kg": 0.0})
    gpu = embodied_kg_per_accelerator_h(**{**BLOOM, "server_kg": 0.0})
    assert server * 1_082_990 == pytest.approx(7_570, rel=0.002)
    assert gpu * 1_082_990 == pytest.approx(3_640, rel=0.002)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("server_kg", -1.0),
        ("accelerators_per_server", 0.0),
        ("accelerator_kg", -0.1),
        ("lifetime_h", 0.0),
        ("utilisation_fraction", 85.0),
        ("utilisation_fraction", 0.0),
    ],
)
def test_what_cannot_be_meant_is_refused(name: str, value: float) -> None:
    with pytest.raises(QuantityError):
        embodied_kg_per_accelerator_h(**{**BLOOM, name: value})


masses = st.floats(min_value=0, max_value=10_000)


def ranged(values: list[float]) -> Ranged:
    low, value, high = sorted(values)
    return Ranged(low=low, value=value, high=high)


@given(
    st.lists(masses, min_size=3, max_size=3),
    st.lists(masses, min_size=3, max_size=3),
    st.lists(st.floats(min_value=1_000, max_value=100_000), min_size=3, max_size=3),
    st.lists(st.floats(min_value=0.1, max_value=1), min_size=3, max_size=3),
)
def test_the_range_holds_the_rate_of_every_mix_of_ends(
    server: list[float], accelerator: list[float], life: list[float], use: list[float]
) -> None:
    span = embodied_range_kg_per_accelerator_h(
        server_kg=ranged(server),
        accelerators_per_server=8,
        accelerator_kg=ranged(accelerator),
        lifetime_h=ranged(life),
        utilisation_fraction=ranged(use),
    )
    for index in range(3):
        rate = embodied_kg_per_accelerator_h(
            server_kg=server[index],
            accelerators_per_server=8,
            accelerator_kg=accelerator[index],
            lifetime_h=life[index],
            utilisation_fraction=use[index],
        )
        assert span.low * (1 - 1e-9) <= rate <= span.high * (1 + 1e-9)


def test_a_range_out_of_order_is_refused() -> None:
    with pytest.raises(QuantityError, match="low over value to high"):
        Ranged(low=2, value=1, high=3)


def test_water_follows_it_energy_and_not_the_facility() -> None:
    span = water_range_l(Ranged.exactly(166.4), Ranged(low=0.02, value=0.12, high=0.25))
    point = water_l(
        it_energy_kwh=166.4, facility_energy_kwh=199.68, wue_l_per_kwh=0.12, source_l_per_kwh=None
    )
    assert span.value == point.on_site_l
    assert (span.low, span.high) == (166.4 * 0.02, 166.4 * 0.25)


def test_negative_water_is_refused() -> None:
    with pytest.raises(QuantityError, match="wue_l_per_kwh"):
        water_range_l(Ranged.exactly(1), Ranged(low=-1, value=0, high=1))


@pytest.mark.parametrize(("g_per_kwh", "kgco2e"), [(400, 79.87), (30, 5.99)])
def test_the_same_energy_on_two_grids(g_per_kwh: float, kgco2e: float) -> None:
    assert operational_kgco2e(199.68, g_per_kwh) == pytest.approx(kgco2e, abs=0.005)


def test_llama_65b_takes_449_megawatt_hours_and_emits_173_tonnes() -> None:
    facility_kwh = facility_energy_kwh(1_022_362 * 0.4, 1.1)
    assert facility_kwh == pytest.approx(449_000, rel=0.002)
    assert operational_kgco2e(facility_kwh, 385) == pytest.approx(173_000, rel=0.002)


def test_a_pue_of_1_19_holds_and_one_below_1_is_refused() -> None:
    assert facility_energy_kwh(100, 1.19) == pytest.approx(119)
    with pytest.raises(QuantityError, match="pue"):
        facility_energy_kwh(100, 0.99)


@pytest.mark.parametrize(
    ("flop", "state"),
    [
        (0, ThresholdState.NONE),
        (3.3e24, ThresholdState.NONE),
        (1e25 / 3, ThresholdState.NEAR),
        (1e25, ThresholdState.NEAR),
        (1.0001e25, ThresholdState.ABOVE),
        (3.8e25, ThresholdState.ABOVE),
    ],
)
def test_systemic_risk_is_presumed_only_above_1e25_flop(flop: float, state: ThresholdState) -> None:
    reading = training_compute_threshold(flop)
    assert reading.state is state
    assert reading.threshold is SYSTEMIC_RISK
    assert reading.share_fraction == pytest.approx(flop / 1e25)


def test_the_indicative_line_of_general_purpose_models_is_1e23_flop() -> None:
    reading = training_compute_threshold(6e23, GENERAL_PURPOSE)
    assert reading.state is ThresholdState.ABOVE
    assert reading.share_fraction == pytest.approx(6)
    assert "10^23" in reading.threshold.source


@pytest.mark.parametrize("flop", [-1.0, float("nan"), float("inf")])
def test_compute_that_cannot_be_is_refused(flop: float) -> None:
    with pytest.raises(QuantityError, match="training_flop"):
        training_compute_threshold(flop)

"""The estimate composes the formulae, repeats by seed, and refuses wrong units by name."""

from dataclasses import fields
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulae import estimate
from formulae.estimate import (
    EstimateInputError,
    EstimateSpec,
    Percentiles,
    Triangular,
    estimate_training,
)
from formulae.money import Money

MFU_RANGE = Triangular(low=0.35, mode=0.42, high=0.5)


def make_spec(**changes: object) -> EstimateSpec:
    values: dict[str, object] = {
        "active_params": 1e10,
        "tokens": 1e13,
        "accelerators": 256,
        "peak_flop_per_s": 989.4e12,
        "mfu": 0.55,
    }
    return EstimateSpec(**(values | changes))  # type: ignore[arg-type]


def make_full_spec(**changes: object) -> EstimateSpec:
    values: dict[str, object] = {
        "mfu": 0.42,
        "goodput": 0.9,
        "price_per_accelerator_h": Decimal("2.10"),
        "currency": "USD",
        "power_w": 650.0,
        "host_factor": 1.5,
        "pue": 1.2,
        "g_per_kwh": 400.0,
        "draws": 500,
    }
    return make_spec(**(values | changes))


def test_the_dense_bf16_case_is_6e23_flop_306277_hours_and_49_85_days() -> None:
    result = estimate_training(make_spec())
    assert result.flop == 6.0e23
    assert round(result.accelerator_h) == 306_277
    assert round(result.days, 2) == 49.85


def test_the_demo_plan_takes_about_72_days() -> None:
    assert estimate_training(make_full_spec()).days == pytest.approx(72.5, abs=0.1)


def test_what_is_not_given_is_unknown_and_not_zero() -> None:
    result = estimate_training(make_spec())
    assert result.cost is None
    assert result.accelerator_energy_kwh is None
    assert result.scope_2_location_kgco2e is None
    assert result.interval is None
    half = estimate_training(make_full_spec(host_factor=None, mfu_range=MFU_RANGE))
    assert half.accelerator_energy_kwh is not None
    assert half.it_energy_kwh is half.facility_energy_kwh is half.scope_2_location_kgco2e is None
    assert half.interval is not None
    assert half.interval.it_energy_kwh is None


def test_the_boundaries_multiply_from_accelerator_to_carbon() -> None:
    result = estimate_training(make_full_spec())
    accelerator_kwh = result.accelerator_h * 0.65
    assert result.accelerator_energy_kwh == pytest.approx(accelerator_kwh)
    assert result.it_energy_kwh == pytest.approx(accelerator_kwh * 1.5)
    assert result.facility_energy_kwh == pytest.approx(accelerator_kwh * 1.8)
    assert result.scope_2_location_kgco2e == pytest.approx(accelerator_kwh * 0.72)


def test_power_may_be_a_fraction_of_tdp() -> None:
    by_tdp = estimate_training(make_full_spec(power_w=None, tdp_w=700.0, power_fraction=0.9))
    by_power = estimate_training(make_full_spec(power_w=630.0, tdp_w=700.0))
    assert by_tdp.facility_energy_kwh == by_power.facility_energy_kwh


def test_deepseek_v3_hours_at_two_dollars_are_its_published_cost() -> None:
    assert estimate.cost_of_hours(2_788_000.0, Money.of(2, "USD")) == Money.of(5_576_000, "USD")


def test_a_mixture_of_experts_computes_with_active_parameters_only() -> None:
    moe = make_spec(total_params=1e11)
    assert moe.is_mixture_of_experts
    assert not make_spec().is_mixture_of_experts
    assert estimate_training(moe) == estimate_training(make_spec())


QUANTITIES = [
    "accelerator_h",
    "days",
    "accelerator_energy_kwh",
    "it_energy_kwh",
    "facility_energy_kwh",
    "scope_2_location_kgco2e",
]


@settings(max_examples=25)
@given(
    seed=st.integers(min_value=0, max_value=2**63 - 1),
    low=st.floats(min_value=0.3, max_value=0.42),
    high=st.floats(min_value=0.42, max_value=0.6),
)
def test_percentiles_are_ordered_and_repeat_by_seed(seed: int, low: float, high: float) -> None:
    span = Triangular(low=low, mode=0.42, high=high)
    spec = make_full_spec(mfu_range=span, seed=seed)
    interval = estimate_training(spec).interval
    assert interval is not None
    assert interval == estimate_training(spec).interval
    for name in QUANTITIES:
        got = getattr(interval, name)
        assert isinstance(got, Percentiles)
        assert got.p10 <= got.p50 <= got.p80 <= got.p90
    assert interval.cost is not None
    assert interval.cost.p10.amount <= interval.cost.p90.amount
    assert interval.cost.p50.currency == "USD"


def test_a_wide_range_holds_the_point_between_p10_and_p90() -> None:
    result = estimate_training(
        make_full_spec(
            mfu_range=MFU_RANGE,
            goodput_range=Triangular(low=0.8, mode=0.9, high=0.97),
            power_w_range=Triangular(low=550, mode=650, high=690),
            draws=4_000,
        )
    )
    assert result.interval is not None
    assert result.interval.days.p10 < result.days < result.interval.days.p90
    triangular_mean_days = result.days * 0.42 * 0.9
    assert result.interval.days.mean == pytest.approx(
        triangular_mean_days / (0.4233 * 0.89), rel=0.02
    )


def test_a_range_for_power_leaves_time_and_cost_at_the_point() -> None:
    result = estimate_training(
        make_full_spec(power_w_range=Triangular(low=500, mode=650, high=700))
    )
    assert result.interval is not None
    assert result.interval.accelerator_h.p10 == pytest.approx(result.accelerator_h)
    assert result.interval.accelerator_h.p90 == pytest.approx(result.accelerator_h)
    energy = result.interval.accelerator_energy_kwh
    assert energy is not None
    assert energy.p10 < energy.p90


def test_another_range_leaves_the_draws_of_the_first_as_they_were() -> None:
    spans = {"mfu_range": MFU_RANGE}
    alone = estimate_training(make_full_spec(**spans)).interval
    both = estimate_training(
        make_full_spec(**spans, power_w_range=Triangular(low=500, mode=650, high=700))
    ).interval
    assert alone is not None
    assert both is not None
    assert alone.accelerator_h == both.accelerator_h


def test_a_range_without_width_gives_the_point() -> None:
    point = Triangular(low=0.55, mode=0.55, high=0.55)
    result = estimate_training(make_spec(mfu_range=point))
    assert result.interval is not None
    assert result.interval.cost is None
    assert result.interval.accelerator_energy_kwh is None
    assert result.interval.days.p10 == pytest.approx(result.days)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("mfu", 55, "0.55"),
        ("mfu", 0, "fraction"),
        ("mfu", float("nan"), "fraction"),
        ("mfu", "0.55", "fraction"),
        ("goodput", 90, "fraction"),
        ("pue", 0.9, "facility"),
        ("pue", 120, "facility"),
        ("host_factor", 0.5, "accelerator watt"),
        ("accelerators", 0, "count"),
        ("accelerators", 1.5, "whole number"),
        ("accelerators", True, "count"),
        ("peak_flop_per_s", 989.4, "989.4e12"),
        ("g_per_kwh", 2_001, "gCO2e/kWh"),
        ("g_per_kwh", -1, "gCO2e/kWh"),
        ("power_w", 700_000, "watts"),
        ("tdp_w", -700, "watts"),
        ("tokens", -1, "tokens"),
        ("active_params", 0, "parameters"),
        ("active_params", None, "parameters"),
        ("total_params", 1e9, "active_params"),
        ("draws", 1, "count"),
        ("seed", -1, "whole number"),
        ("price_per_accelerator_h", Decimal("-0.01"), "USD per accelerator-hour"),
        ("price_per_accelerator_h", Decimal("NaN"), "USD per accelerator-hour"),
        ("price_per_accelerator_h", 2.1, "decimal"),
        ("price_per_accelerator_h", None, "decimal"),
        ("currency", "usd", "ISO 4217"),
        ("currency", None, "ISO 4217"),
        ("power_fraction", 0.9, "tdp_w"),
    ],
)
def test_a_wrong_input_names_its_field_its_unit_and_the_fix(
    field: str, value: object, words: str
) -> None:
    with pytest.raises(EstimateInputError) as caught:
        make_full_spec(**{field: value})
    assert caught.value.field == field
    assert caught.value.unit in str(caught.value)
    assert words in str(caught.value)


def test_a_tdp_without_its_fraction_is_not_guessed() -> None:
    with pytest.raises(EstimateInputError, match="power_fraction"):
        make_full_spec(power_w=None, tdp_w=700.0)
    with pytest.raises(EstimateInputError, match="power_fraction"):
        make_full_spec(power_w=None, power_fraction=0.9)


@pytest.mark.parametrize(
    "span",
    [
        Triangular(low=35, mode=42, high=50),
        Triangular(low=0.5, mode=0.42, high=0.35),
        Triangular(low=0.5, mode=0.55, high=0.6),
    ],
)
def test_a_range_out_of_order_or_beside_the_point_is_refused(span: Triangular) -> None:
    with pytest.raises(EstimateInputError, match="mfu_range"):
        make_full_spec(mfu_range=span)


def test_a_power_range_without_a_power_is_refused() -> None:
    with pytest.raises(EstimateInputError, match="power_w_range"):
        make_spec(power_w_range=Triangular(low=500, mode=650, high=700))


def test_the_programme_multiple_is_1_74_and_below_the_chapters_band() -> None:
    assert estimate.programme_multiple() == Decimal("1.74")
    assert (Decimal("1.8"), Decimal("2.0")) == estimate.REFERENCE_BAND
    assert Decimal("1.55") * Decimal("1.2") == Decimal("1.86")


@given(st.decimals(min_value=0, max_value=10**12, places=6))
def test_plan_lines_sum_to_the_multiple_exactly(cost: Decimal) -> None:
    lines = estimate.plan_lines(Money.of(cost, "USD"))
    assert [line.rule for line in lines] == list(estimate.PLAN_LINES)
    total = sum((line.amount.amount for line in lines), Decimal(0))
    assert total == cost * Decimal("1.74")


def test_a_result_is_frozen() -> None:
    result = estimate_training(make_spec())
    with pytest.raises(AttributeError):
        result.days = 1.0  # type: ignore[misc]
    assert "days" in {field.name for field in fields(result)}

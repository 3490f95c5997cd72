"""The estimate composes the formulae, draws by seed, and refuses wrong units by name."""

from dataclasses import FrozenInstanceError, fields, replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulae.beliefs import Belief, Certain, LogNormal, PowerOfUniform, Triangular
from formulae.estimate import (
    EstimateInputError,
    EstimateResult,
    EstimateSpec,
    MoneyPercentiles,
    Percentiles,
    cost_of_hours,
    estimate_training,
)
from formulae.money import Money
from formulae.plan_lines import PLAN_LINES, programme_multiple

MFU = LogNormal(median=0.42, sd_log=0.2)
GOODPUT = PowerOfUniform(shape=6.5)
POWER_W = Triangular(low=500.0, mode=650.0, high=700.0)
LEVELS = tuple(field.name for field in fields(Percentiles))
PHYSICAL = (
    "accelerator_h",
    "days",
    "accelerator_energy_kwh",
    "it_energy_kwh",
    "facility_energy_kwh",
    "scope_2_location_kgco2e",
    "scope_2_market_kgco2e",
    "embodied_kgco2e",
    "water_l",
)


def make_spec(**changes: object) -> EstimateSpec:
    """The corrected example of the chapter, nothing known but compute and time."""
    values: dict[str, object] = {
        "flop_per_token": 6e10,
        "tokens": 1e13,
        "accelerators": 256,
        "peak_flop_per_s": 989.4e12,
        "step_mfu": Certain(value=0.55),
    }
    return EstimateSpec(**(values | changes))  # type: ignore[arg-type]


def make_full_spec(**changes: object) -> EstimateSpec:
    """Everything known, everything certain."""
    certain: dict[str, object] = {
        name: Certain(value=value)
        for name, value in {
            "step_mfu": 0.42,
            "goodput": 0.9,
            "power_w": 650.0,
            "host_factor": 1.5,
            "pue": 1.2,
            "g_per_kwh": 400.0,
            "market_g_per_kwh": 100.0,
            "embodied_kg_per_accelerator_h": 0.0128,
            "wue_l_per_kwh": 0.5,
            "development_ratio": 1.0,
        }.items()
    }
    values: dict[str, object] = {
        **certain,
        "price_per_accelerator_h": Money.of("2.10", "USD"),
        "draws": 500,
    }
    return make_spec(**(values | changes))


def make_uncertain_spec(**changes: object) -> EstimateSpec:
    values: dict[str, object] = {
        "step_mfu": MFU,
        "goodput": GOODPUT,
        "power_w": POWER_W,
        "pue": Triangular(low=1.08, mode=1.15, high=1.4),
        "price_ratio": Triangular(low=0.9, mode=1.0, high=1.3),
        "draws": 4_000,
    }
    return make_full_spec(**(values | changes))


def percentiles(result: EstimateResult, name: str) -> Percentiles:
    found = getattr(result, name)
    assert isinstance(found, Percentiles)
    return found


def dollars(found: MoneyPercentiles | None, level: str) -> Decimal:
    assert found is not None
    amount = getattr(found, level)
    assert amount.currency == "USD"
    return Decimal(amount.amount)


# What is certain


def test_the_dense_bf16_case_is_6e23_flop_306277_hours_and_49_85_days() -> None:
    result = estimate_training(make_spec())
    assert result.flop == 6.0e23
    assert round(result.accelerator_h.p50) == 306_277
    assert round(percentiles(result, "days").p50, 2) == 49.85


def test_certain_inputs_give_equal_percentiles_and_exact_money() -> None:
    result = estimate_training(make_full_spec())
    for name in PHYSICAL:
        found = percentiles(result, name)
        assert {getattr(found, level) for level in LEVELS} == {found.p50}, name
    hours = Decimal(result.accelerator_h.p50).quantize(Decimal("0.000001"))
    assert {dollars(result.cost, level) for level in LEVELS} == {hours * Decimal("2.10")}
    assert result.programme is not None
    assert {dollars(result.programme.cost, level) for level in LEVELS} == {
        dollars(result.programme.cost, "p50")
    }
    assert result.programme.contingency == Money.of(0, "USD")
    assert all(bars == () for bars in result.tornado.values())


def test_a_certain_price_ratio_multiplies_the_price_exactly() -> None:
    plain = estimate_training(make_full_spec())
    dearer = estimate_training(make_full_spec(price_ratio=Certain(value=1.1)))
    assert dollars(dearer.cost, "p50") == dollars(plain.cost, "p50") * Decimal("1.1")


def test_the_boundaries_multiply_from_accelerator_to_carbon_and_water() -> None:
    result = estimate_training(make_full_spec())
    accelerator_kwh = result.accelerator_h.p50 * 0.65
    for name, expected in (
        ("accelerator_energy_kwh", accelerator_kwh),
        ("it_energy_kwh", accelerator_kwh * 1.5),
        ("facility_energy_kwh", accelerator_kwh * 1.8),
        ("scope_2_location_kgco2e", accelerator_kwh * 1.8 * 0.4),
        ("scope_2_market_kgco2e", accelerator_kwh * 1.8 * 0.1),
        ("embodied_kgco2e", result.accelerator_h.p50 * 0.0128),
        ("water_l", accelerator_kwh * 1.5 * 0.5),
    ):
        assert percentiles(result, name).p50 == pytest.approx(expected), name


def test_deepseek_v3_hours_at_two_dollars_are_its_published_cost() -> None:
    assert cost_of_hours(2_788_000.0, Money.of(2, "USD")) == Money.of(5_576_000, "USD")


# What is not known


@pytest.mark.parametrize(
    ("missing", "unknown"),
    [
        ("accelerators", {"days"}),
        ("price_per_accelerator_h", {"cost", "programme"}),
        (
            "power_w",
            {name for name in PHYSICAL if name.endswith("kwh") or name.startswith("scope")}
            | {"water_l"},
        ),
        (
            "host_factor",
            {
                "it_energy_kwh",
                "facility_energy_kwh",
                "scope_2_location_kgco2e",
                "scope_2_market_kgco2e",
                "water_l",
            },
        ),
        ("pue", {"facility_energy_kwh", "scope_2_location_kgco2e", "scope_2_market_kgco2e"}),
        ("g_per_kwh", {"scope_2_location_kgco2e"}),
        ("market_g_per_kwh", {"scope_2_market_kgco2e"}),
        ("embodied_kg_per_accelerator_h", {"embodied_kgco2e"}),
        ("wue_l_per_kwh", {"water_l"}),
    ],
)
def test_what_is_not_known_stays_unknown_and_leaves_the_rest(
    missing: str, unknown: set[str]
) -> None:
    result = estimate_training(make_uncertain_spec(**{missing: None}))
    found = {name for name in (*PHYSICAL, "cost", "programme") if getattr(result, name) is None}
    assert found == unknown
    assert not unknown & set(result.tornado)


# What is drawn


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(min_value=0, max_value=2**63 - 1),
    sd_log=st.floats(min_value=0.01, max_value=0.8),
)
def test_percentiles_are_ordered_and_repeat_by_seed(seed: int, sd_log: float) -> None:
    spec = make_uncertain_spec(
        step_mfu=LogNormal(median=0.4, sd_log=sd_log, ceiling=1.0), seed=seed, draws=500
    )
    result = estimate_training(spec)
    assert result == estimate_training(spec)
    for name in PHYSICAL:
        found = percentiles(result, name)
        assert found.p10 <= found.p50 <= found.p80 <= found.p90
    assert result.programme is not None
    for cost in (result.cost, result.programme.cost):
        levels = [dollars(cost, level) for level in ("p10", "p50", "p80", "p90")]
        assert levels == sorted(levels)


def test_another_seed_moves_the_interval_by_less_than_two_percent() -> None:
    first = estimate_training(make_uncertain_spec(seed=1))
    for seed in range(2, 8):
        other = estimate_training(make_uncertain_spec(seed=seed))
        assert other.accelerator_h != first.accelerator_h
        for level in LEVELS:
            assert getattr(other.accelerator_h, level) == pytest.approx(
                getattr(first.accelerator_h, level), rel=0.02
            )
            assert float(dollars(other.cost, level)) == pytest.approx(
                float(dollars(first.cost, level)), rel=0.02
            )


@pytest.mark.parametrize(
    ("name", "belief", "untouched"),
    [
        ("power_w", POWER_W, {"accelerator_h", "days", "cost", "embodied_kgco2e"}),
        ("pue", Triangular(low=1.1, mode=1.2, high=1.5), {"accelerator_h", "it_energy_kwh"}),
        ("price_ratio", Triangular(low=0.5, mode=1.0, high=2.0), set(PHYSICAL)),
        ("wue_l_per_kwh", Triangular(low=0.1, mode=0.5, high=2.0), set(PHYSICAL) - {"water_l"}),
    ],
)
def test_a_range_for_one_input_leaves_the_draws_of_the_others(
    name: str, belief: Belief, untouched: set[str]
) -> None:
    before = estimate_training(make_full_spec(step_mfu=MFU, goodput=GOODPUT))
    after = estimate_training(make_full_spec(step_mfu=MFU, goodput=GOODPUT, **{name: belief}))
    assert before != after
    for quantity in untouched - {"cost"}:
        assert getattr(before, quantity) == getattr(after, quantity), quantity


def test_the_median_of_one_uncertain_factor_is_the_result_at_its_median() -> None:
    at_median = estimate_training(make_full_spec(step_mfu=Certain(value=MFU.median)))
    drawn = estimate_training(make_full_spec(step_mfu=MFU, draws=20_000))
    for name in PHYSICAL:
        assert percentiles(drawn, name).p50 == pytest.approx(
            percentiles(at_median, name).p50, rel=0.01
        )


def test_percentiles_are_those_of_numpy() -> None:
    spec = make_spec(step_mfu=MFU, draws=1_001)
    ideal_h = 6e23 / 989.4e12 / 3600
    hours = ideal_h / MFU.draw(np.random.Generator(np.random.PCG64(0)), 1_001)
    found = estimate_training(spec).accelerator_h
    assert found.mean == pytest.approx(hours.mean(), rel=1e-6)
    for level in (10, 50, 80, 90):
        expected = np.percentile(hours, level)
        assert getattr(found, f"p{level}") == pytest.approx(expected, rel=1e-6)


def test_drawn_money_is_rounded_to_the_cent() -> None:
    result = estimate_training(make_uncertain_spec())
    for level in LEVELS:
        amount = dollars(result.cost, level)
        assert amount == amount.quantize(Decimal("0.01"))


# The programme


def test_the_programme_is_the_main_run_and_its_lines_without_contingency() -> None:
    result = estimate_training(make_full_spec())
    assert result.programme is not None
    main = float(dollars(result.cost, "p50"))
    assert float(dollars(result.programme.cost, "p50")) == pytest.approx(main * 1.45)
    assert programme_multiple(PLAN_LINES[:-1]) == Decimal("1.45")


def test_fixed_lines_are_added_once() -> None:
    plain = estimate_training(make_full_spec())
    more = estimate_training(make_full_spec(fixed_lines=Money.of(1_000_000, "USD")))
    assert plain.programme is not None
    assert more.programme is not None
    assert more.cost == plain.cost
    added = dollars(more.programme.cost, "p50") - dollars(plain.programme.cost, "p50")
    assert added == pytest.approx(1_000_000)


def test_contingency_is_p80_less_p50_of_the_programme() -> None:
    programme = estimate_training(make_uncertain_spec()).programme
    assert programme is not None
    assert programme.contingency.amount > 0
    difference = dollars(programme.cost, "p80") - dollars(programme.cost, "p50")
    assert abs(programme.contingency.amount - difference) <= Decimal("0.01")


@settings(max_examples=20, deadline=None)
@given(st.floats(min_value=0.05, max_value=0.6))
def test_ending_inside_a_wider_multiple_is_never_less_likely(sd_log: float) -> None:
    programme = estimate_training(
        make_full_spec(step_mfu=LogNormal(median=0.4, sd_log=sd_log))
    ).programme
    assert programme is not None
    narrow, wide = programme.inside_fraction
    assert 0 <= narrow <= wide <= 1


def test_what_is_certain_ends_inside_a_multiple_or_does_not() -> None:
    inside = estimate_training(make_full_spec()).programme
    outside = estimate_training(make_full_spec(fixed_lines=Money.of(10**9, "USD"))).programme
    assert inside is not None
    assert outside is not None
    assert inside.inside_fraction == (1.0, 1.0)
    assert outside.inside_fraction == (0.0, 0.0)


# The tornado


def test_each_tornado_sums_to_one_and_starts_with_the_widest() -> None:
    result = estimate_training(make_uncertain_spec())
    assert set(result.tornado) == {
        "accelerator_h",
        "cost",
        "facility_energy_kwh",
        "scope_2_location_kgco2e",
    }
    for bars in result.tornado.values():
        shares = [bar.variance_fraction for bar in bars]
        assert sum(shares) == pytest.approx(1.0)
        assert shares == sorted(shares, reverse=True)
        assert bars[0].name == "step_mfu"
    assert "price_ratio" in {bar.name for bar in result.tornado["cost"]}
    assert "price_ratio" not in {bar.name for bar in result.tornado["facility_energy_kwh"]}


def test_the_analytic_variance_agrees_with_the_variance_over_draws() -> None:
    """P90 over P10 of a product that is near lognormal spreads as the variances of its inputs."""
    spec = make_uncertain_spec(draws=200_000, goodput=Certain(value=0.9))
    result = estimate_training(spec)
    log_variance = spec.step_mfu.variance_log + spec.price_ratio.variance_log
    spread = float(dollars(result.cost, "p90") / dollars(result.cost, "p10"))
    assert np.log(spread) / (2 * 1.2816) == pytest.approx(log_variance**0.5, rel=0.02)
    shares = {bar.name: bar.variance_fraction for bar in result.tornado["cost"]}
    assert shares["step_mfu"] == pytest.approx(spec.step_mfu.variance_log / log_variance)


def test_a_bar_shows_the_result_with_one_input_at_its_ends() -> None:
    result = estimate_training(make_full_spec(step_mfu=MFU))
    (bar,) = result.tornado["accelerator_h"]
    assert bar.at_p10 == pytest.approx(result.accelerator_h.p90, rel=0.05)
    assert bar.at_p90 == pytest.approx(result.accelerator_h.p10, rel=0.05)


# What cannot be meant


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("step_mfu", Certain(value=55), "0.55"),
        ("step_mfu", Certain(value=0.0), "fraction"),
        ("step_mfu", Certain(value=float("nan")), "fraction"),
        ("step_mfu", Certain(value="0.55"), "fraction"),  # type: ignore[arg-type]
        ("step_mfu", Triangular(low=35, mode=42, high=50), "0.55"),
        ("step_mfu", LogNormal(median=42, sd_log=0.2), "0.55"),
        ("goodput", Certain(value=90), "fraction"),
        ("pue", Certain(value=0.9), "facility"),
        ("pue", Certain(value=120), "facility"),
        ("pue", Triangular(low=0.9, mode=1.1, high=1.2), "facility"),
        ("host_factor", Certain(value=0.5), "accelerator watt"),
        ("accelerators", 0, "count"),
        ("accelerators", 1.5, "whole number"),
        ("accelerators", True, "count"),
        ("peak_flop_per_s", 989.4, "989.4e12"),
        ("g_per_kwh", Certain(value=2_001), "gCO2e/kWh"),
        ("g_per_kwh", Certain(value=-1), "gCO2e/kWh"),
        ("market_g_per_kwh", Certain(value=5_000), "gCO2e/kWh"),
        ("power_w", Certain(value=700_000), "watts"),
        ("power_w", Certain(value=0.0), "W per accelerator"),
        ("embodied_kg_per_accelerator_h", Certain(value=12.8), "kg"),
        ("wue_l_per_kwh", Certain(value=500), "litres per kWh"),
        ("price_ratio", Certain(value=110), "ratio"),
        ("tokens", -1, "tokens"),
        ("tokens", 2_384_186 / 1024, "not sequences or steps"),
        ("flop_per_token", 0, "parameters"),
        ("flop_per_token", None, "parameters"),
        ("step_mfu", None, "fraction"),
        ("goodput", None, "fraction"),
        ("draws", None, "count"),
        ("draws", 1, "count"),
        ("seed", -1, "whole number"),
        ("price_per_accelerator_h", Money.of("-0.01", "USD"), "USD per accelerator-hour"),
        ("price_per_accelerator_h", Money.of(10**6, "USD"), "USD per accelerator-hour"),
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


@pytest.mark.parametrize(
    ("value", "words"), [(700_000, "700,000 milliwatt are 700"), (0.7, r"0\.7 kW is 700")]
)
def test_a_power_in_another_unit_than_watts_is_refused(value: float, words: str) -> None:
    with pytest.raises(EstimateInputError, match=words):
        make_full_spec(power_w=Certain(value=value))


def test_a_range_out_of_order_is_refused() -> None:
    with pytest.raises(EstimateInputError, match="low <= mode <= high"):
        make_full_spec(step_mfu=Triangular(low=0.5, mode=0.42, high=0.35))


def test_records_are_frozen() -> None:
    result = estimate_training(make_spec())
    with pytest.raises(FrozenInstanceError):
        result.flop = 1.0  # type: ignore[misc]
    assert replace(make_spec(), seed=3).seed == 3

"""The tornado: shares that sum to one, the widest bar first, and the truth against draws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae.beliefs import LogNormal, PowerOfUniform, Triangular
from formulae.tornado import Spread, product_tornado, spread_of

SPREADS = {
    "step_mfu": spread_of(LogNormal(median=0.4, sd_log=0.22)),
    "goodput": spread_of(PowerOfUniform(shape=6.5)),
    "pue": spread_of(Triangular(low=1.08, mode=1.15, high=1.4)),
}
POWERS = {"step_mfu": -1, "goodput": -1, "pue": 1}


def test_shares_sum_to_one_and_the_widest_comes_first() -> None:
    bars = product_tornado(SPREADS, exponents=POWERS, result_at_medians=100.0)
    assert [bar.name for bar in bars] == ["step_mfu", "goodput", "pue"]
    shares = [bar.variance_fraction for bar in bars]
    assert sum(shares) == pytest.approx(1.0)
    assert shares == sorted(shares, reverse=True)


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.floats(min_value=1e-6, max_value=4.0), min_size=1)
)
def test_shares_are_fractions_whatever_the_spreads(variances: dict[str, float]) -> None:
    spreads = {
        name: Spread(variance_log=variance, ratio_at_p10=0.9, ratio_at_p90=1.1)
        for name, variance in variances.items()
    }
    bars = product_tornado(spreads, exponents=dict.fromkeys(variances, -1), result_at_medians=1.0)
    assert sum(bar.variance_fraction for bar in bars) == pytest.approx(1.0)
    assert all(0 <= bar.variance_fraction <= 1 for bar in bars)


def test_a_divisor_turns_its_bar_round() -> None:
    bars = {
        bar.name: bar for bar in product_tornado(SPREADS, exponents=POWERS, result_at_medians=100.0)
    }
    assert bars["step_mfu"].at_p10 > 100 > bars["step_mfu"].at_p90
    assert bars["pue"].at_p10 < 100 < bars["pue"].at_p90


def test_a_squared_input_weighs_four_times() -> None:
    spreads = {"a": SPREADS["step_mfu"], "b": SPREADS["step_mfu"]}
    bars = product_tornado(spreads, exponents={"a": 2, "b": 1}, result_at_medians=1.0)
    assert [bar.variance_fraction for bar in bars] == pytest.approx([0.8, 0.2])


def test_an_input_that_plays_no_part_has_no_bar() -> None:
    bars = product_tornado(SPREADS, exponents={"pue": 1}, result_at_medians=1.0)
    assert [bar.name for bar in bars] == ["pue"]
    assert product_tornado({}, exponents=POWERS, result_at_medians=1.0) == ()


def test_shares_agree_with_the_variance_over_draws() -> None:
    generator = np.random.default_rng(5)
    logs = {
        "step_mfu": -np.log(LogNormal(median=0.4, sd_log=0.22).draw(generator, 200_000)),
        "goodput": -np.log(PowerOfUniform(shape=6.5).draw(generator, 200_000)),
        "pue": np.log(Triangular(low=1.08, mode=1.15, high=1.4).draw(generator, 200_000)),
    }
    whole = np.var(sum(logs.values()))
    for bar in product_tornado(SPREADS, exponents=POWERS, result_at_medians=1.0):
        assert bar.variance_fraction == pytest.approx(np.var(logs[bar.name]) / whole, abs=0.01)

"""What is believed of a quantity: its median, its quantiles and its draws tell the same story."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulae.beliefs import (
    Belief,
    Certain,
    LogNormal,
    PowerOfUniform,
    Triangular,
    log_normal_from_quantiles,
    quantile_of,
)
from formulae.units import QuantityError

DRAWS = 200_000
BELIEFS: list[Belief] = [
    Certain(value=0.55),
    Triangular(low=0.6, mode=0.72, high=0.9),
    Triangular(low=1.08, mode=1.15, high=1.4),
    Triangular(low=1.0, mode=1.0, high=2.0),
    Triangular(low=1.0, mode=2.0, high=2.0),
    LogNormal(median=0.4, sd_log=0.25),
    PowerOfUniform(shape=6.5),
    PowerOfUniform(shape=1.0),
]


def drawn(belief: Belief, *, seed: int = 1, draws: int = DRAWS) -> np.ndarray:
    return belief.draw(np.random.default_rng(seed), draws)


@pytest.mark.parametrize("belief", BELIEFS, ids=repr)
@pytest.mark.parametrize("level", [0.1, 0.5, 0.8, 0.9])
def test_the_closed_form_of_a_quantile_agrees_with_the_draws(belief: Belief, level: float) -> None:
    assert np.quantile(drawn(belief), level) == pytest.approx(quantile_of(belief, level), rel=0.02)


@pytest.mark.parametrize("belief", BELIEFS, ids=repr)
def test_the_median_is_the_quantile_of_one_half(belief: Belief) -> None:
    assert quantile_of(belief, 0.5) == pytest.approx(belief.median, rel=1e-12)


@pytest.mark.parametrize("belief", BELIEFS, ids=repr)
def test_the_variance_of_the_log_agrees_with_the_draws(belief: Belief) -> None:
    assert np.var(np.log(drawn(belief))) == pytest.approx(belief.variance_log, rel=0.03, abs=1e-12)


@pytest.mark.parametrize("belief", BELIEFS, ids=repr)
def test_a_seed_repeats_the_draws(belief: Belief) -> None:
    assert np.array_equal(drawn(belief, seed=7, draws=100), drawn(belief, seed=7, draws=100))


def test_what_is_certain_takes_nothing_from_the_generator() -> None:
    generator, untouched = np.random.default_rng(3), np.random.default_rng(3)
    Certain(value=2.0).draw(generator, 10)
    Triangular(low=2.0, mode=2.0, high=2.0).draw(generator, 10)
    assert generator.random() == untouched.random()


def test_only_what_has_no_width_is_certain() -> None:
    assert Certain(value=1.0).is_certain
    assert Triangular(low=1.0, mode=1.0, high=1.0).is_certain
    assert LogNormal(median=1.0, sd_log=0.0).is_certain
    assert not Triangular(low=1.0, mode=1.0, high=1.1).is_certain
    assert not LogNormal(median=1.0, sd_log=0.1).is_certain
    assert not PowerOfUniform(shape=100.0).is_certain


@given(
    ends=st.lists(st.floats(min_value=0.01, max_value=1e6), min_size=3, max_size=3),
    levels=st.lists(st.floats(min_value=0.001, max_value=0.999), min_size=2, max_size=2),
)
def test_quantiles_of_a_triangle_rise_with_the_level_and_stay_inside(
    ends: list[float], levels: list[float]
) -> None:
    low, mode, high = sorted(ends)
    first, second = (
        quantile_of(Triangular(low=low, mode=mode, high=high), level) for level in sorted(levels)
    )
    slack = 1e-9 * high
    assert low - slack <= first <= second + slack
    assert second <= high + slack


def test_draws_of_a_triangle_stay_inside() -> None:
    found = drawn(Triangular(low=500.0, mode=650.0, high=700.0))
    assert found.min() >= 500
    assert found.max() <= 700


def test_draws_above_a_ceiling_become_the_ceiling_and_the_median_stays() -> None:
    capped = LogNormal(median=0.4, sd_log=0.5, ceiling=0.6)
    found = drawn(capped)
    assert found.max() == 0.6
    assert np.median(found) == pytest.approx(0.4, rel=0.01)
    assert quantile_of(capped, 0.9) == 0.6


def test_a_share_of_one_never_exceeds_one() -> None:
    found = drawn(PowerOfUniform(shape=6.5))
    assert 0 < found.min() < found.max() <= 1


@settings(max_examples=50)
@given(
    low=st.floats(min_value=1e-6, max_value=1e6), factor=st.floats(min_value=1.0, max_value=100.0)
)
def test_a_lognormal_from_two_quantiles_has_those_quantiles(low: float, factor: float) -> None:
    belief = log_normal_from_quantiles(low=low, high=low * factor)
    assert quantile_of(belief, 0.1) == pytest.approx(low)
    assert quantile_of(belief, 0.9) == pytest.approx(low * factor)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: LogNormal(median=0.0, sd_log=0.1),
        lambda: LogNormal(median=-1.0, sd_log=0.1),
        lambda: LogNormal(median=1.0, sd_log=-0.1),
        lambda: LogNormal(median=1.0, sd_log=math.nan),
        lambda: LogNormal(median=1.0, sd_log=math.inf),
        lambda: PowerOfUniform(shape=0.0),
        lambda: PowerOfUniform(shape=math.nan),
        lambda: log_normal_from_quantiles(low=2.0, high=1.0),
        lambda: log_normal_from_quantiles(low=0.0, high=1.0),
    ],
)
def test_what_is_no_distribution_is_refused(wrong: object) -> None:
    with pytest.raises(QuantityError):
        wrong()  # type: ignore[operator]


def test_a_belief_of_another_kind_has_no_quantile() -> None:
    class Guess:
        median, is_certain, variance_log = 1.0, False, 1.0

        def draw(self, generator: np.random.Generator, draws: int) -> np.ndarray:
            return generator.random(draws)

    with pytest.raises(TypeError, match="Guess"):
        quantile_of(Guess(), 0.5)

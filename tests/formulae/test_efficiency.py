"""The efficiency of training: what the fit gives back, and how it parts into MFU and goodput."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulae.beliefs import LogNormal, PowerOfUniform
from formulae.efficiency import (
    EfficiencyInputs,
    EfficiencyRun,
    EfficiencyTerm,
    efficiency_features,
    end_to_end_efficiency,
    fit_efficiency,
    goodput_from_ratios,
    step_mfu,
)
from formulae.units import QuantityError

TERMS = tuple(
    EfficiencyTerm(name=name, prior_mean=mean, prior_sd=2.0, why="a test")
    for name, mean in (("base", -1.0), ("moe", 0.0), ("maturity", 0.0), ("scale", 0.0))
)
TRUTH = {"base": math.log(0.42), "moe": -0.25, "maturity": 0.09, "scale": -0.05}


def make_inputs(**changes: object) -> EfficiencyInputs:
    values: dict[str, object] = {
        "generation": "hopper",
        "generation_year": 2022.5,
        "year": 2025.0,
        "active_params": 7e10,
        "is_moe": False,
        "precision": "bf16",
        "attention_share": 0.1,
        "accelerators": 1024,
    }
    return EfficiencyInputs(**(values | changes))  # type: ignore[arg-type]


def synthetic_runs(count: int, *, scatter: float, seed: int = 11) -> list[EfficiencyRun]:
    """Runs that follow TRUTH, each of its own family."""
    generator = np.random.default_rng(seed)
    runs = []
    for number in range(count):
        inputs = make_inputs(
            is_moe=bool(number % 2),
            year=2022.0 + number % 6,
            accelerators=int(2 ** generator.integers(6, 15)),
        )
        features = efficiency_features(inputs, tuple(TRUTH))
        log = float(features @ np.array(list(TRUTH.values())))
        efficiency = math.exp(log + scatter * generator.standard_normal())
        runs.append(
            EfficiencyRun(family=str(number), inputs=inputs, efficiency_fraction=efficiency)
        )
    return runs


def test_the_fit_recovers_the_coefficients_behind_the_runs() -> None:
    model = fit_efficiency(synthetic_runs(400, scatter=0.1), TERMS, scatter_sd_log=0.1)
    found = dict(zip(model.names, model.coefficients, strict=True))
    assert found == pytest.approx(TRUTH, abs=0.02)


def test_without_runs_the_fit_is_the_prior() -> None:
    model = fit_efficiency((), TERMS, scatter_sd_log=0.2)
    assert model.coefficients == tuple(term.prior_mean for term in TERMS)
    assert [model.covariance[i][i] for i in range(len(TERMS))] == pytest.approx([4.0] * 4)


def test_the_order_of_the_runs_does_not_matter() -> None:
    runs = synthetic_runs(30, scatter=0.2)
    assert fit_efficiency(runs, TERMS, scatter_sd_log=0.2) == fit_efficiency(
        runs[::-1], TERMS, scatter_sd_log=0.2
    )


def test_one_run_far_off_hardly_moves_the_fit() -> None:
    runs = synthetic_runs(60, scatter=0.1)
    far_off = replace(runs[0], family="odd", efficiency_fraction=runs[0].efficiency_fraction / 20)
    before = fit_efficiency(runs, TERMS, scatter_sd_log=0.1).coefficients[0]
    after = fit_efficiency([*runs, far_off], TERMS, scatter_sd_log=0.1).coefficients[0]
    assert after == pytest.approx(before, abs=0.02)


def test_nine_runs_of_one_family_weigh_like_three() -> None:
    one = synthetic_runs(1, scatter=0.0)[0]
    term = TERMS[:1]
    family = fit_efficiency([one] * 9, term, scatter_sd_log=0.2)
    others = fit_efficiency(
        [replace(one, family=str(number)) for number in range(3)], term, scatter_sd_log=0.2
    )
    assert family.covariance[0][0] == pytest.approx(others.covariance[0][0], rel=1e-6)


def test_more_runs_make_the_answer_surer_but_never_surer_than_the_scatter() -> None:
    few = fit_efficiency(synthetic_runs(5, scatter=0.2), TERMS, scatter_sd_log=0.2)
    many = fit_efficiency(synthetic_runs(200, scatter=0.2), TERMS, scatter_sd_log=0.2)
    narrow, wide = (end_to_end_efficiency(model, make_inputs()).sd_log for model in (many, few))
    assert 0.2 < narrow < wide


def test_a_scatter_of_nothing_is_refused() -> None:
    with pytest.raises(QuantityError, match="scatter_sd_log"):
        fit_efficiency((), TERMS, scatter_sd_log=0.0)


def test_what_is_not_known_of_a_run_stands_for_the_usual() -> None:
    known = efficiency_features(make_inputs(), ("scale", "context"))
    unknown = efficiency_features(
        make_inputs(accelerators=None, attention_share=None), ("scale", "context")
    )
    assert known.tolist() == unknown.tolist() == [0.0, pytest.approx(math.log1p(0.1))]


@pytest.mark.parametrize(("year", "maturity"), [(2000.0, -2.0), (2025.0, 0.0), (2050.0, 2.5)])
def test_maturity_is_bounded(year: float, maturity: float) -> None:
    assert efficiency_features(make_inputs(year=year), ("maturity",)).tolist() == [maturity]


def test_an_unknown_regressor_is_named() -> None:
    with pytest.raises(QuantityError, match="'weather'"):
        efficiency_features(make_inputs(), ("weather",))


@settings(max_examples=30, deadline=None)
@given(
    median=st.floats(min_value=0.05, max_value=0.6),
    sd_log=st.floats(min_value=0.2, max_value=0.6),
    shape=st.floats(min_value=4.0, max_value=60.0),
    peak_ratio=st.sampled_from([0.5, 1.0, 2.0, 4.0]),
)
def test_step_mfu_times_goodput_has_the_median_and_spread_of_the_efficiency(
    median: float, sd_log: float, shape: float, peak_ratio: float
) -> None:
    efficiency = LogNormal(median=median, sd_log=sd_log)
    goodput = PowerOfUniform(shape=shape)
    mfu = step_mfu(efficiency, goodput, peak_ratio=peak_ratio, ceiling=math.inf)
    generator = np.random.default_rng(2)
    product = mfu.draw(generator, 100_000) * goodput.draw(generator, 100_000) * peak_ratio
    assert np.median(product) == pytest.approx(median, rel=0.01)
    if sd_log**2 - goodput.variance_log > (sd_log / 2) ** 2:
        assert np.std(np.log(product)) == pytest.approx(sd_log, rel=0.02)


def test_a_goodput_wider_than_the_efficiency_leaves_half_of_its_spread() -> None:
    mfu = step_mfu(LogNormal(median=0.3, sd_log=0.2), PowerOfUniform(shape=2.0), peak_ratio=1.0)
    assert mfu.sd_log == pytest.approx(0.1)


def test_goodput_follows_the_ratios_that_were_published() -> None:
    worse = goodput_from_ratios((0.66, 0.77, 0.8))
    better = goodput_from_ratios((0.9, 0.95, 1.0))
    assert worse.median < better.median < 1


@settings(max_examples=20)
@given(st.floats(min_value=1.0, max_value=40.0))
def test_goodput_recovers_the_shape_of_many_ratios(shape: float) -> None:
    ratios = PowerOfUniform(shape=shape).draw(np.random.default_rng(4), 20_000).tolist()
    assert goodput_from_ratios(ratios).shape == pytest.approx(shape, rel=0.03)


@pytest.mark.parametrize("ratios", [(1.0, 1.0), (1.1,), (0.0,)])
def test_ratios_that_no_clusters_have_are_refused(ratios: tuple[float, ...]) -> None:
    with pytest.raises(QuantityError):
        goodput_from_ratios(ratios)

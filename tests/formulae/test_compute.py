"""Compute and goodput reproduce published figures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae import compute, goodput
from formulae.units import QuantityError

H100_DENSE_BF16_FLOP_PER_S = 989.4e12
fractions = st.floats(min_value=0.01, max_value=1.0)


def hours_at(mfu: float = 0.55, goodput: float = 1.0, peak: float = 989.4e12) -> float:
    flop = compute.training_flop(1e10, 1e13)
    return compute.accelerator_hours(flop=flop, peak_flop_per_s=peak, mfu=mfu, goodput=goodput)


def test_ten_billion_parameters_and_ten_trillion_tokens_are_6e23_flop() -> None:
    assert compute.training_flop(10**10, 10**13) == 6.0e23


def test_that_run_takes_306277_hours_and_49_85_days_on_256_h100_at_55_percent() -> None:
    assert round(hours_at()) == 306_277
    assert round(compute.days(hours_at(), 256), 2) == 49.85
    assert hours_at(peak=989.5e12) == pytest.approx(306_277, rel=1e-3)


def test_the_chapters_sparse_peak_and_ten_fold_flop_give_its_124_6_days() -> None:
    hours = compute.accelerator_hours(flop=6e24, peak_flop_per_s=3958e12, mfu=0.55, goodput=1)
    assert round(hours) == 765_615
    assert round(compute.days(hours, 256), 1) == 124.6
    rounded = compute.accelerator_hours(flop=6e24, peak_flop_per_s=1e18, mfu=0.55, goodput=1)
    assert round(compute.days(rounded, 1), 1) == 126.3


def test_palm_540b_implies_its_billed_mfu_of_30_percent() -> None:
    flop = compute.training_flop(540e9, 780e9)
    chip_s = (6144 * 1200 + 3072 * 336) * 3600
    share = compute.mfu(achieved_flop_per_s=flop / chip_s, accelerators=1, peak_flop_per_s=275e12)
    assert share == pytest.approx(0.304, abs=0.001)


def test_mixtral_8x7b_stores_46_7_billion_and_uses_12_9_billion() -> None:
    shape = {"dense_params": 1_605_636_096, "params_per_expert": 5_637_144_576}
    assert compute.moe_total_params(**shape, experts=8) == pytest.approx(46.7e9, rel=1e-3)
    assert compute.moe_active_params(**shape, top_k=2) == pytest.approx(12.9e9, rel=2e-3)


@given(mfu=fractions, share=fractions)
def test_time_falls_as_mfu_or_goodput_rises(mfu: float, share: float) -> None:
    assert hours_at(mfu, share) >= hours_at(1.0, share) >= hours_at(1.0, 1.0)
    assert hours_at(mfu, share) == pytest.approx(hours_at() * 0.55 / (mfu * share))


@given(
    mfu=fractions,
    accelerators=st.integers(min_value=1, max_value=100_000),
    flop=st.floats(min_value=1e18, max_value=1e27),
)
def test_mfu_recovers_what_the_hours_were_made_from(
    mfu: float, accelerators: int, flop: float
) -> None:
    hours = compute.accelerator_hours(flop=flop, peak_flop_per_s=989.4e12, mfu=mfu, goodput=1)
    rate = flop / (compute.days(hours, accelerators) * 86_400)
    got = compute.mfu(
        achieved_flop_per_s=rate * (1 - 1e-12), accelerators=accelerators, peak_flop_per_s=989.4e12
    )
    assert got == pytest.approx(mfu)


def test_an_mfu_above_one_is_refused_as_a_wrong_peak() -> None:
    with pytest.raises(QuantityError, match="above 1"):
        compute.mfu(achieved_flop_per_s=2e12, accelerators=1, peak_flop_per_s=1e12)


@pytest.mark.parametrize("mfu", [0.0, -0.1, 1.01, 55.0, float("nan")])
def test_an_mfu_that_is_no_fraction_is_refused(mfu: float) -> None:
    with pytest.raises(QuantityError, match="mfu"):
        hours_at(mfu)


@pytest.mark.parametrize(
    ("nodes", "ettr"), [(32, 0.986), (128, 0.969), (512, 0.930), (2048, 0.824)]
)
def test_goodput_reproduces_the_closed_form_at_four_sizes(nodes: int, ettr: float) -> None:
    got = goodput.expected_goodput(
        nodes=nodes, failures_per_node_day=0.00379, restart_s=900, checkpoint_write_s=60
    )
    assert got == pytest.approx(ettr, abs=0.001)


def test_16384_gpus_at_rsc_1_rates_fail_every_1_8_hours() -> None:
    gap_s = goodput.mean_time_between_failures_s(nodes=2048, failures_per_node_day=0.0065)
    assert gap_s / 3600 == pytest.approx(1.8, abs=0.05)


@given(interval_s=st.floats(min_value=60, max_value=50_000))
def test_no_checkpoint_interval_beats_young_daly_by_much(interval_s: float) -> None:
    shape = {
        "nodes": 128,
        "failures_per_node_day": 0.00379,
        "restart_s": 900,
        "checkpoint_write_s": 60,
    }
    best = goodput.expected_goodput(**shape)
    assert goodput.expected_goodput(**shape, checkpoint_interval_s=interval_s) <= best + 1e-3


def test_goodput_is_refused_where_failures_eat_all_the_time() -> None:
    with pytest.raises(QuantityError, match="no useful time"):
        goodput.expected_goodput(
            nodes=100_000, failures_per_node_day=0.0065, restart_s=900, checkpoint_write_s=60
        )

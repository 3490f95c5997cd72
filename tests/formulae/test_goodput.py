"""Expected goodput: the published values, and losses that account for all the billed time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae import goodput
from formulae.units import QuantityError

CLUSTER = {"failures_per_node_day": 0.00379, "restart_s": 900.0, "checkpoint_write_s": 60.0}


@pytest.mark.parametrize(
    ("accelerators", "ettr"), [(256, 0.986), (1024, 0.969), (4096, 0.930), (16_384, 0.824)]
)
def test_larger_clusters_lose_more(accelerators: int, ettr: float) -> None:
    parts = goodput.goodput_breakdown(nodes=goodput.nodes_for(accelerators, 8), **CLUSTER)
    assert round(parts.goodput_fraction, 3) == ettr


def test_a_node_that_is_not_full_still_counts() -> None:
    assert goodput.nodes_for(1, 8) == 1
    assert goodput.nodes_for(8, 8) == 1
    assert goodput.nodes_for(9, 8) == 2


def test_five_minutes_of_writing_and_a_failure_a_day_ask_for_two_hours() -> None:
    advice = goodput.checkpoint_advice(
        checkpoint_write_s=300, mean_time_between_failures_s=86_400, step_s=1.8
    )
    assert advice.interval_s == 7_200.0
    assert advice.interval_steps == 4_000


def test_steps_are_not_known_without_their_time_and_never_none_at_all() -> None:
    asked = {"checkpoint_write_s": 1.0, "mean_time_between_failures_s": 50.0}
    assert goodput.checkpoint_advice(**asked).interval_steps is None
    assert goodput.checkpoint_advice(**asked, step_s=600.0).interval_steps == 1


@given(
    nodes=st.integers(min_value=1, max_value=2_048),
    failures_per_node_day=st.floats(min_value=0.001, max_value=0.0065),
    restart_s=st.floats(min_value=0, max_value=900),
    checkpoint_write_s=st.floats(min_value=0.1, max_value=120),
)
def test_goodput_and_losses_are_all_of_the_billed_time(
    nodes: int, failures_per_node_day: float, restart_s: float, checkpoint_write_s: float
) -> None:
    parts = goodput.goodput_breakdown(
        nodes=nodes,
        failures_per_node_day=failures_per_node_day,
        restart_s=restart_s,
        checkpoint_write_s=checkpoint_write_s,
    )
    lost = parts.failure_loss_fraction + parts.checkpoint_loss_fraction
    assert parts.goodput_fraction + lost == pytest.approx(1.0, abs=1e-12)
    assert min(parts.restart_loss_fraction, parts.rework_loss_fraction) >= 0


@given(factor=st.floats(min_value=0.2, max_value=5))
def test_no_interval_beats_the_advised_one_by_more_than_its_approximation(factor: float) -> None:
    best = goodput.goodput_breakdown(nodes=128, **CLUSTER)
    other = goodput.goodput_breakdown(
        nodes=128, **CLUSTER, checkpoint_interval_s=best.advice.interval_s * factor
    )
    assert other.advice == best.advice
    assert other.goodput_fraction <= best.goodput_fraction + 1e-3


def test_a_cluster_that_only_restarts_is_refused() -> None:
    with pytest.raises(QuantityError, match="no useful time"):
        goodput.goodput_breakdown(nodes=100_000, **CLUSTER)

"""The memory screen: its parts, its levels, what it assumes and says; the size of checkpoints."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae import checkpoints, memory
from formulae.memory import MemoryLevel, MemoryNeed
from formulae.units import QuantityError

LLAMA_3_8B = MemoryNeed(
    params=8.03e9,
    accelerators=64,
    memory_gb=80,
    layers=32,
    hidden=4096,
    vocab=128_256,
    seq_len=8192,
    micro_batch=1,
    shard_degree=64,
    tensor_parallel=1,
    recompute="selective",
)
LLAMA_3_405B = MemoryNeed(
    params=405e9,
    accelerators=16_384,
    memory_gb=80,
    layers=126,
    hidden=16_384,
    vocab=128_256,
    seq_len=8192,
)


def fields_of(screen: memory.MemoryScreen) -> dict[str, int | str]:
    return {one.field: one.value for one in screen.assumed}


def test_the_state_of_7_5_billion_parameters_is_120_gb() -> None:
    assert memory.state_bytes(7.5e9, shard_degree=1) == 120e9
    assert memory.state_bytes(7.5e9, shard_degree=64) == 1.875e9
    assert memory.state_bytes(7.5e9, shard_degree=1, fp32_gradients=True) == 135e9


def test_full_recompute_keeps_2_of_34_bytes() -> None:
    shape = {"seq_len": 2048, "micro_batch": 1, "hidden": 12_288, "layers": 96}
    selective = memory.activation_bytes(**shape, recompute="selective", tensor_parallel=8)
    assert selective == 34 * 2048 * 12_288 * 96 / 8
    assert memory.activation_bytes(**shape, recompute="none", tensor_parallel=8) == selective
    full = memory.activation_bytes(**shape, recompute="full", tensor_parallel=8)
    assert full * 17 == selective


def test_an_unknown_kind_of_recompute_is_refused() -> None:
    with pytest.raises(QuantityError, match="none, selective or full"):
        memory.screen_memory(replace(LLAMA_3_8B, recompute="some"))


def test_the_parts_sum_to_what_an_accelerator_needs() -> None:
    screen = memory.screen_memory(LLAMA_3_8B)
    assert screen.state_gb == pytest.approx(8.03 * 16 / 64)
    assert screen.activation_gb == pytest.approx(34 * 8192 * 4096 * 32 / 1e9)
    assert screen.logit_gb == pytest.approx(8192 * 128_256 * 6 / 1e9)
    parts_gb = screen.state_gb + screen.activation_gb + screen.logit_gb
    assert screen.required_gb_per_accelerator == pytest.approx(parts_gb)
    assert screen.share_fraction == pytest.approx(parts_gb / 80)
    assert screen.level is MemoryLevel.OK
    assert screen.assumed == ()


@pytest.mark.parametrize(
    ("share_fraction", "level"),
    [
        (0.0, MemoryLevel.OK),
        (0.75, MemoryLevel.OK),
        (0.7501, MemoryLevel.AMBER),
        (0.90, MemoryLevel.AMBER),
        (0.9001, MemoryLevel.RED),
        (12.0, MemoryLevel.RED),
    ],
)
def test_amber_above_three_quarters_red_above_nine_tenths(
    share_fraction: float, level: MemoryLevel
) -> None:
    assert memory.memory_level(share_fraction) is level


def test_a_model_whose_state_no_accelerator_holds_is_red() -> None:
    screen = memory.screen_memory(MemoryNeed(params=70e9, accelerators=8, memory_gb=80))
    assert screen.level is MemoryLevel.RED
    assert screen.state_gb == 140.0


def test_an_unknown_layout_is_assumed_and_said() -> None:
    screen = memory.screen_memory(
        replace(LLAMA_3_8B, micro_batch=None, shard_degree=None, recompute=None)
    )
    assert fields_of(screen) == {"micro_batch": 1, "shard_degree": 64, "recompute": "selective"}
    assert screen.level is MemoryLevel.OK


def test_full_recompute_is_assumed_only_where_nothing_less_fits() -> None:
    screen = memory.screen_memory(LLAMA_3_405B)
    assert fields_of(screen)["recompute"] == "full"
    assert screen.recompute == "full"
    assert screen.level is MemoryLevel.OK


def test_a_stated_recompute_is_never_replaced() -> None:
    screen = memory.screen_memory(replace(LLAMA_3_405B, recompute="selective"))
    assert "recompute" not in fields_of(screen)
    assert screen.level is MemoryLevel.RED


def test_a_node_shares_the_activations_where_even_full_recompute_does_not_fit() -> None:
    long_context = replace(LLAMA_3_8B, seq_len=131_072, recompute=None, tensor_parallel=None)
    assert memory.screen_memory(long_context).level is MemoryLevel.RED
    on_nodes = memory.screen_memory(replace(long_context, accelerators_per_node=8))
    assert fields_of(on_nodes) == {"recompute": "full", "tensor_parallel": 8}
    assert on_nodes.level is MemoryLevel.OK


@pytest.mark.parametrize(
    ("params", "layers", "hidden"),
    [(8.03e9, 32, 4096), (70.6e9, 80, 8192), (405e9, 126, 16_384)],
)
def test_an_unknown_shape_is_near_the_real_one(params: float, layers: int, hidden: int) -> None:
    screen = memory.screen_memory(MemoryNeed(params=params, accelerators=10_000, memory_gb=80))
    assumed = fields_of(screen)
    assert {"layers", "hidden", "vocab", "seq_len"} <= assumed.keys()
    size = int(assumed["layers"]) * int(assumed["hidden"])
    assert size == pytest.approx(layers * hidden, rel=0.25)


def test_of_a_shape_half_known_the_known_half_stays() -> None:
    half = replace(LLAMA_3_8B, hidden=None)
    assert fields_of(memory.screen_memory(half)) == {"hidden": 4573}
    other = replace(LLAMA_3_8B, layers=None)
    assert fields_of(memory.screen_memory(other)) == {"layers": 40}


@pytest.mark.parametrize(
    "field", ["layers", "hidden", "vocab", "seq_len", "micro_batch", "shard_degree", "accelerators"]
)
def test_counts_below_1_are_refused_by_name(field: str) -> None:
    with pytest.raises(QuantityError, match=field):
        memory.screen_memory(replace(LLAMA_3_8B, **{field: 0}))


@given(
    shard_degree=st.integers(min_value=1, max_value=4096),
    more=st.integers(min_value=1, max_value=4096),
)
def test_more_shards_never_need_more_memory(shard_degree: int, more: int) -> None:
    few = memory.screen_memory(replace(LLAMA_3_8B, shard_degree=shard_degree))
    many = memory.screen_memory(replace(LLAMA_3_8B, shard_degree=shard_degree + more))
    assert many.required_gb_per_accelerator < few.required_gb_per_accelerator


@pytest.mark.parametrize(
    ("params", "published_bytes"),
    [(8e9, 105e9), (70e9, 912e9), (405e9, 5.3e12), (1e12, 15e12)],
)
def test_checkpoints_are_within_8_percent_of_the_published_ones(
    params: float, published_bytes: float
) -> None:
    assert checkpoints.checkpoint_bytes(params) == pytest.approx(published_bytes, rel=0.08)


def test_a_write_blocks_for_its_bytes_over_the_bandwidth() -> None:
    size_bytes = checkpoints.checkpoint_bytes(8e9)
    assert checkpoints.blocking_write_s(size_bytes, bandwidth_bytes_per_s=2e9) == 56.0
    with pytest.raises(QuantityError, match="bandwidth"):
        checkpoints.blocking_write_s(size_bytes, bandwidth_bytes_per_s=0)

"""Does a run fit the memory of its accelerators: a screen before a plan; checkpoints elsewhere.

Sizes here are lower than what a profiler sees: buffers of communication and fragmentation are not
counted, which is why the screen turns amber at three quarters.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from formulae.units import QuantityError, gb_from_bytes, require_positive, require_range

STATE_BYTES_PER_PARAM: Final = 16
STATE_BYTES_PER_PARAM_FP32_GRADIENTS: Final = 18
BYTES_PER_LOGIT: Final = 6
AMBER_ABOVE: Final = 0.75
RED_ABOVE: Final = 0.90

_ACTIVATION_BYTES: Final = {"none": 34, "selective": 34, "full": 2}
# What an unknown shape is taken for: layers of hidden = 128 * layers, 12 * hidden^2 weights each.
_HIDDEN_PER_LAYER: Final = 128
_WEIGHTS: Final = 12
_SEQ_LEN: Final = 4_096
_VOCAB: Final = 128_000


class MemoryLevel(StrEnum):
    """How much of the memory a run needs: up to 75 %, up to 90 %, more."""

    OK = "ok"
    AMBER = "amber"
    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """What the screen is asked; None is not known and is assumed, and the answer says how.

    `shard_degree` is over how many accelerators the state is divided, whatever the means;
    `tensor_parallel` divides activations (with sequence parallelism).
    """

    params: float
    accelerators: int
    memory_gb: float
    active_params: float | None = None
    layers: int | None = None
    hidden: int | None = None
    vocab: int | None = None
    seq_len: int | None = None
    micro_batch: int | None = None
    shard_degree: int | None = None
    tensor_parallel: int | None = None
    accelerators_per_node: int | None = None
    recompute: str | None = None
    fp32_gradients: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAssumption:
    """A field of the need that was not known, and what was taken for it."""

    field: str
    value: int | str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryScreen:
    """What one accelerator must hold, part by part, against what it has."""

    required_gb_per_accelerator: float
    state_gb: float
    activation_gb: float
    logit_gb: float
    memory_gb: float
    share_fraction: float
    level: MemoryLevel
    recompute: str
    assumed: tuple[MemoryAssumption, ...]


def state_bytes(params: float, *, shard_degree: int, fp32_gradients: bool = False) -> float:
    """Weights, gradients and optimiser state on one accelerator, mixed precision with Adam.

    bytes = params * 16 / shard degree; 18 with gradients kept in fp32

    Args:
        params: all parameters, >= 1; of a mixture of experts all experts.
        shard_degree: over how many accelerators the state is divided, >= 1.
        fp32_gradients: gradients are accumulated in fp32.

    Returns:
        Bytes on each accelerator.

    Raises:
        QuantityError: a quantity is out of its range.

    Source: Rajbhandari et al. 2020 (ZeRO), arXiv:1910.02054, section 3.1: bf16 weight and gradient,
        fp32 weight, mean and variance.

    >>> state_bytes(7.5e9, shard_degree=1)
    120000000000.0
    """
    require_range("params", params, low=1)
    require_range("shard_degree", shard_degree, low=1)
    per_param = STATE_BYTES_PER_PARAM_FP32_GRADIENTS if fp32_gradients else STATE_BYTES_PER_PARAM
    return params * per_param / shard_degree


def activation_bytes(
    *,
    seq_len: int,
    micro_batch: int,
    hidden: int,
    layers: int,
    recompute: str,
    tensor_parallel: int = 1,
) -> float:
    """Activations kept for the backward pass on one accelerator, with fused attention.

    bytes = L * 34 * s * b * h / TP; L * 2 * s * b * h / TP under full recompute

    Pipeline stages do not divide it: the first stage holds as many micro-batches as there are
    stages.

    Args:
        seq_len: s, tokens, >= 1.
        micro_batch: b, sequences, >= 1.
        hidden: h, width of the residual stream, >= 1.
        layers: L, count, >= 1.
        recompute: "none" or "selective" (scores of attention are never kept), or "full".
        tensor_parallel: TP, accelerators that share each layer, sequence parallel, >= 1.

    Returns:
        Bytes on each accelerator.

    Raises:
        QuantityError: a quantity is out of its range, or the kind of recompute is unknown.

    Source: Korthikanti et al. 2022, arXiv:2205.05198, table 2.

    >>> activation_bytes(
    ...     seq_len=2048, micro_batch=1, hidden=12288, layers=96, recompute="selective",
    ...     tensor_parallel=8,
    ... )
    10267656192.0
    """
    for name, count in (("seq_len (tokens)", seq_len), ("micro_batch (sequences)", micro_batch)):
        require_range(name, count, low=1)
    for name, count in (("hidden", hidden), ("layers", layers)):
        require_range(name, count, low=1)
    require_range("tensor_parallel", tensor_parallel, low=1)
    if recompute not in _ACTIVATION_BYTES:
        raise QuantityError(f"recompute is {recompute!r}; it must be none, selective or full")
    per_value = _ACTIVATION_BYTES[recompute]
    return per_value * seq_len * micro_batch * hidden * layers / tensor_parallel


def logit_bytes(
    *,
    seq_len: int,
    micro_batch: int,
    vocab: int,
    tensor_parallel: int = 1,
    bytes_per_logit: int = BYTES_PER_LOGIT,
) -> float:
    """Logits of one micro-batch on one accelerator.

    bytes = s * b * V * bytes per logit / TP

    Args:
        seq_len: s, tokens, >= 1.
        micro_batch: b, sequences, >= 1.
        vocab: V, size of the vocabulary, >= 1.
        tensor_parallel: TP, accelerators that share the head, >= 1.
        bytes_per_logit: 2 (bf16, fused loss) to 6 (bf16 and an fp32 copy).

    Returns:
        Bytes on each accelerator.

    Raises:
        QuantityError: a quantity is out of its range.

    Source: Korthikanti et al. 2022, arXiv:2205.05198, section 4.3 (4 s b V in fp32), and the bf16
        copy.

    >>> logit_bytes(seq_len=8192, micro_batch=1, vocab=128_256)
    6304038912.0
    """
    require_range("seq_len (tokens)", seq_len, low=1)
    require_range("micro_batch (sequences)", micro_batch, low=1)
    require_range("vocab", vocab, low=1)
    require_range("tensor_parallel", tensor_parallel, low=1)
    require_range("bytes_per_logit", bytes_per_logit, low=1, high=8)
    return seq_len * micro_batch * vocab * bytes_per_logit / tensor_parallel


def memory_level(share_fraction: float) -> MemoryLevel:
    """What a share of the memory means.

    red > 0.90, amber > 0.75, ok otherwise

    Args:
        share_fraction: needed over available, >= 0.

    Returns:
        The level.

    Raises:
        QuantityError: the share is negative or not finite.

    Source: design rule; the rest is for buffers and fragmentation.

    >>> memory_level(0.75).value, memory_level(0.9).value, memory_level(0.91).value
    ('ok', 'amber', 'red')
    """
    require_range("share_fraction", share_fraction, low=0)
    if share_fraction > RED_ABOVE:
        return MemoryLevel.RED
    return MemoryLevel.AMBER if share_fraction > AMBER_ABOVE else MemoryLevel.OK


def screen_memory(need: MemoryNeed) -> MemoryScreen:
    """Whether a run fits the memory of its accelerators.

    required = state + activations + logits; share = required / memory

    What is not known is assumed: state divided over all accelerators, micro-batch 1, no tensor
    parallelism; then, only as far as the run would not be ok otherwise, full recompute, and the
    activations divided over one node. An unknown shape is that of a plain decoder of the same
    (active) size, 12 L h^2 with h = 128 L.

    Args:
        need: the model, the accelerators, and what is known of the parallel layout.

    Returns:
        GB (1e9 bytes) on each accelerator by part, their share of the memory, and each assumption.

    Raises:
        QuantityError: a quantity is out of its range.

    Source: `state_bytes`, `activation_bytes`, `logit_bytes`.

    >>> screen = screen_memory(
    ...     MemoryNeed(
    ...         params=8.03e9, accelerators=64, memory_gb=80, layers=32, hidden=4096, vocab=128_256,
    ...         seq_len=8192, recompute="selective",
    ...     )
    ... )
    >>> round(screen.required_gb_per_accelerator, 1), screen.level.value
    (44.8, 'ok')
    """
    require_range("accelerators", need.accelerators, low=1)
    require_positive("memory_gb (GB)", need.memory_gb)
    layout, assumed = _layout(need)
    screen = _screen_of(need, layout, assumed)
    for rung in _rungs(need):
        if screen.level is MemoryLevel.OK:
            break
        change: dict[str, Any] = {rung.field: rung.value}
        layout = replace(layout, **change)
        assumed = (*[one for one in assumed if one.field != rung.field], rung)
        screen = _screen_of(need, layout, assumed)
    return screen


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """The need without gaps."""

    layers: int
    hidden: int
    vocab: int
    seq_len: int
    micro_batch: int
    shard_degree: int
    tensor_parallel: int
    recompute: str


def _layout(need: MemoryNeed) -> tuple[_Layout, tuple[MemoryAssumption, ...]]:
    """What was stated, with the gaps filled, and what filled them."""
    guesses: dict[str, Any] = {
        **_shape(need),
        "vocab": _VOCAB,
        "seq_len": _SEQ_LEN,
        "micro_batch": 1,
        "shard_degree": need.accelerators,
        "tensor_parallel": 1,
        "recompute": "selective",
    }
    stated = {field: getattr(need, field) for field in guesses}
    known = {field: value for field, value in stated.items() if value is not None}
    assumed = tuple(
        MemoryAssumption(field=field, value=value)
        for field, value in guesses.items()
        if field not in known
    )
    return _Layout(**(guesses | known)), assumed


def _shape(need: MemoryNeed) -> dict[str, int]:
    """Layers and width of a plain decoder with as many (active) parameters."""
    params = require_range("active_params", need.active_params or need.params, low=1)
    layers, hidden = need.layers, need.hidden
    if layers is not None:
        require_range("layers", layers, low=1)
    if hidden is not None:
        require_range("hidden", hidden, low=1)
    if layers is not None and hidden is not None:
        return {"layers": layers, "hidden": hidden}
    if layers is not None:
        return {"layers": layers, "hidden": _at_least_1(math.sqrt(params / _WEIGHTS / layers))}
    if hidden is not None:
        return {"layers": _at_least_1(params / _WEIGHTS / hidden**2), "hidden": hidden}
    layers = _at_least_1(math.cbrt(params / _WEIGHTS / _HIDDEN_PER_LAYER**2))
    return {"layers": layers, "hidden": layers * _HIDDEN_PER_LAYER}


def _at_least_1(count: float) -> int:
    """The nearest count that is one."""
    return max(1, round(count))


def _rungs(need: MemoryNeed) -> tuple[MemoryAssumption, ...]:
    """What may still be assumed when a run would not fit, in order; nothing that was stated."""
    rungs = []
    if need.recompute is None:
        rungs.append(MemoryAssumption(field="recompute", value="full"))
    per_node = min(need.accelerators_per_node or 1, need.accelerators)
    if need.tensor_parallel is None and per_node > 1:
        rungs.append(MemoryAssumption(field="tensor_parallel", value=per_node))
    return tuple(rungs)


def _screen_of(
    need: MemoryNeed, layout: _Layout, assumed: tuple[MemoryAssumption, ...]
) -> MemoryScreen:
    """The three parts of one layout."""
    state = state_bytes(
        need.params, shard_degree=layout.shard_degree, fp32_gradients=need.fp32_gradients
    )
    activations = activation_bytes(
        seq_len=layout.seq_len,
        micro_batch=layout.micro_batch,
        hidden=layout.hidden,
        layers=layout.layers,
        recompute=layout.recompute,
        tensor_parallel=layout.tensor_parallel,
    )
    logits = logit_bytes(
        seq_len=layout.seq_len,
        micro_batch=layout.micro_batch,
        vocab=layout.vocab,
        tensor_parallel=layout.tensor_parallel,
    )
    required_gb = gb_from_bytes(state + activations + logits)
    share_fraction = required_gb / need.memory_gb
    return MemoryScreen(
        required_gb_per_accelerator=required_gb,
        state_gb=gb_from_bytes(state),
        activation_gb=gb_from_bytes(activations),
        logit_gb=gb_from_bytes(logits),
        memory_gb=need.memory_gb,
        share_fraction=share_fraction,
        level=memory_level(share_fraction),
        recompute=layout.recompute,
        assumed=assumed,
    )

"""Training compute and time: FLOP, MFU, accelerator-hours, days; no money and no energy."""

import math
from typing import Final

from formulae.units import S_PER_HOUR, QuantityError, days_from_hours, require_positive

_MOST_STEP_TOKENS: Final = 2**31
_MOST_STEP_TOKENS_OF_SHORT_RUN: Final = 2**27
_SHORT_RUN_STEPS: Final = 1_000


def training_flop(params: float, tokens: float) -> float:
    """Model operations of one training run without recompute.

    F = 6 * N * D

    The attention scores are not in it: for common language models 6ND is 8 to 27 % low.

    Args:
        params: N, parameters that one token passes through (the active ones), > 0.
        tokens: D, tokens trained, > 0.

    Returns:
        Floating point operations, FLOP (a count).

    Source: Kaplan et al. 2020, arXiv:2001.08361, section 2.1; Hoffmann et al. 2022,
    arXiv:2203.15556, appendix F.

    >>> training_flop(1e10, 1e13)
    6e+23
    """
    return 6.0 * require_positive("params", params) * require_positive("tokens", tokens)


def moe_active_params(*, dense_params: float, params_per_expert: float, top_k: int) -> float:
    """Parameters that one token passes through in a mixture of experts.

    N_active = N_dense + top_k * N_expert

    Args:
        dense_params: parameters every token meets: attention, shared experts, routers, embeddings,
            > 0.
        params_per_expert: one routed expert, summed over all layers, > 0.
        top_k: routed experts per token, >= 1.

    Returns:
        Active parameters, a count.

    Source: Fedus et al. 2022, arXiv:2101.03961, section 2; golden case Mixtral 8x7B,
    arXiv:2401.04088, table 1.

    >>> moe_active_params(dense_params=1_605_636_096, params_per_expert=5_637_144_576, top_k=2)
    12879925248.0
    """
    require_positive("top_k (experts per token)", top_k)
    return float(
        require_positive("dense_params", dense_params)
        + top_k * require_positive("params_per_expert", params_per_expert)
    )


def moe_total_params(*, dense_params: float, params_per_expert: float, experts: int) -> float:
    """Parameters of a mixture of experts that must be stored, active or not.

    N_total = N_dense + experts * N_expert

    Args:
        dense_params: parameters every token meets, > 0.
        params_per_expert: one routed expert, summed over all layers, > 0.
        experts: routed experts per layer, >= 1.

    Returns:
        Total parameters, a count.

    Source: Fedus et al. 2022, arXiv:2101.03961, section 2; golden case Mixtral 8x7B,
    arXiv:2401.04088, table 1.

    >>> moe_total_params(dense_params=1_605_636_096, params_per_expert=5_637_144_576, experts=8)
    46702792704.0
    """
    return moe_active_params(
        dense_params=dense_params, params_per_expert=params_per_expert, top_k=experts
    )


def achieved_flop_per_s(*, params: float, tokens_per_s: float) -> float:
    """Model operations per second of a run that is seen training.

    achieved = 6 * N * tokens_per_s

    Args:
        params: parameters that one token passes through, > 0.
        tokens_per_s: throughput of the whole job, tokens/s, > 0.

    Returns:
        FLOP/s of the whole job.

    Source: Chowdhery et al. 2022 (PaLM), arXiv:2204.02311, appendix B, without its attention term.

    >>> achieved_flop_per_s(params=1e10, tokens_per_s=2_000_000)
    1.2e+17
    """
    return training_flop(params, tokens_per_s)


def mfu(*, achieved_flop_per_s: float, accelerators: int, peak_flop_per_s: float) -> float:
    """Model FLOP utilisation: the achieved share of the peak.

    MFU = achieved / (accelerators * peak)

    Args:
        achieved_flop_per_s: model operations per second of the whole job, FLOP/s, > 0.
        accelerators: count, >= 1.
        peak_flop_per_s: peak of one accelerator at the stated precision, dense, FLOP/s, > 0.

    Returns:
        Fraction, 0 to 1.

    Raises:
        QuantityError: the share exceeds 1, so peak, precision or count is wrong.

    Source: Chowdhery et al. 2022 (PaLM), arXiv:2204.02311, section 4.1 and appendix B.

    >>> mfu(achieved_flop_per_s=1.2e17, accelerators=256, peak_flop_per_s=937.5e12)
    0.5
    """
    require_positive("accelerators", accelerators)
    require_positive("peak_flop_per_s", peak_flop_per_s)
    share = require_positive("achieved_flop_per_s", achieved_flop_per_s) / (
        accelerators * peak_flop_per_s
    )
    if share > 1:
        raise QuantityError(
            f"an MFU of {share:.2f} is above 1; check that the peak is the dense one "
            "of this accelerator and precision"
        )
    return share


def accelerator_hours(*, flop: float, peak_flop_per_s: float, mfu: float, goodput: float) -> float:
    """Billed accelerator-hours of a run.

    hours = F / (peak * MFU * goodput * 3600)

    Args:
        flop: model operations, FLOP, > 0.
        peak_flop_per_s: peak of one accelerator at the stated precision, dense, FLOP/s, > 0.
        mfu: model FLOP utilisation of healthy steps, fraction, above 0 to 1.
        goodput: healthy share of the billed time, fraction, above 0 to 1.

    Returns:
        Accelerator-hours, h.

    Source: Chowdhery et al. 2022 (PaLM), arXiv:2204.02311, appendix B, solved for time;
    goodput as in Kokolis et al. 2025 (HPCA), arXiv:2410.21680.

    >>> round(accelerator_hours(flop=6e23, peak_flop_per_s=989.4e12, mfu=0.55, goodput=1.0))
    306277
    """
    useful_flop_per_s = (
        require_positive("peak_flop_per_s", peak_flop_per_s)
        * require_positive("mfu (fraction)", mfu, high=1.0)
        * require_positive("goodput (fraction)", goodput, high=1.0)
    )
    return require_positive("flop", flop) / (useful_flop_per_s * S_PER_HOUR)


def days(accelerator_h: float, accelerators: int) -> float:
    """Calendar days of a run that holds its accelerators all the time.

    days = accelerator_h / accelerators / 24

    Args:
        accelerator_h: billed accelerator-hours, h, > 0.
        accelerators: count, >= 1.

    Returns:
        Days, d.

    Source: definition.

    >>> round(days(306_277, 256), 2)
    49.85
    """
    return days_from_hours(
        require_positive("accelerator_h", accelerator_h)
        / require_positive("accelerators", accelerators)
    )


def training_steps(*, tokens: float, batch_sequences: float, seq_len: float) -> int:
    """Optimiser steps of a run.

    steps = ceil(D / (batch * S)), batch in sequences

    Args:
        tokens: D, tokens trained, > 0.
        batch_sequences: sequences of one step over the whole job, > 0.
        seq_len: S, tokens of one sequence, > 0.

    Returns:
        Steps, a count; the last one may be filled in part.

    Raises:
        QuantityError: one step would hold more tokens than any known run, so the batch was meant
            in tokens: above 2^31 tokens, or above 2^27 in a run of fewer than 1000 steps.

    Source: definition; the largest published steps hold about 64 million tokens
    (DeepSeek-V3, arXiv:2412.19437, section 4.2: 15,360 sequences of 4,096).

    >>> training_steps(tokens=1e13, batch_sequences=1024, seq_len=4096)
    2384186
    """
    step_tokens = require_positive("batch_sequences (sequences)", batch_sequences) * (
        require_positive("seq_len (tokens)", seq_len)
    )
    steps = math.ceil(require_positive("tokens", tokens) / step_tokens)
    if step_tokens > _MOST_STEP_TOKENS or (
        step_tokens > _MOST_STEP_TOKENS_OF_SHORT_RUN and steps < _SHORT_RUN_STEPS
    ):
        raise QuantityError(
            f"batch_sequences is {batch_sequences:.10g}; with {seq_len:.10g} tokens each, one step "
            f"would hold {step_tokens:.3g} tokens and the run {steps} steps. The batch is "
            f"counted in sequences: {batch_sequences:.10g} tokens are "
            f"{batch_sequences / seq_len:.10g} sequences"
        )
    return steps

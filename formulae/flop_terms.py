"""Training FLOP per token of a whole model, term by term, for MFU and for HFU; no hardware."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from formulae.architecture import Architecture
from formulae.flop_attention import attention_shape, score_parts
from formulae.flop_parts import BOTH_GRADIENTS, FORWARD_ONLY, FlopPart, Training, weight_part
from formulae.flop_stack import cross_attention_parts, stack_parts
from formulae.flop_vision import vision_parts
from formulae.model_description import ModelDescription, StackOutline, VisionEncoder
from formulae.units import require_positive

__all__ = [
    "FLOP_TERM_KEYS",
    "Architecture",
    "FlopTerm",
    "ModelDescription",
    "StackOutline",
    "VisionEncoder",
    "hardware_flop_per_token",
    "model_flop_per_token",
    "train_flop_terms",
]

_STACK_KEYS: Final = (
    "attention_projections", "dense_ffn", "routed_experts", "shared_experts", "router",
    "patch_projection", "output_head", "attention_scores", "windowed_attention_scores",
)  # fmt: skip
FLOP_TERM_KEYS: Final = (
    "parameters",
    *_STACK_KEYS,
    "multi_token_prediction",
    "multi_token_prediction_attention_scores",
    *(f"encoder_{key}" for key in _STACK_KEYS),
    "cross_attention_queries",
    "cross_attention_memory",
    "cross_attention_scores",
    *(f"vision_{key}" for key in _STACK_KEYS),
    "vision_encoder",
    "vision_projector",
    "adapters",
    "forward_only",
    "teacher",
    "recompute",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlopTerm:
    """One term of the FLOP of a trained token; the formula has its numbers filled in.

    Recompute is no model FLOP: it counts for HFU and not for MFU.
    """

    key: str
    formula: str
    flop_per_token: float
    is_model_flop: bool = True


def train_flop_terms(model: ModelDescription, *, seq_len: int | None) -> tuple[FlopTerm, ...]:
    """FLOP of training one token, term by term.

    F / token = 6 N_mm + 12 a L H_attn S, a = 0.5 (causal) or 1; with only counts 6 N_active, less
    the input embedding when its size is known, and H_attn = hidden when that is all there is.
    Encoder-decoder: f (encoder) + (1 - f) (decoder), f the share of source tokens; its ``seq_len``
    is the source, the target has seq_len (1 - f) / f tokens. Frozen weights cost 4 N where
    gradients pass them and 2 N where not; adapters 4 N + 6 N_adapter; a teacher 2 N_teacher.
    Recompute adds the forward pass once more (full, so hardware = 4/3 model) or its attention
    scores (selective).

    Args:
        model: what is known of it.
        seq_len: S, tokens of one sequence, >= 1; None leaves all attention scores out.

    Returns:
        Terms, each above zero; FLOP per trained token.

    Source: Kaplan et al. 2020, arXiv:2001.08361, section 2.1; Chowdhery et al. 2022 (PaLM),
    arXiv:2204.02311, appendix B; recompute: Korthikanti et al. 2022, arXiv:2205.05198, section 5;
    prediction depths: DeepSeek-V3, arXiv:2412.19437, section 2.2.

    >>> model = ModelDescription(
    ...     stated_params=8.03e9,
    ...     outline=StackOutline(layers=32, hidden=4096, vocab=128256),
    ...     recompute="selective",
    ... )
    >>> for term in train_flop_terms(model, seq_len=8192):
    ...     print(f"{term.key}: {term.formula}: {term.flop_per_token:.4g}")
    parameters: 6 * (N_active - V * H) = 6 * (8.03e+09 - 128256 * 4096): 4.503e+10
    attention_scores: 12 * a * L * H * S = 12 * 0.5 * 32 * 4096 * 8192 (a = 0.5: causal): 6.442e+09
    recompute: 4 * a * L * H_attn * S = 2.14748e+09: 2.147e+09
    """
    parts = (*_backbone(model, seq_len), *_beside(model))
    terms = [
        FlopTerm(key=part.key, formula=part.formula, flop_per_token=part.flop_per_token)
        for part in parts
    ]
    return (*terms, *_recompute(model, parts))


def model_flop_per_token(terms: Iterable[FlopTerm]) -> float:
    """Model FLOP of one trained token: what MFU divides by the peak.

    F = sum of the terms without recompute

    Args:
        terms: of one model.

    Returns:
        FLOP per token.

    Source: Chowdhery et al. 2022 (PaLM), arXiv:2204.02311, section 4.1.

    >>> model = ModelDescription(stated_params=1e10, recompute="full")
    >>> model_flop_per_token(train_flop_terms(model, seq_len=None))
    60000000000.0
    """
    return sum(term.flop_per_token for term in terms if term.is_model_flop)


def hardware_flop_per_token(terms: Iterable[FlopTerm]) -> float:
    """Hardware FLOP of one trained token, recompute included: what HFU divides by the peak.

    F = sum of all terms; full recompute makes it 4/3 of the model FLOP

    Args:
        terms: of one model.

    Returns:
        FLOP per token.

    Source: Korthikanti et al. 2022, arXiv:2205.05198, section 6.

    >>> model = ModelDescription(stated_params=1e10, recompute="full")
    >>> hardware_flop_per_token(train_flop_terms(model, seq_len=None))
    80000000000.0
    """
    return sum(term.flop_per_token for term in terms)


def _training(model: ModelDescription, share: float = 1.0) -> Training:
    """The passes of the language stacks under frozen parts and adapters."""
    frozen = model.frozen_fraction
    if model.frozen_passes_gradients or model.adapter_params is not None:
        return Training(weight_passes=BOTH_GRADIENTS - frozen, share=share)
    passes = BOTH_GRADIENTS - 2.0 * frozen
    return Training(
        weight_passes=passes,
        score_passes=passes,
        recomputed_fraction=1.0 - frozen,
        share=share,
    )


def _backbone(model: ModelDescription, seq_len: int | None) -> tuple[FlopPart, ...]:
    """The parts of the language stacks: by shape, or by counts."""
    if model.architecture is None:
        return _counted_parts(model, seq_len)
    if model.encoder is None:
        return stack_parts(model.architecture, seq_len=seq_len, training=_training(model))
    source = model.source_fraction
    encoder, decoder = _training(model, source), _training(model, 1.0 - source)
    target_len = None if seq_len is None else seq_len * (1.0 - source) / source
    return (
        *stack_parts(model.encoder, seq_len=seq_len, training=encoder, prefix="encoder_"),
        *stack_parts(model.architecture, seq_len=target_len, training=decoder),
        *cross_attention_parts(
            model.architecture,
            source_len=seq_len,
            decoder_training=decoder,
            encoder_training=encoder,
        ),
    )


def _counted_parts(model: ModelDescription, seq_len: int | None) -> tuple[FlopPart, ...]:
    """The parts of a model of which counts are known, and perhaps layers and width."""
    training = _training(model)
    weights, crossed = _counted_weights(model, training)
    shape = attention_shape(model.outline or StackOutline())
    if seq_len is None or shape is None:
        return (weights,)
    if model.encoder_params is not None:
        # The encoder and cross attention see all of the source.
        shape = replace(shape, causal=False)
    scores = replace(training, share=crossed)
    return (weights, *score_parts(shape, seq_len=seq_len, training=scores))


def _counted_weights(model: ModelDescription, training: Training) -> tuple[FlopPart, float]:
    """6 N from counts, and the share of the layers that one token crosses."""
    if model.encoder_params is not None:
        f, encoder = model.source_fraction, model.encoder_params
        decoder = model.active_params - encoder
        symbols = "(f * N_encoder + (1 - f) * N_decoder)"
        numbers = f"({f:g} * {encoder:g} + {1 - f:g} * {decoder:g})"
        params = f * encoder + (1 - f) * decoder
    else:
        outline = model.outline or StackOutline()
        tower = 0.0 if model.vision is None else model.vision.total_params
        embedding = f"{outline.vocab} * {outline.hidden}"
        rows = [("N_active", f"{model.active_params:g}", model.active_params)]
        rows += [("N_vision", f"{tower:g}", tower)] if tower else []
        rows += [("V * H", embedding, float(outline.embedding))] if outline.embedding else []
        symbols = " - ".join(symbol for symbol, _number, _value in rows)
        numbers = " - ".join(number for _symbol, number, _value in rows)
        if len(rows) > 1:
            symbols, numbers = f"({symbols})", f"({numbers})"
        params = rows[0][2] - sum(row[2] for row in rows[1:])
        require_positive("params without vision tower and input embedding", params)
    part = weight_part("parameters", symbols, numbers, weights=params, training=training)
    return part, params / model.active_params if model.encoder_params is not None else 1.0


def _beside(model: ModelDescription) -> tuple[FlopPart, ...]:
    """The parts beside the language stacks: vision, adapters, networks that only run, a teacher."""
    only_run = Training(
        weight_passes=FORWARD_ONLY, score_passes=FORWARD_ONLY, recomputed_fraction=0.0
    )
    rows = (
        ("adapters", "N_adapter", model.adapter_params, Training()),
        ("forward_only", "N_forward_only", model.forward_only_params, only_run),
        ("teacher", "N_teacher", model.teacher_params, only_run),
    )
    vision = () if model.vision is None else vision_parts(model.vision)
    counted = (
        weight_part(key, symbol, f"{params:g}", weights=params, training=training)
        for key, symbol, params, training in rows
        if params is not None
    )
    return (*vision, *counted)


def _recompute(model: ModelDescription, parts: tuple[FlopPart, ...]) -> tuple[FlopTerm, ...]:
    """The forward FLOP that is spent again in the backward pass; none without recompute."""
    if model.recompute == "none":
        return ()
    weights, scores = (
        sum(
            part.forward_flop_per_token * part.recomputed_fraction
            for part in parts
            if part.is_scores is is_scores
        )
        for is_scores in (False, True)
    )
    symbols, numbers, again = "4 * a * L * H_attn * S", f"{scores:.6g}", scores
    if model.recompute == "full":
        symbols, numbers = f"2 * N + {symbols}", f"{weights:.6g} + {numbers}"
        again += weights
    if not again:
        return ()
    return (
        FlopTerm(
            key="recompute",
            formula=f"{symbols} = {numbers}",
            flop_per_token=again,
            is_model_flop=False,
        ),
    )

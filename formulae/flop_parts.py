"""One part of a training step and what its passes cost; which parts a model has is elsewhere."""

from dataclasses import dataclass
from typing import Final

BOTH_GRADIENTS: Final = 3.0
ACTIVATION_GRADIENTS: Final = 2.0
FORWARD_ONLY: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a stack is trained, in passes of which each costs as much as its forward pass.

    ``weight_passes`` for products with weights: 3 trained, 2 frozen but passing gradients, 1
    forward only. ``score_passes`` for attention scores, which have no weights: 3 wherever
    gradients pass, else 1. ``recomputed_fraction`` of the stack has a backward pass at all.
    ``share`` is the stack's own tokens per trained token.
    """

    weight_passes: float = BOTH_GRADIENTS
    score_passes: float = BOTH_GRADIENTS
    recomputed_fraction: float = 1.0
    share: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FlopPart:
    """One part of a stack: its FLOP per trained token, forward and in training."""

    key: str
    formula: str
    forward_flop_per_token: float
    passes: float
    is_scores: bool = False
    recomputed_fraction: float = 1.0

    @property
    def flop_per_token(self) -> float:
        """Training FLOP per trained token."""
        return self.passes * self.forward_flop_per_token


def weight_part(
    key: str, symbols: str, numbers: str, *, weights: float, training: Training
) -> FlopPart:
    """The part of a training step that multiplies tokens with weights.

    FLOP per token = 2 * passes * weights: 6 trained, 4 frozen but passing gradients, 2 forward only

    Args:
        key: name of the term.
        symbols: how the weights are counted, in symbols.
        numbers: the same in numbers.
        weights: N, weights that a token of the stack meets, count, >= 0.
        training: passes and share.

    Returns:
        FLOP per trained token, with its formula written out.

    Source: Kaplan et al. 2020, arXiv:2001.08361, section 2.1; frozen weights: Hu et al. 2021,
    arXiv:2106.09685, section 4.2 (no gradient of frozen weights).

    >>> weight_part("head", "V * H", "8 * 4", weights=32, training=Training()).formula
    '6 * V * H = 6 * 8 * 4'
    """
    factor = f"{_share(training)}{2 * training.weight_passes:g} * "
    return FlopPart(
        key=key,
        formula=f"{factor}{symbols} = {factor}{numbers}",
        forward_flop_per_token=2.0 * weights * training.share,
        passes=training.weight_passes,
        recomputed_fraction=training.recomputed_fraction,
    )


def score_part(
    key: str, symbols: str, numbers: str, *, width_tokens: float, training: Training
) -> FlopPart:
    """The part of a training step that multiplies queries with keys and scores with values.

    FLOP per token = 4 * passes * L * H_attn * context: 12 in training, 4 forward only

    Args:
        key: name of the term.
        symbols: L * H_attn * context in symbols.
        numbers: the same in numbers.
        width_tokens: L * H_attn * context, tokens, >= 0.
        training: passes and share.

    Returns:
        FLOP per trained token, with its formula written out.

    Source: Chowdhery et al. 2022 (PaLM), arXiv:2204.02311, appendix B.

    >>> score_part("scores", "L * H", "2 * 4", width_tokens=8, training=Training()).flop_per_token
    96.0
    """
    factor = f"{_share(training)}{4 * training.score_passes:g} * "
    return FlopPart(
        key=key,
        formula=f"{factor}{symbols} = {factor}{numbers}",
        forward_flop_per_token=4.0 * width_tokens * training.share,
        passes=training.score_passes,
        is_scores=True,
        recomputed_fraction=training.recomputed_fraction,
    )


def _share(training: Training) -> str:
    """The share of the tokens as a factor of a formula; nothing when it is all of them."""
    return "" if training.share == 1.0 else f"{training.share:.6g} * "

"""Legal thresholds of training compute, and how near a plan is to them; no advice on the law."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from formulae.units import require_range

NEAR_DIVISOR: Final = 3


class ThresholdState(StrEnum):
    """Where a figure stands against a threshold; near is from a third of it on."""

    NONE = "none"
    NEAR = "near"
    ABOVE = "above"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeThreshold:
    """A threshold of training compute and the text that sets it."""

    key: str
    threshold_flop: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdReading:
    """How a training run stands against one threshold; the share may exceed 1."""

    threshold: ComputeThreshold
    state: ThresholdState
    share_fraction: float


SYSTEMIC_RISK: Final = ComputeThreshold(
    key="eu_ai_act_systemic_risk",
    threshold_flop=1e25,
    source=(
        "Regulation (EU) 2024/1689 (AI Act), Article 51(2): presumed to have high-impact "
        "capabilities when the cumulative computation used for training is greater than "
        "10^25 floating-point operations"
    ),
)
GENERAL_PURPOSE: Final = ComputeThreshold(
    key="eu_ai_act_general_purpose",
    threshold_flop=1e23,
    source=(
        "European Commission, guidelines on the scope of the obligations for general-purpose AI "
        "models, 18 July 2025: indicative criterion, training compute greater than 10^23 "
        "floating-point operations"
    ),
)


def training_compute_threshold(
    training_flop: float, threshold: ComputeThreshold = SYSTEMIC_RISK
) -> ThresholdReading:
    """How near the compute of a training run is to a legal threshold.

    above: C > T; near: T / 3 <= C <= T; none: C < T / 3

    The law counts all computation that makes the model: pre-training, synthetic data, fine-tuning
    and what went into a base model count together. A figure for one run alone is a lower bound.

    Args:
        training_flop: C, computation used for training, FLOP, >= 0.
        threshold: T and its source; the presumption of systemic risk at 10^25 FLOP when left out.

    Returns:
        State, share C / T, and the threshold with the text that sets it.

    Raises:
        QuantityError: the compute is negative or not finite.

    Source: Regulation (EU) 2024/1689, Article 51(2) and recital 111; the third is this project's
    warning line.

    >>> training_compute_threshold(3.8e25).state.value
    'above'
    >>> training_compute_threshold(6e23).state.value
    'none'
    >>> training_compute_threshold(6e23, GENERAL_PURPOSE).state.value
    'above'
    """
    share = require_range("training_flop (FLOP)", training_flop, low=0) / threshold.threshold_flop
    is_near = training_flop >= threshold.threshold_flop / NEAR_DIVISOR
    near_or_none = ThresholdState.NEAR if is_near else ThresholdState.NONE
    is_above = training_flop > threshold.threshold_flop
    return ThresholdReading(
        threshold=threshold,
        state=ThresholdState.ABOVE if is_above else near_or_none,
        share_fraction=share,
    )

"""Repeatable noise (SplitMix64, counter-based): every machine makes the same bytes."""

from typing import Final

import numpy as np
import numpy.typing as npt

_GOLDEN: Final = 0x9E3779B97F4A7C15
_MIX_1: Final = 0xBF58476D1CE4E5B9
_MIX_2: Final = 0x94D049BB133111EB
_TWO_TO_MINUS_53: Final = 1.0 / (1 << 53)


def uniform(*, seed: int, stream: int, count: int) -> npt.NDArray[np.float64]:
    """`count` numbers in [0, 1), the same for the same seed and stream on every platform."""
    start = (seed * 1_000_003 + stream) * _MIX_1 % (1 << 64)
    state = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GOLDEN) + np.uint64(start)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(_MIX_1)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(_MIX_2)
    state ^= state >> np.uint64(31)
    return (state >> np.uint64(11)).astype(np.float64) * _TWO_TO_MINUS_53


def bell(*, seed: int, stream: int, count: int) -> npt.NDArray[np.float64]:
    """`count` numbers around 0 with a standard deviation of 1, none beyond 3.5 (four dice)."""
    dice = uniform(seed=seed, stream=stream, count=4 * count).reshape(4, count)
    centred: npt.NDArray[np.float64] = (dice[0] + dice[1] + dice[2] + dice[3]) - 2.0
    return centred * 1.7320508075688772

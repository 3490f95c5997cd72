"""What rooms of energy share: the length of an hour, arrays, device-hours; no rules, no tables.

How readings become energy is told by lines, counters, cascade and gaps.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from formulae.units import MICROSECOND_PER_S, S_PER_HOUR

HOUR_MICROSECOND: Final = S_PER_HOUR * MICROSECOND_PER_S

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class HourTable:
    """Energy of one device in one hour a row, ordered by device and hour."""

    device: Ints
    hour: Ints
    measured_millijoule: Ints
    spread_millijoule: Ints
    estimated_millijoule: Ints
    covered_microsecond: Ints

    def __len__(self) -> int:
        return len(self.device)

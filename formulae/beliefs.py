"""What is believed of a quantity that is not known to the point: its draws and its median; pure."""

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Final, Protocol

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from formulae.units import QuantityError, require_positive

Draws = NDArray[np.float64]
Z80: Final = NormalDist().inv_cdf(0.90)
# Probabilities with their weights, both for the interval (0, 1).
_QUADRATURE: Final = tuple(
    ((1 + node) / 2, weight / 2)
    for node, weight in zip(*(part.tolist() for part in leggauss(16)), strict=True)
)


class Belief(Protocol):
    """A distribution of one quantity, in that quantity's unit."""

    @property
    def median(self) -> float:
        """The value that is as likely exceeded as not."""
        ...

    @property
    def is_certain(self) -> bool:
        """Whether there is nothing to draw."""
        ...

    @property
    def variance_log(self) -> float:
        """Variance of the natural log of the quantity."""
        ...

    def draw(self, generator: np.random.Generator, draws: int) -> Draws:
        """Independent draws, shape (draws,)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Certain:
    """A value taken as it was given."""

    value: float

    @property
    def median(self) -> float:
        """The value."""
        return self.value

    @property
    def is_certain(self) -> bool:
        """Always."""
        return True

    @property
    def variance_log(self) -> float:
        """None to speak of."""
        return 0.0

    def draw(self, generator: np.random.Generator, draws: int) -> Draws:
        """The value, repeated; takes nothing from the generator."""
        return np.full(draws, self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Triangular:
    """Impossible below low and above high, likeliest at mode."""

    low: float
    mode: float
    high: float

    @property
    def median(self) -> float:
        """F(median) = 1/2 on the longer side of the mode."""
        low, mode, high = self.low, self.mode, self.high
        if mode >= (low + high) / 2:
            return low + math.sqrt((high - low) * (mode - low) / 2)
        return high - math.sqrt((high - low) * (high - mode) / 2)

    @property
    def is_certain(self) -> bool:
        """A range without width."""
        return self.low == self.high

    @property
    def variance_log(self) -> float:
        """By Gauss-Legendre quadrature of the quantile function over probability."""
        return _triangular_variance_log(self.low, self.mode, self.high)

    def draw(self, generator: np.random.Generator, draws: int) -> Draws:
        """Draws in [low, high]."""
        if self.is_certain:
            return np.full(draws, self.mode)
        return generator.triangular(self.low, self.mode, self.high, size=draws)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNormal:
    """Known up to a factor: the log is normal. Draws above `ceiling` become `ceiling`."""

    median: float
    sd_log: float
    ceiling: float = math.inf

    def __post_init__(self) -> None:
        """Refuse what is no distribution."""
        require_positive("median", self.median)
        if not (math.isfinite(self.sd_log) and self.sd_log >= 0):
            raise QuantityError(f"sd_log is {self.sd_log}; it must be a finite number from 0 on")

    @property
    def is_certain(self) -> bool:
        """A spread of zero."""
        return self.sd_log == 0

    @property
    def variance_log(self) -> float:
        """The square of its spread; the ceiling, which few draws reach, is left aside."""
        return self.sd_log**2

    def draw(self, generator: np.random.Generator, draws: int) -> Draws:
        """Draws in (0, ceiling]."""
        found = generator.standard_normal(draws)
        found *= self.sd_log
        np.exp(found, out=found)
        found *= self.median
        if math.isfinite(self.ceiling):
            np.minimum(found, self.ceiling, out=found)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerOfUniform:
    """A share that leans to its highest: x = highest * u^(1/shape) with u uniform on (0, 1).

    With highest 1 it is Beta(shape, 1). Its quantile function is q(p) = highest * p^(1/shape), so a
    median m of one with highest 1 gives shape = log(1/2) / log(m).
    """

    shape: float
    highest: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no distribution of a share."""
        require_positive("shape", self.shape)
        require_positive("highest", self.highest, high=1.0)

    @property
    def median(self) -> float:
        """Highest * 0.5^(1/shape)."""
        return self.highest * float(0.5 ** (1 / self.shape))

    @property
    def is_certain(self) -> bool:
        """Never."""
        return False

    @property
    def variance_log(self) -> float:
        """Variance of the log: -log(x / highest) is exponential with rate `shape`."""
        return 1 / self.shape**2

    def draw(self, generator: np.random.Generator, draws: int) -> Draws:
        """Draws in (0, highest]: highest * exp(-e / shape), e exponential."""
        found = generator.standard_exponential(draws)
        found /= -self.shape
        np.exp(found, out=found)
        found *= self.highest
        return found


def log_normal_from_quantiles(*, low: float, high: float) -> LogNormal:
    """The lognormal with these 10th and 90th percentiles.

    median = sqrt(low * high); sd_log = log(high / low) / (2 * 1.2816)

    Args:
        low: 10th percentile, any unit, > 0.
        high: 90th percentile, same unit, >= low.

    Returns:
        The belief in that unit.

    Raises:
        QuantityError: the two are out of order.

    Source: definition of the lognormal distribution.

    >>> belief = log_normal_from_quantiles(low=2.0, high=8.0)
    >>> belief.median, round(belief.sd_log, 4)
    (4.0, 0.5409)
    """
    require_positive("low", low)
    require_positive("high", high)
    if high < low:
        raise QuantityError(f"the 10th percentile {low} is above the 90th, {high}; swap them")
    return LogNormal(median=math.sqrt(low * high), sd_log=math.log(high / low) / (2 * Z80))


def quantile_of(belief: Belief, level: float) -> float:
    """The value of a belief that is not exceeded with a probability; exact, without draws.

    q(p): p-quantile of the distribution; lognormal q = median * exp(sd_log * z_p)

    Args:
        belief: the distribution.
        level: probability, above 0, below 1.

    Returns:
        The value, in the unit of the belief.

    Source: definitions of the distributions.

    >>> quantile_of(Triangular(low=0.0, mode=0.5, high=1.0), 0.5)
    0.5
    """
    match belief:
        case Certain(value=value):
            return value
        case LogNormal(median=median, sd_log=sd_log, ceiling=ceiling):
            return min(ceiling, median * math.exp(sd_log * NormalDist().inv_cdf(level)))
        case PowerOfUniform(shape=shape, highest=highest):
            return highest * float(level ** (1 / shape))
        case Triangular(low=low, mode=mode, high=high):
            return _triangular_quantile(low, mode, high, level)
        case _:
            raise TypeError(f"no quantile of a {type(belief).__name__}")


def _triangular_quantile(low: float, mode: float, high: float, level: float) -> float:
    """Inverse of the triangular distribution function."""
    if high == low:
        return mode
    split = (mode - low) / (high - low)
    if level < split:
        return low + math.sqrt(level * (high - low) * (mode - low))
    return high - math.sqrt((1 - level) * (high - low) * (high - mode))


@lru_cache(maxsize=256)
def _triangular_variance_log(low: float, mode: float, high: float) -> float:
    """Variance of the log over the triangular distribution."""
    logs = [math.log(_triangular_quantile(low, mode, high, level)) for level, _w in _QUADRATURE]
    weights = [weight for _level, weight in _QUADRATURE]
    mean = math.fsum(w * x for w, x in zip(weights, logs, strict=True))
    return math.fsum(w * (x - mean) ** 2 for w, x in zip(weights, logs, strict=True))

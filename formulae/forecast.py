"""Where a run ends, with an interval: a prior from the estimate, moved by the run's own days.

Each simulated future draws a level of daily throughput and resamples the run's own recent days in
blocks, so that what goes together (tokens, cost, energy, emissions) stays together and bad weeks
stay bad weeks. Outages are a process of their own: days that hold next to nothing are taken out of
the sample and come back at the rate at which they came before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from formulae.units import QuantityError

Array = NDArray[np.float64]

DRAWS: Final = 2_000
LONGEST_DAYS: Final = 1_500
BLOCK_DAYS: Final = 4
# How fast older days lose their weight: half of it in so many days, at least.
HALF_LIFE_DAYS: Final = 14.0
# How a level drifts, in logs, like a random walk: a day's variance, unless weeks show more. What is
# bought for a day's work (price, power, grid) drifts too.
DRIFT_VARIANCE_PER_DAY: Final = 0.015**2
LEAST_DRIFT_SD: Final = 0.035
QUANTITY_DRIFT_VARIANCE_PER_DAY: Final = 0.01**2
OUTAGE_SHARE: Final = 0.35  # of the median day: below, the run was down for most of it
# One outage day in so many before any was seen (a prior worth so many days).
OUTAGE_PRIOR_DAYS: Final = 60.0
# How much days differ, in logs, before enough of them were seen: worth so many days.
DAY_SD: Final = 0.15
PRIOR_DAYS: Final = 3.0
Z80: Final = 1.2815515655446004
LEVELS: Final = {"p10": 0.1, "p50": 0.5, "p80": 0.8, "p90": 0.9}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastPrior:
    """What the estimate believed: progress of a day, and how sure it was.

    `progress_per_day` is the median, such as tokens; `log_sd` the standard deviation of its
    logarithm. `per_day` are the planned amounts of each other quantity while the run goes on.
    """

    progress_per_day: float
    log_sd: float
    per_day: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedDays:
    """Whole days of the run in order: progress, and quantities that go with it.

    NaN where a day's value is not known; it is left out, never taken for zero.
    """

    progress: Sequence[float]
    quantities: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Percentiles of a forecast."""

    p10: float
    p50: float
    p80: float
    p90: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunForecast:
    """How many days remain, and how much of each quantity these days take.

    `learned_fraction` is the share of the belief in the level that comes from the run's own days,
    0 to 1; `is_open` says that some futures do not end within `LONGEST_DAYS`.
    """

    days_left: Levels
    quantities_left: Mapping[str, Levels]
    learned_fraction: float
    is_open: bool


def log_sd_of(*, p10: float, p90: float) -> float:
    """The standard deviation of the logarithm of a log-normal from two percentiles.

    s = ln(p90 / p10) / (2 * 1.2816)

    Raises:
        QuantityError: the percentiles are not above 0 and in order.

    Source: definition of the log-normal distribution.

    >>> round(log_sd_of(p10=80.0, p90=125.0), 3)
    0.174
    """
    if not 0 < p10 <= p90:
        raise QuantityError(f"percentiles must be above 0 and in order, not {p10} and {p90}")
    return float(np.log(p90 / p10) / (2 * Z80))


def forecast_run(
    prior: ForecastPrior,
    observed: ObservedDays,
    *,
    progress_left: float,
    seed: int,
    draws: int = DRAWS,
) -> RunForecast:
    """Simulate the rest of a run.

    level: precision-weighted mean of ln(prior) and ln(weighted mean of the observed days), the
    latter with variance sd^2 (1 + phi) / (1 - phi) / n for autocorrelated days; each future adds
    drift, then days are resampled in blocks of four.

    Args:
        prior: of the estimate.
        observed: whole days so far; may be empty.
        progress_left: what remains, in the prior's unit, >= 0.
        seed: of the random draws; the same question has the same answer.
        draws: how many futures.

    Returns:
        Percentiles of the days and of each quantity that remain.

    Raises:
        QuantityError: progress_left is below 0, the prior is not above 0, or a quantity has
            another number of days than the progress.

    Source: Kuensch 1989, Ann. Stat. 17(3) (block bootstrap); normal conjugate prior (Gelman et
    al., Bayesian Data Analysis, 3rd edition, section 2.5).

    >>> prior = ForecastPrior(progress_per_day=100.0, log_sd=0.25)
    >>> told = forecast_run(prior, ObservedDays(progress=()), progress_left=3000.0, seed=1)
    >>> told.days_left.p10 < 30 < told.days_left.p90, told.learned_fraction
    (True, 0.0)
    """
    _check(prior, observed, progress_left)
    generator = np.random.default_rng(seed)
    sample = _Sample.of(prior, observed)
    days, sums, is_open = _simulate(sample, progress_left, draws, generator)
    return RunForecast(
        days_left=_levels(days),
        quantities_left={name: _levels(amounts) for name, amounts in sums.items()},
        learned_fraction=sample.learned_fraction,
        is_open=is_open,
    )


def _check(prior: ForecastPrior, observed: ObservedDays, progress_left: float) -> None:
    if not progress_left >= 0:
        raise QuantityError(f"what is left cannot be {progress_left}")
    if not (prior.progress_per_day > 0 and prior.log_sd > 0):
        raise QuantityError("a prior needs a daily progress and a spread above 0")
    for name, values in observed.quantities.items():
        if len(values) != len(observed.progress):
            raise QuantityError(f"{name} has {len(values)} days, progress {len(observed.progress)}")


def _levels(values: Array) -> Levels:
    return Levels(**{name: float(np.quantile(values, level)) for name, level in LEVELS.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """What futures are drawn from: shapes of days around 1, their weights, the level, outages."""

    shape: Array
    quantities: Mapping[str, Array]
    fallback: Mapping[str, float]
    weights: Array
    log_level: float
    log_sd: float
    outage_rate: float
    outage_shape: Array
    learned_fraction: float

    @classmethod
    def of(cls, prior: ForecastPrior, observed: ObservedDays) -> "_Sample":
        progress = np.asarray(observed.progress, dtype=np.float64)
        known = np.isfinite(progress)
        progress = progress[known]
        quantities = {
            name: np.asarray(values, dtype=np.float64)[known]
            for name, values in observed.quantities.items()
        }
        forward = progress[progress > 0]
        usual = float(np.median(forward)) if len(forward) else prior.progress_per_day
        down = progress < OUTAGE_SHARE * usual
        # A day lost whole or nearly: how often, from what was seen and a prior of one in sixty.
        rate = (float(down.sum()) + 1.0) / (len(progress) + OUTAGE_PRIOR_DAYS)
        up = progress[~down]
        weights = _weights(len(progress))[~down]
        if not len(up):
            up, weights = np.array([prior.progress_per_day]), np.array([1.0])
            quantities = {name: np.array([np.nan]) for name in quantities}
            log_level, log_sd, learned = np.log(prior.progress_per_day), prior.log_sd, 0.0
            lost = np.array([0.0])
        else:
            quantities = {name: values[~down] for name, values in quantities.items()}
            log_level, log_sd, learned = _posterior(prior, up, weights)
            mean = float(np.average(up, weights=weights))
            lost = progress[down] / mean if down.any() else np.array([0.0, 0.3])
        mean = float(np.average(up, weights=weights))
        return cls(
            shape=up / mean,
            quantities=quantities,
            fallback=dict(prior.per_day),
            weights=weights / weights.sum(),
            log_level=float(log_level),
            log_sd=float(log_sd),
            outage_rate=rate,
            outage_shape=lost,
            learned_fraction=float(learned),
        )


def _weights(count: int) -> Array:
    """Weights of days in order, the last one the heaviest."""
    half_life = max(HALF_LIFE_DAYS, count / 3)
    return np.asarray(0.5 ** (np.arange(count)[::-1] / half_life), dtype=np.float64)


def _posterior(prior: ForecastPrior, up: Array, weights: Array) -> tuple[float, float, float]:
    """Mean and spread of the log level, and the share that the observed days have in it."""
    logs = np.log(up)
    effective = float(weights.sum() ** 2 / (weights**2).sum())
    pooled = (float(((logs - logs.mean()) ** 2).sum()) + PRIOR_DAYS * DAY_SD**2) / (
        len(logs) + PRIOR_DAYS
    )
    sd = max(float(np.sqrt(pooled)), 0.02)
    phi = _autocorrelation(logs)
    variance = sd**2 * (1 + phi) / (1 - phi) / effective
    observed = float(np.log(np.average(up, weights=weights)))
    precision, prior_precision = 1 / variance, 1 / prior.log_sd**2
    learned = precision / (precision + prior_precision)
    mean = learned * observed + (1 - learned) * float(np.log(prior.progress_per_day))
    return mean, float((precision + prior_precision) ** -0.5), learned


def _autocorrelation(logs: Array) -> float:
    """Of one day with the next; few days are taken to be half alike."""
    if len(logs) < 8:
        return 0.5
    centred = logs - logs.mean()
    total = float((centred**2).sum())
    found = float((centred[1:] * centred[:-1]).sum()) / total if total > 0 else 0.0
    return float(np.clip(found, 0.0, 0.9))


def _drift_sd(sample: _Sample, days_left: float) -> float:
    """How far the mean level of the days to come may be off today's, in logs.

    The mean of a random walk over h days has variance h q / 3; q is the default or what the weeks
    of the run itself show, whichever is more.
    """
    weeks = len(sample.shape) // 7
    shown = 0.0
    if weeks >= 3:
        means = [part.mean() for part in np.array_split(np.log(sample.shape), weeks)]
        shown = float(np.var(np.diff(means))) / 7
    per_day = max(DRIFT_VARIANCE_PER_DAY, shown)
    return float(np.hypot(LEAST_DRIFT_SD, np.sqrt(per_day * days_left / 3)))


def _simulate(
    sample: _Sample, progress_left: float, draws: int, generator: np.random.Generator
) -> tuple[Array, dict[str, Array], bool]:
    """Days and quantities that each future takes until nothing is left."""
    usual_days = min(progress_left / float(np.exp(sample.log_level)), LONGEST_DAYS)
    spread = np.hypot(sample.log_sd, _drift_sd(sample, usual_days))
    level = np.exp(generator.normal(sample.log_level, spread, draws))
    quantity_sd = np.sqrt(QUANTITY_DRIFT_VARIANCE_PER_DAY * usual_days / 3)
    factor = {name: np.exp(generator.normal(0, quantity_sd, draws)) for name in sample.quantities}
    left = np.full(draws, float(progress_left))
    days = np.zeros(draws)
    sums = {name: np.zeros(draws) for name in sample.quantities}
    means = {name: _mean_of(values, sample, name) for name, values in sample.quantities.items()}
    at = np.zeros(draws, dtype=np.int64)
    for day in range(LONGEST_DAYS):
        going = left > 0
        if not going.any():
            break
        if day % BLOCK_DAYS == 0:
            at = generator.choice(len(sample.shape), size=draws, p=sample.weights)
        else:
            at = (at + 1) % len(sample.shape)
        shape = sample.shape[at]
        is_out = generator.random(draws) < sample.outage_rate
        lost = sample.outage_shape[generator.integers(len(sample.outage_shape), size=draws)]
        made = level * np.where(is_out, lost, shape)
        ends = going & (made >= left)  # the last day counts in part
        part = np.where(ends, left / np.where(made > 0, made, 1.0), np.where(going, 1.0, 0.0))
        days += part
        for name, values in sample.quantities.items():
            drawn = values[at]
            sums[name] += part * factor[name] * np.where(np.isfinite(drawn), drawn, means[name])
        left = np.where(going, left - made, left)
        left = np.where(going & (left <= progress_left * 1e-12), 0.0, left)
    return days, sums, bool((left > 0).any())


def _mean_of(values: Array, sample: _Sample, name: str) -> float:
    """A usual day's amount: of the known days, else what the plan says."""
    known = np.isfinite(values)
    if known.any():
        return float(np.average(values[known], weights=sample.weights[known]))
    return sample.fallback.get(name, float("nan"))

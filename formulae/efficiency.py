"""How well training uses its hardware: a belief fitted on published runs; pure, no rows in here.

End-to-end efficiency is model FLOP over billed accelerator time at the dense 16-bit peak. It is the
product of the MFU of healthy steps and of goodput.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from formulae.beliefs import LogNormal, PowerOfUniform
from formulae.units import QuantityError, require_positive

_STUDENT_FREEDOM: Final = 5.0
_REWEIGHTINGS: Final = 8
_SMALL_PARAMS: Final = 3e9
_REFERENCE_ACCELERATORS: Final = 1_024
_MATURE_AFTER_YEARS: Final = 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class EfficiencyInputs:
    """What is known of a run before it starts, as far as efficiency hangs on it."""

    generation: str
    generation_year: float
    year: float
    active_params: float
    is_moe: bool
    precision: str
    attention_share: float | None
    accelerators: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EfficiencyTerm:
    """One coefficient before any run is seen: what it multiplies, its value, how sure that is."""

    name: str
    prior_mean: float
    prior_sd: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EfficiencyRun:
    """A published run: what was known of it, and the end-to-end efficiency that it reached."""

    family: str
    inputs: EfficiencyInputs
    efficiency_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EfficiencyModel:
    """The fitted belief: coefficients of log(efficiency), their covariance, the scatter."""

    names: tuple[str, ...]
    coefficients: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    scatter_sd_log: float


def efficiency_features(inputs: EfficiencyInputs, names: Sequence[str]) -> NDArray[np.float64]:
    """The regressors of log(efficiency), shape (len(names),), each without a unit.

    base 1; generation:G 1 for hardware generation G; moe, fp16, fp8, fp4 0 or 1;
    small = min(0, ln(N_active / 3e9)); maturity = years since the generation's first year less 2.5,
    from -2 to 2.5; scale = log2(accelerators / 1024) / 3, 0 when unknown;
    context = ln(1 + attention FLOP / 6N), that of short contexts, 0.1, when unknown.

    Args:
        inputs: what is known of the run.
        names: the regressors wanted, in order.

    Returns:
        One number for each name.

    Raises:
        QuantityError: a name that is none of these.

    Source: own model; docs/estimator.md says what each stands for.

    >>> inputs = EfficiencyInputs(
    ...     generation="hopper", generation_year=2022.5, year=2025.0, active_params=7e10,
    ...     is_moe=False, precision="bf16", attention_share=0.0, accelerators=1024,
    ... )
    >>> efficiency_features(inputs, ("base", "generation:hopper", "moe", "maturity")).tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    age_years = inputs.year - inputs.generation_year - _MATURE_AFTER_YEARS
    count, share = inputs.accelerators, inputs.attention_share
    known = {
        "base": 1.0,
        "moe": float(inputs.is_moe),
        "small": min(0.0, math.log(inputs.active_params / _SMALL_PARAMS)),
        "maturity": min(2.5, max(-2.0, age_years)),
        "scale": 0.0 if count is None else math.log2(count / _REFERENCE_ACCELERATORS) / 3,
        "context": math.log1p(0.1 if share is None else share),
        **{name: float(inputs.precision == name) for name in ("fp16", "fp8", "fp4")},
    }
    found = []
    for name in names:
        if name.startswith("generation:"):
            found.append(float(inputs.generation == name.removeprefix("generation:")))
        elif name in known:
            found.append(known[name])
        else:
            raise QuantityError(f"{name!r} is no regressor of the efficiency model")
    return np.array(found)


def fit_efficiency(
    runs: Sequence[EfficiencyRun], terms: Sequence[EfficiencyTerm], *, scatter_sd_log: float
) -> EfficiencyModel:
    """Bayesian linear regression of log(efficiency) on published runs, robust to outliers.

    V = (diag(1 / prior_sd^2) + X' W X)^-1; m = V (prior_mean / prior_sd^2 + X' W y);
    w_i = 1 / (s^2 sqrt(n_family(i))) * (5 + 1) / (5 + r_i^2), r_i = (y_i - x_i m) / s

    Runs of one family share a team and a cluster, so n of them weigh like sqrt(n); the last factor
    is that of Student's t with 5 degrees of freedom, iterated.

    Args:
        runs: published runs; without any, the answer is the prior.
        terms: the coefficients and what is believed of them beforehand.
        scatter_sd_log: s, how far runs lie from the line, sd of the log, > 0.

    Returns:
        Coefficients with covariance.

    Source: Gelman et al. 2013, Bayesian Data Analysis, 3rd ed., sections 14.8 and 17.5.

    >>> terms = (EfficiencyTerm(name="base", prior_mean=math.log(0.4), prior_sd=0.3, why="any"),)
    >>> round(math.exp(fit_efficiency((), terms, scatter_sd_log=0.2).coefficients[0]), 3)
    0.4
    """
    require_positive("scatter_sd_log", scatter_sd_log)
    names = tuple(term.name for term in terms)
    mean = np.array([term.prior_mean for term in terms])
    precision = np.array([1 / term.prior_sd**2 for term in terms])
    if not runs:
        return _model(names, mean, np.diag(1 / precision), scatter_sd_log)
    features = np.array([efficiency_features(run.inputs, names) for run in runs])
    logs = np.array([math.log(run.efficiency_fraction) for run in runs])
    families = [run.family for run in runs]
    weights = np.array([1 / (scatter_sd_log**2 * families.count(f) ** 0.5) for f in families])
    found, covariance = mean, np.diag(1 / precision)
    for _step in range(_REWEIGHTINGS):
        residual = (logs - features @ found) / scatter_sd_log
        robust = weights * (_STUDENT_FREEDOM + 1) / (_STUDENT_FREEDOM + residual**2)
        covariance = np.linalg.inv(np.diag(precision) + (features.T * robust) @ features)
        found = covariance @ (precision * mean + (features.T * robust) @ logs)
    return _model(names, found, covariance, scatter_sd_log)


def _model(
    names: tuple[str, ...],
    coefficients: NDArray[np.float64],
    covariance: NDArray[np.float64],
    scatter_sd_log: float,
) -> EfficiencyModel:
    """Arrays as plain numbers, rounded so that the same fit writes the same file everywhere."""
    return EfficiencyModel(
        names=names,
        coefficients=tuple(round(float(value), 9) for value in coefficients),
        covariance=tuple(tuple(round(float(v), 9) for v in row) for row in covariance),
        scatter_sd_log=scatter_sd_log,
    )


def end_to_end_efficiency(model: EfficiencyModel, inputs: EfficiencyInputs) -> LogNormal:
    """What to expect of model FLOP per billed FLOP at the dense 16-bit peak.

    median = exp(x m); sd_log = sqrt(s^2 + x V x')

    Args:
        model: the fit.
        inputs: what is known of the run.

    Returns:
        Belief in a fraction of the dense 16-bit peak; its ceiling is 1.

    Source: posterior predictive of fit_efficiency.

    >>> terms = (EfficiencyTerm(name="base", prior_mean=math.log(0.4), prior_sd=0.15, why="any"),)
    >>> inputs = EfficiencyInputs(
    ...     generation="hopper", generation_year=2022.5, year=2025.0, active_params=7e10,
    ...     is_moe=False, precision="bf16", attention_share=0.0, accelerators=1024,
    ... )
    >>> belief = end_to_end_efficiency(fit_efficiency((), terms, scatter_sd_log=0.2), inputs)
    >>> round(belief.median, 3), round(belief.sd_log, 3)
    (0.4, 0.25)
    """
    features = efficiency_features(inputs, model.names)
    variance = model.scatter_sd_log**2 + float(features @ np.array(model.covariance) @ features)
    return LogNormal(
        median=math.exp(float(features @ np.array(model.coefficients))),
        sd_log=math.sqrt(variance),
        ceiling=1.0,
    )


def goodput_from_ratios(billed_ratios: Sequence[float]) -> PowerOfUniform:
    """The belief in goodput from runs that published both healthy and billed throughput.

    shape = -n / sum(ln g_i), the maximum likelihood of Beta(shape, 1)

    Args:
        billed_ratios: healthy time over billed time of each run, fractions, > 0, not all 1.

    Returns:
        Belief in a fraction.

    Source: maximum likelihood of the power-function distribution.

    >>> round(goodput_from_ratios((0.66, 0.77, 0.92, 0.91, 0.93, 1.0)).median, 3)
    0.898
    """
    total = sum(math.log(require_positive("ratio", ratio, high=1.0)) for ratio in billed_ratios)
    if total == 0:
        raise QuantityError("no run lost any time: give the ratios of at least one that did")
    return PowerOfUniform(shape=-len(billed_ratios) / total)


def step_mfu(
    efficiency: LogNormal, goodput: PowerOfUniform, *, peak_ratio: float, ceiling: float = 1.0
) -> LogNormal:
    """The belief in the MFU of healthy steps: end-to-end efficiency with goodput taken out.

    ln(step) = ln(efficiency) - ln(goodput) - ln(peak ratio), variances subtracted, so that
    step MFU x goodput has the median of the efficiency and its variance.

    Args:
        efficiency: belief in the fraction of the dense 16-bit peak, end to end.
        goodput: belief in the healthy share of billed time.
        peak_ratio: dense peak at the training precision over the dense 16-bit peak, > 0.
        ceiling: best that any draw may reach, fraction of the peak, > 0.

    Returns:
        Belief in a fraction of the dense peak at the training precision.

    Source: own model; the spread keeps at least half of the efficiency's own.

    >>> efficiency = LogNormal(median=0.35, sd_log=0.25)
    >>> mfu = step_mfu(efficiency, PowerOfUniform(shape=6.5), peak_ratio=1.0)
    >>> round(mfu.median, 3), round(mfu.sd_log, 3)
    (0.402, 0.197)
    """
    require_positive("peak_ratio", peak_ratio)
    sd_log = math.sqrt(
        max(efficiency.sd_log**2 - goodput.variance_log, (efficiency.sd_log / 2) ** 2)
    )
    shift = -_median_of_sum(sd_log, goodput.shape)
    return LogNormal(
        median=efficiency.median * math.exp(shift) / peak_ratio, sd_log=sd_log, ceiling=ceiling
    )


def _median_of_sum(sd: float, rate: float) -> float:
    """The median of normal(0, sd) less exponential(rate), by bisection of its distribution."""
    low, high = -5.0, 1.0
    for _step in range(60):
        middle = (low + high) / 2
        # P(Z - E <= x): the exponentially modified normal, mirrored.
        below = 1 - _exceeds(-middle, sd=sd, rate=rate)
        low, high = (low, middle) if below > 0.5 else (middle, high)
    return (low + high) / 2


def _exceeds(level: float, *, sd: float, rate: float) -> float:
    """P(E - Z <= level) for exponential E and normal Z."""

    def normal(x: float) -> float:
        return 0.5 * math.erfc(-x / math.sqrt(2))

    shift = level / sd
    return normal(shift) - math.exp(rate * (rate * sd**2 / 2 - level)) * normal(shift - rate * sd)

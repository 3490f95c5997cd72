"""What the spread of an estimate comes from: one bar for each uncertain input; no sampling."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from formulae.beliefs import Belief, quantile_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TornadoBar:
    """One input: its share of the variance, and the result at its 10th and 90th percentiles."""

    name: str
    variance_fraction: float
    at_p10: float
    at_p90: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far one input spreads: variance of its log, and its 10th and 90th percentile over its
    median.
    """

    variance_log: float
    ratio_at_p10: float
    ratio_at_p90: float


def spread_of(belief: Belief) -> Spread:
    """The spread of an uncertain input, exact, without draws.

    ratio_at_p = q(p) / q(1/2)

    Args:
        belief: what is believed of the input, median > 0.

    Returns:
        Variance of the log and two ratios, none with a unit.

    Source: definitions of the distributions.

    >>> from formulae.beliefs import LogNormal
    >>> round(spread_of(LogNormal(median=7.0, sd_log=0.1)).ratio_at_p90, 4)
    1.1367
    """
    return Spread(
        variance_log=belief.variance_log,
        ratio_at_p10=quantile_of(belief, 0.1) / belief.median,
        ratio_at_p90=quantile_of(belief, 0.9) / belief.median,
    )


def product_tornado(
    spreads: Mapping[str, Spread], *, exponents: Mapping[str, int], result_at_medians: float
) -> tuple[TornadoBar, ...]:
    """The bars of a result that is a product of powers of its inputs.

    ln(result) = c + sum(e_i ln x_i), so share_i = e_i^2 Var(ln x_i) / sum_j e_j^2 Var(ln x_j);
    at_p = result * (q_i(p) / median_i)^e_i, the others at their medians

    Args:
        spreads: the spread of each uncertain input.
        exponents: the power of each input in the product; an input left out plays no part.
        result_at_medians: the result with every input at its median, its own unit.

    Returns:
        One bar for each uncertain input with a power, widest first; shares sum to 1.

    Source: Sobol' 1993 first-order indices, exact here because ln(result) is a sum.

    >>> from formulae.beliefs import LogNormal
    >>> spreads = {"mfu": spread_of(LogNormal(median=0.4, sd_log=0.1))}
    >>> bars = product_tornado(spreads, exponents={"mfu": -1}, result_at_medians=100.0)
    >>> bars[0].variance_fraction, round(bars[0].at_p10), round(bars[0].at_p90)
    (1.0, 114, 88)
    """
    found = {name: spread for name, spread in spreads.items() if name in exponents}
    parts = {name: exponents[name] ** 2 * spread.variance_log for name, spread in found.items()}
    whole = math.fsum(parts.values())
    bars = [
        TornadoBar(
            name=name,
            variance_fraction=parts[name] / whole if whole else 0.0,
            at_p10=result_at_medians * spread.ratio_at_p10 ** exponents[name],
            at_p90=result_at_medians * spread.ratio_at_p90 ** exponents[name],
        )
        for name, spread in found.items()
    ]
    return tuple(sorted(bars, key=lambda bar: -bar.variance_fraction))

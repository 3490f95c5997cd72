"""How much slower is the estimate with its tornado than drawing its inputs with bare numpy?

Run: python bench/estimate.py [--draws 4000] [--rounds 200]

The reference draws the same distributions in the same number with numpy's own samplers, and does
nothing with them. The aim is a ratio of at most 3.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from formulae.beliefs import LogNormal, PowerOfUniform, Triangular
from formulae.estimate import EstimateSpec, estimate_training
from formulae.money import Money

# 8B on 512 H100 in aws:us-east-1 with nothing given but the model: every input is a prior.
SPEC = EstimateSpec(
    flop_per_token=5.15e10,
    tokens=15e12,
    accelerators=512,
    peak_flop_per_s=989.4e12,
    step_mfu=LogNormal(median=0.374, sd_log=0.186, ceiling=1.0),
    goodput=PowerOfUniform(shape=6.47),
    price_per_accelerator_h=Money.of("6.88", "USD"),
    power_w=Triangular(low=525, mode=616, high=665),
    host_factor=Triangular(low=1.25, mode=1.5, high=1.85),
    pue=Triangular(low=1.05, mode=1.14, high=1.46),
    g_per_kwh=Triangular(low=230, mode=265, high=330),
    market_g_per_kwh=Triangular(low=0, mode=265, high=330),
    embodied_kg_per_accelerator_h=Triangular(low=0.0071, mode=0.0128, high=0.0525),
    wue_l_per_kwh=Triangular(low=0.02, mode=0.12, high=0.24),
)


def bare(draws: int) -> None:
    """The same draws, and nothing else."""
    generator = np.random.default_rng(1)
    mfu, goodput, lines = SPEC.step_mfu, SPEC.goodput, SPEC.development_ratio
    for belief in (mfu, lines):
        if isinstance(belief, LogNormal):
            generator.lognormal(np.log(belief.median), belief.sd_log, draws)
    if isinstance(goodput, PowerOfUniform):
        generator.power(goodput.shape, draws)
    for name in (
        "power_w",
        "host_factor",
        "pue",
        "g_per_kwh",
        "market_g_per_kwh",
        "embodied_kg_per_accelerator_h",
        "wue_l_per_kwh",
    ):
        span = getattr(SPEC, name)
        generator.triangular(span.low, span.mode, span.high, draws)


def fastest_s(work: Callable[[], object], rounds: int) -> float:
    """Seconds of the fastest round."""
    best = float("inf")
    for _round in range(rounds):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best


def main() -> None:
    """Time both, alternating, and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4_000)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    spec = SPEC if options.draws == SPEC.draws else _with_draws(options.draws)
    bare_s = fastest_s(lambda: bare(options.draws), options.rounds)
    estimate_s = fastest_s(lambda: estimate_training(spec), options.rounds)
    bare_s = min(bare_s, fastest_s(lambda: bare(options.draws), options.rounds))
    print(
        f"{options.draws} draws: bare sampling {bare_s * 1e3:.2f} ms, estimate with tornado "
        f"{estimate_s * 1e3:.2f} ms, ratio {estimate_s / bare_s:.1f}"
    )


def _with_draws(draws: int) -> EstimateSpec:
    from dataclasses import replace

    return replace(SPEC, draws=draws)


if __name__ == "__main__":
    main()

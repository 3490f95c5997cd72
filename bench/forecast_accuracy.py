"""Measures the forecast on generated runs with known endings: coverage of its interval, error.

    python bench/forecast_accuracy.py --runs 400

Prints, at each share of the run that is done, how many endings the 80 % interval (P10 to P90)
holds, and the median error of P50, in days and in cost. The generator shares no model with the
forecaster (bench/run_generator.py).
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.run_generator import GeneratedRun, generate_run
from formulae.forecast import ForecastPrior, ObservedDays, forecast_run

FUTURES = 600
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """How forecasts at one share of the run did."""

    share: float
    coverage: float
    median_error: float
    cost_coverage: float
    cost_median_error: float


def forecast_at(run: GeneratedRun, days: int) -> tuple[bool, float, bool, float]:
    """Whether the interval held the end, and the error of P50: in days, in cost."""
    done = float(run.progress[:days].sum())
    prior = ForecastPrior(
        progress_per_day=run.planned_per_day,
        log_sd=run.planned_log_sd,
        per_day={"cost": float(run.cost[0])},
    )
    observed = ObservedDays(
        progress=list(run.progress[:days]), quantities={"cost": list(run.cost[:days])}
    )
    found = forecast_run(
        prior, observed, progress_left=max(run.total - done, 0.0), seed=1, draws=FUTURES
    )
    days_left, cost_left = run.days - days, float(run.cost[days:].sum())
    spent = float(run.cost[:days].sum())
    cost = found.quantities_left["cost"]
    return (
        found.days_left.p10 <= days_left <= found.days_left.p90,
        abs(found.days_left.p50 - days_left) / run.days,
        cost.p10 <= cost_left <= cost.p90,
        abs(cost.p50 - cost_left) / (spent + cost_left),
    )


def accuracy(
    runs: int, *, first_seed: int = 0, shares: tuple[float, ...] = SHARES
) -> list[Accuracy]:
    """The accuracy over runs that take at least a week, at each share of their days."""
    made = [generate_run(first_seed + number) for number in range(runs)]
    some = [run for run in made if len(run.progress) >= 8]
    found = []
    for share in shares:
        told = [forecast_at(run, int(len(run.progress) * share)) for run in some]
        found.append(
            Accuracy(
                share=share,
                coverage=float(np.mean([one[0] for one in told])),
                median_error=float(np.median([one[1] for one in told])),
                cost_coverage=float(np.mean([one[2] for one in told])),
                cost_median_error=float(np.median([one[3] for one in told])),
            )
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("done   P10-P90 holds the end   median error   holds the cost   median error")
    for one in accuracy(options.runs, first_seed=options.seed):
        print(
            f"{one.share:4.0%}   {one.coverage:20.1%}   {one.median_error:12.1%}"
            f"   {one.cost_coverage:14.1%}   {one.cost_median_error:12.1%}"
        )


if __name__ == "__main__":
    main()

"""How far is the estimator off on published runs, beside what people use today?

Run: python bench/estimator_accuracy.py

Leave one family out: each run is estimated by priors fitted on the runs of all other families, from
what is known at kickoff (shape, tokens, hardware, precision, count, year), never its hours.
"""

import csv
import math
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "costwatch.settings")
os.environ.setdefault("COSTWATCH_INSECURE_HTTP", "1")

import numpy as np

from formulae.beliefs import Z80, LogNormal
from formulae.efficiency import end_to_end_efficiency
from formulae.units import S_PER_HOUR, WH_PER_KWH
from planning.prior_fit import fit, fitted_runs, run_for_fit, sixteen_bit_peak_flop_per_s
from planning.prior_rows import (
    DATA,
    TrainingRun,
    generation_of,
    hardware_use,
    metered_power,
)
from runs.catalogue import shipped_accelerators

WITHIN = 0.30
DRAWS = 100_000
# What a method that prints no interval has: no spread to cover with.
Method = Callable[[TrainingRun, Sequence[TrainingRun]], LogNormal]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How one method did over all runs; errors are predicted over actual hours, less 1."""

    name: str
    runs: int
    median_absolute_error: float
    within_30_percent: float
    median_signed_error: float
    coverage_of_80_percent: float | None
    mean_sd_log: float | None


def hours_at(run: TrainingRun, *, flop: float, efficiency: float) -> float:
    """Accelerator-hours at a share of the dense 16-bit peak."""
    peak = sixteen_bit_peak_flop_per_s(shipped_accelerators()[run.accelerator_key])
    if peak is None:
        raise LookupError(run.accelerator_key)
    return flop / (peak * efficiency * S_PER_HOUR)


def estimator(run: TrainingRun, others: Sequence[TrainingRun]) -> LogNormal:
    """Costwatch: the efficiency model fitted on the others."""
    belief = end_to_end_efficiency(fit(others), run_for_fit(run).inputs)
    hours = hours_at(run, flop=run.flop, efficiency=belief.median)
    return LogNormal(median=hours, sd_log=belief.sd_log)


def six_n_d_at(mfu: float) -> Method:
    """6 N D at one MFU for everything, as spreadsheets do."""

    def method(run: TrainingRun, others: Sequence[TrainingRun]) -> LogNormal:
        flop = 6 * run.active_params * run.tokens
        return LogNormal(median=hours_at(run, flop=flop, efficiency=mfu), sd_log=0.0)

    return method


def _efficiency_6nd(run: TrainingRun) -> float:
    flop = 6 * run.active_params * run.tokens
    return hours_at(run, flop=flop, efficiency=1.0) / run.accelerator_h


def by_class(run: TrainingRun, others: Sequence[TrainingRun]) -> LogNormal:
    """The median 6ND efficiency of the hardware class, with a plain lognormal around it."""

    def kind(one: TrainingRun) -> tuple[str, bool]:
        return generation_of(one.accelerator_key).key, one.is_moe

    same = [one for one in others if kind(one) == kind(run)]
    if len(same) < 2:  # a class of one family has nothing left: its generation, then everything
        same = [one for one in others if kind(one)[0] == kind(run)[0]]
    if len(same) < 2:
        same = list(others)
    logs = [math.log(_efficiency_6nd(one)) for one in same]
    spread = statistics.stdev(logs) * math.sqrt(1 + 1 / len(logs))
    flop = 6 * run.active_params * run.tokens
    hours = hours_at(run, flop=flop, efficiency=math.exp(statistics.median(logs)))
    return LogNormal(median=hours, sd_log=spread)


METHODS: dict[str, Method] = {
    "Costwatch": estimator,
    "Median by hardware class, plain lognormal": by_class,
    "6ND at 40 %": six_n_d_at(0.40),
    "6ND at 50 %": six_n_d_at(0.50),
}


def score(name: str, method: Method) -> Score:
    """One method over every run, its family left out."""
    runs = fitted_runs()
    errors, covered, spreads = [], [], []
    for run in runs:
        belief = method(run, [one for one in runs if one.family != run.family])
        distance = math.log(belief.median / run.accelerator_h)
        errors.append(math.expm1(distance))
        covered.append(abs(distance) <= Z80 * belief.sd_log)
        spreads.append(belief.sd_log)
    has_interval = any(spreads)
    return Score(
        name=name,
        runs=len(runs),
        median_absolute_error=statistics.median(abs(error) for error in errors),
        within_30_percent=sum(abs(error) <= WITHIN for error in errors) / len(errors),
        median_signed_error=statistics.median(errors),
        coverage_of_80_percent=sum(covered) / len(covered) if has_interval else None,
        mean_sd_log=statistics.fmean(spreads) if has_interval else None,
    )


def table(scores: Sequence[Score]) -> str:
    """The scores as a Markdown table."""
    lines = [
        "| method | runs | median error | within 30 % | median signed error "
        "| 80 % interval holds | mean sd of log |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in scores:
        coverage, spread = one.coverage_of_80_percent, one.mean_sd_log
        lines.append(
            f"| {one.name} | {one.runs} | {one.median_absolute_error:.1%} "
            f"| {one.within_30_percent:.0%} | {one.median_signed_error:+.1%} "
            f"| {'none' if coverage is None else f'{coverage:.0%}'} "
            f"| {'none' if spread is None else f'{spread:.2f}'} |"
        )
    return "\n".join(lines)


def by_run() -> str:
    """Each run with what was estimated of it."""
    runs = fitted_runs()
    lines = [
        "| run | accelerator-hours | estimated (P10 to P90) | error |",
        "|---|---|---|---|",
    ]
    for run in runs:
        belief = estimator(run, [one for one in runs if one.family != run.family])
        low, high = (belief.median * math.exp(sign * Z80 * belief.sd_log) for sign in (-1, 1))
        error = belief.median / run.accelerator_h - 1
        lines.append(
            f"| {run.name} | {run.accelerator_h:,.0f} "
            f"| {belief.median:,.0f} ({low:,.0f} to {high:,.0f}) | {error:+.0%} |"
        )
    return "\n".join(lines)


def energy_by_run() -> str:
    """Metered energy beside what an hour of the accelerator is estimated to take, hours given."""
    lines = [
        "| run | boundary | metered kWh | estimated kWh (P10 to P90) | error |",
        "|---|---|---|---|---|",
    ]
    with (DATA / "metered_energy.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        belief = _power_of(row)
        hours, metered = float(row["accelerator_h"]), float(row["energy_kwh"])
        low, middle, high = (level * hours / WH_PER_KWH for level in belief)
        lines.append(
            f"| {row['run']} | {row['boundary']} | {metered:,.0f} "
            f"| {middle:,.0f} ({low:,.0f} to {high:,.0f}) | {middle / metered - 1:+.0%} |"
        )
    return "\n".join(lines)


def _power_of(row: dict[str, str]) -> tuple[float, float, float]:
    """P10, median and P90 of the watts at the boundary of a metered run, by seeded draws."""
    accelerator = shipped_accelerators()[row["accelerator_key"]]
    generator = np.random.default_rng(1)
    metered = metered_power(accelerator.key)
    if accelerator.tdp_w is None:
        if metered is None:
            raise LookupError(accelerator.key)
        watts = metered.belief.draw(generator, DRAWS)
    else:
        use = hardware_use("power_fraction", accelerator.key)
        watts = use.belief.draw(generator, DRAWS) * accelerator.tdp_w
    if row["boundary"] == "facility":
        host = hardware_use("host_factor", accelerator.key).belief
        watts = watts * host.draw(generator, DRAWS) * float(row["pue"])
    low, middle, high = np.quantile(watts, (0.1, 0.5, 0.9)).tolist()
    return low, middle, high


def main() -> None:
    """Print the tables."""
    print(table([score(name, method) for name, method in METHODS.items()]))
    print()
    print(by_run())
    print()
    print(energy_by_run())


if __name__ == "__main__":
    main()

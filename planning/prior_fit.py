"""The fit of the priors: from the rows of prior_rows to the document planning/data/priors.json."""

import math
from collections.abc import Sequence
from typing import Any, Final

from formulae.efficiency import (
    EfficiencyInputs,
    EfficiencyModel,
    EfficiencyRun,
    EfficiencyTerm,
    fit_efficiency,
    goodput_from_ratios,
)
from formulae.flop_terms import FlopTerm, model_flop_per_token
from formulae.goodput import expected_goodput, nodes_for
from formulae.units import S_PER_HOUR
from planning.prior_rows import SIXTEEN_BIT, TrainingRun, generation_of, generations, training_runs
from runs.catalogue import shipped_accelerators
from runs.records import AcceleratorSpec

# How far published runs lie from the line, sd of the log: chosen so that 80 % intervals hold about
# 80 % of the families left out (bench/estimator_accuracy.py).
SCATTER_SD_LOG: Final = 0.22
# Llama 3 on 16,384 accelerators: 419 failures in 54 days (arXiv:2407.21783, table 5); a restart of
# 15 minutes and a blocking minute per checkpoint as in Kokolis et al. 2025, arXiv:2410.21680.
PUBLISHED_FAILURES: Final = {
    "failures_per_node_day": 0.00379,
    "restart_s": 900.0,
    "checkpoint_write_s": 60.0,
}
USUAL_NODE: Final = 8
USUAL_COUNT: Final = 1_024
_TERMS: Final = (
    EfficiencyTerm(
        name="base",
        prior_mean=math.log(0.40),
        prior_sd=0.25,
        why="Ampere reaches 52 % in benchmarks; billed time holds about three quarters of that",
    ),
    EfficiencyTerm(
        name="moe",
        prior_mean=-0.20,
        prior_sd=0.15,
        why="benchmarks of mixtures of experts reach 0.4 to 0.9 of those of dense models",
    ),
    EfficiencyTerm(
        name="small",
        prior_mean=0.10,
        prior_sd=0.06,
        why="below 3 billion active parameters matrix products no longer fill the hardware",
    ),
    EfficiencyTerm(
        name="maturity",
        prior_mean=0.08,
        prior_sd=0.05,
        why="the same model on the same hardware gains 12 to 69 % in nine months of software",
    ),
    EfficiencyTerm(
        name="scale",
        prior_mean=-0.04,
        prior_sd=0.04,
        why="weak scaling on TPU v5e and H100 loses about 1 % with each doubling",
    ),
    EfficiencyTerm(
        name="context",
        prior_mean=-0.25,
        prior_sd=0.15,
        why="attention scores run slower than matrix products: 46 % at 1k, 29 % at 32k on H100",
    ),
    EfficiencyTerm(
        name="fp16",
        prior_mean=-0.12,
        prior_sd=0.10,
        why="FP16 marks older software, and loss scaling repeats steps",
    ),
    EfficiencyTerm(
        name="fp8",
        prior_mean=0.10,
        prior_sd=0.10,
        why="over the dense 16-bit peak: benchmarks gain 1.2 to 1.3, of which training keeps part",
    ),
    EfficiencyTerm(
        name="fp4",
        prior_mean=0.15,
        prior_sd=0.20,
        why="benchmarks only: 1.4 times FP8 on dense models, less than FP8 on mixtures of experts",
    ),
)


def efficiency_terms() -> tuple[EfficiencyTerm, ...]:
    """Every coefficient with what is believed of it before any run is seen."""
    return _TERMS + tuple(
        EfficiencyTerm(
            name=f"generation:{item.key}",
            prior_mean=item.prior_mean,
            prior_sd=item.prior_sd,
            why=item.why,
        )
        for item in generations()
        if item.prior_mean is not None and item.prior_sd is not None
    )


def sixteen_bit_peak_flop_per_s(accelerator: AcceleratorSpec) -> float | None:
    """The dense 16-bit peak, BF16 first; None when neither is on record."""
    peaks = accelerator.peak_dense_flop_per_s
    return next((peaks[name] for name in SIXTEEN_BIT if name in peaks), None)


def attention_share(terms: Sequence[FlopTerm]) -> float | None:
    """Attention scores at a = 1 over all other FLOP, as the fit knows it; None when not known."""
    scores = sum(term.flop_per_token for term in terms if "attention_scores" in term.key)
    rest = model_flop_per_token(terms) - scores
    return 2 * scores / rest if scores and rest > 0 else None


def run_for_fit(run: TrainingRun) -> EfficiencyRun:
    """A published run as the fit takes it: model FLOP over billed time at the dense 16-bit peak."""
    peak = sixteen_bit_peak_flop_per_s(shipped_accelerators()[run.accelerator_key])
    if peak is None:
        raise LookupError(f"{run.accelerator_key} has no dense 16-bit peak in the catalogue")
    generation = generation_of(run.accelerator_key)
    return EfficiencyRun(
        family=run.family,
        inputs=EfficiencyInputs(
            generation=generation.key,
            generation_year=generation.first_year,
            year=float(run.year),
            active_params=run.active_params,
            is_moe=run.is_moe,
            precision=run.precision,
            attention_share=attention_share(run.terms),
            accelerators=run.accelerators,
        ),
        efficiency_fraction=run.flop / (run.accelerator_h * S_PER_HOUR * peak),
    )


def fitted_runs() -> tuple[TrainingRun, ...]:
    """The published runs that the fit takes."""
    return tuple(run for run in training_runs() if run.use == "fit")


def fit(runs: Sequence[TrainingRun]) -> EfficiencyModel:
    """The efficiency model from these runs."""
    return fit_efficiency(
        [run_for_fit(run) for run in runs], efficiency_terms(), scatter_sd_log=SCATTER_SD_LOG
    )


def loss_beyond_failures(run: TrainingRun) -> float:
    """Healthy over billed time with what hardware failures cost at this size taken out.

    Raises:
        LookupError: the run did not publish both throughputs.
    """
    if run.billed_ratio is None:
        raise LookupError(f"{run.key} has no billed_ratio")
    per_node = shipped_accelerators()[run.accelerator_key].accelerators_per_node or USUAL_NODE
    ettr = expected_goodput(
        nodes=nodes_for(run.accelerators or USUAL_COUNT, per_node), **PUBLISHED_FAILURES
    )
    return min(1.0, run.billed_ratio / ettr)


def priors_document() -> dict[str, Any]:
    """The fitted priors as they are shipped: planning/data/priors.json."""
    runs = fitted_runs()
    model = fit(runs)
    published = [run for run in runs if run.billed_ratio is not None]
    ratios = [run.billed_ratio for run in published if run.billed_ratio is not None]
    beyond = [loss_beyond_failures(run) for run in published]
    return {
        "efficiency": {
            "runs": [run.key for run in runs],
            "scatter_sd_log": model.scatter_sd_log,
            "coefficients": [
                {
                    "name": term.name,
                    "value": value,
                    "prior_mean": round(term.prior_mean, 9),
                    "prior_sd": term.prior_sd,
                    "why": term.why,
                }
                for term, value in zip(efficiency_terms(), model.coefficients, strict=True)
            ],
            "covariance": [list(row) for row in model.covariance],
        },
        "goodput": {
            "runs": [run.key for run in published],
            "shape": round(goodput_from_ratios(ratios).shape, 6),
            "beyond_failures_shape": round(goodput_from_ratios(beyond).shape, 6),
        },
    }

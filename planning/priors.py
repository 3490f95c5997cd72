"""The priors in force (planning/data/priors.json), each named with the runs behind it; no fit."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from formulae.beliefs import Belief, LogNormal, PowerOfUniform, quantile_of
from formulae.efficiency import EfficiencyInputs, EfficiencyModel, end_to_end_efficiency, step_mfu
from formulae.flop_terms import FlopTerm
from planning.prior_fit import attention_share, sixteen_bit_peak_flop_per_s
from planning.prior_rows import DATA, TrainingRun, generation_of, training_runs
from runs.records import AcceleratorSpec

_NAMED_RUNS: Final = 8
_SOURCE: Final = "planning/data/training_runs.csv, docs/estimator.md"
_GOODPUT_UNIT: Final = "fraction of billed time"
# No run carried here trains in these: what is known of 16 bit is taken over their own, lower peak.
_SLOWER: Final = ("tf32", "fp32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """A belief that stands in for an input nobody gave, with what it rests on."""

    quantity: str
    belief: Belief
    unit: str
    basis: str
    source: str
    runs: tuple[TrainingRun, ...] = ()

    def document(self) -> dict[str, Any]:
        """As the answer names it."""
        levels = {"p10": 0.1, "p50": 0.5, "p90": 0.9}
        return {
            "quantity": self.quantity,
            "unit": self.unit,
            **{name: quantile_of(self.belief, level) for name, level in levels.items()},
            "basis": self.basis,
            "source": self.source,
            "runs": [{"name": run.name, "source": run.source} for run in self.runs],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPriors:
    """What to expect of step MFU and goodput, and of their product at the dense 16-bit peak."""

    step_mfu: Prior
    goodput: Prior
    end_to_end: LogNormal


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((DATA / "priors.json").read_text(encoding="utf-8"))
    return document


@cache
def efficiency_model() -> EfficiencyModel:
    """The fitted model of end-to-end efficiency."""
    found = _document()["efficiency"]
    return EfficiencyModel(
        names=tuple(item["name"] for item in found["coefficients"]),
        coefficients=tuple(item["value"] for item in found["coefficients"]),
        covariance=tuple(tuple(row) for row in found["covariance"]),
        scatter_sd_log=found["scatter_sd_log"],
    )


def goodput_belief() -> PowerOfUniform:
    """The fitted belief in goodput."""
    return PowerOfUniform(shape=_document()["goodput"]["shape"])


def goodput_with_failures(failures_fraction: float) -> Prior:
    """Goodput where failures are known: what they leave, times the other losses of published runs.

    Args:
        failures_fraction: expected share of billed time that failures and checkpoints leave.
    """
    found = _document()["goodput"]
    return Prior(
        quantity="goodput",
        belief=PowerOfUniform(shape=found["beyond_failures_shape"], highest=failures_fraction),
        unit=_GOODPUT_UNIT,
        basis=f"{failures_fraction:.1%} after failures, times the other losses of published runs",
        source=_SOURCE,
        runs=_named(found["runs"]),
    )


def _named(keys: Sequence[str]) -> tuple[TrainingRun, ...]:
    return tuple(run for run in training_runs() if run.key in keys)


def _nearest(accelerator_key: str, *, is_moe: bool) -> tuple[TrainingRun, ...]:
    """The fitted runs most like this one: its generation and kind first."""
    generation = generation_of(accelerator_key).key
    fitted = _named(_document()["efficiency"]["runs"])

    def distance(run: TrainingRun) -> tuple[bool, bool]:
        return generation_of(run.accelerator_key).key != generation, run.is_moe != is_moe

    return tuple(sorted(fitted, key=distance)[:_NAMED_RUNS])


def training_priors(  # noqa: PLR0913 - what efficiency hangs on
    accelerator: AcceleratorSpec,
    terms: Sequence[FlopTerm],
    *,
    active_params: float,
    is_moe: bool,
    precision: str,
    peak_flop_per_s: float,
    accelerators: int | None,
    year: float,
) -> TrainingPriors:
    """The priors of one run, MFU over the peak that the estimate divides by.

    Efficiency is over the dense 16-bit peak, or over the own one of a slower precision.

    Args:
        accelerator: from the catalogue.
        terms: FLOP of one token.
        active_params: parameters that a token passes.
        is_moe: whether it is a mixture of experts.
        precision: of the matrix products, as in the catalogue.
        peak_flop_per_s: the denominator of MFU, FLOP/s.
        accelerators: how many, when known.
        year: of the start.
    """
    generation = generation_of(accelerator.key)
    efficiency = end_to_end_efficiency(
        efficiency_model(),
        EfficiencyInputs(
            generation=generation.key,
            generation_year=generation.first_year,
            year=year,
            active_params=active_params,
            is_moe=is_moe,
            precision=precision,
            attention_share=attention_share(terms),
            accelerators=accelerators,
        ),
    )
    return TrainingPriors(
        step_mfu=Prior(
            quantity="step_mfu",
            belief=_step_mfu(
                efficiency, accelerator, precision=precision, peak_flop_per_s=peak_flop_per_s
            ),
            unit=f"fraction of the {precision} peak",
            basis=_basis(generation.key, is_moe=is_moe, precision=precision, year=year),
            source=_SOURCE,
            runs=_nearest(accelerator.key, is_moe=is_moe),
        ),
        goodput=_usual_goodput(),
        end_to_end=efficiency,
    )


def _step_mfu(
    efficiency: LogNormal, accelerator: AcceleratorSpec, *, precision: str, peak_flop_per_s: float
) -> LogNormal:
    """Efficiency without goodput, over the peak that the estimate divides by."""
    dense = accelerator.peak_dense_flop_per_s.get(precision, peak_flop_per_s)
    base = None if precision in _SLOWER else sixteen_bit_peak_flop_per_s(accelerator)
    return step_mfu(
        efficiency,
        goodput_belief(),
        peak_ratio=peak_flop_per_s / (base or dense),
        ceiling=min(1.0, dense / peak_flop_per_s),
    )


def _usual_goodput() -> Prior:
    """Goodput where nothing is known of failures."""
    return Prior(
        quantity="goodput",
        belief=goodput_belief(),
        unit=_GOODPUT_UNIT,
        basis="runs that published both healthy and billed throughput",
        source=_SOURCE,
        runs=_named(_document()["goodput"]["runs"]),
    )


def _basis(generation: str, *, is_moe: bool, precision: str, year: float) -> str:
    """How many runs are behind the fit, and how many of them on this generation of hardware."""
    fitted = _named(_document()["efficiency"]["runs"])
    own = sum(generation_of(run.accelerator_key).key == generation for run in fitted)
    kind = "mixture of experts" if is_moe else "dense"
    seen = f"{own} of them on {generation}" if own else f"none on {generation}: a wider guess"
    return f"{len(fitted)} published runs, {seen}; {kind}, {precision}, {year:g}"

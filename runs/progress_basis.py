"""What a run's utilisation is measured against: FLOP of a token, dense peak of its accelerator."""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from formulae.units import FLOP_PER_TFLOP
from runs.models import Assignment, Run
from runs.progress_records import MfuBasis
from runs.records import AcceleratorSpec, RunRecord
from runs.selectors import accelerators
from ui.count_fields import short_count

FLOP_PER_PARAMETER: Final = 6.0
USUAL_PRECISION: Final = "bf16"


def mfu_basis(run: RunRecord) -> MfuBasis | None:
    """The run's basis; None where its FLOP of a token or its accelerator's peak is not known."""
    return mfu_bases([run]).get(run.run_id)


def mfu_bases(runs: Iterable[RunRecord]) -> dict[UUID, MfuBasis]:
    """The bases of those runs that have one."""
    wanted = {run.run_id: run for run in runs}
    told = Run.objects.filter(pk__in=wanted).values_list("organisation_id", flat=True).first()
    if told is None:
        return {}
    specs = {spec.key: spec for spec in accelerators(told)}
    bare = [run.run_id for run in wanted.values() if not run.accelerator_key]
    keys = _keys_of_devices(bare) if bare else {}
    found = {}
    for run in wanted.values():
        spec = specs.get(run.accelerator_key or keys.get(run.run_id, ""))
        basis = _basis(run, spec) if spec is not None else None
        if basis is not None:
            found[run.run_id] = basis
    return found


def _keys_of_devices(run_ids: Iterable[UUID]) -> dict[UUID, str]:
    """The kind of accelerator that a run's devices are, where they are all of one."""
    rows = Assignment.objects.filter(run_id__in=list(run_ids)).order_by()
    keys: dict[UUID, set[str]] = {}
    for run_id, key in rows.values_list("run_id", "device__accelerator_key").distinct():
        if run_id is not None:
            keys.setdefault(run_id, set()).add(key)
    return {run_id: found.pop() for run_id, found in keys.items() if len(found) == 1}


def _basis(run: RunRecord, spec: AcceleratorSpec) -> MfuBasis | None:
    """The dense peak in the run's precision, BF16 where none is told, and FLOP of a token."""
    precision = run.precision or USUAL_PRECISION
    peak = spec.peak_dense_flop_per_s.get(precision)
    if peak is None:
        return None
    name = precision.upper() if run.precision else f"{precision.upper()} (assumed)"
    tflop = f"{peak / FLOP_PER_TFLOP:.10g}"
    denominator = f"{name} dense, {tflop} TFLOP/s per accelerator (catalogue {spec.key})"
    if run.flop_per_token:
        flop, basis = (
            run.flop_per_token,
            f"{short_count(run.flop_per_token)} FLOP per token, as set",
        )
    elif run.parameters_active:
        flop = FLOP_PER_PARAMETER * run.parameters_active
        basis = f"6N, N = {short_count(run.parameters_active)} active parameters"
    else:
        return None
    return MfuBasis(
        peak_flop_per_s=peak, denominator=denominator, flop_per_token=flop, flop_basis=basis
    )

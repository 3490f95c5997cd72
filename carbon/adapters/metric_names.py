"""The metrics that are understood: whose they are, what they read, in which unit; nothing is read.

A metric that is not listed here is ignored by policy, and counted. docs/remote-write.md lists them
for people.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

BYTES_PER_MIB: Final = float(1 << 20)
HZ_PER_MHZ: Final = 1e6
MILLIJOULE_PER_J: Final = 1e3
FRACTION_PER_PERCENT: Final = 1e-2
W_PER_MILLIWATT: Final = 1e-3
UNBOUNDED: Final = float("inf")
COUNTER_LIMIT_MILLIJOULE: Final = 2.0**62


class Table(IntEnum):
    """Where a metric's values go."""

    IGNORED = 0
    POWER = 1
    COUNTER = 2
    USE = 3
    NODE = 4
    RUN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric: value x `factor` is in our unit and lies in [low, high].

    Of several metrics for one reading the one with the lowest `rank` counts. `where` names label
    values without which a series is not meant. A `shared_name` is used by exporters that give no
    UUID too: theirs are ignored.
    """

    name: str
    exporter: str
    table: Table
    measure: str = ""
    factor: float = 1.0
    low: float = 0.0
    high: float = UNBOUNDED
    rank: int = 0
    power_field: str = ""
    meter: str = ""
    includes_accelerators: bool = False
    of_slice: bool = False
    where: tuple[str, tuple[str, ...]] | None = None
    shared_name: bool = False


def _power(exporter: str, name: str, *, field: str, rank: int = 0, factor: float = 1.0) -> Metric:
    return Metric(
        name=name,
        exporter=exporter,
        table=Table.POWER,
        factor=factor,
        rank=rank,
        power_field=field,
        high=1e6,
    )


def _counter(exporter: str, name: str, *, factor: float) -> Metric:
    return Metric(
        name=name,
        exporter=exporter,
        table=Table.COUNTER,
        factor=factor,
        high=COUNTER_LIMIT_MILLIJOULE,
    )


def _use(
    exporter: str,
    name: str,
    measure: str,
    *,
    factor: float = 1.0,
    rank: int = 0,
) -> Metric:
    low, high = _RANGES.get(measure, (0.0, 2.0**53))
    return Metric(
        name=name,
        exporter=exporter,
        table=Table.USE,
        measure=measure,
        factor=factor,
        low=low,
        high=high,
        rank=rank,
        of_slice=measure in _OF_SLICE,
    )


def _shared(metric: Metric) -> Metric:
    return replace(metric, shared_name=True, rank=1)


def _node(
    exporter: str,
    name: str,
    meter: str,
    *,
    gpus: bool,
    where: tuple[str, tuple[str, ...]] | None = None,
) -> Metric:
    return Metric(
        name=name,
        exporter=exporter,
        table=Table.NODE,
        meter=meter,
        includes_accelerators=gpus,
        high=1e7,
        where=where,
    )


def _run(name: str, measure: str, *, rank: int = 0) -> Metric:
    return Metric(name=name, exporter=TRAINING, table=Table.RUN, measure=measure, rank=rank)


_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "utilisation_fraction": (0.0, 1.0),
    "temperature_c": (-100.0, 300.0),
    "power_limit_w": (0.0, 1e6),
    "xid": (0.0, 2.0**31 - 1),
}
# With MIG these are one slice's, not the device's: no sum of them is known.
_OF_SLICE: Final = frozenset({"utilisation_fraction", "memory_used_bytes"})
DCGM: Final = "dcgm-exporter"
NVIDIA_SMI: Final = "nvidia_gpu_exporter"
NVML: Final = "nvidia_gpu_prometheus_exporter"
AGENT: Final = "costwatch-agent"
IPMI: Final = "ipmi_exporter"
KEPLER: Final = "kepler"
TRAINING: Final = "training"
NODE_POWER: Final = "costwatch_node_power_watts"  # the agent's, and of recording rules
WHOLE_SERVER: Final = ("Server Power Control", "System Power Control", "Chassis Power Control", "")

_ALL: Final = (
    _power(DCGM, "DCGM_FI_DEV_POWER_USAGE", field="average"),
    _power(DCGM, "DCGM_FI_DEV_POWER_USAGE_INSTANT", field="instant", rank=1),
    _counter(DCGM, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", factor=1.0),
    _use(DCGM, "DCGM_FI_DEV_GPU_UTIL", "utilisation_fraction", factor=FRACTION_PER_PERCENT),
    _use(DCGM, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "utilisation_fraction", rank=1),
    _use(DCGM, "DCGM_FI_DEV_FB_USED", "memory_used_bytes", factor=BYTES_PER_MIB),
    _use(DCGM, "DCGM_FI_DEV_GPU_TEMP", "temperature_c"),
    _use(DCGM, "DCGM_FI_DEV_SM_CLOCK", "sm_clock_hz", factor=HZ_PER_MHZ),
    _use(DCGM, "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "power_limit_w"),
    _use(DCGM, "DCGM_FI_DEV_POWER_MGMT_LIMIT", "power_limit_w", rank=1),
    _use(DCGM, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "throttle_reasons"),
    _use(DCGM, "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "throttle_reasons", rank=1),
    _use(DCGM, "DCGM_FI_DEV_XID_ERRORS", "xid"),
    _use(DCGM, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "ecc_errors"),
    _power(NVIDIA_SMI, "nvidia_smi_power_draw_average_watts", field="average"),
    _power(NVIDIA_SMI, "nvidia_smi_power_draw_watts", field="average", rank=1),
    _power(NVIDIA_SMI, "nvidia_smi_power_draw_instant_watts", field="instant", rank=2),
    _counter(NVIDIA_SMI, "nvidia_smi_energy_joules_total", factor=MILLIJOULE_PER_J),
    _use(NVIDIA_SMI, "nvidia_smi_utilization_gpu_ratio", "utilisation_fraction"),
    _use(NVIDIA_SMI, "nvidia_smi_memory_used_bytes", "memory_used_bytes"),
    _use(NVIDIA_SMI, "nvidia_smi_temperature_gpu", "temperature_c"),
    _use(NVIDIA_SMI, "nvidia_smi_clocks_current_sm_clock_hz", "sm_clock_hz"),
    _use(NVIDIA_SMI, "nvidia_smi_enforced_power_limit_watts", "power_limit_w"),
    _use(NVIDIA_SMI, "nvidia_smi_power_limit_watts", "power_limit_w", rank=1),
    _use(NVIDIA_SMI, "nvidia_smi_ecc_errors_uncorrected_volatile_total", "ecc_errors"),
    _power(NVML, "nvidia_gpu_power_usage_milliwatts", field="average", factor=W_PER_MILLIWATT),
    _use(NVML, "nvidia_gpu_duty_cycle", "utilisation_fraction", factor=FRACTION_PER_PERCENT),
    _use(NVML, "nvidia_gpu_memory_used_bytes", "memory_used_bytes"),
    _use(NVML, "nvidia_gpu_temperature_celsius", "temperature_c"),
    _power(AGENT, "costwatch_gpu_power_watts", field="average"),
    _shared(_power(AGENT, "gpu_power_usage_watts", field="average")),
    _counter(AGENT, "costwatch_gpu_energy_joules_total", factor=MILLIJOULE_PER_J),
    _use(AGENT, "costwatch_gpu_utilisation_ratio", "utilisation_fraction"),
    _use(AGENT, "costwatch_gpu_memory_used_bytes", "memory_used_bytes"),
    _use(AGENT, "costwatch_gpu_temperature_celsius", "temperature_c"),
    _use(AGENT, "costwatch_gpu_sm_clock_hertz", "sm_clock_hz"),
    _use(AGENT, "costwatch_gpu_power_limit_watts", "power_limit_w"),
    _use(AGENT, "costwatch_gpu_throttle_reasons", "throttle_reasons"),
    _use(AGENT, "costwatch_gpu_xid", "xid"),
    _use(AGENT, "costwatch_gpu_ecc_errors", "ecc_errors"),
    _node(IPMI, "ipmi_dcmi_power_consumption_watts", "bmc", gpus=True),
    _node(
        KEPLER,
        "kepler_platform_watts",
        "bmc",
        gpus=True,
        where=("power_control_name", WHOLE_SERVER),
    ),
    _node(KEPLER, "kepler_node_cpu_watts", "rapl", gpus=False, where=("zone", ("package",))),
    _node(AGENT, NODE_POWER, "bmc", gpus=True),
    _run("costwatch_run_step", "step"),
    _run("costwatch_run_tokens_total", "tokens_total"),
    _run("costwatch_run_step_seconds", "step_time_s"),
    _run("costwatch_run_world_size", "world_size"),
    _run("costwatch_run_loss", "loss"),
    _run("costwatch_run_gradient_norm", "grad_norm"),
    _run("costwatch_run_learning_rate", "learning_rate"),
    _run("costwatch_run_data_seconds", "data_s"),
    _run("costwatch_run_communication_seconds", "communication_s"),
    _run("costwatch_run_checkpoint_seconds", "checkpoint_s"),
    _run("costwatch_run_mfu_ratio", "reported_mfu_fraction"),
    replace(_run("training_loss", "loss", rank=1), shared_name=True),
)
METRICS: Final[Mapping[str, Metric]] = {one.name: one for one in _ALL}
_METERS_WITH_GPUS: Final[Mapping[str, bool]] = {"bmc": True, "pdu": True, "rapl": False}


def metric_of(labels: Mapping[str, str]) -> Metric | None:
    """The metric of a series as its labels say more of it; None where it is not meant."""
    metric = METRICS.get(labels["__name__"])
    if metric is None or (metric.of_slice and labels.get("GPU_I_ID")):
        return None
    if metric.where is not None and labels.get(metric.where[0], "") not in metric.where[1]:
        return None
    if metric.name == NODE_POWER:
        meter = labels.get("meter", metric.meter)
        if meter not in _METERS_WITH_GPUS:
            return None
        with_gpus = labels.get("includes_accelerators", str(_METERS_WITH_GPUS[meter]).lower())
        return replace(metric, meter=meter, includes_accelerators=with_gpus == "true")
    if metric.table is Table.POWER and labels.get("power_field") == "instant":
        return replace(metric, power_field="instant")
    return metric

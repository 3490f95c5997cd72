"""What the agent knows as Prometheus text: its own names, and those of the GPU exporter article."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from costwatch_agent import VERSION
from costwatch_agent.records import Device, NodeReading, Reading

Labels = Mapping[str, str]
Line = tuple[Labels, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuState:
    """The newest of one device."""

    device: Device
    reading: Reading
    divergence: float | None
    diverges: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The newest of everything."""

    gpus: Sequence[GpuState] = ()
    nodes: Sequence[NodeReading] = ()
    figures: Mapping[str, float] = field(default_factory=dict)  # of the agent itself
    failures: Mapping[str, int] = field(default_factory=dict)
    boot: str = ""
    node: str = ""


# Name, kind, help, attribute of the reading.
OF_READING: Final = (
    ("costwatch_gpu_power_watts", "gauge", "Power, as NVML says", "power_w"),
    ("costwatch_gpu_memory_used_bytes", "gauge", "Memory in use", "memory_used_bytes"),
    ("costwatch_gpu_utilisation_ratio", "gauge", "Share of time with work", "utilisation_fraction"),
    ("costwatch_gpu_temperature_celsius", "gauge", "Temperature", "temperature_c"),
    ("costwatch_gpu_sm_clock_hertz", "gauge", "Clock of the SMs", "sm_clock_hz"),
    ("costwatch_gpu_power_limit_watts", "gauge", "Power limit in force", "power_limit_w"),
    ("costwatch_gpu_throttle_reasons", "gauge", "NVML's bit mask", "throttle_reasons"),
    ("costwatch_gpu_xid", "gauge", "Last XID since the reading before, 0 for none", "xid"),
    ("costwatch_gpu_ecc_errors", "gauge", "Uncorrected since the driver was loaded", "ecc_errors"),
)
# The names and labels of the article's exporter, for its alert rules and dashboards.
OF_ARTICLE: Final = (
    ("gpu_memory_used_bytes", "GPU memory used in bytes", "memory_used_bytes", 1.0),
    ("gpu_memory_total_bytes", "GPU memory total in bytes", "memory_total_bytes", 1.0),
    ("gpu_utilization_percent", "GPU utilization percentage", "utilisation_fraction", 100.0),
    ("gpu_temperature_celsius", "GPU temperature in Celsius", "temperature_c", 1.0),
    ("gpu_power_usage_watts", "GPU power usage in watts", "power_w", 1.0),
)
COUNTERS: Final = {
    "batches_taken": "Batches that the server took",
    "batches_set_aside": "Batches that the server refused for good",
    "readings_dropped": "Readings that were lost, for want of room or by damage",
    "spool_damaged": "Stretches of the spool that could not be read",
    "disk_errors": "Writes that the disk refused",
    "nvml_reopened": "Times that NVML was lost and opened again",
}
GAUGES: Final = {
    "spool_bytes": "What waits on the disk",
    "refused_status": "The status while the server refuses the token or the address, else 0",
    "last_taken_timestamp_seconds": "When the server last took a batch",
    "clock_skew_seconds": "The node's clock minus the server's",
    "tick_seconds": "How long the last reading of everything took",
}


def exposition(standing: Standing) -> str:
    """The whole text, in Prometheus's format 0.0.4."""
    return "\n".join([*_of_gpus(standing.gpus), *_of_host(standing), *_of_agent(standing), ""])


def _of_gpus(gpus: Sequence[GpuState]) -> Iterator[str]:
    named = [(_labels(gpu), gpu) for gpu in gpus]
    yield from _family(
        ("costwatch_gpu_energy_joules_total", "counter", "Energy since the driver was loaded"),
        [(labels, _joules(gpu.reading)) for labels, gpu in named],
    )
    for name, kind, text, attribute in OF_READING:
        yield from _family(
            (name, kind, text),
            [(labels, getattr(gpu.reading, attribute)) for labels, gpu in named],
        )
    yield from _family(
        ("costwatch_gpu_energy_epoch", "gauge", "Changes when the energy counter began again"),
        [(labels, float(gpu.device.epoch)) for labels, gpu in named],
    )
    yield from _family(
        ("costwatch_gpu_divergence_ratio", "gauge", "(Power - counter) / the larger, 5 minutes"),
        [(labels, gpu.divergence) for labels, gpu in named],
    )
    yield from _family(
        ("costwatch_gpu_diverges", "gauge", "1 while counter and power disagree by over 5 %"),
        [(labels, float(gpu.diverges)) for labels, gpu in named],
    )
    yield from _of_instances(named)
    for name, text, attribute, factor in OF_ARTICLE:
        yield from _family(
            (name, "gauge", text), [_article(gpu, attribute, factor) for gpu in gpus]
        )


def _of_instances(named: Sequence[tuple[Labels, GpuState]]) -> Iterator[str]:
    yield from _family(
        ("costwatch_gpu_mig_sm_ratio", "gauge", "Share of the GPU's SMs that an instance has"),
        [
            ({**labels, "mig_uuid": part.uuid, "mig_profile": part.profile}, part.sm_fraction)
            for labels, gpu in named
            for part in gpu.device.mig or ()
        ],
    )


def _of_host(standing: Standing) -> Iterator[str]:
    yield from _family(
        ("costwatch_node_power_watts", "gauge", "The host's power, with or without its GPUs"),
        [
            (
                {
                    "meter": reading.meter,
                    "includes_accelerators": str(reading.includes_accelerators).lower(),
                },
                reading.power_w,
            )
            for reading in standing.nodes
        ],
    )


def _of_agent(standing: Standing) -> Iterator[str]:
    info = {"version": VERSION, "boot": standing.boot, "node": standing.node}
    yield from _family(("costwatch_agent_info", "gauge", "The agent"), [(info, 1.0)])
    for texts, kind in ((COUNTERS, "counter"), (GAUGES, "gauge")):
        for name, text in texts.items():
            full = f"costwatch_agent_{name}" + ("_total" if kind == "counter" else "")
            yield from _family((full, kind, text), [({}, standing.figures.get(name))])
    yield from _family(
        ("costwatch_agent_send_failures_total", "counter", "Tries that did not bring a batch in"),
        [({"cause": cause}, float(count)) for cause, count in standing.failures.items()],
    )


def _labels(gpu: GpuState) -> Labels:
    device = gpu.device
    return {
        "uuid": device.uuid,
        "gpu_id": str(device.index),
        "gpu_name": device.model,
        "energy_scope": device.energy_scope,
        "power_field": device.power_field,
    }


def _article(gpu: GpuState, attribute: str, factor: float) -> Line:
    value = getattr(gpu.reading, attribute)
    labels = {"gpu_id": str(gpu.device.index), "gpu_name": gpu.device.model}
    return labels, None if value is None else value * factor


def _joules(reading: Reading) -> float | None:
    counter = reading.counter_millijoule
    return None if counter is None else counter / 1000


def _family(about: tuple[str, str, str], lines: Sequence[Line]) -> Iterator[str]:
    """A metric's lines; nothing at all where nothing was read."""
    known = [(labels, value) for labels, value in lines if value is not None]
    if not known:
        return
    name, kind, text = about
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in known:
        written = ",".join(f'{key}="{_escape(label)}"' for key, label in labels.items())
        yield f"{name}{{{written}}} {_number(value)}" if written else f"{name} {_number(value)}"


def _escape(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return repr(round(value, 6)) if isinstance(value, float) else str(value)

"""What the labels of a series say: which metric of which device or node, in which sender's name.

A device is known by its UUID, never by its host or index. Senders differ in their labels:
- `Hostname` of dcgm-exporter may be the exporter's own pod, so a node's label comes first;
- nvidia_gpu_exporter leaves `GPU-` out of UUIDs;
- with MIG each slice repeats the whole device's power, so slices are one device;
- two exporters of one device, or two replicas of a Prometheus, are two senders: their counters must
  never be mixed.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from carbon.adapters.metric_names import DCGM, NVIDIA_SMI, Metric, Table, metric_of
from carbon.packed import DeviceAbout

MAX_LABELS: Final = 128
MAX_LABEL_BYTES: Final = 4096
MAX_UUID: Final = 120
UUID_LABELS: Final = ("UUID", "uuid", "gpu_uuid")
NODE_LABELS: Final = ("node", "node_name", "kubernetes_node", "nodename", "exported_node")
HOST_LABELS: Final = ("Hostname", "hostname", "host", "instance")
MODEL_LABELS: Final = ("modelName", "gpu_name", "model", "name")
PROJECT_LABELS: Final = ("project", "exported_project")
RUN_LABELS: Final = ("run", "exported_run")
MAX_SLUG: Final = 80
REPLICA_LABELS: Final = ("__replica__", "prometheus_replica", "replica")
EXPORTER_PODS: Final = ("dcgm-exporter", "gpu-exporter", "costwatch-agent")
_BARE_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LABEL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_LOCAL: Final = ("localhost", "127.0.0.1", "[::1]", "0.0.0.0")  # noqa: S104 names, not a bind


class SeriesError(ValueError):
    """A series that must not be stored; the rest of its request may."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The job that a series names beside its device."""

    kind: str
    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A series that is understood: its metric, and whose it is."""

    metric: Metric
    stream: tuple[str, str]  # exporter, replica
    device: DeviceAbout | None = None
    node: str = ""
    job: Job | None = None
    run: tuple[str, str] | None = None  # project and run, by their short names

    @property
    def label(self) -> str:
        """How a message names it."""
        whose = "/".join(self.run) if self.run else self.node
        return f"{self.metric.name} of {self.device.uuid if self.device else whose}"


def series_of(labels: Sequence[tuple[str, str]]) -> Series | None:
    """What a series is; None where policy ignores it.

    Raises:
        SeriesError: labels that no Prometheus sends, or a metric of ours without a device or node.
    """
    by_name = _checked(labels)
    metric = metric_of(by_name)
    if metric is None:
        return None
    replica = _first(by_name, REPLICA_LABELS)[:80]
    stream = (metric.exporter, replica)
    if metric.table is Table.RUN:
        return _series_of_run(metric, stream, by_name)
    if metric.shared_name and not _first(by_name, UUID_LABELS):
        return None
    if metric.table is Table.NODE:
        node = _node_of(by_name)
        if not node:
            raise SeriesError(
                "no_node",
                f"{metric.name} has no label that names its node ({_listed(NODE_LABELS)})",
            )
        return Series(metric=metric, stream=stream, node=node)
    about = DeviceAbout(
        uuid=_uuid_of(metric, by_name),
        node=_node_of(by_name),
        model=_first(by_name, MODEL_LABELS)[:120],
    )
    return Series(metric=metric, stream=stream, device=about, job=_job_of(by_name))


def _series_of_run(
    metric: Metric, stream: tuple[str, str], labels: Mapping[str, str]
) -> Series | None:
    """What training code says of its run; None where a shared name is somebody else's."""
    project, run = _first(labels, PROJECT_LABELS), _first(labels, RUN_LABELS)
    if project and run and max(len(project), len(run)) <= MAX_SLUG:
        return Series(metric=metric, stream=stream, run=(project, run))
    if metric.shared_name:
        return None
    raise SeriesError("no_run", f"{metric.name} needs the labels project and run, by short names")


def _checked(labels: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    """The labels by name, when they are as Prometheus sends them: named, sorted, each once."""
    if len(labels) > MAX_LABELS:
        raise SeriesError("labels", f"a series has {len(labels)} labels; at most {MAX_LABELS}")
    before = ""
    for name, value in labels:
        if not _LABEL_NAME.fullmatch(name):
            raise SeriesError("labels", f"a label is named {name[:40]!r}")
        if name <= before:
            raise SeriesError("labels", f"the label {name[:40]} comes twice or out of order")
        if len(value.encode()) > MAX_LABEL_BYTES:
            raise SeriesError(
                "labels", f"the label {name[:40]} has more than {MAX_LABEL_BYTES} bytes"
            )
        before = name
    by_name = dict(labels)
    if not by_name.get("__name__"):
        raise SeriesError("labels", "a series has no __name__")
    return by_name


def _first(labels: Mapping[str, str], names: Iterable[str]) -> str:
    return next((labels[name].strip() for name in names if labels.get(name, "").strip()), "")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _uuid_of(metric: Metric, labels: Mapping[str, str]) -> str:
    """The UUID as the driver reports it."""
    uuid = _first(labels, UUID_LABELS)
    if not uuid:
        raise SeriesError(
            "no_device_uuid",
            f"{metric.name} has no label {UUID_LABELS[0]}: "
            "a device is known by its UUID only, so keep that label",
        )
    if len(uuid) > MAX_UUID or not uuid.isprintable():
        raise SeriesError("no_device_uuid", f"{metric.name} has a UUID of {len(uuid)} characters")
    is_bare = metric.exporter in (DCGM, NVIDIA_SMI) and _BARE_UUID.fullmatch(uuid)
    return f"GPU-{uuid.lower()}" if is_bare else uuid


def _node_of(labels: Mapping[str, str]) -> str:
    """The node: a label of the cluster first, then the host unless it is the exporter's pod."""
    named = _first(labels, NODE_LABELS)
    if named:
        return named[:200]
    for label in HOST_LABELS:
        text = labels.get(label, "").strip()
        host = _without_port(text) if label == "instance" else text
        if host and host not in _LOCAL and not _is_exporter_pod(host, labels):
            return host[:200]
    return ""


def _without_port(instance: str) -> str:
    host, colon, port = instance.rpartition(":")
    return (
        host if colon and port.isdigit() and (":" not in host or host.endswith("]")) else instance
    )


def _is_exporter_pod(host: str, labels: Mapping[str, str]) -> bool:
    return any(name in host for name in EXPORTER_PODS) or (
        "exported_pod" in labels and host == labels.get("pod")
    )


def _job_of(labels: Mapping[str, str]) -> Job | None:
    """The workload: a Slurm job, or the pod that holds the device (not the exporter's own)."""
    slurm = _first(labels, ("hpc_job", "slurm_job_id", "slurmjobid"))
    if slurm:
        return Job(kind="slurm", job=slurm[:200])
    before = "exported_" if "exported_pod" in labels else ""
    pod = labels.get(f"{before}pod", "").strip()
    if not pod or _is_exporter_pod(pod, {}):
        return None
    namespace = labels.get(f"{before}namespace", "").strip()
    return Job(kind="kubernetes", job=f"{namespace}/{pod}"[:200] if namespace else pod[:200])

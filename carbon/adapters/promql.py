"""What a Prometheus-like server answers about power and energy; questions and readings, no network.

An exporter is a row: what it calls its metrics, in which unit, and which labels name the device.
Counters come with the true time of each sample: `timestamp(metric)` is asked beside the metric.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carbon.packed import (
    METERS,
    CounterColumns,
    DeviceAbout,
    NodeColumns,
    PowerColumns,
    no_counters,
    no_nodes,
    no_power,
)
from formulae.units import MICROSECOND_PER_S, MILLIJOULE_PER_J

MATCHERS: Final = re.compile(
    r'^[a-zA-Z_][a-zA-Z0-9_]*(=|!=|=~|!~)"[^"\\\n]*"(,[a-zA-Z_][a-zA-Z0-9_]*(=|!=|=~|!~)"[^"\\\n]*")*$'
)
LONGEST_NAME: Final = 120


class PromqlAnswerError(ValueError):
    """An answer that is not what the API promises; for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """The metrics of one exporter; `millijoule_per_unit` turns its counter into millijoules."""

    name: str
    energy: str = ""
    millijoule_per_unit: int = 1
    power: str = ""
    uuid_label: str = ""
    node_labels: tuple[str, ...] = ()
    model_labels: tuple[str, ...] = ()
    node_power: str = ""  # an expression; its value is in W, {matchers} goes into each selector
    meter: str = ""
    includes_accelerators: bool = False


# Sources: dcgm-exporter etc/default-counters.csv; nvidia_gpu_exporter docs/METRICS.md; Kepler
# docs/user/metrics.md; CEEMS recording rules; node_exporter and ipmi_exporter documentation.
EXPORTERS: Final[Mapping[str, Exporter]] = {
    one.name: one
    for one in (
        Exporter(
            name="dcgm",
            energy="DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
            power="DCGM_FI_DEV_POWER_USAGE",
            uuid_label="UUID",
            node_labels=("Hostname", "instance"),
            model_labels=("modelName",),
        ),
        Exporter(
            name="nvidia_smi",
            energy="nvidia_smi_energy_joules_total",
            millijoule_per_unit=MILLIJOULE_PER_J,
            power="nvidia_smi_power_draw_watts",
            uuid_label="uuid",
            node_labels=("hostname", "instance"),
            model_labels=("name",),
        ),
        Exporter(
            name="node",
            node_power="sum by ({labels}) (rate(node_rapl_package_joules_total{matchers}[5m]))",
            node_labels=("instance",),
            meter="rapl",
        ),
        Exporter(
            name="kepler",
            node_power='sum by ({labels}) (kepler_node_cpu_watts{matchers_and:zone="package"})',
            node_labels=("node_name", "instance"),
            meter="rapl",
        ),
        Exporter(
            name="ipmi",
            node_power="max by ({labels}) (ipmi_dcmi_power_consumption_watts{matchers})",
            node_labels=("instance",),
            meter="bmc",
            includes_accelerators=True,
        ),
        Exporter(
            name="ceems",
            node_power="max by ({labels}) (ceems_ipmi_dcmi_power_current_watts{matchers} or "
            "ceems_ipmi_dcmi_current_watts{matchers} or ceems_ipmi_dcmi_avg_watts{matchers})",
            node_labels=("hostname", "instance"),
            meter="bmc",
            includes_accelerators=True,
        ),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line of an answer: its labels, when each value holds, the values."""

    labels: Mapping[str, str]
    at_s: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]


def selector(metric: str, matchers: str) -> str:
    """The metric with the user's label matchers."""
    return f"{metric}{{{matchers}}}" if matchers else metric


def device_query(exporter: Exporter, metric: str, matchers: str, *, of_time: bool = False) -> str:
    """The metric by device: of several scrapes or MIG slices of one device, one line."""
    labels = ", ".join((exporter.uuid_label, *exporter.node_labels, *exporter.model_labels))
    inner = selector(metric, matchers)
    return f"max by ({labels}) ({f'timestamp({inner})' if of_time else inner})"


def increase_query(exporter: Exporter, matchers: str, *, window_s: int) -> str:
    """What the server itself says that the counters rose by, all devices together."""
    inner = f"increase({selector(exporter.energy, matchers)}[{window_s}s])"
    return f"sum(max by ({exporter.uuid_label}) ({inner}))"


def node_query(exporter: Exporter, matchers: str) -> str:
    """The power of whole nodes, W."""
    braces = f"{{{matchers}}}" if matchers else ""
    both = re.sub(
        r"\{matchers_and:(.*?)\}",
        lambda found: "{" + ",".join(part for part in (found[1], matchers) if part) + "}",
        exporter.node_power,
    )
    return both.replace("{matchers}", braces).replace("{labels}", ", ".join(exporter.node_labels))


def read_series(document: Any) -> list[Series]:
    """The lines of an answer to /api/v1/query_range or /api/v1/query.

    Raises:
        PromqlAnswerError: it is an error, or no such document.
    """
    if not isinstance(document, dict) or document.get("status") != "success":
        said = document.get("error") if isinstance(document, dict) else None
        raise PromqlAnswerError(str(said or "the answer is none of Prometheus")[:300])
    try:
        result = document["data"]["result"]
        if document["data"]["resultType"] == "vector":
            return [_series(one["metric"], [one["value"]]) for one in result]
        return [_series(one["metric"], one["values"]) for one in result]
    except (KeyError, TypeError, ValueError) as error:
        raise PromqlAnswerError(f"a line of the answer cannot be read: {error}") from error


def _series(labels: Mapping[str, str], pairs: Sequence[Sequence[Any]]) -> Series:
    table = np.array([(float(at), float(value)) for at, value in pairs]).reshape(-1, 2)
    return Series(labels=dict(labels), at_s=table[:, 0], values=table[:, 1])


def devices_of(exporter: Exporter, found: Sequence[Series]) -> tuple[DeviceAbout, ...]:
    """The devices that an answer names; lines without a device's UUID are left out."""
    by_uuid: dict[str, DeviceAbout] = {}
    for one in found:
        uuid = one.labels.get(exporter.uuid_label, "").strip()
        if uuid and len(uuid) <= LONGEST_NAME:
            by_uuid.setdefault(
                uuid,
                DeviceAbout(
                    uuid=uuid,
                    node=_first(one.labels, exporter.node_labels),
                    model=_first(one.labels, exporter.model_labels),
                ),
            )
    return tuple(by_uuid.values())


def _first(labels: Mapping[str, str], names: Sequence[str]) -> str:
    return next((labels[name][:LONGEST_NAME] for name in names if labels.get(name)), "")


def _points(
    exporter: Exporter,
    devices: Sequence[DeviceAbout],
    values: Sequence[Series],
    times: Sequence[Series],
) -> Iterator[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
    """Each device's samples at their own times; what several evaluations saw counts once."""
    index = {one.uuid: position for position, one in enumerate(devices)}
    true_s: dict[tuple[tuple[str, str], ...], Series] = {
        tuple(sorted(one.labels.items())): one for one in times
    }
    for one in values:
        position = index.get(one.labels.get(exporter.uuid_label, "").strip())
        time_line = true_s.get(tuple(sorted(one.labels.items())))
        if position is None or time_line is None:
            continue
        _both, mine, theirs = np.intersect1d(one.at_s, time_line.at_s, return_indices=True)
        at = np.rint(time_line.values[theirs] * 1_000).astype(np.int64) * 1_000
        good = np.isfinite(one.values[mine])
        at, first = np.unique(at[good], return_index=True)
        yield position, at, one.values[mine][good][first]


def read_counters(
    exporter: Exporter,
    devices: Sequence[DeviceAbout],
    values: Sequence[Series],
    times: Sequence[Series],
) -> CounterColumns:
    """Energy counters at the true times of their samples, in millijoules."""
    rows = list(_points(exporter, devices, values, times))
    if not rows:
        return no_counters()
    sizes = [len(at) for _position, at, _values in rows]
    counted = np.concatenate([one for _position, _at, one in rows])
    return CounterColumns(
        device=np.repeat(np.array([row[0] for row in rows], dtype=np.int32), sizes),
        at=np.concatenate([row[1] for row in rows]),
        counter_millijoule=np.rint(counted * exporter.millijoule_per_unit).astype(np.int64),
        epoch=np.zeros(len(counted), dtype=np.int64),
    )


def read_power(
    exporter: Exporter,
    devices: Sequence[DeviceAbout],
    values: Sequence[Series],
    times: Sequence[Series],
) -> PowerColumns:
    """Power at the true times of its samples, W."""
    rows = list(_points(exporter, devices, values, times))
    if not rows:
        return no_power()
    return PowerColumns(
        device=np.repeat(
            np.array([row[0] for row in rows], dtype=np.int32), [len(row[1]) for row in rows]
        ),
        at=np.concatenate([row[1] for row in rows]),
        power_w=np.concatenate([row[2] for row in rows]),
    )


def read_nodes(exporter: Exporter, values: Sequence[Series]) -> NodeColumns:
    """Power of nodes at the times of evaluation, W."""
    rows = [
        (name, one)
        for one in values
        if (name := _first(one.labels, exporter.node_labels)) and len(one.values)
    ]
    if not rows:
        return no_nodes()
    names = tuple(dict.fromkeys(name for name, _one in rows))
    power_w = np.concatenate([one.values for _name, one in rows])
    node = np.repeat(
        np.array([names.index(name) for name, _one in rows], dtype=np.int32),
        [len(one.values) for _name, one in rows],
    )
    at_s = np.concatenate([one.at_s for _name, one in rows])
    good = np.isfinite(power_w)
    count = int(good.sum())
    return NodeColumns(
        names=names,
        node=node[good],
        at=np.rint(at_s[good] * MICROSECOND_PER_S).astype(np.int64),
        meter=np.full(count, METERS.index(exporter.meter), dtype=np.int8),
        power_w=power_w[good],
        includes_accelerators=np.full(count, exporter.includes_accelerators, dtype=np.bool_),
    )

"""Host factors that nodes measured: their own meters over their accelerators, hour by hour.

A meter that sees the accelerators holds them already, one that does not leaves them to be added:
they never count twice.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

import numpy as np
from django.db import connection

from carbon.adapters import binary_rows
from carbon.attribution import instant_of, microsecond_of
from carbon.cascade import Grid
from carbon.factors import factor_on
from carbon.hour_versions import current_hours
from carbon.hourly_factors import RANGES, NewPeriodFactor, Scope, replace_computed
from carbon.lines import (
    Line,
    integrated,
)
from carbon.metering import (
    HOUR_MICROSECOND,
    Ints,
)
from carbon.models import NodeReading
from carbon.site_factors import dated_factors, max_gap_s
from carbon.window_readings import Columns, senders_of
from formulae.metering import measured_host_factor
from formulae.units import MICROSECOND_PER_S, MILLIJOULE_PER_J
from runs.records import SiteRecord
from runs.selectors import devices_of

METERS: Final = ("bmc", "pdu", "rapl")  # of several on one node the first counts
LOWER_BOUND: Final = "rapl"  # sees processors and memory, no fans, disks or power losses
COVERED_FRACTION: Final = 0.9
_KINDS: Final = {
    "node_id": "int8",
    "at": "timestamptz",
    "meter": "int2",
    "sender_id": "int4",
    "includes": "int2",
    "power_w": "float8",
}
_SOURCE: Final = (
    "FROM (SELECT node_id, at, (array_position(%s::text[], meter::text) - 1)::int2 AS meter, "
    "sender_id, includes_accelerators::int::int2 AS includes, power_w "
    "FROM carbon_nodereading WHERE node_id = ANY(%s) AND at >= %s AND at < %s) readings"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHour:
    """A node in an hour: what its meter and its accelerators drew on average."""

    hour: int  # its place in the window
    meter: str
    node_w: float
    accelerator_w: float
    includes_accelerators: bool


def measure_host_factors(site: SiteRecord, start: int, end: int, *, now: datetime) -> int:
    """Bring the host factors that nodes measured in [start, end) up to date; how many changed.

    In the caller's transaction. Only nodes whose meter and accelerators were seen for nine tenths
    of the hour count; where there is none, the hour has no factor of its own.
    """
    names = nodes_read(site.site_id, start, end)
    wanted: dict[datetime, NewPeriodFactor] = {}
    if names:
        by_hour: defaultdict[int, list[NodeHour]] = defaultdict(list)
        for one in node_hours(site, names, start, end):
            by_hour[one.hour].append(one)
        for hour, nodes in by_hour.items():
            at = instant_of(start + hour * HOUR_MICROSECOND)
            found = factor_of(at, nodes)
            if found is not None and not _is_worse(found, site, at):
                wanted[at] = found
    scope = Scope(kind="host_factor", level="hour", start=instant_of(start), end=instant_of(end))
    return len(replace_computed(site, scope, wanted, known_at=now))


def _is_worse(found: NewPeriodFactor, site: SiteRecord, at: datetime) -> bool:
    """Whether it is a lower bound and the site has set a factor, which says more."""
    if found.tier == "measured":
        return False
    return factor_on(dated_factors(site.site_id), "host_factor", at.date()) is not None


def nodes_read(site_id: UUID, start: int, end: int) -> dict[int, str]:
    """The nodes of a site whose power was read in a window, with their names."""
    rows = NodeReading.objects.filter(
        node__site_id=site_id, at__gte=instant_of(start), at__lt=instant_of(end)
    )
    return dict(rows.values_list("node_id", "node__name").distinct())


def factor_of(hour: datetime, nodes: Sequence[NodeHour]) -> NewPeriodFactor | None:
    """The host factor of an hour, by the nodes that saw most; None where it cannot be.

    Nodes with a whole meter come first; RAPL alone gives a lower bound, marked estimated.
    """
    whole = [one for one in nodes if one.meter != LOWER_BOUND]
    used = whole or list(nodes)
    node_w = [
        one.node_w if one.includes_accelerators else one.node_w + one.accelerator_w for one in used
    ]
    accelerator_w = [one.accelerator_w for one in used]
    value = measured_host_factor(node_w, accelerator_w, includes=True)
    if value is None or value > RANGES["host_factor"][1]:
        return None
    meters = ", ".join(sorted({one.meter for one in used}))
    bound = "" if whole else ", lower bound"
    return NewPeriodFactor(
        kind="host_factor",
        level="hour",
        start=hour,
        end=instant_of(microsecond_of(hour) + HOUR_MICROSECOND),
        value=value,
        tier="measured" if whole else "estimated",
        source=f"{meters} of {len(used)} nodes{bound}",
        numerator=sum(node_w) / 1_000,
        denominator=sum(accelerator_w) / 1_000,
    )


def node_hours(
    site: SiteRecord, names: Mapping[int, str], start: int, end: int
) -> Iterator[NodeHour]:
    """The node-hours that were seen well enough."""
    meters = _meters(site, names, start, end)
    accelerators = _accelerator_w(site, set(names.values()), start, end)
    for (node_id, hour), (meter, node_w, includes) in meters.items():
        accelerator_w = accelerators.get((names[node_id], hour))
        if accelerator_w:
            yield NodeHour(
                hour=hour,
                meter=meter,
                node_w=node_w,
                accelerator_w=accelerator_w,
                includes_accelerators=includes,
            )


def _meters(
    site: SiteRecord, names: Mapping[int, str], start: int, end: int
) -> dict[tuple[int, int], tuple[str, float, bool]]:
    """The first meter of each node that saw enough of the hour: its name, mean W, what it sees."""
    reach = int(max_gap_s(dated_factors(site.site_id)) * MICROSECOND_PER_S)
    params = [list(METERS), list(names), instant_of(start - reach), instant_of(end + reach)]
    with connection.cursor() as cursor:
        rows = binary_rows.read(cursor, _KINDS, _SOURCE, params, by="node_id")
    key, series = _series(rows, senders_of(site.site_id).place(rows["sender_id"]))
    hours = (end - start) // HOUR_MICROSECOND
    grid = Grid(devices=np.arange(len(key), dtype=np.int64), start=start, hours=hours)
    line = Line.around(grid.devices, start - reach, end + reach)
    at = line.place(series, rows["at"])
    order = np.argsort(at, kind="stable")
    pieces, _begins = integrated(series[order], at[order], rows["power_w"][order], max_gap=reach)
    energy, time = grid.sums(line, pieces)
    found: dict[tuple[int, int], tuple[str, float, bool]] = {}
    for cell in np.flatnonzero(time >= COVERED_FRACTION * HOUR_MICROSECOND):
        node_id, meter, _place, includes = key[int(cell) // hours]
        mean_w = int(energy[cell]) / int(time[cell]) * (MICROSECOND_PER_S / MILLIJOULE_PER_J)
        found.setdefault((node_id, int(cell) % hours), (METERS[meter], mean_w, bool(includes)))
    return found


def _series(rows: Columns, place: Ints) -> tuple[list[tuple[int, int, int, int]], Ints]:
    """(node, meter, sender's place, includes) of each series in order of preference, and whose
    each row is.
    """
    table = np.stack([rows["node_id"], rows["meter"], place, rows["includes"]], axis=1)
    found, series = np.unique(table.astype(np.int64), axis=0, return_inverse=True)
    keys = [(int(a), int(b), int(c), int(d)) for a, b, c, d in found]
    return keys, series.reshape(-1).astype(np.int64)


def _accelerator_w(
    site: SiteRecord, names: set[str], start: int, end: int
) -> dict[tuple[str, int], float]:
    """Mean power of all accelerators of each node and hour, where all of them were seen enough."""
    nodes = {one.device_id: one.node for one in devices_of(site.site_id) if one.node in names}
    rows = current_hours(
        "device_id = ANY(%s) AND hour >= %s AND hour < %s AND covered_microsecond >= %s",
        [list(nodes), instant_of(start), instant_of(end), COVERED_FRACTION * HOUR_MICROSECOND],
    )
    energy = rows["measured_millijoule"] + rows["spread_millijoule"] - rows["reset_millijoule"]
    mean_w = energy / np.maximum(rows["covered_microsecond"], 1)
    mean_w *= MICROSECOND_PER_S / MILLIJOULE_PER_J
    places = (rows["hour"] - start) // HOUR_MICROSECOND
    sums: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    for device_id, place, power_w in zip(
        rows["device_id"].tolist(), places.tolist(), mean_w.tolist(), strict=True
    ):
        sums[nodes[device_id], place].append(power_w)
    count: defaultdict[str, int] = defaultdict(int)
    for name in nodes.values():
        count[name] += 1
    return {key: math.fsum(each) for key, each in sums.items() if len(each) == count[key[0]]}

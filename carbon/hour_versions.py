"""Versions of device-hours: reads of the current ones, writes of those that differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
from django.db import connection

from carbon.adapters import binary_rows
from carbon.attribution import instant_of, microsecond_of
from carbon.gaps import METHODS
from carbon.metering import (
    Floats,
    Ints,
    Mask,
)
from carbon.window_readings import Columns, read_columns
from runs.records import SiteRecord

MEASURES: Final = (
    "measured_millijoule",
    "spread_millijoule",
    "estimated_millijoule",
    "covered_microsecond",
    "integrated_millijoule",
    "estimated_microsecond",
    "reset_millijoule",
)
HOUR_KINDS: Final = {
    "device_id": "int8",
    "hour": "timestamptz",
    "version": "int2",
    **dict.fromkeys(MEASURES, "int8"),
    "method": "int2",
    "divergence": "float8",
}
# The text as its place among METHODS, the unknown as NaN: rows are read as fixed-width columns.
_CURRENT: Final = (
    "FROM (SELECT *, (coalesce(array_position(%s::text[], estimate_method::text), 1) - 1)::int2 "
    "AS method, coalesce(divergence_fraction, 'NaN'::float8) AS divergence "
    "FROM carbon_energyhour WHERE superseded_at IS NULL) stored WHERE "
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedHours:
    """What hours of devices should say, ordered by device and hour; `method` is one of METHODS."""

    device: Ints
    hour: Ints
    measures: dict[str, Ints]
    method: Ints
    divergence: Floats  # NaN: not cross-checked

    def __len__(self) -> int:
        return len(self.device)


def current_hours(where: str, params: Sequence[object]) -> Columns:
    """The current versions that a condition of ours picks, by device and hour."""
    found = read_columns(HOUR_KINDS, _CURRENT + where, [list(METHODS), *params])
    order = np.lexsort((found["hour"], found["device_id"]))
    return {name: values[order] for name, values in found.items()}


def store_versions(site: SiteRecord, table: ClosedHours, old: Columns, *, now: datetime) -> int:
    """Write a version for every hour that differs from its current one; say how many.

    `old` are the current versions of the same devices and window; what had energy and has none now
    gets a version that says so.
    """
    new = _with_lost_hours(table, old)
    position = _positions(new, old)
    known = position >= 0
    differs = ~known
    differs[known] |= _differ(new, old, known, position[known])
    if not differs.any():
        return 0
    outdated = differs & known
    version = np.ones(len(new), dtype=np.int64)
    version[known] = old["version"][position[known]].astype(np.int64) + 1
    with connection.cursor() as cursor:
        if outdated.any():
            _supersede(cursor, new, outdated, now=now)
        for method, text in enumerate(METHODS):
            of_method = differs & (new.method == method)
            for rows in (
                of_method & np.isnan(new.divergence),
                of_method & ~np.isnan(new.divergence),
            ):
                if rows.any():
                    columns = {
                        "organisation_id": ("uuid", site.organisation_id),
                        "site_id": ("uuid", site.site_id),
                        "known_at": ("timestamptz", microsecond_of(now)),
                        **_columns(new, rows, text),
                        "version": ("int2", version[rows]),
                    }
                    count = int(rows.sum())
                    binary_rows.write(cursor, "carbon_energyhour", columns, rows=count)
    return int(differs.sum())


def _differ(new: ClosedHours, old: Columns, known: Mask, position: Ints) -> Mask:
    """Which of the known hours say something else now."""
    differs = new.method[known] != old["method"][position]
    for name in MEASURES:
        differs |= new.measures[name][known] != old[name][position]
    was, now = old["divergence"][position], new.divergence[known]
    return np.asarray(differs | ~((was == now) | (np.isnan(was) & np.isnan(now))), dtype=np.bool_)


def _columns(new: ClosedHours, rows: Mask, method: str) -> dict[str, tuple[str, Any]]:
    """The columns of rows of one method, all with a cross-check or all without."""
    columns: dict[str, tuple[str, Any]] = {
        "device_id": ("int8", new.device[rows]),
        "hour": ("timestamptz", new.hour[rows]),
        **{name: ("int8", new.measures[name][rows]) for name in MEASURES},
    }
    if method:
        columns["estimate_method"] = ("text", method)
    if not np.isnan(new.divergence[rows]).any():
        columns["divergence_fraction"] = ("float8", new.divergence[rows])
    return columns


def _with_lost_hours(table: ClosedHours, old: Columns) -> ClosedHours:
    """The new hours, and nothing (0, covered 0) for hours that had energy and have none now."""
    held = set(zip(table.device.tolist(), table.hour.tolist(), strict=True))
    lost = [
        row
        for row, key in enumerate(zip(old["device_id"].tolist(), old["hour"].tolist(), strict=True))
        if key not in held
    ]
    if not lost:
        return table
    device = np.concatenate([table.device, old["device_id"][lost]])
    hour = np.concatenate([table.hour, old["hour"][lost]])
    order = np.lexsort((hour, device))
    nothing = np.zeros(len(lost), dtype=np.int64)
    return ClosedHours(
        device=device[order],
        hour=hour[order],
        measures={
            name: np.concatenate([table.measures[name], nothing])[order] for name in MEASURES
        },
        method=np.concatenate([table.method, nothing])[order],
        divergence=np.concatenate([table.divergence, np.full(len(lost), np.nan)])[order],
    )


def _positions(new: ClosedHours, old: Columns) -> Ints:
    """The row of each new hour among the old ones, -1 where it is not there."""
    position = np.full(len(new), -1, dtype=np.int64)
    for device in np.unique(old["device_id"]):
        low, high = np.searchsorted(old["device_id"], [device, device + 1])
        first, last = np.searchsorted(new.device, [device, device + 1])
        hours = old["hour"][low:high]
        at = np.minimum(np.searchsorted(hours, new.hour[first:last]), len(hours) - 1)
        position[first:last] = np.where(hours[at] == new.hour[first:last], low + at, -1)
    return position


def _supersede(cursor: Any, new: ClosedHours, outdated: Mask, *, now: datetime) -> None:
    """Mark the current versions of these hours as replaced at `now`."""
    cursor.execute(
        "UPDATE carbon_energyhour AS stored SET superseded_at = %s "
        "FROM unnest(%s::bigint[], %s::timestamptz[]) AS outdated(device_id, hour) "
        "WHERE stored.device_id = outdated.device_id AND stored.hour = outdated.hour "
        "AND stored.superseded_at IS NULL",
        [now, new.device[outdated].tolist(), [instant_of(one) for one in new.hour[outdated]]],
    )

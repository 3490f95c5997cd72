"""Energy and carbon by node and device, from device-hours and the owners of the books.

A device-hour that changes hands is split by time, as the books split it. Emissions of a device are
its share of its site's hour: all energy of one site and hour has the same factors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection

from carbon.device_sql import (
    HELD,
    MEASURES,
    OF_NOBODY,
    OF_OWNER,
    OWNED,
    RATED,
    RATES,
    asked_params,
)
from carbon.energy_questions import HOUR, NOBODY, EnergyQuestion, hour_text
from carbon.energy_records import KNOWABLE, EnergyRow, EnergyTable
from formulae.allocation import split_integer
from runs.records import AssignmentRecord, DeviceRecord
from runs.selectors import assignments_between, devices_of, sites

MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceHour:
    """A device's hour, whole or one owner's part of it, with the figures of its emissions."""

    device_id: int
    hour: datetime
    owner: tuple[UUID | None, UUID | None]
    measures: tuple[int, ...]  # as MEASURES
    figures: tuple[float | None, ...]  # as KNOWABLE

    @property
    def accelerator_millijoule(self) -> int:
        return sum(self.measures[:3])


def chosen_devices(question: EnergyQuestion) -> dict[int, DeviceRecord]:
    """The devices that a question may be about, by id."""
    return {
        one.device_id: one
        for site in sites(question.organisation_id)
        if question.site_id in (None, site.site_id)
        for one in devices_of(site.site_id)
        if (not question.node or one.node == question.node)
        and (not question.device or one.device_uuid == question.device)
    }


def _is_wanted(question: EnergyQuestion, owner: tuple[UUID | None, UUID | None]) -> bool:
    project_id, run_id = owner
    if question.is_of_nobody:
        return project_id is None
    if question.allowed is not None and project_id not in question.allowed:
        return False
    if question.project_id is not None and project_id != question.project_id:
        return False
    if question.run == NOBODY:
        return run_id is None
    return question.run_id is None or run_id == question.run_id


def owners_in(
    question: EnergyQuestion, devices: Mapping[int, DeviceRecord]
) -> dict[int, list[AssignmentRecord]]:
    """Who had these devices in the question's time, by device, in order of time."""
    if question.start is None or question.end is None:
        return {}
    found: dict[int, list[AssignmentRecord]] = {}
    rows = assignments_between(
        question.organisation_id, question.start, question.end, question.site_id
    )
    for one in rows:
        if one.device_id in devices:
            found.setdefault(one.device_id, []).append(one)
    return found


def device_hours(question: EnergyQuestion) -> tuple[list[DeviceHour], dict[int, DeviceRecord]]:
    """Every device-hour that the question is about, split among owners; for few hours only."""
    devices = chosen_devices(question)
    owners = owners_in(question, devices)
    columns = ", ".join(f"h.{name}" for name in MEASURES)
    rows = _fetched(
        f"WITH {RATES} SELECT h.device_id, h.hour, {columns}, {RATED} "  # noqa: S608
        "FROM carbon_energyhour h LEFT JOIN rates r ON r.site_id = h.site_id AND r.hour = h.hour "
        f"WHERE {HELD} ORDER BY h.device_id, h.hour",
        asked_params(question, devices.values()),
    )
    found = [
        part
        for device_id, hour, *values in rows
        for part in owner_parts(device_id, hour, values, owners.get(device_id, ()))
        if _is_wanted(question, part.owner)
    ]
    return found, devices


def owner_parts(
    device_id: int, hour: datetime, values: Sequence[Any], owners: Sequence[AssignmentRecord]
) -> list[DeviceHour]:
    """One device-hour by owner: its time shares out whole numbers by largest remainder."""
    spans: list[tuple[tuple[UUID | None, UUID | None], int]] = []
    for one in owners:
        low, high = max(one.start, hour), min(one.end or hour + HOUR, hour + HOUR)
        if low < high:
            spans.append(((one.project_id, one.run_id), (high - low) // MICROSECOND))
    free = HOUR // MICROSECOND - sum(part for _owner, part in spans)
    if free:
        spans.append(((None, None), free))
    weights = [part for _owner, part in spans]
    count = len(MEASURES)
    split = [split_integer(int(value), weights) for value in values[:count]]
    whole = sum(int(value) for value in values[:3])
    parts = []
    for index, (owner, _part) in enumerate(spans):
        measures = tuple(one[index] for one in split)
        share = sum(measures[:3]) / whole if whole else 0.0
        figures = tuple(None if one is None else float(one) * share for one in values[count:])
        parts.append(
            DeviceHour(
                device_id=device_id, hour=hour, owner=owner, measures=measures, figures=figures
            )
        )
    return parts


def _fetched(sql: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def device_table(question: EnergyQuestion) -> EnergyTable:
    """Energy by node, device or time of single devices; the question has a start and an end."""
    devices = chosen_devices(question)
    owners = {} if question.is_of_all_owners else owners_in(question, devices)
    groups = _whole_hours(question, devices, owners)
    for part in _shared_hours(question, devices, owners):
        key = _key_of(question.by, part.device_id, part.hour)
        groups.setdefault(key, _Sums()).add(part.measures, part.figures, rows=1)
    if question.by == "node":
        groups = _by_node(groups, devices)
    named = {one.device_id: one.device_uuid for one in devices.values()}
    rows = [sums.row(*_names(question.by, key, named)) for key, sums in groups.items()]
    if question.by in ("node", "device"):
        rows.sort(key=lambda row: (-row.accelerator_millijoule, row.name))
    else:
        rows.sort(key=lambda row: row.key)
    whole = _Sums()
    for sums in groups.values():
        whole.add(sums.measures, sums.figures, rows=sums.rows)
    return EnergyTable(rows=tuple(rows), total=whole.row("", "", None))


class _Sums:
    """Running sums of device-hours; a figure that misses a part stays unknown."""

    def __init__(self) -> None:
        self.measures: list[int] = [0] * len(MEASURES)
        self.figures: list[float | None] = [0.0] * len(KNOWABLE)
        self.rows = 0

    def add(self, measures: Sequence[int], figures: Sequence[float | None], *, rows: int) -> None:
        self.measures = [one + int(more) for one, more in zip(self.measures, measures, strict=True)]
        self.figures = [
            None if one is None or more is None else one + float(more)
            for one, more in zip(self.figures, figures, strict=True)
        ]
        self.rows += rows

    def row(self, key: str, name: str, start: datetime | None) -> EnergyRow:
        measures: dict[str, Any] = dict(zip(MEASURES, self.measures, strict=True))
        figures: dict[str, Any] = dict(zip(KNOWABLE, self.figures, strict=True))
        return EnergyRow(
            key=key,
            name=name,
            start=start,
            expected_microsecond=None,
            entries=self.rows,
            **measures,
            **figures,
        )


def _names(by: str, key: Any, uuids: Mapping[int, str]) -> tuple[str, str, datetime | None]:
    if by == "node":
        return key, key, None
    if by == "device":
        return uuids[key], uuids[key], None
    text = {"hour": hour_text(key), "day": f"{key:%Y-%m-%d}", "month": f"{key:%Y-%m}"}[by]
    return text, text, key


def _key_of(by: str, device_id: int, hour: datetime) -> Any:
    if by in ("node", "device"):
        return device_id
    if by == "hour":
        return hour
    midnight = hour.replace(hour=0)
    return midnight if by == "day" else midnight.replace(day=1)


def _by_node(groups: dict[Any, _Sums], devices: Mapping[int, DeviceRecord]) -> dict[Any, _Sums]:
    nodes: dict[Any, _Sums] = {}
    for device_id, sums in groups.items():
        node = nodes.setdefault(devices[device_id].node or NOBODY, _Sums())
        node.add(sums.measures, sums.figures, rows=sums.rows)
    return nodes


def _whole_hours(
    question: EnergyQuestion,
    devices: Mapping[int, DeviceRecord],
    owners: Mapping[int, Sequence[AssignmentRecord]],
) -> dict[Any, _Sums]:
    """The device-hours that one owner had whole, summed by the database."""
    if not devices:
        return {}
    key = (
        "h.device_id"
        if question.by in ("node", "device")
        else f"date_trunc('{question.by}', h.hour, 'UTC')"
    )
    sums = ", ".join(f"sum({name})" for name in MEASURES)
    figures = ", ".join(
        f"CASE WHEN count(*) = count({name}) THEN sum({name}) END" for name in KNOWABLE
    )
    columns = ", ".join(f"h.{name}" for name in MEASURES)
    rows = _fetched(
        f"WITH {RATES}, {OWNED}, held AS (SELECT {key} AS key, {columns}, {RATED} "  # noqa: S608
        "FROM carbon_energyhour h LEFT JOIN rates r ON r.site_id = h.site_id AND r.hour = h.hour "
        f"WHERE {HELD} AND {_ownership(question)}) "
        f"SELECT key, {sums}, {figures}, count(*) FROM held GROUP BY key",
        {**asked_params(question, devices.values()), **_owned_params(question, owners)},
    )
    found: dict[Any, _Sums] = {}
    for key_value, *values, count in rows:
        sums_of = found.setdefault(key_value, _Sums())
        sums_of.add(values[: len(MEASURES)], values[len(MEASURES) :], rows=count)
    return found


def _ownership(question: EnergyQuestion) -> str:
    """Which device-hours are whole the question's: all, an owner's, or nobody's."""
    if question.is_of_all_owners:
        return "true"
    return OF_NOBODY if question.is_of_nobody else OF_OWNER


def _owned_params(
    question: EnergyQuestion, owners: Mapping[int, Sequence[AssignmentRecord]]
) -> dict[str, Any]:
    """The assignments that count: the asked owner's, or all where nobody's is asked."""
    chosen = [
        one
        for rows in owners.values()
        for one in rows
        if question.is_of_nobody or _is_wanted(question, (one.project_id, one.run_id))
    ]
    return {
        "owned_devices": [one.device_id for one in chosen],
        "lows": [one.start for one in chosen],
        "highs": [one.end or question.end for one in chosen],
    }


def _shared_hours(
    question: EnergyQuestion,
    devices: Mapping[int, DeviceRecord],
    owners: Mapping[int, Sequence[AssignmentRecord]],
) -> list[DeviceHour]:
    """The question's parts of device-hours that changed hands within the hour."""
    if question.is_of_all_owners or not owners:
        return []
    columns = ", ".join(f"h.{name}" for name in MEASURES)
    every = [one for rows in owners.values() for one in rows]
    hours = {
        (one.device_id, at.replace(minute=0, second=0, microsecond=0))
        for one in every
        for at in (one.start, one.end)
        if at is not None and at != at.replace(minute=0, second=0, microsecond=0)
    }
    if not hours:
        return []
    ordered = sorted(hours)
    rows = _fetched(
        f"WITH {RATES} SELECT h.device_id, h.hour, {columns}, {RATED} "  # noqa: S608
        "FROM carbon_energyhour h "
        "JOIN unnest(%(shared_devices)s::bigint[], %(shared_hours)s::timestamptz[]) "
        "AS s(device_id, hour) ON s.device_id = h.device_id AND s.hour = h.hour "
        "LEFT JOIN rates r ON r.site_id = h.site_id AND r.hour = h.hour "
        f"WHERE {HELD}",
        {
            **asked_params(question, devices.values()),
            "shared_devices": [device for device, _hour in ordered],
            "shared_hours": [hour for _device, hour in ordered],
        },
    )
    return [
        part
        for device_id, hour, *values in rows
        for part in owner_parts(device_id, hour, values, owners.get(device_id, ()))
        if _is_wanted(question, part.owner)
    ]

"""One round of booking: whose device a reading is, whether it can be true, what became of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carbon.intake import (
    ASSUMED_LIMIT_W,
    EARLIEST_MICROSECOND,
    FUTURE,
    QUARANTINE_KEPT,
    TOLERANCE,
)
from carbon.metering import Ints
from carbon.packed import DeviceAbout
from carbon.storing import CONTRADICTION, Aside, Columns, quarantine
from carbon.waiting import Waiting
from runs.records import DeviceRecord, SiteRecord
from runs.selectors import devices_by_uuid
from runs.services import ensure_devices, ensure_nodes

GOOD: Final = 0
REASONS: Final = (  # a row's reason is an index; the first that fits is told
    "",
    "device_of_another_site",
    "in_the_future",
    "before_2010",
    "not_a_number",
    "negative",
    "above_the_power_limit",
    CONTRADICTION,
)
CONTRADICTS: Final = REASONS.index(CONTRADICTION)
LAST_MICROSECOND: Final = 253_402_300_799_000_000  # the end of the year 9999
HIGHEST_NODE_W: Final = 1e6  # a whole rack takes a fifth of it
FUTURE_MICROSECOND: Final = int(FUTURE.total_seconds() * 1_000_000)
_VALUE: Final[Mapping[str, str]] = {
    "power": "power_w",
    "counters": "counter_millijoule",
    "nodes": "power_w",
}


@dataclass(slots=True, kw_only=True)
class Round:
    """The rows of one round by table, each with its reason (0: good), and their devices' keys."""

    site: SiteRecord
    waiting: Waiting
    device_ids: Ints  # by index into waiting.devices; -1: it stands at another site
    known: Mapping[str, DeviceRecord]
    node_ids: Ints
    reason: dict[str, npt.NDArray[np.int8]]
    new_by_sender: dict[str, Mapping[int, int]] = field(default_factory=dict)

    def columns(self, table: str) -> Columns:
        """The rows of a table as they came."""
        columns: Columns = getattr(self.waiting, table)
        return columns

    def good(self, table: str) -> Ints:
        """The positions of the rows that nothing speaks against."""
        return np.flatnonzero(self.reason[table] == GOOD)

    def to_store(self, table: str) -> tuple[Ints, dict[str, npt.NDArray[Any]]]:
        """The good rows, under the keys of devices, nodes and senders; and their positions."""
        good, columns = self.good(table), self.columns(table)
        key, ids = (
            ("node_id", self.node_ids) if table == "nodes" else ("device_id", self.device_ids)
        )
        rows = {name: values[good] for name, values in columns.items()}
        rows[key] = ids[rows.pop("device")] if len(good) else np.zeros(0, dtype=np.int64)
        rows["sender_id"] = self.sender_ids()[rows.pop("sender")]
        return good, rows

    def sender_ids(self) -> Ints:
        """The keys of the senders by index."""
        return np.array([one.sender_id for one in self.waiting.senders], dtype=np.int64)

    def rejected_by_sender(self) -> Ints:
        """How many readings of each sender are set aside, by index."""
        counts = np.array([len(one.set_aside) for one in self.waiting.senders], dtype=np.int64)
        for table, reason in self.reason.items():
            bad = self.columns(table)["sender"][reason != GOOD]
            counts += np.bincount(bad, minlength=len(counts))
        return counts

    def reasons(self) -> dict[str, int]:
        """How many readings are set aside for which reason."""
        counts: dict[str, int] = {}
        for reason in self.reason.values():
            for code, rows in zip(
                *np.unique(reason[reason != GOOD], return_counts=True), strict=True
            ):
                counts[REASONS[code]] = counts.get(REASONS[code], 0) + int(rows)
        for sender in self.waiting.senders:
            for one in sender.set_aside:
                counts[one.reason] = counts.get(one.reason, 0) + 1
        return counts

    def quarantine(self, *, received_at: datetime) -> None:
        """Keep what is set aside to look at."""
        rows = [
            Aside(
                device_uuid=one.device_uuid,
                start=_shown(one.at),
                end=_shown(one.at),
                reading=one.reading,
                reason=one.reason,
            )
            for sender in self.waiting.senders
            for one in sender.set_aside
        ]
        for table in _VALUE:
            rows += self._asides(table)
        quarantine(self.site, rows[:QUARANTINE_KEPT], received_at=received_at)

    def _asides(self, table: str) -> list[Aside]:
        columns = self.columns(table)
        bad = np.flatnonzero(self.reason[table] != GOOD)[:QUARANTINE_KEPT]
        return [
            Aside(
                device_uuid=self._name(table, int(columns["device"][row])),
                start=_shown(int(columns["at"][row])),
                end=_shown(int(columns["at"][row])),
                reading=f"{columns[_VALUE[table]][row]:.15g} {_UNIT[table]}",
                reason=REASONS[self.reason[table][row]],
            )
            for row in bad
        ]

    def _name(self, table: str, index: int) -> str:
        if table == "nodes":
            return self.waiting.nodes_named[index]
        return self.waiting.devices[index].uuid


_UNIT: Final[Mapping[str, str]] = {"power": "W", "counters": "mJ", "nodes": "W"}


def _shown(at: int | None) -> int | None:
    """The instant, where a calendar has it."""
    return at if at is not None and 0 <= at <= LAST_MICROSECOND else None


def checked(site: SiteRecord, waiting: Waiting) -> Round:
    """The round with its devices (new ones are made) and the reason of each row."""
    known = _known_devices(site, waiting.devices)
    ids = [
        known[one.uuid].device_id if known[one.uuid].site_id == site.site_id else -1
        for one in waiting.devices
    ]
    device_ids = np.array(ids, dtype=np.int64)
    nodes = ensure_nodes(site, waiting.nodes_named) if waiting.nodes_named else {}
    limits = [known[one.uuid].power_limit_w or one.power_limit_w for one in waiting.devices]
    limit_w = np.array([limit or ASSUMED_LIMIT_W for limit in limits], dtype=np.float64)
    return Round(
        site=site,
        waiting=waiting,
        device_ids=device_ids,
        known=known,
        node_ids=np.array([nodes[name] for name in waiting.nodes_named], dtype=np.int64),
        reason={
            "power": _reasons(waiting.power, device_ids, highest=limit_w * TOLERANCE),
            "counters": _reasons(waiting.counters, device_ids, value="counter_millijoule"),
            "use": _reasons(waiting.use, device_ids, value=""),
            "nodes": _reasons(
                waiting.nodes,
                np.zeros(len(nodes), dtype=np.int64),
                highest=np.full(len(nodes), HIGHEST_NODE_W),
            ),
        },
    )


def _known_devices(
    site: SiteRecord, devices: tuple[DeviceAbout, ...]
) -> Mapping[str, DeviceRecord]:
    """The devices by UUID, wherever they stand; new ones and what is learned of others written."""
    known = devices_by_uuid(site.organisation_id, [one.uuid for one in devices])
    unlike = [
        (one.uuid, one.node, one.model)
        for one in devices
        if one.uuid not in known
        or (one.model and not known[one.uuid].model)
        or (one.node and not known[one.uuid].node)
    ]
    if unlike:
        ensure_devices(site, unlike)
        known |= devices_by_uuid(site.organisation_id, [uuid for uuid, _node, _model in unlike])
    return known


def _reasons(
    columns: Columns,
    device_ids: Ints,
    *,
    value: str = "power_w",
    highest: npt.NDArray[np.float64] | None = None,
) -> npt.NDArray[np.int8]:
    """Why each row cannot be true, 0 where nothing speaks against it."""
    at, device = columns["at"], columns["device"]
    reason = np.zeros(len(at), dtype=np.int8)

    def mark(mask: npt.NDArray[np.bool_], name: str) -> None:
        reason[mask & (reason == GOOD)] = REASONS.index(name)

    if not len(at):
        return reason
    mark(device_ids[device] < 0, "device_of_another_site")
    mark(at > columns["received_at"] + FUTURE_MICROSECOND, "in_the_future")
    mark(at < EARLIEST_MICROSECOND, "before_2010")
    if value:
        values = columns[value]
        mark(~np.isfinite(values), "not_a_number")
        mark(values < 0, "negative")
        if highest is not None:
            mark(values > highest[device], "above_the_power_limit")
    return reason


def mark_contradictions(round_: Round, table: str, rows: Ints) -> None:
    """Set rows aside for which another value of the same sender is stored."""
    round_.reason[table][rows] = CONTRADICTS

"""The bodies that wait at a site, read in their order and joined into columns. No rules, no writes.

Columns of readings carry `device` (index into devices), `sender` (index into senders), `at` and
`received_at` in microseconds, and the values of their kind.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt
from django.db import connection

from carbon.attribution import microsecond_of
from carbon.models import IntakeBody
from carbon.packed import (
    MEASURES,
    Brought,
    DeviceAbout,
    JobNote,
    PackedBodyError,
    SetAside,
    unpack,
)

Columns = dict[str, npt.NDArray[Any]]
BODIES_AT_ONCE: Final = 20_000
_VALUES: Final[Mapping[str, Mapping[str, type[np.generic]]]] = {
    "power": {"power_w": np.float64},
    "counters": {"counter_millijoule": np.int64, "epoch": np.int64},
    "use": dict.fromkeys(MEASURES, np.float64),
    "nodes": {"meter": np.int8, "power_w": np.float64, "includes_accelerators": np.bool_},
}
# The newest bodies wait for the next round, so that one round is bounded in memory and time.
WAITING: Final = (
    "SELECT id, sender_id, body, received_at FROM ("
    "SELECT id, sender_id, body, received_at, sum(rows) OVER (ORDER BY id) - rows AS before "
    "FROM (SELECT id, sender_id, body, received_at, rows FROM carbon_intakebody "
    "WHERE site_id = %s AND id > %s ORDER BY id LIMIT %s) AS oldest) AS counted "
    "WHERE before < %s ORDER BY id"
)


@dataclass(slots=True, kw_only=True)
class OfSender:
    """What a sender's bodies say in sum."""

    sender_id: int
    last_received_at: datetime
    rows: int = 0
    ignored: int = 0
    dropped: int = 0
    set_aside: list[SetAside] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The joined bodies; `device` of the nodes' columns is an index into `nodes_named`."""

    body_ids: Sequence[int]
    last_id: int
    devices: tuple[DeviceAbout, ...]
    senders: tuple[OfSender, ...]
    power: Columns
    counters: Columns
    use: Columns
    nodes: Columns
    nodes_named: tuple[str, ...]
    jobs: tuple[JobNote, ...]
    power_fields: Sequence[str]  # which reading each device's power is, as its last body says
    unreadable: Mapping[int, str]  # sender: why a body of it cannot be read; that body stays


def read_waiting(site_id: UUID, *, after_id: int, limit_rows: int) -> Waiting:
    """The oldest waiting bodies after `after_id`, of about `limit_rows` readings."""
    with connection.cursor() as cursor:
        cursor.execute(WAITING, [site_id, after_id, BODIES_AT_ONCE, limit_rows])
        found = cursor.fetchall()
    joined = _Joined()
    for body_id, sender_id, body, received_at in found:
        try:
            joined.add(body_id, sender_id, unpack(body), received_at)
        except PackedBodyError as error:
            joined.unreadable[sender_id] = str(error)
    return joined.waiting(last_id=found[-1][0] if found else after_id)


def waiting_bodies(site_id: UUID, *, after_id: int, limit: int) -> list[tuple[int, int]]:
    """The oldest waiting bodies after `after_id`, each with its sender."""
    found = IntakeBody.objects.filter(site_id=site_id, id__gt=after_id).order_by("id")
    return list(found.values_list("id", "sender_id")[:limit])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """A list of devices (held, so that its identity stays its own) and their indices."""

    devices: tuple[DeviceAbout, ...]
    index: npt.NDArray[np.int64]
    learned: int  # how much was learned when it was looked at


class _Joined:
    """Bodies on their way to one set of columns."""

    def __init__(self) -> None:
        self.body_ids: list[int] = []
        self.devices: dict[str, DeviceAbout] = {}
        self.device_index: dict[str, int] = {}
        self.node_index: dict[str, int] = {}
        self.senders: dict[int, OfSender] = {}
        self.sender_index: dict[int, int] = {}
        self.parts: dict[str, list[Columns]] = {name: [] for name in _VALUES}
        self.jobs: list[JobNote] = []
        self.lists: dict[int, _Listed] = {}
        self.learned = 0  # how often a body told another thing of a device than those before
        self.power_fields: list[tuple[npt.NDArray[np.int64], str]] = []
        self.unreadable: dict[int, str] = {}

    def add(self, body_id: int, sender_id: int, brought: Brought, received_at: datetime) -> None:
        """Join one body."""
        self.body_ids.append(body_id)
        devices = self._devices(brought.devices)
        sender = self.sender_index.setdefault(sender_id, len(self.sender_index))
        about = self.senders.setdefault(
            sender_id, OfSender(sender_id=sender_id, last_received_at=received_at)
        )
        about.last_received_at = max(about.last_received_at, received_at)
        about.rows += brought.rows
        about.ignored += brought.ignored
        about.dropped += brought.dropped
        about.set_aside += brought.set_aside
        received = microsecond_of(received_at)

        def keep(table: str, index: Any, at: Any, values: Mapping[str, Any]) -> None:
            rows = len(at)
            if rows:
                about_rows = {
                    "device": index,
                    "at": at,
                    "sender": np.full(rows, sender, dtype=np.int32),
                    "received_at": np.full(rows, received, dtype=np.int64),
                }
                self.parts[table].append({**about_rows, **values})

        power, counters, use, nodes = brought.power, brought.counters, brought.use, brought.nodes
        keep("power", devices[power.device], power.at, {"power_w": power.power_w})
        keep(
            "counters",
            devices[counters.device],
            counters.at,
            {"counter_millijoule": counters.counter_millijoule, "epoch": counters.epoch},
        )
        keep("use", devices[use.device], use.at, use.measures)
        named = _indices(nodes.names, self.node_index)
        keep("nodes", named[nodes.node], nodes.at, _node_values(brought))
        self.jobs += [replace(note, device=int(devices[note.device])) for note in brought.jobs]
        if brought.power_field:
            self.power_fields.append((devices[power.device], brought.power_field))

    def _devices(self, devices: tuple[DeviceAbout, ...]) -> npt.NDArray[np.int64]:
        """The indices of a body's devices, which many bodies list alike."""
        listed = self.lists.get(id(devices))
        if listed is None:
            self._learn(devices)
            index = _indices((one.uuid for one in devices), self.device_index)
        elif listed.learned == self.learned:
            return listed.index
        else:
            self._learn(devices)
            index = listed.index
        self.lists[id(devices)] = _Listed(devices=devices, index=index, learned=self.learned)
        return index

    def _learn(self, devices: Sequence[DeviceAbout]) -> None:
        """Note what a body says of its devices; what a later body leaves out stays known."""
        for one in devices:
            known = self.devices.get(one.uuid)
            if known is one:
                continue
            if known is None or known == one:
                self.devices.setdefault(one.uuid, one)
                continue
            self.learned += 1
            self.devices[one.uuid] = DeviceAbout(
                uuid=one.uuid,
                node=one.node or known.node,
                model=one.model or known.model,
                power_limit_w=one.power_limit_w or known.power_limit_w,
                facts={**known.facts, **one.facts},
            )

    def waiting(self, *, last_id: int) -> Waiting:
        """All of it."""
        return Waiting(
            body_ids=self.body_ids,
            last_id=last_id,
            devices=tuple(self.devices[uuid] for uuid in self.device_index),
            senders=tuple(self.senders[one] for one in self.sender_index),
            power=self._columns("power"),
            counters=self._columns("counters"),
            use=self._columns("use"),
            nodes=self._columns("nodes"),
            nodes_named=tuple(self.node_index),
            jobs=tuple(self.jobs),
            power_fields=self._power_fields(),
            unreadable=self.unreadable,
        )

    def _power_fields(self) -> list[str]:
        names = sorted({name for _devices, name in self.power_fields})
        codes = np.full(len(self.device_index), -1)
        for devices, name in self.power_fields:
            codes[devices] = names.index(name)
        return [names[code] if code >= 0 else "" for code in codes.tolist()]

    def _columns(self, table: str) -> Columns:
        """The parts of a table as one; a measure that a body leaves out is unread there."""
        kinds: dict[str, type[np.generic]] = {
            "device": np.int64,
            "at": np.int64,
            "sender": np.int32,
            "received_at": np.int64,
            **_VALUES[table],
        }
        parts = self.parts[table]

        def joined(name: str, make: Callable[[Columns], Any]) -> npt.NDArray[Any]:
            if not parts:
                return np.zeros(0, dtype=kinds[name])
            return np.concatenate([make(part) for part in parts])

        def value(name: str) -> Callable[[Columns], Any]:
            return lambda part: part[name] if name in part else np.full(len(part["at"]), np.nan)

        return {name: joined(name, value(name)) for name in kinds}


def _indices(names: Iterable[str], index: dict[str, int]) -> npt.NDArray[np.int64]:
    """The index of each name, new ones added at the end."""
    return np.array([index.setdefault(name, len(index)) for name in names], dtype=np.int64)


def _node_values(brought: Brought) -> dict[str, Any]:
    nodes = brought.nodes
    return {
        "meter": nodes.meter,
        "power_w": nodes.power_w,
        "includes_accelerators": nodes.includes_accelerators,
    }

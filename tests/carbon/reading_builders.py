"""Readings of devices put into the tables as booking does, and their hours closed."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import numpy as np

from carbon.attribution import microsecond_of
from carbon.closing import close_site
from carbon.models import Sender
from carbon.records import DEFAULT_MAX_GAP_S
from carbon.storing import COUNTERS, NODES, POWER, USE, USE_KINDS, open_hours, store
from runs.records import SiteRecord
from runs.services import ensure_devices, ensure_nodes
from tests.carbon.builders import NOW, START

HOUR = timedelta(hours=1)
GAP = timedelta(seconds=DEFAULT_MAX_GAP_S)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def sender(place: SiteRecord, kind: str, name: str = "one") -> int:
    return Sender.objects.get_or_create(
        site_id=place.site_id,
        kind=kind,
        name=name,
        defaults={
            "organisation_id": place.organisation_id,
            "first_seen_at": START,
            "last_seen_at": START,
        },
    )[0].pk


def device(place: SiteRecord, uuid: str = "GPU-0", *, node: str = "", model: str = "") -> int:
    return ensure_devices(place, [(uuid, node, model)])[uuid]


def _store(place, table, device_id, instants, sender_id, **values):
    count = len(instants)
    key = "node_id" if table is NODES else "device_id"
    columns = {
        key: np.full(count, device_id),
        "at": np.array([microsecond_of(one) for one in instants]),
        "sender_id": np.full(count, sender_id),
        **{name: np.array(column) for name, column in values.items()},
    }
    store(table, columns, site=place, received_at=NOW)
    return instants


def _open(place, device_ids, instants):
    open_hours(
        place,
        device_ids,
        microsecond_of(min(instants) - GAP),
        microsecond_of(max(instants) + GAP),
        received_at=NOW,
    )


def counters(
    place: SiteRecord,
    device_id: int,
    rows: Iterable[tuple[float, int, int]],
    *,
    sender_id: int = 0,
) -> None:
    """Readings of a counter: (minutes, millijoule, epoch)."""
    minutes, counter, epoch = zip(*rows, strict=True)
    instants = [at(one) for one in minutes]
    _store(
        place,
        COUNTERS,
        device_id,
        instants,
        sender_id,
        counter_millijoule=counter,
        epoch=epoch,
    )
    _open(place, [device_id], instants)


def power(
    place: SiteRecord,
    device_id: int,
    rows: Iterable[tuple[float, float]],
    *,
    sender_id: int = 0,
) -> None:
    """Readings of power: (minutes, W)."""
    minutes, watts = zip(*rows, strict=True)
    instants = [at(one) for one in minutes]
    _store(place, POWER, device_id, instants, sender_id, power_w=np.array(watts, dtype=np.float64))
    _open(place, [device_id], instants)


def use(place: SiteRecord, device_id: int, rows: Iterable[tuple[float, float]]) -> None:
    """How busy a device was: (minutes, fraction)."""
    minutes, fractions = zip(*rows, strict=True)
    unread = np.full(len(minutes), np.nan)
    measures = dict.fromkeys(USE_KINDS, unread) | {"utilisation_fraction": np.array(fractions)}
    _store(place, USE, device_id, [at(one) for one in minutes], 0, **measures)


def node_power(
    place: SiteRecord,
    name: str,
    rows: Iterable[tuple[float, float]],
    *,
    meter: str = "bmc",
    includes: bool = True,
) -> None:
    """Readings of a node's meter: (minutes, W)."""
    minutes, watts = zip(*rows, strict=True)
    instants = [at(one) for one in minutes]
    _store(
        place,
        NODES,
        ensure_nodes(place, [name])[name],
        instants,
        0,
        meter=np.full(len(watts), ("bmc", "rapl", "pdu").index(meter)),
        power_w=np.array(watts, dtype=np.float64),
        includes_accelerators=np.full(len(watts), int(includes)),
    )
    _open(place, [], instants)


def closed(place: SiteRecord, now: datetime = NOW) -> int:
    return close_site(place, now=now)


def every(minutes: float, *, first: float = 0, last: float = 60) -> list[float]:
    """Instants from first to last, both included, in minutes."""
    return [first + step * minutes for step in range(round((last - first) / minutes) + 1)]


def steady(
    power_w: float, minutes: Iterable[float], *, base: int = 0
) -> list[tuple[float, int, int]]:
    """Readings of a counter that has run at a power since minute 0, in epoch 1."""
    return [(one, base + round(power_w * one * 60_000), 1) for one in minutes]

"""What the page of GPUs now holds: devices, nodes, sites; plain records."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from carbon.records import FactorUsed
from formulae.energy import facility_energy_kwh, it_energy_kwh
from formulae.units import G_PER_KG, WH_PER_KWH

LOAD_BANDS: Final = 5  # shades of a cell, each as wide a share of the power limit


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReading:
    """The newest reading of a device; a stale one is old news, not what is drawn now."""

    device_id: int
    device_uuid: str
    model: str
    node: str
    power_w: float | None
    limit_w: float | None
    power_field: str
    utilisation_fraction: float | None
    temperature_c: float | None
    job: str
    owner: str
    at: datetime
    age_s: float
    is_stale: bool

    @property
    def short_name(self) -> str:
        """The end of the UUID, where devices of a node differ."""
        return self.device_uuid if len(self.device_uuid) <= 16 else f"…{self.device_uuid[-12:]}"

    @property
    def limit_fraction(self) -> float | None:
        if self.power_w is None or not self.limit_w:
            return None
        return self.power_w / self.limit_w

    @property
    def load_band(self) -> str:
        """How deep its cell is shaded: a fifth of the limit each; empty where it is not known."""
        share = self.limit_fraction
        return "" if share is None else str(min(LOAD_BANDS - 1, int(share * LOAD_BANDS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReadings:
    """The devices of a node."""

    name: str
    devices: tuple[DeviceReading, ...]

    @property
    def live(self) -> tuple[DeviceReading, ...]:
        return tuple(one for one in self.devices if not one.is_stale)

    @property
    def stale(self) -> int:
        return len(self.devices) - len(self.live)

    @property
    def power_w(self) -> float | None:
        return power_of(self.devices)

    @property
    def last_at(self) -> datetime:
        """The newest reading of any of its devices."""
        return max(one.at for one in self.devices)

    @property
    def last_power_w(self) -> float | None:
        """What its devices drew when each last reported: old news."""
        known = [one.power_w for one in self.devices if one.power_w is not None]
        return sum(known) if known else None


def power_of(devices: Sequence[DeviceReading]) -> float | None:
    """The power of devices that report now; None where none of them does."""
    known = [one.power_w for one in devices if not one.is_stale and one.power_w is not None]
    return sum(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderHealth:
    """How the senders of a site do."""

    senders: int = 0
    silent: int = 0
    refused: int = 0
    gaps: int = 0
    waiting: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteNow:
    """A site now: its devices, its factors, what follows from them; None where unknown."""

    slug: str
    name: str
    nodes: tuple[NodeReadings, ...]
    stale_after_s: float
    host_factor: FactorUsed | None
    pue: FactorUsed
    grid: FactorUsed | None
    grid_hour: datetime | None  # None: a yearly value
    last_hour: datetime | None  # the last hour on record, where nothing is live
    health: SenderHealth

    @property
    def devices(self) -> tuple[DeviceReading, ...]:
        return tuple(one for node in self.nodes for one in node.devices)

    @property
    def live(self) -> int:
        return sum(len(node.live) for node in self.nodes)

    @property
    def stale(self) -> int:
        return sum(node.stale for node in self.nodes)

    @property
    def power_w(self) -> float | None:
        """At the accelerators."""
        return power_of(self.devices)

    @property
    def it_power_w(self) -> float | None:
        power_w = self.power_w
        if power_w is None or self.host_factor is None:
            return None
        return it_energy_kwh(power_w, self.host_factor.value)  # watts times the same ratio

    @property
    def facility_power_w(self) -> float | None:
        return facility_energy_kwh(self.it_power_w, self.pue.value)

    @property
    def emitted_kgco2e_per_h(self) -> float | None:
        if self.facility_power_w is None or self.grid is None:
            return None
        return self.facility_power_w / WH_PER_KWH * self.grid.value / G_PER_KG

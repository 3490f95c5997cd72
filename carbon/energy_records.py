"""What the pages of energy and carbon hold: rows, tables, a device's hour; plain records."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from formulae.units import G_PER_KG, kwh_from_millijoule


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyRow:
    """Energy and emissions of a group or a sum; None where any part is unknown.

    `entries` counts what was added up: entries of the books, or device-hours.
    """

    key: str
    name: str
    start: datetime | None = None
    measured_millijoule: int
    spread_millijoule: int
    estimated_millijoule: int
    covered_microsecond: int
    expected_microsecond: int | None
    it_energy_kwh: float | None
    facility_energy_kwh: float | None
    scope_2_location_kgco2e: float | None
    scope_2_market_kgco2e: float | None
    entries: int

    @property
    def accelerator_millijoule(self) -> int:
        return self.measured_millijoule + self.spread_millijoule + self.estimated_millijoule

    @property
    def accelerator_energy_kwh(self) -> float:
        return kwh_from_millijoule(self.accelerator_millijoule)

    def energy_kwh(self, boundary: str) -> float | None:
        """Energy at the accelerator, IT or facility boundary."""
        return {
            "accelerator": self.accelerator_energy_kwh,
            "it": self.it_energy_kwh,
            "facility": self.facility_energy_kwh,
        }[boundary]

    def emitted_kgco2e(self, method: str) -> float | None:
        """Emissions, location- or market-based."""
        return {"location": self.scope_2_location_kgco2e, "market": self.scope_2_market_kgco2e}[
            method
        ]

    def intensity_g_per_kwh(self, method: str) -> float | None:
        """Emissions over facility energy; None where either is unknown or nothing was used."""
        emitted_kgco2e = self.emitted_kgco2e(method)
        if emitted_kgco2e is None or not self.facility_energy_kwh:
            return None
        return emitted_kgco2e * G_PER_KG / self.facility_energy_kwh

    @property
    def coverage_fraction(self) -> float | None:
        if not self.expected_microsecond:
            return None
        return min(1.0, self.covered_microsecond / self.expected_microsecond)

    def share(self, quality: str) -> float | None:
        """The share of the energy that was measured, spread or estimated."""
        whole = self.accelerator_millijoule
        return int(getattr(self, f"{quality}_millijoule")) / whole if whole else None

    @property
    def measured_fraction(self) -> float | None:
        return self.share("measured")

    @property
    def spread_fraction(self) -> float | None:
        return self.share("spread")

    @property
    def estimated_fraction(self) -> float | None:
        return self.share("estimated")

    @property
    def badge(self) -> str:
        """How the energy is known, by its worst part that matters."""
        if not self.accelerator_millijoule:
            return "missing" if self.coverage_fraction in (None, 0.0) else "measured"
        return "estimated" if self.estimated_millijoule else "measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyTable:
    """Rows and their total, which is summed apart from them."""

    rows: tuple[EnergyRow, ...]
    total: EnergyRow

    @property
    def adds_up(self) -> bool:
        """Whether the rows sum to the total: energy exactly, factors' products but for rounding."""
        energy = sum(row.accelerator_millijoule for row in self.rows)
        if energy != self.total.accelerator_millijoule:
            return False
        return all(
            _alike(added(row_value(row, name) for row in self.rows), row_value(self.total, name))
            for name in KNOWABLE
        )


KNOWABLE = (
    "it_energy_kwh",
    "facility_energy_kwh",
    "scope_2_location_kgco2e",
    "scope_2_market_kgco2e",
)


def row_value(row: EnergyRow, name: str) -> float | None:
    """A figure of a row by its name."""
    value: float | None = getattr(row, name)
    return value


def added(values: Any) -> float | None:
    """The sum, None where any part is unknown."""
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _alike(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other or not (one or other)
    return abs(one - other) <= 1e-9 * max(abs(one), abs(other), 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorLine:
    """A factor that an entry was made with, and who approved it."""

    document: Mapping[str, Any]
    kind_name: str
    level_name: str
    approved_by: str = ""
    approved_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingLine:
    """A reading or a piece of energy between two: what it says, and who brought it."""

    kind: str  # counter, interval, power
    start: datetime
    end: datetime | None
    value: float | int
    sender_id: int
    received_at: datetime
    energy_millijoule: int | None = None  # of the piece that begins here, inside the hour
    epoch: int = 0

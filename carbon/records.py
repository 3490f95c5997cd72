"""What other rooms may hold of power, energy and emissions: plain records, no Django."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from typing import Any
from uuid import UUID

HOST_FACTOR_OFFER = 1.5
HOST_FACTOR_OFFER_RANGE = (1.3, 1.8)
PUE_NOT_SET = 1.0
DEFAULT_MAX_GAP_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GridFactor:
    """A yearly grid factor of one zone."""

    factor_id: str
    zone_type: str
    zone: str
    zone_name: str
    year: int
    value_g_per_kwh: float
    gas_scope: str
    method: str
    source: str
    licence: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedFactor:
    """A site's own factor from a day on."""

    factor_id: str
    kind: str
    value: float
    valid_from: date
    tier: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorUsed:
    """A factor as an answer names it; `level` says how near to the site it was found."""

    factor_id: str
    kind: str
    value: float
    unit: str
    year: int | None
    source: str
    level: str
    basis: str = ""
    version: str = ""

    def as_json(self) -> dict[str, Any]:
        """The object that reports and commands print."""
        return {
            "id": self.factor_id,
            "kind": self.kind,
            "value": self.value,
            "unit": self.unit,
            "year": self.year,
            "source": self.source,
            "level": self.level,
            "basis": self.basis,
            "version": self.version,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorsUsed:
    """All factors of one hour; those that are unknown, or do not apply, are None."""

    host_factor: FactorUsed | None
    pue: FactorUsed
    grid: FactorUsed | None
    upstream: FactorUsed | None = None  # fuel and losses upstream of the grid's plants
    residual: FactorUsed | None = None  # of the market zone: energy outside contracts
    wue: FactorUsed | None = None
    source_water: FactorUsed | None = None
    embodied: FactorUsed | None = None

    @property
    def named(self) -> tuple[FactorUsed, ...]:
        """Those that are known."""
        every = (
            self.host_factor,
            self.pue,
            self.grid,
            self.upstream,
            self.residual,
            self.wue,
            self.source_water,
            self.embodied,
        )
        return tuple(one for one in every if one is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerReport:
    """What became of a delivery; `rows` is all rows read, rejected and duplicates among them."""

    site: str
    rows: int
    rejected: int
    duplicates: int
    devices: int
    accelerator_energy_kwh: float | None
    reasons: Mapping[str, int] = field(default_factory=dict)
    unknown_columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The document of `import_power --json`."""
        return {
            "site": self.site,
            "rows": self.rows,
            "rejected": self.rejected,
            "duplicates": self.duplicates,
            "devices": self.devices,
            "accelerator_energy_kwh": self.accelerator_energy_kwh,
            "reasons": dict(self.reasons),
            "unknown_columns": list(self.unknown_columns),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyDay:
    """Energy of one UTC day at the three boundaries; None where a factor is unknown."""

    day: date
    accelerator_energy_kwh: float
    it_energy_kwh: float | None
    facility_energy_kwh: float | None
    coverage_fraction: float | None
    measured_fraction: float | None
    spread_fraction: float | None
    estimated_fraction: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmissionDay:
    """Emissions of one UTC day; None where a factor is unknown."""

    day: date
    facility_energy_kwh: float | None
    scope_2_location_kgco2e: float | None
    scope_2_market_kgco2e: float | None
    coverage_fraction: float | None
    scope_2_market_hourly_kgco2e: float | None = None
    upstream_kgco2e: float | None = None
    embodied_kgco2e: float | None = None
    water_on_site_l: float | None = None
    water_source_l: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeSum:
    """Energy and emissions of one category of the GHG Protocol; None where a part is unknown.

    `overhead_energy_kwh` is cooling and losses of a rented hall, whose place follows its contract.
    """

    scope_category: str
    facility_energy_kwh: float | None
    location_kgco2e: float | None
    upstream_kgco2e: float | None
    embodied_kgco2e: float | None
    overhead_energy_kwh: float | None = None

    def as_json(self) -> dict[str, Any]:
        """The object that reports and commands print."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmissionSummary:
    """The document of `manage.py emissions --json`."""

    start_on: date | None
    end_on: date | None
    accelerator_energy_kwh: float | None
    it_energy_kwh: float | None
    facility_energy_kwh: float | None
    scope_2_location_kgco2e: float | None
    scope_2_market_kgco2e: float | None
    market_basis: tuple[str, ...]
    coverage_fraction: float | None
    measured_fraction: float | None
    spread_fraction: float | None
    estimated_fraction: float | None
    factors: tuple[FactorUsed, ...]
    embodied_kgco2e: float | None = None
    water_l: float | None = None
    water_on_site_l: float | None = None
    water_source_l: float | None = None
    scope_2_market_hourly_kgco2e: float | None = None
    contracted_kwh: float | None = None
    contracted_hourly_kwh: float | None = None
    upstream_kgco2e: float | None = None
    scopes: tuple[ScopeSum, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The JSON shape; `to` is the first day that is out."""
        return {
            "from": self.start_on.isoformat() if self.start_on else None,
            "to": self.end_on.isoformat() if self.end_on else None,
            "accelerator_energy_kwh": self.accelerator_energy_kwh,
            "it_energy_kwh": self.it_energy_kwh,
            "facility_energy_kwh": self.facility_energy_kwh,
            "scope_2_location_kgco2e": self.scope_2_location_kgco2e,
            "scope_2_market_kgco2e": self.scope_2_market_kgco2e,
            "scope_2_market_hourly_kgco2e": self.scope_2_market_hourly_kgco2e,
            "market_basis": list(self.market_basis),
            "contracted_kwh": self.contracted_kwh,
            "contracted_hourly_kwh": self.contracted_hourly_kwh,
            "upstream_kgco2e": self.upstream_kgco2e,
            "embodied_kgco2e": self.embodied_kgco2e,
            "water_l": self.water_l,
            "water_on_site_l": self.water_on_site_l,
            "water_source_l": self.water_source_l,
            "scopes": [scope.as_json() for scope in self.scopes],
            "coverage_fraction": self.coverage_fraction,
            "measured_fraction": self.measured_fraction,
            "spread_fraction": self.spread_fraction,
            "estimated_fraction": self.estimated_fraction,
            "factors": [factor.as_json() for factor in self.factors],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRecord:
    """One line of the intake's history."""

    delivery_id: UUID
    site_slug: str
    kind: str
    name: str
    rows: int
    rejected: int
    duplicates: int
    reasons: Mapping[str, int]
    received_at: datetime
    received_by: str
    job_id: UUID | None

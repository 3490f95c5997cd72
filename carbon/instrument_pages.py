"""What the pages of instruments show: each market and year with its contracts. Reads only."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Sum
from django.db.models.functions import ExtractYear
from django.utils.translation import gettext as _

from carbon.attribution import instant_of
from carbon.entry_queries import current_entries
from carbon.instrument_reads import Contract, contracts_of, year_bounds
from carbon.market_selectors import (
    ContractUse,
    MatchedYear,
    ZoneYear,
    added_up,
    market_by_day,
    matched_years,
)
from carbon.models import Instrument
from carbon.records import FactorUsed
from carbon.residual_mixes import mixes_of, residual_used


@dataclass(frozen=True, slots=True, kw_only=True)
class UseRow:
    """A contract in one year: what it has, what of it is used, why it may not count."""

    contract: Contract
    available_kwh: float | None
    used_kwh: float
    used_hourly_kwh: float
    surplus_kwh: float | None
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketYear:
    """A market zone in a calendar year: its energy, what is covered, what that emits."""

    market_zone: str
    year: int
    has_entries: bool
    energy_kwh: float | None
    location_kgco2e: float | None
    annual_kgco2e: float | None
    hourly_kgco2e: float | None
    contracted_kwh: float
    contracted_hourly_kwh: float
    residual: FactorUsed | None
    uses: tuple[UseRow, ...]

    @property
    def covered_fraction(self) -> float | None:
        """Share of the energy that contracts cover over the year."""
        return self.contracted_kwh / self.energy_kwh if self.energy_kwh else None

    @property
    def covered_hourly_fraction(self) -> float | None:
        """Share of the energy that contracts cover in its own hours."""
        return self.contracted_hourly_kwh / self.energy_kwh if self.energy_kwh else None


def kind_words(kind: str) -> str:
    """A kind of instrument, for people."""
    return {
        Instrument.Kind.CERTIFICATE.value: _("certificate"),
        Instrument.Kind.PPA.value: _("PPA"),
        Instrument.Kind.SUPPLIER.value: _("supplier's rate"),
    }.get(kind, kind)


def market_years(organisation_id: UUID) -> list[MarketYear]:
    """Markets and years that have energy or contracts, the newest year first."""
    energy = _energy(organisation_id)
    years = matched_years(organisation_id)
    held: dict[ZoneYear, list[Contract]] = defaultdict(list)
    for one in contracts_of(organisation_id):
        for year in one.years:
            held[one.market_zone, year].append(one)
    mixes = mixes_of(organisation_id)
    return [
        _market_year(
            organisation_id,
            key,
            sums=energy.get(key, {}),
            matched=years.get(key),
            contracts=held.get(key, ()),
            residual=residual_used(mixes, *key),
        )
        for key in sorted({*energy, *held}, key=lambda key: (-key[1], key[0]))
    ]


def _energy(organisation_id: UUID) -> dict[ZoneYear, Mapping[str, Any]]:
    """Energy and location-based emissions by market zone and calendar year."""
    rows = current_entries().filter(organisation_id=organisation_id).exclude(market_zone="")
    by_year = rows.annotate(year=ExtractYear("hour", tzinfo=UTC)).values("market_zone", "year")
    sums = by_year.annotate(
        count=Count("pk"),
        counted=Count("facility_energy_kwh"),
        kwh=Sum("facility_energy_kwh"),
        located=Count("scope_2_location_kgco2e"),
        kg=Sum("scope_2_location_kgco2e"),
    )
    return {(row["market_zone"], row["year"]): row for row in sums}


def _market_year(  # noqa: PLR0913  # what a year is put together from
    organisation_id: UUID,
    key: ZoneYear,
    *,
    sums: Mapping[str, Any],
    matched: MatchedYear | None,
    contracts: Sequence[Contract],
    residual: FactorUsed | None,
) -> MarketYear:
    market_zone, year = key
    low, high = (instant_of(at) for at in year_bounds(year))
    rows = current_entries().filter(
        organisation_id=organisation_id, market_zone=market_zone, hour__gte=low, hour__lt=high
    )
    years = {key: matched} if matched else {}
    whole = added_up(market_by_day(organisation_id, rows, years=years).values()) if sums else None
    uses = {use.contract.instrument_id: use for use in matched.uses} if matched else {}
    is_counted = bool(sums) and sums["counted"] == sums["count"]
    return MarketYear(
        market_zone=market_zone,
        year=year,
        has_entries=bool(sums),
        energy_kwh=sums["kwh"] if is_counted else None,
        location_kgco2e=sums["kg"] if sums and sums["located"] == sums["count"] else None,
        annual_kgco2e=whole.annual_kgco2e if whole else None,
        hourly_kgco2e=whole.hourly_kgco2e if whole else None,
        contracted_kwh=whole.contracted_kwh if whole else 0.0,
        contracted_hourly_kwh=whole.contracted_hourly_kwh if whole else 0.0,
        residual=residual,
        uses=tuple(_use_row(one, uses.get(one.instrument_id)) for one in contracts),
    )


def _use_row(contract: Contract, use: ContractUse | None) -> UseRow:
    return UseRow(
        contract=contract,
        available_kwh=use.available_kwh if use else contract.energy_kwh,
        used_kwh=use.used_kwh if use else 0.0,
        used_hourly_kwh=use.used_hourly_kwh if use else 0.0,
        surplus_kwh=use.surplus_kwh if use else None,
        kind=kind_words(contract.kind),
    )


def contract_of(organisation_id: UUID, instrument_id: UUID) -> Contract | None:
    """An instrument that holds; None where there is none of this id."""
    every = contracts_of(organisation_id)
    return next((one for one in every if one.instrument_id == instrument_id), None)


def uses_of(organisation_id: UUID, contract: Contract) -> list[tuple[int, UseRow]]:
    """A contract by calendar year."""
    wanted = [(contract.market_zone, year) for year in contract.years]
    years = matched_years(organisation_id, only=wanted)
    found = []
    for key in wanted:
        uses = years[key].uses if key in years else ()
        mine = (one for one in uses if one.contract.instrument_id == contract.instrument_id)
        found.append((key[1], _use_row(contract, next(mine, None))))
    return found


def last_day(end: datetime) -> Any:
    """The last UTC day of a period whose end is exclusive."""
    return instant_of(_microsecond(end) - 1).date()


def _microsecond(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000)

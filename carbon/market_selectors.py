"""Market-based emissions: contracts matched to a market's energy, annually and by the hour."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Final
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import TruncDate

from carbon.attribution import instant_of, microsecond_of
from carbon.entry_queries import current_entries
from carbon.instrument_reads import Contract, contracts_of, in_year, year_bounds, zone_years
from carbon.metering import HOUR_MICROSECOND
from carbon.models import EmissionEntry
from formulae.matching import Matching, market_share_kgco2e, match_annually, match_hourly

ZoneYear = tuple[str, int]
ROUNDING: Final = 1e-12  # what adding up hours may lose of a contract's energy


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractUse:
    """How much of a contract covers energy of a year; what is left over counts for nothing."""

    contract: Contract
    available_kwh: float | None
    used_kwh: float
    used_hourly_kwh: float

    @property
    def surplus_kwh(self) -> float | None:
        """Energy that the contract has and nobody used, matched over the year."""
        if self.available_kwh is None:
            return None
        left_kwh = self.available_kwh - self.used_kwh
        return left_kwh if left_kwh > ROUNDING * self.available_kwh else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedYear:
    """Contracts of one market zone against its energy of one calendar year."""

    market_zone: str
    year: int
    energy_kwh: Sequence[float]
    annual: Matching
    hourly: Matching
    uses: tuple[ContractUse, ...]

    def place(self, hour: int) -> int:
        """The position of an hour (microseconds) in the year."""
        return (hour - year_bounds(self.year)[0]) // HOUR_MICROSECOND


@dataclass(slots=True, kw_only=True)
class MarketSum:
    """Market-based emissions added up; None once a part is unknown."""

    annual_kgco2e: float | None = 0.0
    hourly_kgco2e: float | None = 0.0
    contracted_kwh: float = 0.0
    contracted_hourly_kwh: float = 0.0
    bases: set[str] = field(default_factory=set)

    def add(self, other: "MarketSum") -> None:
        """Take in another sum."""
        self.annual_kgco2e = _plus(self.annual_kgco2e, other.annual_kgco2e)
        self.hourly_kgco2e = _plus(self.hourly_kgco2e, other.hourly_kgco2e)
        self.contracted_kwh += other.contracted_kwh
        self.contracted_hourly_kwh += other.contracted_hourly_kwh
        self.bases |= other.bases


def _plus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def matched_years(
    organisation_id: UUID, *, as_of: datetime | None = None, only: Iterable[ZoneYear] | None = None
) -> dict[ZoneYear, MatchedYear]:
    """Every market zone and year that has contracts, matched over all energy in it."""
    contracts = zone_years(contracts_of(organisation_id, as_of=as_of))
    wanted = contracts if only is None else set(only) & contracts.keys()
    return {
        key: _matched_year(organisation_id, key, contracts[key], as_of=as_of)
        for key in sorted(wanted)
    }


def _matched_year(
    organisation_id: UUID, key: ZoneYear, contracts: Sequence[Contract], *, as_of: datetime | None
) -> MatchedYear:
    market_zone, year = key
    low, high = year_bounds(year)
    energy_kwh = [0.0] * ((high - low) // HOUR_MICROSECOND)
    rows = current_entries(as_of).filter(
        organisation_id=organisation_id,
        market_zone=market_zone,
        hour__gte=instant_of(low),
        hour__lt=instant_of(high),
        facility_energy_kwh__isnull=False,
    )
    hours = rows.values("hour").annotate(energy_kwh=Sum("facility_energy_kwh"))
    for hour, energy in hours.values_list("hour", "energy_kwh"):
        energy_kwh[(microsecond_of(hour) - low) // HOUR_MICROSECOND] = max(0.0, energy)
    instruments = [in_year(one, year) for one in contracts]
    annual = match_annually(energy_kwh, instruments)
    hourly = match_hourly(energy_kwh, instruments)
    uses = zip(contracts, instruments, annual.used_kwh, hourly.used_kwh, strict=True)
    return MatchedYear(
        market_zone=market_zone,
        year=year,
        energy_kwh=energy_kwh,
        annual=annual,
        hourly=hourly,
        uses=tuple(
            ContractUse(
                contract=contract,
                available_kwh=instrument.energy_kwh,
                used_kwh=used_kwh,
                used_hourly_kwh=used_hourly_kwh,
            )
            for contract, instrument, used_kwh, used_hourly_kwh in uses
        ),
    )


def market_by_day(
    organisation_id: UUID,
    entries: QuerySet[EmissionEntry],
    *,
    as_of: datetime | None = None,
    years: Mapping[ZoneYear, MatchedYear] | None = None,
) -> dict[date, MarketSum]:
    """Market-based emissions of these entries by UTC day, contracts taken into account.

    Contracts cover a market's energy whoever used it, so the sums of all projects are that of the
    organisation. `years` saves matching them again.
    """
    years = matched_years(organisation_id, as_of=as_of) if years is None else years
    matched = Q(pk__in=[])
    for zone, year in years:
        low, high = year_bounds(year)
        matched |= Q(market_zone=zone, hour__gte=instant_of(low), hour__lt=instant_of(high))
    found = _uncontracted(entries.exclude(matched) if years else entries)
    if years:
        for day, each in _contracted(entries.filter(matched), years):
            found.setdefault(day, MarketSum()).add(each)
    return found


def _uncontracted(entries: QuerySet[EmissionEntry]) -> dict[date, MarketSum]:
    """Entries that no contract may cover, as they stand."""
    rows = entries.annotate(day=TruncDate("hour", tzinfo=UTC)).values("day", "market_basis")
    found: dict[date, MarketSum] = {}
    for row in rows.annotate(
        count=Count("pk"), known=Count("scope_2_market_kgco2e"), kg=Sum("scope_2_market_kgco2e")
    ):
        kgco2e = float(row["kg"]) if row["known"] == row["count"] else None
        basis = {row["market_basis"]} - {""}
        each = MarketSum(annual_kgco2e=kgco2e, hourly_kgco2e=kgco2e, bases=basis)
        found.setdefault(row["day"], MarketSum()).add(each)
    return found


def _contracted(
    entries: QuerySet[EmissionEntry], years: Mapping[ZoneYear, MatchedYear]
) -> Iterable[tuple[date, MarketSum]]:
    """Entries of markets with contracts, each hour with its share of what they cover."""
    kinds = {
        key: [use.contract.kind for use in year.uses if use.used_kwh] for key, year in years.items()
    }
    rows = entries.values("market_zone", "hour", basis=F("market_basis")).annotate(
        count=Count("pk"),
        known=Count("scope_2_market_kgco2e"),
        kg=Sum("scope_2_market_kgco2e"),
        counted=Count("facility_energy_kwh"),
        kwh=Sum("facility_energy_kwh"),
    )
    for row in rows:
        hour = row["hour"].astimezone(UTC)
        key = (row["market_zone"], hour.year)
        yield hour.date(), share_of_hour(row, years[key], kinds[key])


def share_of_hour(row: Mapping[str, object], year: MatchedYear, kinds: Iterable[str]) -> MarketSum:
    """One hour of some owners: their share of the market's hour."""
    hour, energy_kwh = row["hour"], row["kwh"]
    if row["counted"] != row["count"] or not isinstance(energy_kwh, float):
        return MarketSum(annual_kgco2e=None, hourly_kgco2e=None)
    uncontracted = row["kg"] if row["known"] == row["count"] else None
    place = year.place(microsecond_of(hour)) if isinstance(hour, datetime) else 0
    whole_kwh = year.energy_kwh[place]

    def of(matching: Matching) -> float | None:
        return market_share_kgco2e(
            energy_kwh=energy_kwh,
            uncontracted_kgco2e=uncontracted if isinstance(uncontracted, float) else None,
            market_energy_kwh=whole_kwh,
            covered_kwh=min(whole_kwh, matching.covered_kwh[place]),
            covered_kgco2e=matching.covered_kgco2e[place],
        )

    share = energy_kwh / whole_kwh if whole_kwh else 0.0
    covered_kwh = year.annual.covered_kwh[place]
    bases = set(kinds) if covered_kwh else set()
    if covered_kwh < whole_kwh or not whole_kwh:
        bases |= {str(row["basis"])} - {""}
    return MarketSum(
        annual_kgco2e=of(year.annual),
        hourly_kgco2e=of(year.hourly),
        contracted_kwh=covered_kwh * share,
        contracted_hourly_kwh=year.hourly.covered_kwh[place] * share,
        bases=bases,
    )


def added_up(days: Iterable[MarketSum]) -> MarketSum | None:
    """The sum of days; None of none."""
    whole: MarketSum | None = None
    for one in days:
        if whole is None:
            whole = MarketSum()
        whole.add(one)
    return whole

"""Contracts and certificates as the books know them, now or as of an instant. Reads only."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from carbon.attribution import microsecond_of
from carbon.metering import HOUR_MICROSECOND
from carbon.models import Instrument, InstrumentHour
from formulae.matching import HourlyInstrument

# GHG Protocol Scope 2 Guidance, table 6.3: the most precise comes first.
HIERARCHY: Final = (
    Instrument.Kind.CERTIFICATE.value,
    Instrument.Kind.PPA.value,
    Instrument.Kind.SUPPLIER.value,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """An instrument that somebody entered; `energy_kwh` None: all energy (a supplier's rate)."""

    instrument_id: UUID
    kind: str
    name: str
    market_zone: str
    start: datetime
    end: datetime
    energy_kwh: float | None
    g_per_kwh: float
    registry: str
    serials: str
    retired_on: date | None
    evidence_name: str
    evidence_sha256: str
    entered_by: str
    has_hours: bool
    is_retired: bool  # by the day (UTC) that was asked about

    @property
    def is_eligible(self) -> bool:
        """Whether it may cover energy: a certificate counts once it is retired."""
        return self.kind != HIERARCHY[0] or self.is_retired

    @property
    def years(self) -> range:
        """The calendar years (UTC) that it is valid in."""
        last = self.end.astimezone(UTC)
        ends_with_year = (last.month, last.day, last.hour) == (1, 1, 0)
        return range(self.start.astimezone(UTC).year, last.year + (0 if ends_with_year else 1))


def contracts_of(
    organisation_id: UUID, *, market_zone: str | None = None, as_of: datetime | None = None
) -> list[Contract]:
    """The instruments that hold, in the order in which they cover energy."""
    rows = Instrument.objects.filter(organisation_id=organisation_id)
    if market_zone is not None:
        rows = rows.filter(market_zone=market_zone)
    if as_of is None:
        rows = rows.filter(superseded_at__isnull=True)
    else:
        rows = rows.filter(known_at__lte=as_of)
        rows = rows.filter(Q(superseded_at__isnull=True) | Q(superseded_at__gt=as_of))
    found = list(rows.order_by("start", "known_at", "pk"))
    ids = [row.pk for row in found]
    with_hours = set(
        InstrumentHour.objects.filter(instrument_id__in=ids)
        .values_list("instrument_id", flat=True)
        .distinct()
        if ids
        else ()
    )
    today = (as_of or timezone.now()).astimezone(UTC).date()
    made = [_contract(row, has_hours=row.pk in with_hours, today=today) for row in found]
    return sorted(made, key=lambda one: HIERARCHY.index(one.kind))


def _contract(row: Instrument, *, has_hours: bool, today: date) -> Contract:
    return Contract(
        instrument_id=row.pk,
        kind=row.kind,
        name=row.name,
        market_zone=row.market_zone,
        start=row.start,
        end=row.end,
        energy_kwh=row.energy_kwh,
        g_per_kwh=row.g_per_kwh,
        registry=row.registry,
        serials=row.serials,
        retired_on=row.retired_on,
        evidence_name=row.evidence_name,
        evidence_sha256=row.evidence_sha256,
        entered_by=row.entered_by,
        has_hours=has_hours,
        is_retired=row.retired_on is not None and row.retired_on <= today,
    )


def year_bounds(year: int) -> tuple[int, int]:
    """The first microsecond of a calendar year (UTC), and of the next."""
    return (
        microsecond_of(datetime(year, 1, 1, tzinfo=UTC)),
        microsecond_of(datetime(year + 1, 1, 1, tzinfo=UTC)),
    )


def in_year(contract: Contract, year: int) -> HourlyInstrument:
    """What a contract can cover in a calendar year, by the hours of that year.

    Energy that is not known by the hour is spread evenly over the hours of its validity, so a
    contract over several years brings each year its share. Of older rows that begin or end within
    an hour only the hours wholly inside are covered: energy is known by the hour.
    """
    low, high = year_bounds(year)
    start, end = microsecond_of(contract.start), microsecond_of(contract.end)
    first = -(-max(start, low) // HOUR_MICROSECOND)
    last = max(first, min(end, high) // HOUR_MICROSECOND)
    hourly = _hours_of(contract, first=first, last=last) if contract.has_hours else None
    energy_kwh = contract.energy_kwh
    if hourly is not None:
        energy_kwh = sum(hourly)
    elif energy_kwh is not None:
        energy_kwh = energy_kwh * (last - first) / ((end - start) / HOUR_MICROSECOND)
    return HourlyInstrument(
        g_per_kwh=contract.g_per_kwh,
        first=first - low // HOUR_MICROSECOND,
        last=last - low // HOUR_MICROSECOND,
        energy_kwh=energy_kwh,
        hourly_kwh=hourly,
    )


def _hours_of(contract: Contract, *, first: int, last: int) -> tuple[float, ...]:
    """Delivery of each hour; an hour that the profile leaves out delivers nothing."""
    hours = [0.0] * (last - first)
    rows = InstrumentHour.objects.filter(instrument_id=contract.instrument_id)
    for hour, energy_kwh in rows.values_list("hour", "energy_kwh"):
        place = microsecond_of(hour) // HOUR_MICROSECOND - first
        if 0 <= place < len(hours):
            hours[place] += energy_kwh
    return tuple(hours)


def zone_years(contracts: Iterable[Contract]) -> dict[tuple[str, int], list[Contract]]:
    """Eligible contracts by market zone and calendar year, in the order of the hierarchy."""
    found: dict[tuple[str, int], list[Contract]] = {}
    for one in contracts:
        if one.is_eligible:
            for year in one.years:
                found.setdefault((one.market_zone, year), []).append(one)
    return found

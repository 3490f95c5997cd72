"""Reads of energy and emissions, by day and in sum, as known now or then; intake."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from carbon.boundaries import SCOPE_2_COLOCATION
from carbon.entry_queries import current_entries, entries_between
from carbon.factors_named import factors_named
from carbon.market_selectors import MarketSum, added_up, market_by_day
from carbon.models import (
    EmissionEntry,
    OpenHours,
    PowerDelivery,
    QuarantinedPower,
)
from carbon.records import (
    DeliveryRecord,
    EmissionDay,
    EmissionSummary,
    EnergyDay,
    ScopeSum,
)
from formulae.emissions import WaterUse
from formulae.units import kwh_from_millijoule

__all__ = [
    "current_entries",
    "deliveries",
    "emissions_by_day",
    "emissions_summary",
    "energy_by_day",
    "quarantine_by_reason",
    "sites_with_open_hours",
]
UNKNOWABLE = (
    "it_energy_kwh",
    "facility_energy_kwh",
    "scope_2_location_kgco2e",
    "upstream_kgco2e",
    "embodied_kgco2e",
    "water_on_site_l",
    "water_source_l",
)
_SUMS = {
    "energy": Sum("accelerator_energy_millijoule"),
    "measured": Sum("measured_millijoule"),
    "spread": Sum("spread_millijoule"),
    "estimated": Sum("estimated_millijoule"),
    "covered": Sum("covered_microsecond"),
    "expected": Sum("expected_microsecond"),
    "entries": Count("pk"),
    **{f"sum_{name}": Sum(name) for name in UNKNOWABLE},
    **{f"known_{name}": Count(name) for name in UNKNOWABLE},
}

_SEEN = Q(covered_microsecond__gt=0)


def _known(row: Mapping[str, Any], name: str) -> float | None:
    """A sum, None when it misses any part: a partial sum would look like the whole."""
    if not row["entries"] or row[f"known_{name}"] < row["entries"]:
        return None
    return float(row[f"sum_{name}"])


def _share(row: Mapping[str, Any], name: str) -> float | None:
    return int(row[name]) / int(row["energy"]) if row["energy"] else None


def _coverage(row: Mapping[str, Any]) -> float | None:
    return min(1.0, int(row["covered"]) / int(row["expected"])) if row["expected"] else None


def _by_day(entries: QuerySet[EmissionEntry]) -> list[dict[str, Any]]:
    days = entries.annotate(day=TruncDate("hour", tzinfo=UTC)).values("day")
    return [dict(row) for row in days.annotate(**_SUMS).order_by("day")]


def energy_by_day(  # noqa: PLR0913 - the contract with other rooms
    organisation_id: UUID,
    project_id: UUID | None,
    *,
    site_id: UUID | None = None,
    start_on: date | None = None,
    end_on: date | None = None,
    as_of: datetime | None = None,
) -> list[EnergyDay]:
    """Energy of each UTC day in [start_on, end_on) that has entries.

    Without a project, of the whole organisation or site, what no project used included.
    """
    entries = entries_between(
        organisation_id,
        project_id,
        site_id=site_id,
        start_on=start_on,
        end_on=end_on,
        as_of=as_of,
    )
    return [
        EnergyDay(
            day=row["day"],
            accelerator_energy_kwh=kwh_from_millijoule(int(row["energy"])),
            it_energy_kwh=_known(row, "it_energy_kwh"),
            facility_energy_kwh=_known(row, "facility_energy_kwh"),
            coverage_fraction=_coverage(row),
            measured_fraction=_share(row, "measured"),
            spread_fraction=_share(row, "spread"),
            estimated_fraction=_share(row, "estimated"),
        )
        for row in _by_day(entries)
    ]


def emissions_by_day(  # noqa: PLR0913 - the contract with other rooms
    organisation_id: UUID,
    project_id: UUID | None,
    *,
    site_id: UUID | None = None,
    start_on: date | None = None,
    end_on: date | None = None,
    as_of: datetime | None = None,
) -> list[EmissionDay]:
    """Emissions of each UTC day in [start_on, end_on) that has entries."""
    entries = entries_between(
        organisation_id,
        project_id,
        site_id=site_id,
        start_on=start_on,
        end_on=end_on,
        as_of=as_of,
    )
    market = market_by_day(organisation_id, entries, as_of=as_of)
    return [
        EmissionDay(
            day=row["day"],
            facility_energy_kwh=_known(row, "facility_energy_kwh"),
            scope_2_location_kgco2e=_known(row, "scope_2_location_kgco2e"),
            scope_2_market_kgco2e=market.get(row["day"], MarketSum()).annual_kgco2e,
            scope_2_market_hourly_kgco2e=market.get(row["day"], MarketSum()).hourly_kgco2e,
            coverage_fraction=_coverage(row),
            upstream_kgco2e=_known(row, "upstream_kgco2e"),
            embodied_kgco2e=_known(row, "embodied_kgco2e"),
            water_on_site_l=_known(row, "water_on_site_l"),
            water_source_l=_known(row, "water_source_l"),
        )
        for row in _by_day(entries)
    ]


def emissions_summary(  # noqa: PLR0913 - the contract with other rooms
    organisation_id: UUID,
    project_id: UUID | None,
    *,
    site_id: UUID | None = None,
    start_on: date | None = None,
    end_on: date | None = None,
    as_of: datetime | None = None,
) -> EmissionSummary:
    """Energy and emissions in sum, with every factor in them; unknown is None."""
    entries = entries_between(
        organisation_id,
        project_id,
        site_id=site_id,
        start_on=start_on,
        end_on=end_on,
        as_of=as_of,
    )
    row = entries.aggregate(
        **_SUMS, first=Min("hour", filter=_SEEN), last=Max("hour", filter=_SEEN)
    )
    market = added_up(market_by_day(organisation_id, entries, as_of=as_of).values())
    return EmissionSummary(
        start_on=start_on or _day(row["first"]),
        end_on=end_on or _day(row["last"], after=1),
        accelerator_energy_kwh=kwh_from_millijoule(int(row["energy"])) if row["entries"] else None,
        it_energy_kwh=_known(row, "it_energy_kwh"),
        facility_energy_kwh=_known(row, "facility_energy_kwh"),
        scope_2_location_kgco2e=_known(row, "scope_2_location_kgco2e"),
        scope_2_market_kgco2e=market.annual_kgco2e if market else None,
        scope_2_market_hourly_kgco2e=market.hourly_kgco2e if market else None,
        contracted_kwh=market.contracted_kwh if market else None,
        contracted_hourly_kwh=market.contracted_hourly_kwh if market else None,
        market_basis=tuple(sorted(market.bases)) if market else (),
        coverage_fraction=_coverage(row),
        measured_fraction=_share(row, "measured"),
        spread_fraction=_share(row, "spread"),
        estimated_fraction=_share(row, "estimated"),
        factors=factors_named(entries),
        upstream_kgco2e=_known(row, "upstream_kgco2e"),
        embodied_kgco2e=_known(row, "embodied_kgco2e"),
        water_on_site_l=_known(row, "water_on_site_l"),
        water_source_l=_known(row, "water_source_l"),
        water_l=_water_l(row),
        scopes=_scopes(entries),
    )


def _water_l(row: Mapping[str, Any]) -> float | None:
    """Water on site and of power plants together; None where either is unknown."""
    on_site_l, source_l = (_known(row, name) for name in ("water_on_site_l", "water_source_l"))
    return WaterUse(on_site_l=on_site_l, source_l=source_l).total_l


def _day(hour: datetime | None, *, after: int = 0) -> date | None:
    return None if hour is None else hour.astimezone(UTC).date() + timedelta(days=after)


def _scopes(entries: QuerySet[EmissionEntry]) -> tuple[ScopeSum, ...]:
    """Energy and emissions by the scope that each site's boundary puts them into."""
    rows = entries.values("scope_category").annotate(**_SUMS).order_by("scope_category")
    return tuple(
        ScopeSum(
            scope_category=row["scope_category"],
            facility_energy_kwh=_known(row, "facility_energy_kwh"),
            location_kgco2e=_known(row, "scope_2_location_kgco2e"),
            upstream_kgco2e=_known(row, "upstream_kgco2e"),
            embodied_kgco2e=_known(row, "embodied_kgco2e"),
            overhead_energy_kwh=_overhead_kwh(row),
        )
        for row in rows
    )


def _overhead_kwh(row: Mapping[str, Any]) -> float | None:
    """Cooling and losses of a rented hall; None elsewhere, and where unknown."""
    facility_kwh, it_kwh = (_known(row, name) for name in ("facility_energy_kwh", "it_energy_kwh"))
    is_rented = row["scope_category"] == SCOPE_2_COLOCATION
    if not is_rented or facility_kwh is None or it_kwh is None:
        return None
    return facility_kwh - it_kwh


def deliveries(
    organisation_id: UUID, *, site_id: UUID | None = None, limit: int = 50
) -> list[DeliveryRecord]:
    """What has come in lately, newest first."""
    found = PowerDelivery.objects.filter(organisation_id=organisation_id).select_related("site")
    if site_id is not None:
        found = found.filter(site_id=site_id)
    return [
        DeliveryRecord(
            delivery_id=row.pk,
            site_slug=row.site.slug,
            kind=row.kind,
            name=row.name,
            rows=row.rows,
            rejected=row.rejected,
            duplicates=row.duplicates,
            reasons=row.reasons,
            received_at=row.received_at,
            received_by=row.received_by,
            job_id=row.job_id,
        )
        for row in found[:limit]
    ]


def quarantine_by_reason(site_id: UUID) -> dict[str, int]:
    """How many readings of a site are set aside, by reason."""
    rows = (
        QuarantinedPower.objects.filter(site_id=site_id).values("reason").annotate(rows=Count("pk"))
    )
    return {row["reason"]: row["rows"] for row in rows.order_by("reason")}


def sites_with_open_hours(now: datetime | None = None) -> dict[UUID, UUID]:
    """Sites (with their organisation) that have hours which are over and not closed."""
    hour = (now or timezone.now()).replace(minute=0, second=0, microsecond=0)
    marks = OpenHours.objects.filter(start__lt=hour).values_list("site_id", "organisation_id")
    return dict(marks.distinct())

"""Reads of energy and emissions, by day and in sum, as known now or then; intake."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from carbon.models import (
    EmissionEntry,
    FactorSet,
    OpenHours,
    PowerDelivery,
    QuarantinedPower,
)
from carbon.records import (
    DeliveryRecord,
    EmissionDay,
    EmissionSummary,
    EnergyDay,
    FactorUsed,
)
from formulae.units import kwh_from_millijoule

UNKNOWABLE = (
    "it_energy_kwh",
    "facility_energy_kwh",
    "scope_2_location_kgco2e",
    "scope_2_market_kgco2e",
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


def current_entries(as_of: datetime | None = None) -> QuerySet[EmissionEntry]:
    """The entries that hold (at `as_of`): neither reversed by then, nor themselves reversals."""
    entries = EmissionEntry.objects.filter(reverses__isnull=True)
    if as_of is None:
        return entries.filter(reversal__isnull=True)
    return entries.filter(posted_at__lte=as_of).exclude(reversal__posted_at__lte=as_of)


def _entries(  # noqa: PLR0913 - what the selectors below are asked
    organisation_id: UUID,
    project_id: UUID | None,
    *,
    site_id: UUID | None,
    start_on: date | None,
    end_on: date | None,
    as_of: datetime | None,
) -> QuerySet[EmissionEntry]:
    """The entries of [start_on, end_on) that hold; of everybody and nobody without a project."""
    found = current_entries(as_of).filter(organisation_id=organisation_id)
    if project_id is not None:
        found = found.filter(project_id=project_id)
    if site_id is not None:
        found = found.filter(site_id=site_id)
    if start_on is not None:
        found = found.filter(hour__gte=datetime.combine(start_on, time(), UTC))
    if end_on is not None:
        found = found.filter(hour__lt=datetime.combine(end_on, time(), UTC))
    return found


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
    entries = _entries(
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
    entries = _entries(
        organisation_id,
        project_id,
        site_id=site_id,
        start_on=start_on,
        end_on=end_on,
        as_of=as_of,
    )
    return [
        EmissionDay(
            day=row["day"],
            facility_energy_kwh=_known(row, "facility_energy_kwh"),
            scope_2_location_kgco2e=_known(row, "scope_2_location_kgco2e"),
            scope_2_market_kgco2e=_known(row, "scope_2_market_kgco2e"),
            coverage_fraction=_coverage(row),
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
    entries = _entries(
        organisation_id,
        project_id,
        site_id=site_id,
        start_on=start_on,
        end_on=end_on,
        as_of=as_of,
    )
    row = entries.aggregate(**_SUMS)
    days = _by_day(entries.filter(covered_microsecond__gt=0)) if row["entries"] else []
    bases = entries.exclude(market_basis="").values_list("market_basis", flat=True).distinct()
    return EmissionSummary(
        start_on=start_on or (days[0]["day"] if days else None),
        end_on=end_on or (days[-1]["day"] + timedelta(days=1) if days else None),
        accelerator_energy_kwh=kwh_from_millijoule(int(row["energy"])) if row["entries"] else None,
        it_energy_kwh=_known(row, "it_energy_kwh"),
        facility_energy_kwh=_known(row, "facility_energy_kwh"),
        scope_2_location_kgco2e=_known(row, "scope_2_location_kgco2e"),
        scope_2_market_kgco2e=_known(row, "scope_2_market_kgco2e"),
        market_basis=tuple(sorted(bases)),
        coverage_fraction=_coverage(row),
        measured_fraction=_share(row, "measured"),
        spread_fraction=_share(row, "spread"),
        estimated_fraction=_share(row, "estimated"),
        factors=_factors(entries),
    )


def _factors(entries: QuerySet[EmissionEntry]) -> tuple[FactorUsed, ...]:
    """The distinct factors of these entries, by kind and id."""
    ids = entries.values_list("factor_set_id", flat=True).distinct()
    documents = FactorSet.objects.filter(pk__in=list(ids)).values_list("factors", flat=True)
    found = {one["id"]: one for factors in documents for one in factors}
    used = [
        FactorUsed(
            factor_id=one["id"],
            kind=one["kind"],
            value=one["value"],
            unit=one["unit"],
            year=one["year"],
            source=one["source"],
            level=one["level"],
            basis=one["basis"],
            version=one["version"],
        )
        for one in found.values()
    ]
    return tuple(sorted(used, key=lambda one: (one.kind, one.version, one.factor_id)))


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

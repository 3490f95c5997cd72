"""Market-based emissions of entries by any group of theirs, contracts matched over each year."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet, Sum

from carbon.attribution import instant_of
from carbon.instrument_reads import year_bounds
from carbon.market_selectors import ZoneYear, matched_years, share_of_hour
from carbon.models import EmissionEntry

Group = tuple[Any, ...]
Sums = dict[Group, float | None]


def market_by_group(
    organisation_id: UUID,
    entries: QuerySet[EmissionEntry],
    keys: Sequence[str],
    *,
    as_of: datetime | None = None,
) -> Sums:
    """The market-based emissions of each group, kgCO2e; empty where there are no contracts.

    None where a part is unknown. Without contracts the sums of the entries hold as they are.
    """
    years = matched_years(organisation_id, as_of=as_of)
    if not years:
        return {}
    matched = Q(pk__in=[])
    for zone, year in years:
        low, high = year_bounds(year)
        matched |= Q(market_zone=zone, hour__gte=instant_of(low), hour__lt=instant_of(high))
    found: Sums = {}
    for group, kgco2e in _open_sums(entries.exclude(matched), keys):
        _add(found, group, kgco2e)
    for group, kgco2e in _matched_sums(entries.filter(matched), keys, years):
        _add(found, group, kgco2e)
    return found


def _add(found: Sums, group: Group, kgco2e: float | None) -> None:
    before = found.get(group, 0.0)
    found[group] = None if before is None or kgco2e is None else before + kgco2e


def _open_sums(
    entries: QuerySet[EmissionEntry], keys: Sequence[str]
) -> list[tuple[Group, float | None]]:
    """Entries of markets and years without contracts, as they stand."""
    sums = {
        "count": Count("pk"),
        "known": Count("scope_2_market_kgco2e"),
        "kg": Sum("scope_2_market_kgco2e"),
    }
    rows = (
        entries.values(*keys).annotate(**sums).order_by() if keys else [entries.aggregate(**sums)]
    )
    return [
        (
            tuple(row[key] for key in keys),
            float(row["kg"] or 0) if row["known"] == row["count"] else None,
        )
        for row in rows
        if row["count"]  # a sum of nothing is unknown, not 0
    ]


def _matched_sums(
    entries: QuerySet[EmissionEntry], keys: Sequence[str], years: Mapping[ZoneYear, Any]
) -> list[tuple[Group, float | None]]:
    """Entries of markets with contracts: each hour's share of what the contracts cover."""
    others = [key for key in keys if key != "hour"]
    rows = entries.values(*others, "market_zone", "hour", basis=F("market_basis")).annotate(
        count=Count("pk"),
        known=Count("scope_2_market_kgco2e"),
        kg=Sum("scope_2_market_kgco2e"),
        counted=Count("facility_energy_kwh"),
        kwh=Sum("facility_energy_kwh"),
    )
    found = []
    for row in rows.order_by():
        year = years[row["market_zone"], row["hour"].astimezone(UTC).year]
        group = tuple(row[key] for key in keys)
        found.append((group, share_of_hour(row, year, ()).annual_kgco2e))
    return found

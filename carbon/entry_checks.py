"""Checks of entries: amounts, scopes and factors recomputed apart from posting; changes nothing."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from audit.records import Finding
from carbon.assets import Asset, assets_of
from carbon.attribution import microsecond_of
from carbon.boundaries import boundaries_of
from carbon.entry_queries import current_entries, held_spans, is_held
from carbon.factor_chains import factors_by_hour
from carbon.models import EmissionEntry, FactorSet
from runs.records import SiteRecord
from runs.selectors import devices_of

RELATIVE_TOLERANCE = 1e-12
ABSOLUTE_TOLERANCE = 1e-15
MILLIJOULE_PER_KWH = 3_600_000_000
MICROSECOND_PER_H = 3_600_000_000
SCOPES = {
    "own": "scope_2",
    "colocation": "scope_2_colocation",
    "leased": "scope_3_category_8",
    "cloud": "scope_3_category_1",
}
AMOUNTS = (
    "it_energy_kwh",
    "facility_energy_kwh",
    "scope_2_location_kgco2e",
    "scope_2_market_kgco2e",
    "upstream_kgco2e",
    "water_on_site_l",
    "water_source_l",
)


def verify_entries(site: SiteRecord) -> Iterator[Finding]:
    """Each entry that was ever posted against its own energy and the factors kept with it."""
    entries = EmissionEntry.objects.filter(site_id=site.site_id, reverses__isnull=True)
    for row in entries.select_related("factor_set").iterator(chunk_size=2_000):
        expected = _amounts(row, row.factor_set)
        found = {name: getattr(row, name) for name in AMOUNTS}
        if not all(alike(expected[name], found[name]) for name in AMOUNTS):
            yield Finding(
                code="emission_entry",
                where=f"{site.slug}, entry {row.pk}, {row.hour.isoformat()}",
                expected=str(tuple(expected.values())),
                found=str(tuple(found.values())),
            )


def _amounts(row: EmissionEntry, factors: FactorSet) -> dict[str, float | None]:
    """Boundaries, emissions and water in plain arithmetic; None as soon as a factor is."""
    kwh = row.accelerator_energy_millijoule / MILLIJOULE_PER_KWH
    it_kwh = _times(kwh, factors.host_factor)
    facility_kwh = _times(it_kwh, factors.pue)
    rest = factors.grid_g_per_kwh
    if factors.residual_g_per_kwh is not None:
        rest = factors.residual_g_per_kwh
    return {
        "it_energy_kwh": it_kwh,
        "facility_energy_kwh": facility_kwh,
        "scope_2_location_kgco2e": _per_kg(_times(facility_kwh, factors.grid_g_per_kwh)),
        "scope_2_market_kgco2e": _per_kg(_times(facility_kwh, rest)),
        "upstream_kgco2e": _per_kg(_times(facility_kwh, factors.upstream_g_per_kwh)),
        "water_on_site_l": _times(it_kwh, factors.wue_l_per_kwh),
        "water_source_l": _times(facility_kwh, factors.source_l_per_kwh),
    }


def _times(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one * other


def _per_kg(grams: float | None) -> float | None:
    return None if grams is None else grams / 1_000


def alike(expected: float | None, found: float | None) -> bool:
    """Equal but for the last bits."""
    if expected is None or found is None:
        return expected is found
    return math.isclose(expected, found, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE)


def verify_embodied(site: SiteRecord) -> Iterator[Finding]:
    """Each owner's share of the hardware against what is stated of it, hour by hour."""
    assets = assets_of(site.organisation_id, site_id=site.site_id)
    accelerators = len(devices_of(site.site_id))
    held = held_spans(site.site_id)
    for row in current_entries().filter(site_id=site.site_id).iterator(chunk_size=5_000):
        expected = _embodied_kgco2e(row, assets, accelerators)
        if not alike(expected, row.embodied_kgco2e) and not is_held(held, row.hour):
            yield Finding(
                code="emission_embodied",
                where=f"{site.slug}, entry {row.pk}, {row.hour.isoformat()}",
                expected=f"{expected} kgCO2e",
                found=f"{row.embodied_kgco2e} kgCO2e",
            )


def _embodied_kgco2e(row: EmissionEntry, assets: list[Asset], accelerators: int) -> float | None:
    """Footprint per hour of life, shared by the accelerator-hours due to the owner."""
    bought = [one for one in assets if _midnight(one.purchased_on) <= row.hour]
    if not bought:
        return None
    living = [
        one
        for one in bought
        if row.hour < _midnight(one.purchased_on) + timedelta(hours=one.lifetime_h)
    ]
    if not living:
        return 0.0
    counts = [one.devices for one in living]
    shared_by = sorted((max(counts), accelerators, sum(counts)))[1]
    an_hour = math.fsum(one.kgco2e / one.lifetime_h for one in living)
    return an_hour / shared_by * (row.expected_microsecond / MICROSECOND_PER_H)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def verify_scopes(site: SiteRecord) -> Iterator[Finding]:
    """Scope and market of each day's entries against what is stated of the hardware."""
    stated = boundaries_of(site)
    waiting = held_spans(site.site_id)
    rows = current_entries().filter(site_id=site.site_id)
    held = rows.values_list("hour", "scope_category", "market_zone").distinct()
    wrong: dict[date, tuple[tuple[str, str], tuple[str, str]]] = {}
    for hour, *found in held.order_by("hour"):
        day = hour.astimezone(UTC).date()
        holding = max(
            (one for one in stated if one.valid_from <= day), key=lambda one: one.valid_from
        )
        expected = (SCOPES[holding.ownership], holding.market_zone)
        if expected != tuple(found) and not is_held(waiting, hour):
            wrong.setdefault(day, (expected, (found[0], found[1])))
    for day, (expected, booked) in wrong.items():
        yield Finding(
            code="emission_scope",
            where=f"{site.slug}, {day}",
            expected=" ".join(expected),
            found=" ".join(booked),
        )


def verify_factors(site: SiteRecord) -> Iterator[Finding]:
    """The factors that entries were made with against those that hold for their hour."""
    rows = current_entries().filter(site_id=site.site_id)
    made_with = set(rows.values_list("hour", "factor_set_id").distinct())
    sets = FactorSet.objects.in_bulk({factor_set_id for _hour, factor_set_id in made_with})
    holding, _boundaries = factors_by_hour(
        site, {microsecond_of(hour) for hour, _factor_set_id in made_with}
    )
    told: set[tuple[date, int]] = set()
    held = held_spans(site.site_id)
    for hour, factor_set_id in sorted(made_with):
        expected = [one.as_json() for one in holding[microsecond_of(hour)].named]
        found = sets[factor_set_id].factors
        day = (hour.astimezone(UTC).date(), factor_set_id)
        if found != expected and day not in told and not is_held(held, hour):
            told.add(day)
            yield Finding(
                code="emission_factors",
                where=f"{site.slug}, {hour.isoformat()}",
                expected=_in_words(expected),
                found=_in_words(found),
            )


def _in_words(factors: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"{one['id']} {one['value']}" for one in factors)

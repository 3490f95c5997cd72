"""Check of entries: their amounts recomputed from the factors kept with them; changes nothing."""

import math
from collections.abc import Iterator

from audit.records import Finding
from carbon.models import EmissionEntry, FactorSet
from runs.records import SiteRecord

RELATIVE_TOLERANCE = 1e-12
ABSOLUTE_TOLERANCE = 1e-15
MILLIJOULE_PER_KWH = 3_600_000_000
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

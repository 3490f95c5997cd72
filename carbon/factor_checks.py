"""Checks of what entries were made with: factors, hardware and scopes of each hour, chosen again.

By `carbon.plain_factors`, which shares nothing with posting but the tables; changes nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from itertools import groupby
from typing import Any, Final

from audit.records import Finding
from carbon.entry_checks import alike
from carbon.entry_queries import current_entries, held_spans, is_held
from carbon.models import EmissionEntry, FactorSet
from carbon.plain_factor_tables import tables_of
from carbon.plain_factors import Document, boundary, chosen
from runs.records import SiteRecord

MICROSECOND_PER_H: Final = 3_600_000_000
COLUMN_OF: Final = {  # where a factor set keeps the value of each kind for its entries' amounts
    "host_factor": "host_factor",
    "pue": "pue",
    "grid_intensity": "grid_g_per_kwh",
    "upstream": "upstream_g_per_kwh",
    "residual_mix": "residual_g_per_kwh",
    "wue": "wue_l_per_kwh",
    "source_water": "source_l_per_kwh",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hour:
    """What should hold in an hour."""

    where: str
    day: date
    factors: Sequence[Document]
    scope: tuple[str, str]


def verify_factors(site: SiteRecord) -> Iterator[Finding]:
    """Factors, share of the hardware and scope of every entry that holds, hour by hour.

    The same difference on the same day is told once.
    """
    rows = current_entries().filter(site_id=site.site_id)
    if not rows.exists():
        return
    tables, held = tables_of(site), held_spans(site.site_id)
    sets = FactorSet.objects.in_bulk(set(rows.values_list("factor_set_id", flat=True)))
    told: set[tuple[object, ...]] = set()
    for hour, entries in groupby(
        rows.order_by("hour").iterator(chunk_size=5_000), key=lambda row: row.hour
    ):
        if is_held(held, hour):
            continue
        day = hour.astimezone(UTC).date()
        expected = _Hour(
            where=f"{site.slug}, {hour.isoformat()}",
            day=day,
            factors=chosen(tables, hour),
            scope=boundary(tables, day),
        )
        for row in entries:
            for key, finding in _findings(row, sets[row.factor_set_id], expected):
                if key not in told:
                    told.add(key)
                    yield finding


def _findings(
    row: EmissionEntry, made_with: FactorSet, expected: _Hour
) -> Iterator[tuple[tuple[object, ...], Finding]]:
    """What differs in an entry, each with what it is told once of."""
    if not _same(expected.factors, made_with.factors) or not _is_of_its_factors(made_with):
        yield (
            ("factors", expected.day, made_with.pk),
            Finding(
                code="emission_factors",
                where=expected.where,
                expected=_in_words(expected.factors),
                found=_in_words(made_with.factors),
            ),
        )
    embodied = [one["value"] for one in expected.factors if one["kind"] == "embodied"]
    kgco2e = embodied[0] * (row.expected_microsecond / MICROSECOND_PER_H) if embodied else None
    if not alike(kgco2e, row.embodied_kgco2e):
        yield (
            ("embodied", row.pk),
            Finding(
                code="emission_embodied",
                where=f"{expected.where}, entry {row.pk}",
                expected=f"{kgco2e} kgCO2e",
                found=f"{row.embodied_kgco2e} kgCO2e",
            ),
        )
    if expected.scope != (row.scope_category, row.market_zone):
        yield (
            ("scope", expected.day),
            Finding(
                code="emission_scope",
                where=expected.where,
                expected=" ".join(expected.scope),
                found=f"{row.scope_category} {row.market_zone}",
            ),
        )


def _same(expected: Sequence[Document], found: Sequence[Mapping[str, Any]]) -> bool:
    """Whether both name the same factors in the same words, their values but for the last bits."""
    return len(expected) == len(found) and all(
        {**one, "value": 0} == {**other, "value": 0} and alike(one["value"], other["value"])
        for one, other in zip(expected, found, strict=True)
    )


def _is_of_its_factors(made_with: FactorSet) -> bool:
    """Whether the values that amounts are made with are those of the factors named beside them."""
    named = {one["kind"]: one["value"] for one in made_with.factors}
    return all(getattr(made_with, column) == named.get(kind) for kind, column in COLUMN_OF.items())


def _in_words(factors: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"{one['id']} {one['value']}" for one in factors)

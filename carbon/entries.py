"""What emission entries should say: an owner's hour times the factors of that hour."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

import numpy as np
from django.db import connection

from carbon.adapters import binary_rows
from carbon.attribution import OwnedHour, attribute, instant_of
from carbon.boundaries import Boundary
from carbon.factor_chains import factors_by_hour
from carbon.metering import HOUR_MICROSECOND, HourTable
from carbon.models import EmissionEntry, FactorSet
from carbon.records import FactorsUsed, FactorUsed
from formulae.emissions import ResidualBasis, operational_kgco2e, water_l
from formulae.energy import facility_energy_kwh, it_energy_kwh
from formulae.units import kwh_from_millijoule
from runs.records import SiteRecord
from runs.selectors import assignments_between

Key = tuple[UUID | None, UUID | None, int]
WHOLE: Final = (
    "accelerator_energy_millijoule",
    "measured_millijoule",
    "spread_millijoule",
    "estimated_millijoule",
    "covered_microsecond",
    "expected_microsecond",
)
AMOUNTS: Final = (
    "it_energy_kwh",
    "facility_energy_kwh",
    "scope_2_location_kgco2e",
    "scope_2_market_kgco2e",
    "upstream_kgco2e",
    "embodied_kgco2e",
    "water_on_site_l",
    "water_source_l",
)
LABELS: Final = ("scope_category", "market_zone", "market_basis", "factor_set_id")
COMPARED: Final = (*WHOLE, *LABELS, *AMOUNTS)
NEGATED: Final = (*WHOLE, *AMOUNTS)


def owned_hours(site: SiteRecord, *, start: int, end: int) -> list[OwnedHour]:
    """Who used what in the hours of a window."""
    assignments = assignments_between(
        site.organisation_id, instant_of(start), instant_of(end), site.site_id
    )
    table = _site_hours(site.site_id, start=start, end=end)
    return attribute(table, assignments, start=start, end=end)


def _site_hours(site_id: UUID, *, start: int, end: int) -> HourTable:
    """The current device-hours of the site, by device and hour."""
    kinds = {
        "device_id": "int8",
        "hour": "timestamptz",
        "measured_millijoule": "int8",
        "spread_millijoule": "int8",
        "estimated_millijoule": "int8",
        "covered_microsecond": "int8",
    }
    with connection.cursor() as cursor:
        found = binary_rows.read(
            cursor,
            kinds,
            "FROM carbon_energyhour WHERE site_id = %s AND hour >= %s AND hour < %s "
            "AND superseded_at IS NULL",
            [site_id, instant_of(start), instant_of(end)],
        )
    order = np.lexsort((found["hour"], found["device_id"]))
    found = {name: values[order] for name, values in found.items()}
    return HourTable(device=found.pop("device_id"), **found)


def wanted_entries(site: SiteRecord, owned: Sequence[OwnedHour]) -> dict[Key, EmissionEntry]:
    """The entries that these hours should have."""
    factors, boundaries = factors_by_hour(site, {one.hour for one in owned})
    sets = stored_factor_sets(site.organisation_id, factors.values())
    return {
        (*one.owner, one.hour): entry_of(
            site,
            one,
            factors=factors[one.hour],
            boundary=boundaries[one.hour],
            factor_set_id=sets[id(factors[one.hour])],
        )
        for one in owned
    }


def entry_of(
    site: SiteRecord,
    one: OwnedHour,
    *,
    factors: FactorsUsed,
    boundary: Boundary,
    factor_set_id: int,
) -> EmissionEntry:
    """The entry of an owner's hour: three boundaries, then emissions; unknown stays None.

    Its market-based figure is that without any contract: what contracts cover follows from the
    energy of a whole market and year, and is matched when somebody asks.
    """
    energy_millijoule = one.measured_millijoule + one.spread_millijoule + one.estimated_millijoule
    it_kwh = it_energy_kwh(kwh_from_millijoule(energy_millijoule), _value(factors.host_factor))
    facility_kwh = facility_energy_kwh(it_kwh, factors.pue.value)
    rest = factors.residual or factors.grid
    uncontracted_kgco2e = operational_kgco2e(facility_kwh, _value(rest))
    water = water_l(
        it_energy_kwh=it_kwh,
        facility_energy_kwh=facility_kwh,
        wue_l_per_kwh=_value(factors.wue),
        source_l_per_kwh=_value(factors.source_water),
    )
    project_id, run_id = one.owner
    return EmissionEntry(
        organisation_id=site.organisation_id,
        site_id=site.site_id,
        project_id=project_id,
        run_id=run_id,
        hour=instant_of(one.hour),
        accelerator_energy_millijoule=energy_millijoule,
        measured_millijoule=one.measured_millijoule,
        spread_millijoule=one.spread_millijoule,
        estimated_millijoule=one.estimated_millijoule,
        covered_microsecond=one.covered_microsecond,
        expected_microsecond=one.expected_microsecond,
        it_energy_kwh=it_kwh,
        facility_energy_kwh=facility_kwh,
        scope_2_location_kgco2e=operational_kgco2e(facility_kwh, _value(factors.grid)),
        scope_2_market_kgco2e=uncontracted_kgco2e,
        market_basis=_market_basis(factors) if uncontracted_kgco2e is not None else "",
        market_zone=boundary.market_zone,
        scope_category=boundary.scope_category,
        upstream_kgco2e=operational_kgco2e(facility_kwh, _value(factors.upstream)),
        embodied_kgco2e=_embodied_kgco2e(one, factors.embodied),
        water_on_site_l=water.on_site_l,
        water_source_l=water.source_l,
        factor_set_id=factor_set_id,
    )


def _embodied_kgco2e(one: OwnedHour, rate: FactorUsed | None) -> float | None:
    """The owner's share of the hardware, by the device time that was due, seen or not."""
    return None if rate is None else rate.value * one.expected_microsecond / HOUR_MICROSECOND


def _value(factor: FactorUsed | None) -> float | None:
    return factor.value if factor else None


def _market_basis(factors: FactorsUsed) -> str:
    """What energy outside contracts is counted with; the grid's average is the last resort."""
    basis = ResidualBasis.RESIDUAL_MIX if factors.residual else ResidualBasis.GRID_AVERAGE
    return basis.value


def stored_factor_sets(organisation_id: UUID, used: Iterable[FactorsUsed]) -> Mapping[int, int]:
    """Rows that keep these factors as they are now, by the identity of the record."""
    distinct = {id(one): one for one in used}
    documents = {key: [each.as_json() for each in one.named] for key, one in distinct.items()}
    digests = {key: _digest(document) for key, document in documents.items()}
    known = _known_sets(organisation_id, digests.values())
    fresh = {
        digests[key]: FactorSet(
            organisation_id=organisation_id,
            digest=digests[key],
            host_factor=_value(one.host_factor),
            pue=one.pue.value,
            grid_g_per_kwh=_value(one.grid),
            upstream_g_per_kwh=_value(one.upstream),
            residual_g_per_kwh=_value(one.residual),
            wue_l_per_kwh=_value(one.wue),
            source_l_per_kwh=_value(one.source_water),
            factors=documents[key],
        )
        for key, one in distinct.items()
        if digests[key] not in known
    }
    if fresh:
        FactorSet.objects.bulk_create(fresh.values(), batch_size=1_000, ignore_conflicts=True)
        known |= _known_sets(organisation_id, fresh)
    return {key: known[digest] for key, digest in digests.items()}


def _known_sets(organisation_id: UUID, digests: Iterable[str]) -> dict[str, int]:
    rows = FactorSet.objects.filter(organisation_id=organisation_id, digest__in=set(digests))
    return dict(rows.values_list("digest", "pk"))


def _digest(document: Sequence[Mapping[str, object]]) -> str:
    text = json.dumps(document, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()

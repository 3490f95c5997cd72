"""`verify` chooses factors by itself: a wrong choice in posting is found, not repeated."""

import time
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from django.db import connection

from carbon import assets, entries, factor_chains, factors
from carbon.assets import NewAsset, add_asset
from carbon.boundaries import set_boundary
from carbon.checks import verify
from carbon.hourly_factors import NewPeriodFactor, set_period_factors
from carbon.models import FactorSet, GridIntensity, HourlyIntensity, IntensitySource, SiteZone
from carbon.plain_factor_tables import tables_of
from carbon.plain_factors import chosen
from carbon.services import repost_site
from runs.records import SiteRecord
from runs.services import save_site
from tests.builders import organisation
from tests.carbon.book_builders import HOUR, hall, residual_mix, used
from tests.carbon.builders import NOW, START, factor, operator
from tests.carbon.builders import site as bare_site

pytestmark = pytest.mark.django_db
YEAR = (datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))


def findings():
    return {one.code for one in verify(organisation().pk)}


def told(place, *values_g_per_kwh, basis="direct"):
    """What a source says of the first hours."""
    source, _made = IntensitySource.objects.get_or_create(
        organisation_id=organisation().pk, provider="csv", name="Own measurement"
    )
    SiteZone.objects.get_or_create(
        organisation_id=organisation().pk, site_id=place.site_id, source=source, zone="DE"
    )
    for step, value in enumerate(values_g_per_kwh):
        HourlyIntensity.objects.create(
            organisation_id=organisation().pk,
            source=source,
            zone="DE",
            hour=START + step * HOUR,
            basis=basis,
            value_g_per_kwh=value,
            is_estimated=step == 1,
            method="mean" if step == 1 else "",
            known_at=NOW,
        )


def period(place, kind, value, *, level, span, tier="measured"):
    new = NewPeriodFactor(
        kind=kind, level=level, start=span[0], end=span[1], value=value, tier=tier, source="meter"
    )
    set_period_factors(place, [new], known_at=NOW)


def hardware(place, name="rack", bought=date(2025, 1, 1)):
    new = NewAsset(
        name=name,
        devices=1,
        kgco2e=1_000,
        purchased_on=bought,
        lifetime_h=40_000,
        source="data sheet",
    )
    add_asset(operator(), place, new, known_at=NOW)


@pytest.fixture
def everything():
    """A hall of which every kind of factor is known, at several levels."""
    place = hall(pue=1.4, wue_l_per_kwh=1.0, source_l_per_kwh=2.0)
    factor(place, "pue", 1.3, valid_from=date(2025, 9, 1))
    residual_mix(460, year=2024)
    told(place, 100, 500)
    told(place, 130, 560, basis="lifecycle")
    period(place, "pue", 1.2, level="hour", span=(START, START + HOUR))
    period(place, "wue_l_per_kwh", 1.8, level="year", span=YEAR)
    period(place, "host_factor", 1.1, level="hour", span=(START, START + HOUR), tier="estimated")
    period(place, "host_factor", 1.2, level="hour", span=(START + HOUR, START + 2 * HOUR))
    hardware(place)
    hardware(place, "network", date(2025, 2, 1))
    return place


def test_a_right_choice_of_every_kind_of_factor_is_agreed_with(everything, tmp_path):
    used(tmp_path, 1, 2, 3)
    used(tmp_path, 1, device="GPU-1", start=START + 3 * HOUR)
    assert findings() == set()
    kinds = {one["kind"] for row in FactorSet.objects.all() for one in row.factors}
    assert kinds == {
        "host_factor",
        "pue",
        "grid_intensity",
        "upstream",
        "residual_mix",
        "wue",
        "source_water",
        "embodied",
    }


@pytest.mark.parametrize(
    ("provider", "region"),
    [
        ("gcp", "us-central1"),
        ("Amazon Web Services", "ca-central-1"),
        ("azure", "swedencentral"),
        ("aws", "us-east-1"),
        ("own-cloud", "cellar"),
    ],
)
def test_a_right_choice_for_a_cloud_is_agreed_with(provider, region, tmp_path):
    bare = bare_site()
    save_site(
        operator(),
        SiteRecord(
            site_id=bare.site_id,
            organisation_id=bare.organisation_id,
            slug=bare.slug,
            name=bare.name,
            provider=provider,
            region=region,
        ),
    )
    factor(bare, "host_factor", 1.0)
    used(tmp_path, 10)
    assert findings() == set()


def first_dated(dated, kind, day):
    """A wrong choice: the first that was ever set."""
    found = [one for one in dated if one.kind == kind and one.valid_from <= day]
    return min(found, key=lambda one: one.valid_from, default=None)


def of_the_world(rows, chain, *, year):
    return factors_choose_grid(rows, chain[-1:], year=year)


factors_choose_grid = factors.choose_grid
MUTANTS = {
    "an older factor of the site": (factor_chains, "factor_on", first_dated),
    "no factor of periods": (factor_chains, "period_factors", lambda *_: {}),
    "no intensity of hours": (factor_chains, "intensities_for", lambda *_: {}),
    "an upstream of its own": (
        factor_chains,
        "upstream_for",
        lambda _site, start, end: dict.fromkeys(range(start, end, 3_600_000_000), 7.0),
    ),
    "no residual mix": (factor_chains, "residual_used", lambda *_: None),
    "hardware shared by one more": (
        assets,
        "site_embodied_kg_per_accelerator_h",
        lambda hardware, _count: sum(one.kgco2e / one.lifetime_h for one in hardware) / 3,
    ),
    "accelerators of today": (assets, "accelerators_by", lambda first, _hour: len(first)),
}


def test_a_year_of_hours_is_chosen_again_within_seconds(everything):
    tables = tables_of(everything)
    begun = time.process_time()
    for step in range(8_760):
        chosen(tables, YEAR[0] + step * HOUR)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_choice_in_posting_is_found(name, everything, tmp_path, monkeypatch):
    monkeypatch.setattr(*MUTANTS[name])
    if name == "an older factor of the site":
        monkeypatch.setattr(factors, "factor_on", first_dated)
    used(tmp_path, 1, 2, 3)
    used(tmp_path, 1, device="GPU-1", start=START + 3 * HOUR)
    assert "emission_factors" in findings()


def test_the_worlds_grid_factor_in_place_of_the_countrys_is_found(tmp_path, monkeypatch):
    hall()
    monkeypatch.setattr(factors, "choose_grid", of_the_world)
    used(tmp_path, 10)
    (finding,) = verify(organisation().pk)
    assert finding.code == "emission_factors"
    assert "owid" in finding.expected.lower()
    assert "world" in finding.found.lower()


def test_a_wrong_factor_of_one_hour_is_found_on_its_hour(tmp_path, monkeypatch):
    place = hall(grid_g_per_kwh=400)
    rightly = entries.factors_by_hour

    def wrongly(site, hours):
        chosen, boundaries = rightly(site, hours)
        last = max(chosen)
        grid = replace(chosen[last].grid, value=40.0)
        return {**chosen, last: replace(chosen[last], grid=grid)}, boundaries

    monkeypatch.setattr(entries, "factors_by_hour", wrongly)
    used(tmp_path, 1, 1, 1)
    (finding,) = verify(organisation().pk)
    assert (finding.code, finding.where) == (
        "emission_factors",
        f"{place.slug}, {(START + 2 * HOUR).isoformat()}",
    )


def test_a_grid_factor_changed_behind_the_books_is_found(tmp_path):
    place = hall()
    used(tmp_path, 10)
    assert findings() == set()
    GridIntensity.objects.filter(zone="DEU").update(value_g_per_kwh=1.0)
    assert findings() == {"emission_factors"}
    repost_site(place, now=NOW)
    assert findings() == set()


def falsify(table, assignment):
    """Change what may not be changed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SET CONSTRAINTS ALL IMMEDIATE"
        )  # a table with checks to come stays as it is
        cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        cursor.execute(f"UPDATE {table} SET {assignment}")
        cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def test_a_factor_set_changed_behind_the_books_is_found(tmp_path):
    hall(grid_g_per_kwh=400)
    used(tmp_path, 10)
    falsify("carbon_factorset", "factors = jsonb_set(factors, '{1,value}', '1.1')")
    assert findings() == {"emission_factors"}
    falsify("carbon_factorset", "factors = jsonb_set(factors, '{1,value}', '1.0')")
    assert findings() == set()
    falsify("carbon_factorset", "upstream_g_per_kwh = 3")
    assert "emission_factors" in findings()


def test_a_scope_that_was_not_stated_is_found(tmp_path):
    place = hall(grid_g_per_kwh=400)
    used(tmp_path, 10)
    set_boundary(operator(), place, ownership="leased", known_at=NOW)
    assert findings() == {"emission_scope"}
    repost_site(place, now=NOW)
    assert findings() == set()


def test_hardware_booked_behind_its_rows_is_found(tmp_path):
    hardware(hall(grid_g_per_kwh=400))
    used(tmp_path, 1)
    falsify("carbon_emissionentry", "embodied_kgco2e = embodied_kgco2e * 2")
    assert findings() == {"emission_embodied"}

"""The choice of factors says how near it was found; shipped rows are complete and ours to ship."""

import csv
from datetime import date

import pytest

from carbon.factors import (
    DATA,
    choose_grid,
    cloud_regions,
    factors_on,
    shipped_grid_factors,
    zone_chain,
)
from carbon.records import DatedFactor

GRID = shipped_grid_factors()


def chosen(year=2024, **place):
    where = {"provider": "", "region": "", "country": "", "state": "", **place}
    return choose_grid(GRID, zone_chain(**where), year=year)


@pytest.mark.parametrize(
    ("place", "level", "factor_id"),
    [
        (
            {"provider": "gcp", "region": "us-central1"},
            "cloud_region",
            "google-2025/gcp:us-central1/2024",
        ),
        ({"provider": "aws", "region": "us-east-1"}, "us_state", "egrid2023/US-VA/2023"),
        ({"provider": "azure", "region": "northeurope"}, "country", "owid-2025-07/IRL/2024"),
        ({"country": "DEU"}, "country", "owid-2025-07/DEU/2024"),
        ({"country": "USA", "state": "US-TX"}, "us_state", "egrid2023/US-TX/2023"),
        ({"provider": "someone", "region": "moon-1"}, "world", "owid-2025-07/WORLD/2024"),
        ({}, "world", "owid-2025-07/WORLD/2024"),
    ],
)
def test_the_nearest_zone_with_a_factor_is_chosen_and_named(place, level, factor_id):
    found = chosen(**place)
    assert (found.level, found.factor_id) == (level, factor_id)


@pytest.mark.parametrize(("year", "used"), [(2026, 2024), (2023, 2023), (1999, 2022)])
def test_the_last_year_not_after_the_wanted_one_is_used_else_the_first(year, used):
    assert chosen(year=year, country="DEU").year == used


def test_the_answer_names_basis_version_and_source():
    found = chosen(country="DEU")
    assert found.basis == "lifecycle, production average"
    assert found.version == "owid-2025-07"
    assert "Ember" in found.source
    assert "CC-BY-4.0" in found.source


def dated(kind, value, day):
    return DatedFactor(
        factor_id=f"site-factor/{kind}",
        kind=kind,
        value=value,
        valid_from=day,
        tier="measured",
        source="meter",
    )


def on(day, *factors):
    return factors_on(
        day,
        dated=factors,
        grid=GRID,
        chain=zone_chain(provider="", region="", country="DEU", state=""),
    )


def test_a_factor_of_the_site_wins_over_every_table():
    found = on(date(2026, 10, 1), dated("grid_g_per_kwh", 400, date(1970, 1, 1)))
    assert (found.grid.value, found.grid.level) == (400, "site")


def test_a_dated_factor_holds_from_its_day_on():
    pues = dated("pue", 1.3, date(2026, 1, 1)), dated("pue", 1.2, date(2026, 10, 1))
    assert on(date(2026, 9, 30), *pues).pue.value == 1.3
    assert on(date(2026, 10, 1), *pues).pue.value == 1.2
    assert on(date(2025, 12, 31), *pues).pue.level == "not set"


def test_without_a_host_factor_none_is_assumed_and_the_pue_says_that_it_is_not_set():
    found = on(date(2026, 10, 1))
    assert found.host_factor is None
    assert (found.pue.value, found.pue.level) == (1.0, "not set")


def rows(name):
    with (DATA / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", ["grid_intensity.csv", "pue.csv"])
def test_every_shipped_factor_has_unit_year_source_licence_and_version(name):
    for row in rows(name):
        assert all(row[column] for column in ("unit", "year", "source", "licence", "version")), row


def test_shipped_grid_factors_come_from_sources_that_may_be_shipped():
    assert {row["licence"] for row in rows("grid_intensity.csv")} == {
        "CC-BY-4.0",
        "US public domain",
        "Apache-2.0",
    }
    assert {row["gas_scope"] for row in rows("grid_intensity.csv")} == {"direct", "lifecycle"}


def test_every_cloud_region_stands_in_a_country_with_a_factor():
    countries = {row.zone for row in GRID if row.zone_type == "country"}
    states = {row.zone for row in GRID if row.zone_type == "us_state"}
    for region in cloud_regions().values():
        assert region.country in countries, region
        assert bool(region.state) == (region.country == "USA"), region
        assert not region.state or region.state in states, region


def test_factor_ids_name_one_row_each():
    assert len({row.factor_id for row in GRID}) == len(GRID)

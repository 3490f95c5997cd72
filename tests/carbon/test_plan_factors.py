"""The factors of a plan say where they come from, how near that is, and how far they may be off."""

import csv

import pytest

from carbon.embodied import embodied_factor, embodied_parts, life_assumptions
from carbon.factors import DATA, cloud_regions
from carbon.places import comparable_places, geography_of, place_from_text
from carbon.plan_factors import PlaceFactor, PlaceFactors, place_factors
from carbon.site_offers import carbon_free_shares, published_pue_figures, published_wue_figures
from carbon.words import level_name
from formulae.embodied import embodied_kg_per_accelerator_h
from runs.catalogue import shipped_accelerators


def factors(text: str, year: int = 2026) -> PlaceFactors:
    place = place_from_text(text)
    return place_factors(
        provider=place.provider, region=place.region, country=place.country, year=year
    )


def every_factor() -> list[PlaceFactor]:
    return [one for place in comparable_places() for one in factors(place.key).named]


@pytest.mark.parametrize(
    ("text", "level", "g_per_kwh"),
    [
        ("gcp:us-central1", "cloud_region", 431.95),
        ("aws:us-east-1", "us_state", 244.758),
        ("aws:eu-north-1", "country", 35.824),
        ("SWE", "country", 35.824),
    ],
)
def test_the_grid_factor_is_that_of_the_books(text: str, level: str, g_per_kwh: float) -> None:
    grid = factors(text).grid
    assert grid is not None
    assert (grid.level, grid.value) == (level, g_per_kwh)


def test_the_grid_range_spans_what_is_shipped_about_the_place() -> None:
    grid = factors("aws:us-east-1").grid
    assert grid is not None
    assert (grid.low, grid.high) == (244.758, 343.48)


def test_a_single_figure_has_no_range() -> None:
    grid = factors("azure:westus3").grid
    assert grid is not None
    assert (grid.low, grid.high) == (None, None)


def test_an_unknown_place_takes_the_world_average_and_says_so() -> None:
    found = place_factors(provider="someone", region="moon-1", country="", year=2026)
    assert found.grid is not None
    assert found.grid.level == "world"
    assert found.pue is not None
    assert found.pue.level == "industry average"


def test_googles_market_figure_is_the_grid_less_its_carbon_free_hours() -> None:
    found = factors("gcp:us-central1")
    assert found.grid is not None
    assert found.market is not None
    assert found.market.value == pytest.approx(found.grid.value * (1 - 0.88))
    assert (found.market.low, found.market.high) == (0, found.grid.high)
    assert "no instrument seen" in found.market.level
    assert "Apache-2.0" in found.market.source


@pytest.mark.parametrize("text", ["aws:us-east-1", "azure:westus3"])
def test_a_claim_without_an_instrument_lowers_only_the_low_end(text: str) -> None:
    found = factors(text)
    assert found.grid is not None
    assert found.market is not None
    assert (found.market.low, found.market.value) == (0, found.grid.value)
    assert found.market.high == (found.grid.high or found.grid.value)
    assert found.market.level == "provider's claim, no instrument seen"


def test_a_claim_says_nothing_of_the_years_before_it() -> None:
    market = factors("azure:eastus", year=2024).market
    assert market is not None
    assert market.level == "grid average: no contract and no residual mix known"


def test_ones_own_hall_has_no_claim_to_lean_on() -> None:
    found = factors("DEU")
    assert found.grid is not None
    assert found.market is not None
    assert found.market.value == found.grid.value
    assert found.market.level == "grid average: no contract and no residual mix known"


@pytest.mark.parametrize(
    ("text", "level", "pue"),
    [
        ("aws:eu-north-1", "cloud_region", 1.09),
        ("azure:southeastasia", "provider's geography", 1.28),
        ("aws:us-east-1", "provider's fleet", 1.14),
        ("gcp:us-west1", "provider's fleet", 1.09),
        ("DEU", "industry average", 1.54),
    ],
)
def test_the_pue_is_the_nearest_published_one(text: str, level: str, pue: float) -> None:
    found = factors(text).pue
    assert found is not None
    assert (found.level, found.value) == (level, pue)


def test_the_pue_is_of_the_last_year_not_after_the_plans() -> None:
    found = factors("aws:us-east-1", year=2024).pue
    assert found is not None
    assert (found.value, found.year) == (1.15, 2024)


@pytest.mark.parametrize(
    ("text", "level", "wue"),
    [
        ("aws:eu-west-1", "cloud_region", 0.02),
        ("azure:swedencentral", "provider's geography", 0.03),
        ("aws:us-east-1", "provider's fleet", 0.12),
        ("gcp:us-east4", "provider's fleet", 1.15),
        ("SWE", "industry average", 0.84),
    ],
)
def test_the_wue_is_the_nearest_published_one(text: str, level: str, wue: float) -> None:
    found = factors(text).wue_l_per_kwh
    assert found is not None
    assert (found.level, found.value) == (level, wue)


def test_every_factor_names_source_and_year_and_lies_in_its_range() -> None:
    for found in every_factor():
        assert found.source, found
        assert found.year, found
        assert found.level, found
        assert found.low is None or found.low <= found.value, found
        assert found.high is None or found.value <= found.high, found


def test_every_pue_is_at_least_1() -> None:
    assert all(row.value >= 1 for row in published_pue_figures())


def test_places_to_compare_are_known_once_and_hold_low_carbon_grids() -> None:
    places = comparable_places()
    assert 20 <= len(places) <= 30
    assert len({place.key for place in places}) == len(places)
    assert {"SWE", "NOR", "FIN", "FRA", "CAN"} <= {place.country for place in places}
    assert {place.provider for place in places} == {"aws", "azure", "gcp"}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("aws:us-east-1", "aws:us-east-1"),
        (" AWS : US-EAST-1 ", "aws:us-east-1"),
        ("google:europe-north1", "gcp:europe-north1"),
        ("microsoft azure:eastus", "azure:eastus"),
        ("swe", "SWE"),
    ],
)
def test_a_place_is_read_from_text(text: str, key: str) -> None:
    assert place_from_text(text).key == key


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("aws:us-eas-1", "aws:us-east-1"),
        ("us-east-1", "aws:us-east-1"),
        ("Sweden", "SWE"),
        ("SWW", "SWE"),
        ("elsewhere:hall-1", "aws, azure, gcp"),
        ("", "aws:us-east-1"),
    ],
)
def test_a_place_that_is_not_known_names_near_ones(text: str, near: str) -> None:
    with pytest.raises(LookupError, match=near):
        place_from_text(text)


def test_every_region_lies_in_a_part_of_the_world() -> None:
    parts = {geography_of(region.country) for region in cloud_regions().values()}
    assert parts == {"americas", "apac", "emea"}
    assert geography_of("") == ""


def test_an_h100_hour_carries_a_share_of_its_server_and_a_range() -> None:
    factor = embodied_factor("h100-sxm-80gb")
    assert factor is not None
    assert factor.kg_per_accelerator_h == embodied_kg_per_accelerator_h(
        server_kg=2_500,
        accelerators_per_server=8,
        accelerator_kg=164,
        lifetime_h=43_800,
        utilisation_fraction=0.85,
    )
    assert factor.low < factor.kg_per_accelerator_h < factor.high
    assert factor.accelerator.kg.high == 575.1
    assert "NVIDIA" in factor.source
    assert "BLOOM" in factor.source


def test_an_accelerator_without_a_footprint_names_whose_it_takes_and_is_less_certain() -> None:
    borrowed, own = embodied_factor("mi300x-192gb"), embodied_factor("b200-sxm-180gb")
    assert borrowed is not None
    assert own is not None
    assert borrowed.level == "class estimate from NVIDIA HGX B200 (one eighth)"
    assert borrowed.high - borrowed.low > own.high - own.low


def test_an_accelerator_in_no_table_says_so() -> None:
    factor = embodied_factor("our-own-chip")
    assert factor is not None
    assert factor.level.endswith("this accelerator is in no table")
    assert factor.high > 10 * factor.low


def test_no_accelerator_has_no_footprint() -> None:
    assert embodied_factor("") is None


@pytest.mark.parametrize("key", sorted(shipped_accelerators()))
def test_every_shipped_accelerator_stands_in_the_table_of_footprints(key: str) -> None:
    factor = embodied_factor(key)
    assert factor is not None
    assert "no table" not in factor.level
    assert 0 < factor.low <= factor.kg_per_accelerator_h <= factor.high < 0.1


def test_the_default_life_is_five_years_between_four_and_six() -> None:
    life = life_assumptions()["lifetime_h"].value
    assert (life.low, life.value, life.high) == (4 * 8_760, 5 * 8_760, 6 * 8_760)


def test_a_document_of_each_factor_holds_its_range_and_parts() -> None:
    factor = embodied_factor("h100-sxm-80gb")
    assert factor is not None
    document = factor.as_json()
    assert document["accelerator"]["kg"] == 164
    assert {"low", "high", "unit", "level", "source", "lifetime_h"} <= set(document)
    assert all(set(one.as_json()) >= {"low", "high", "level"} for one in factors("SWE").named)


def test_levels_are_shown_in_words() -> None:
    assert level_name("class estimate from X; this accelerator is in no table").endswith("table")
    assert level_name("class estimate from X") == "class estimate from X"
    assert level_name("us_state") == "US state"


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", ["embodied.csv", "wue.csv", "market.csv"])
def test_every_shipped_row_has_unit_year_source_licence_and_version(name: str) -> None:
    for row in rows(name):
        assert all(row[column] for column in ("unit", "year", "source", "licence", "version")), row
        assert row["licence"] in {"fact", "Apache-2.0"}, row


def test_no_shipped_row_is_of_a_table_that_may_not_be_copied() -> None:
    for name in ("embodied.csv", "wue.csv", "market.csv", "pue.csv"):
        text = (DATA / name).read_text(encoding="utf-8")
        assert "Green Software Foundation" not in text
        assert "ODbL" not in text


def test_every_published_figure_belongs_to_a_place_that_exists() -> None:
    clouds = {provider for provider, _ in cloud_regions()}
    for row in (*published_pue_figures(), *published_wue_figures(), *carbon_free_shares()):
        provider, _, region = row.applies_to.partition(":")
        if region:
            assert (provider, region) in cloud_regions(), row
        else:
            assert provider.partition("/")[0] in {*clouds, "industry", ""}, row


def test_every_class_of_accelerators_takes_footprints_that_exist() -> None:
    parts = embodied_parts()
    for row in rows("embodied_classes.csv"):
        assert {row["accelerator_item"], row["server_item"]} <= set(parts), row
        assert row["level"] in {"published", "computed", "class"}, row

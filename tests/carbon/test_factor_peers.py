"""1,000 kWh through our yearly factors and through codecarbon 3.3.2: same number, or known why not.

The right column was printed by codecarbon itself, offline. The table stands in docs/factors.md.
"""

from pathlib import Path

import pytest

from carbon.factors import choose_grid, shipped_grid_factors, zone_chain

YEAR = 2023  # the year that codecarbon 3.3.2 ships
DOCS = Path(__file__).resolve().parents[2] / "docs" / "factors.md"
SAME = [
    ("US-VA", 244.758),
    ("US-CA", 179.064),
    ("US-TX", 349.801),
    ("US-OR", 165.544),
    ("US-WA", 120.921),
    ("US-IA", 287.648),
    ("gcp:us-central1", 430.0),
    ("gcp:europe-west4", 236.0),
    ("gcp:europe-north1", 46.0),
    ("gcp:us-east4", 322.0),
]
OTHER_VINTAGE = [
    ("FRA", 56.039, 55.275),
    ("USA", 369.473, 392.848),
    ("DEU", 380.95, 371.311),
    ("SWE", 40.695, 38.392),
    ("NOR", 30.08, 30.483),
    ("GBR", 237.589, 228.246),
    ("IND", 713.441, 713.013),
    ("CHN", 582.317, 583.608),
    ("POL", 661.926, 655.275),
    ("JPN", 485.392, 493.585),
    ("SGP", 470.783, 500.872),
]


def kg_of_1000_kwh(place, year=YEAR):
    """Our emissions of 1,000 kWh there: g/kWh x 1,000 kWh / 1,000 g a kg."""
    provider, _, region = place.rpartition(":")
    is_state = place.startswith("US-")
    chain = zone_chain(
        provider=provider,
        region=region if provider else "",
        country="" if provider else "USA" if is_state else place,
        state=place if is_state else "",
    )
    used = choose_grid(shipped_grid_factors(), chain, year=year)
    assert used is not None
    return used.value, used


@pytest.mark.parametrize(("place", "theirs_kg"), SAME)
def test_the_same_source_vintage_and_basis_give_the_same_number(place, theirs_kg):
    ours_kg, used = kg_of_1000_kwh(place)
    assert ours_kg == pytest.approx(theirs_kg, abs=5e-4)
    assert used.year == YEAR
    assert used.basis.startswith("direct")


@pytest.mark.parametrize(("place", "theirs_kg", "ours_kg"), OTHER_VINTAGE)
def test_another_vintage_of_the_same_series_differs_by_a_known_amount(place, theirs_kg, ours_kg):
    found_kg, used = kg_of_1000_kwh(place)
    assert found_kg == pytest.approx(ours_kg, abs=5e-4)
    assert used.basis.startswith("lifecycle")
    assert used.version == "owid-2025-07"
    assert abs(found_kg / theirs_kg - 1) < 0.07
    row = f"| {place} | {theirs_kg:g} | {ours_kg:g} | {found_kg / theirs_kg - 1:+.1%} |"
    assert row.replace("%", " %") in DOCS.read_text(encoding="utf-8")


def test_an_unknown_place_takes_the_worlds_average_and_says_so():
    value, used = kg_of_1000_kwh("XXX")
    assert (used.level, value) == ("world", pytest.approx(484.403))  # codecarbon: 475, silently


def test_a_cloud_region_is_never_the_worlds_average_when_its_country_is_known():
    for place in ("aws:us-east-1", "azure:westeurope"):  # codecarbon without geography: 475
        _value, used = kg_of_1000_kwh(place)
        assert used.level in ("us_state", "country")

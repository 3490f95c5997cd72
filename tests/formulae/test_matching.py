"""Matching never covers more than there is, never goes below zero, and its parts are the whole."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae.matching import (
    HourlyInstrument,
    market_share_kgco2e,
    match_annually,
    match_hourly,
)
from formulae.units import QuantityError

HOURS = 6
energies = st.lists(st.floats(0, 1e6), min_size=HOURS, max_size=HOURS)


@st.composite
def instruments(draw):
    first = draw(st.integers(0, HOURS))
    last = draw(st.integers(first, HOURS))
    hourly = draw(
        st.none() | st.lists(st.floats(0, 1e6), min_size=last - first, max_size=last - first)
    )
    whole = draw(st.none() | st.floats(0, 1e7)) if hourly is None else math.fsum(hourly)
    return HourlyInstrument(
        g_per_kwh=draw(st.floats(0, 1_000)),
        first=first,
        last=last,
        energy_kwh=whole,
        hourly_kwh=hourly,
    )


@pytest.mark.parametrize("match", [match_annually, match_hourly])
@given(energy_kwh=energies, contracts=st.lists(instruments(), max_size=4))
def test_what_is_covered_is_what_contracts_gave_and_no_more_than_there_is(
    match, energy_kwh, contracts
):
    found = match(energy_kwh, contracts)
    assert math.isclose(
        math.fsum(found.used_kwh), math.fsum(found.covered_kwh), rel_tol=1e-9, abs_tol=1e-6
    )
    for used, contract in zip(found.used_kwh, contracts, strict=True):
        assert used >= 0
        if contract.energy_kwh is not None:
            assert used <= contract.energy_kwh * (1 + 1e-9) + 1e-6
    for covered, energy, emitted in zip(
        found.covered_kwh, energy_kwh, found.covered_kgco2e, strict=True
    ):
        assert 0 <= covered <= energy * (1 + 1e-12)
        assert emitted >= 0


@given(
    energy_kwh=energies,
    contracts=st.lists(instruments(), max_size=3),
    split=st.lists(st.floats(0, 1), min_size=HOURS, max_size=HOURS),
    g_per_kwh=st.floats(0, 1_000),
)
def test_the_parts_of_owners_sum_to_the_whole_and_none_is_below_zero(
    energy_kwh, contracts, split, g_per_kwh
):
    for match in (match_annually, match_hourly):
        found = match(energy_kwh, contracts)

        def share(energy, hour, found=found):
            return market_share_kgco2e(
                energy_kwh=energy,
                uncontracted_kgco2e=energy * g_per_kwh / 1000,
                market_energy_kwh=energy_kwh[hour],
                covered_kwh=min(energy_kwh[hour], found.covered_kwh[hour]),
                covered_kgco2e=found.covered_kgco2e[hour],
            )

        parts = [
            (share(energy * part, hour), share(energy - energy * part, hour))
            for hour, (energy, part) in enumerate(zip(energy_kwh, split, strict=True))
        ]
        assert all(each >= 0 for pair in parts for each in pair)
        whole = math.fsum(share(energy, hour) for hour, energy in enumerate(energy_kwh))
        assert math.isclose(math.fsum(map(math.fsum, parts)), whole, rel_tol=1e-9, abs_tol=1e-6)


@given(energy_kwh=energies, contracts=st.lists(instruments(), max_size=4))
def test_one_contract_matched_by_the_hour_never_covers_more_than_over_the_year(
    energy_kwh, contracts
):
    for one in contracts:
        annual, hourly = match_annually(energy_kwh, [one]), match_hourly(energy_kwh, [one])
        assert hourly.used_kwh[0] <= annual.used_kwh[0] * (1 + 1e-9) + 1e-6


def test_an_hour_whose_contracts_cover_all_needs_no_other_factor():
    found = market_share_kgco2e(
        energy_kwh=5,
        uncontracted_kgco2e=None,
        market_energy_kwh=10,
        covered_kwh=10,
        covered_kgco2e=2,
    )
    assert found == 1.0
    assert (
        market_share_kgco2e(
            energy_kwh=5,
            uncontracted_kgco2e=None,
            market_energy_kwh=10,
            covered_kwh=9,
            covered_kgco2e=2,
        )
        is None
    )


def test_hours_out_of_order_and_outside_of_the_year_are_refused():
    with pytest.raises(QuantityError):
        HourlyInstrument(g_per_kwh=0, first=3, last=2, energy_kwh=1)
    with pytest.raises(QuantityError):
        HourlyInstrument(g_per_kwh=0, first=0, last=2, energy_kwh=1, hourly_kwh=[1.0])
    outside = HourlyInstrument(g_per_kwh=0, first=0, last=3, energy_kwh=1)
    with pytest.raises(QuantityError):
        match_annually([1.0, 1.0], [outside])

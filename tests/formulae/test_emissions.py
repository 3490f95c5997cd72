"""Emissions reproduce published totals, and what is unknown is never zero."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae import emissions
from formulae.emissions import ContractedEnergy, MarketBasedEmissions, ResidualBasis
from formulae.units import QuantityError, tonne_from_kg

kwh = st.floats(min_value=0, max_value=1e7)
factor = st.floats(min_value=0, max_value=2_000)


def market(
    energy_kwh: float = 1_000_000,
    *instruments: ContractedEnergy,
    residual: float | None = 460,
    grid: float | None = 400,
) -> MarketBasedEmissions:
    return emissions.market_based_kgco2e(
        energy_kwh, instruments, residual_g_per_kwh=residual, grid_average_g_per_kwh=grid
    )


def make_contract(energy_kwh: float = 600_000, g_per_kwh: float = 0) -> ContractedEnergy:
    return ContractedEnergy(energy_kwh=energy_kwh, g_per_kwh=g_per_kwh)


def test_hours_are_summed_one_by_one_not_by_mean_factor() -> None:
    result = emissions.sum_hourly_kgco2e([(10, 100), (30, 500)])
    assert result.kgco2e == 16.0
    assert result.coverage_fraction == 1.0


def test_hours_without_energy_or_factor_lower_the_coverage() -> None:
    result = emissions.sum_hourly_kgco2e([(10, 100), (None, 500), (30, None), (0, 100)])
    assert result.kgco2e == 1.0
    assert result.covered_energy_kwh == 10
    assert result.coverage_fraction == 0.5


@pytest.mark.parametrize("hours", [[], [(None, 100.0)], [(10.0, None)]])
def test_emissions_without_a_known_hour_are_unknown(
    hours: list[tuple[float | None, float | None]],
) -> None:
    assert emissions.sum_hourly_kgco2e(hours).kgco2e is None


def test_no_hours_have_no_coverage() -> None:
    assert emissions.sum_hourly_kgco2e([]).coverage_fraction is None


@given(st.lists(st.tuples(kwh, factor), min_size=2, max_size=48), st.data())
def test_emissions_of_two_stretches_sum_to_the_whole(
    hours: list[tuple[float, float]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(min_value=1, max_value=len(hours) - 1))
    parts = [emissions.sum_hourly_kgco2e(hours[:cut]), emissions.sum_hourly_kgco2e(hours[cut:])]
    whole = emissions.sum_hourly_kgco2e(hours)
    assert sum(part.kgco2e or 0 for part in parts) == pytest.approx(whole.kgco2e)


def test_bloom_dynamic_energy_is_24_69_tonnes() -> None:
    assert pytest.approx(433_196) == 1_082_990 * 0.4
    kgco2e = emissions.operational_kgco2e(433_196, 57)
    assert kgco2e is not None
    assert tonne_from_kg(kgco2e) == pytest.approx(24.69, abs=0.005)


def test_bloom_embodied_shares_are_7_57_and_3_64_tonnes() -> None:
    life_h = 6 * 8_760
    server = emissions.embodied_kgco2e_per_hour(
        total_embodied_kgco2e=2_500, lifetime_h=life_h, utilisation_fraction=0.85
    )
    gpu = emissions.embodied_kgco2e_per_hour(
        total_embodied_kgco2e=150, lifetime_h=life_h, utilisation_fraction=0.85
    )
    assert tonne_from_kg(server * 135_374) == pytest.approx(7.57, abs=0.01)
    assert tonne_from_kg(gpu * 1_082_990) == pytest.approx(3.64, abs=0.01)


def test_location_400_tonnes_and_market_184_tonnes() -> None:
    assert emissions.operational_kgco2e(1_000_000, 400) == 400_000
    result = market(1_000_000, make_contract())
    assert result.kgco2e == 184_000
    assert result.contracted_energy_kwh == 600_000
    assert result.residual_basis is ResidualBasis.RESIDUAL_MIX


def test_surplus_contracts_never_push_emissions_below_zero() -> None:
    result = market(100, make_contract(600), make_contract(50, 800))
    assert result.kgco2e == 0
    assert result.contracted_energy_kwh == 100
    assert result.residual_basis is ResidualBasis.NONE_LEFT


def test_without_a_residual_mix_the_grid_average_is_taken_and_named() -> None:
    result = market(1_000, residual=None)
    assert result.kgco2e == 400
    assert result.residual_basis is ResidualBasis.GRID_AVERAGE


def test_without_any_factor_for_the_rest_market_emissions_are_unknown() -> None:
    result = market(1_000, make_contract(400), residual=None, grid=None)
    assert result.kgco2e is None
    assert result.residual_energy_kwh == 600
    assert result.residual_basis is ResidualBasis.UNKNOWN


@given(
    energy_kwh=kwh,
    contracts=st.lists(st.builds(make_contract, kwh, factor), max_size=5),
    rest=factor,
)
def test_market_emissions_stay_between_zero_and_the_dirtiest_factor(
    energy_kwh: float, contracts: list[ContractedEnergy], rest: float
) -> None:
    result = market(energy_kwh, *contracts, residual=rest)
    worst = max([rest, *(contract.g_per_kwh for contract in contracts)])
    assert result.kgco2e is not None
    assert 0 <= result.kgco2e <= energy_kwh * worst / 1000 * (1 + 1e-9) + 1e-9
    total = result.contracted_energy_kwh + result.residual_energy_kwh
    assert total == pytest.approx(energy_kwh)


@pytest.mark.parametrize(("energy_kwh", "g_per_kwh"), [(None, 1.0), (1.0, None)])
def test_operational_emissions_are_unknown_where_an_input_is(
    energy_kwh: float | None, g_per_kwh: float | None
) -> None:
    assert emissions.operational_kgco2e(energy_kwh, g_per_kwh) is None


@pytest.mark.parametrize(("energy_kwh", "g_per_kwh"), [(-1, 1), (1, -1), (float("nan"), 1)])
def test_impossible_energy_or_factor_is_refused(energy_kwh: float, g_per_kwh: float) -> None:
    with pytest.raises(QuantityError):
        emissions.operational_kgco2e(energy_kwh, g_per_kwh)


def test_a_use_longer_than_the_life_is_refused() -> None:
    with pytest.raises(QuantityError, match="reserved_h"):
        emissions.embodied_kgco2e(
            total_embodied_kgco2e=1, reserved_h=11, lifetime_h=10, resource_share_fraction=1
        )


def test_the_shares_of_a_whole_life_carry_the_whole_device() -> None:
    shape = {"total_embodied_kgco2e": 1_312.0, "lifetime_h": 35_040.0}
    parts = [
        emissions.embodied_kgco2e(**shape, reserved_h=35_040 / 4, resource_share_fraction=1)
        for _ in range(4)
    ]
    assert sum(parts) == pytest.approx(1_312)


def test_water_on_site_is_not_multiplied_by_pue() -> None:
    water = emissions.water_l(
        it_energy_kwh=100, facility_energy_kwh=120, wue_l_per_kwh=1.8, source_l_per_kwh=3
    )
    assert (water.on_site_l, water.source_l, water.total_l) == (180, 360, 540)


@pytest.mark.parametrize(("wue", "source"), [(None, 3.0), (1.8, None)])
def test_total_water_is_unknown_where_a_factor_is(wue: float | None, source: float | None) -> None:
    water = emissions.water_l(
        it_energy_kwh=100, facility_energy_kwh=120, wue_l_per_kwh=wue, source_l_per_kwh=source
    )
    assert water.total_l is None

"""The carbon budget: what was emitted against the plan, why it differs, where it will end."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carbon.records import EmissionDay, EnergyDay
from planning.burndown import build_burndown
from planning.carbon_budget import CarbonBudget, carbon_budget
from planning.documents import burndown_document
from planning.records import Burndown, PlanRecord
from tests.planning.test_burndown import (
    QUESTION,
    START,
    make_actuals,
    make_emission,
    make_energy,
    make_plan,
)


def plan_with_carbon() -> PlanRecord:
    """Ten days, 200 kWh and 100 kg planned on each: 1,000 kg."""
    plan = make_plan()
    return replace(plan, lines=tuple(replace(line, kgco2e=500.0) for line in plan.lines))


def burndown(energies: list[float | None], g_per_kwh: float = 500.0) -> Burndown:
    energy: list[EnergyDay] = []
    emitted: list[EmissionDay] = []
    for number, kwh in enumerate(energies):
        if kwh is not None:
            day = START + timedelta(days=number)
            energy.append(make_energy(day, kwh))
            kg = kwh * g_per_kwh / 1_000
            emitted.append(replace(make_emission(day), scope_2_location_kgco2e=kg))
    return build_burndown(QUESTION, plan_with_carbon(), make_actuals((), energy, emitted))


def budget_of(energies: list[float | None], g_per_kwh: float = 500.0) -> CarbonBudget:
    found = carbon_budget(burndown(energies, g_per_kwh))
    assert found is not None
    return found


def test_a_project_on_plan_ends_at_its_budget() -> None:
    found = budget_of([200.0] * 4)

    assert found.budget_kgco2e == pytest.approx(1_000)
    assert found.emitted_kgco2e == pytest.approx(400)
    assert found.used_fraction == pytest.approx(0.4)
    assert found.over_plan_kgco2e == pytest.approx(0, abs=1e-9)
    assert found.forecast_kgco2e == pytest.approx((1_000, 1_000))
    assert found.used_up_on is None


def test_the_difference_splits_into_energy_and_grid_and_adds_up() -> None:
    found = budget_of([250.0] * 4, g_per_kwh=600.0)

    assert found.over_plan_kgco2e == pytest.approx(600 - 400)
    assert found.energy_effect_kgco2e == pytest.approx(200 * 0.5)
    assert found.intensity_effect_kgco2e == pytest.approx(1_000 * 0.1)
    assert found.energy_effect_kgco2e is not None
    assert found.intensity_effect_kgco2e is not None
    both = found.energy_effect_kgco2e + found.intensity_effect_kgco2e
    assert both == pytest.approx(found.over_plan_kgco2e)


def test_the_end_lies_between_the_plan_and_the_rates_and_names_the_day_it_is_used_up() -> None:
    found = budget_of([400.0] * 4)

    assert found.as_planned_kgco2e == pytest.approx(800 + 600)
    assert found.at_rate_so_far_kgco2e == pytest.approx(800 + 1_200)
    assert found.will_exceed is True
    assert found.used_up_on == START + timedelta(days=5)


def test_days_without_readings_are_told_and_nothing_is_split() -> None:
    found = budget_of([200.0, None, 200.0])

    assert found.days_without == 1
    assert found.emitted_kgco2e == pytest.approx(200)
    assert found.energy_effect_kgco2e is None
    assert found.at_rate_so_far_kgco2e == pytest.approx(200 + 700)


def test_without_readings_the_budget_stands_alone() -> None:
    found = budget_of([])

    assert found.emitted_kgco2e is None
    assert found.forecast_kgco2e is None
    assert found.will_exceed is None
    assert burndown_document(burndown([]))["carbon_budget"]["emitted_kgco2e"] is None


def test_a_plan_that_does_not_know_its_emissions_has_no_budget() -> None:
    bare = build_burndown(QUESTION, make_plan(), make_actuals())

    assert carbon_budget(bare) is None
    assert burndown_document(bare)["carbon_budget"] is None

"""Earned value is exact and undefined where it must be."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae import earned_value as ev
from formulae.earned_value import EarnedValue
from formulae.units import QuantityError
from tests.formulae.builders import at, make_period

money = st.decimals(min_value=0, max_value=10**9, places=6)
positive = st.decimals(min_value="0.01", max_value=10**9, places=6)


def make_state(
    bac: str = "1000", pv: str = "500", earned: str = "400", ac: str = "500"
) -> EarnedValue:
    return EarnedValue(
        budget_at_completion=Decimal(bac),
        planned_value=Decimal(pv),
        earned_value=Decimal(earned),
        actual_cost=Decimal(ac),
    )


def test_a_late_and_dear_project_has_the_textbook_figures() -> None:
    state = make_state()
    assert (state.cost_variance, state.schedule_variance) == (-100, -100)
    assert ev.cost_performance_index(state) == Decimal("0.8")
    assert ev.schedule_performance_index(state) == Decimal("0.8")
    assert ev.estimate_at_completion_at_cpi(state) == 1250
    assert ev.estimate_at_completion_at_plan(state) == 1100
    assert ev.estimate_at_completion_at_cpi_and_spi(state) == Decimal("1437.5")
    assert ev.to_complete_performance_index(state, target=Decimal(1000)) == Decimal("1.2")


def test_before_the_start_nothing_is_defined() -> None:
    state = make_state(pv="0", earned="0", ac="0")
    assert ev.cost_performance_index(state) is None
    assert ev.schedule_performance_index(state) is None
    assert ev.estimate_at_completion_at_cpi(state) is None
    assert ev.estimate_at_completion_at_cpi_and_spi(state) is None
    assert ev.estimate_at_completion_at_plan(state) == 1000


def test_money_spent_with_nothing_earned_has_no_forecast() -> None:
    state = make_state(earned="0")
    assert ev.estimate_at_completion_at_cpi(state) is None
    assert ev.estimate_at_completion_at_cpi_and_spi(state) is None
    assert ev.estimate_to_complete(estimate_at_completion=None, actual_cost=Decimal(1)) is None
    assert (
        ev.variance_at_completion(budget_at_completion=Decimal(1), estimate_at_completion=None)
        is None
    )


@pytest.mark.parametrize("spent", ["1000", "1001"])
def test_no_efficiency_meets_a_target_that_is_spent(spent: str) -> None:
    assert ev.to_complete_performance_index(make_state(ac=spent), target=Decimal(1000)) is None


@given(bac=positive, earned=positive, ac=positive)
def test_forecast_parts_sum_to_the_forecast(bac: Decimal, earned: Decimal, ac: Decimal) -> None:
    state = make_state(str(bac), "1", str(earned), str(ac))
    eac = ev.estimate_at_completion_at_cpi(state)
    etc = ev.estimate_to_complete(estimate_at_completion=eac, actual_cost=ac)
    vac = ev.variance_at_completion(budget_at_completion=bac, estimate_at_completion=eac)
    assert eac is not None
    assert etc is not None
    assert vac is not None
    assert (eac - etc, eac + vac) == (ac, bac)


@given(bac=positive, spent=positive)
def test_on_plan_every_forecast_is_the_budget(bac: Decimal, spent: Decimal) -> None:
    state = make_state(str(bac), str(spent), str(spent), str(spent))
    assert ev.estimate_at_completion_at_cpi(state) == bac
    assert ev.estimate_at_completion_at_plan(state) == bac
    assert ev.estimate_at_completion_at_cpi_and_spi(state) == bac


@given(bac=positive, done=money, planned=positive)
def test_earned_value_stays_between_zero_and_the_budget(
    bac: Decimal, done: Decimal, planned: Decimal
) -> None:
    fraction = ev.completed_fraction(done=done, planned=planned)
    assert 0 <= ev.earned_value(budget_at_completion=bac, completed_fraction=fraction) <= bac


@pytest.mark.parametrize(("done", "planned"), [(-1, 10), (1, 0), (1, -10)])
def test_work_that_cannot_be_is_refused(done: int, planned: int) -> None:
    with pytest.raises(QuantityError):
        ev.completed_fraction(done=Decimal(done), planned=Decimal(planned))


@pytest.mark.parametrize("fraction", ["-0.1", "1.1"])
def test_a_fraction_outside_zero_to_one_is_refused(fraction: str) -> None:
    with pytest.raises(QuantityError):
        ev.earned_value(budget_at_completion=Decimal(1), completed_fraction=Decimal(fraction))


@pytest.mark.parametrize(
    ("second", "value"), [(-1, 0), (0, 0), (900, 250), (1800, 500), (3600, 1000), (9999, 1000)]
)
def test_planned_value_rises_evenly_from_start_to_end(second: int, value: int) -> None:
    got = ev.planned_value_linear(
        budget_at_completion=Decimal(1000), period=make_period(0, 3600), as_of=at(second)
    )
    assert got == value


@given(st.lists(money, max_size=30))
def test_running_totals_end_at_the_sum(amounts: list[Decimal]) -> None:
    totals = ev.cumulate(amounts)
    assert len(totals) == len(amounts)
    assert totals[-1:] == ([sum(amounts, Decimal(0))] if amounts else [])


def test_a_running_total_is_unknown_from_the_first_unknown_day() -> None:
    assert ev.cumulate([Decimal(1), None, Decimal(2)]) == [Decimal(1), None, None]

"""Earned value by line: measured where it can be, unknown where it is not, one fraction for all."""

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae.money import exact_sum
from planning.earned import Spending, burn_per_day
from planning.earned_records import LineProgress, Method, Spent, Unit
from planning.earned_rules import (
    earned_state,
    planned_amount,
    planned_fraction,
    runway_on,
)
from planning.phasing import planned_cost_by_day
from planning.records import LineBase, PlanLineRecord
from tests.planning.test_burndown import make_summary

START, END = date(2026, 9, 14), date(2026, 9, 24)


def make_line(key: str = "main_run", amount: str = "1000", **fields: Any) -> PlanLineRecord:
    given_fields: dict[str, Any] = {
        "key": key,
        "name": key,
        "base": LineBase.AMOUNT,
        "fraction": None,
        "amount": Decimal(amount),
        "starts_on": START,
        "ends_on": END,
        "facility_energy_kwh": 500.0,
        "kgco2e": 200.0,
    }
    return PlanLineRecord(**(given_fields | fields))


def half_done() -> dict[str, LineProgress]:
    return {"main_run": LineProgress(completed_fraction=Decimal("0.5"), method=Method.TOKENS)}


@pytest.mark.parametrize(
    ("through", "fraction"),
    [
        (date(2026, 9, 13), "0"),
        (date(2026, 9, 14), "0.1"),
        (date(2026, 9, 23), "1"),
        (date(2027, 1, 1), "1"),
    ],
)
def test_a_line_is_planned_evenly_over_its_days(through: date, fraction: str) -> None:
    assert planned_fraction(make_line(), through) == Decimal(fraction)


@given(
    amount=st.decimals(0, 10**12, places=18),
    days=st.integers(1, 200),
    passed=st.integers(-3, 220),
)
def test_what_is_planned_by_a_day_is_the_sum_of_the_plans_days_to_the_last_digit(
    amount: Decimal, days: int, passed: int
) -> None:
    line = make_line(amount=str(amount), ends_on=START + timedelta(days=days))
    through = START + timedelta(days=passed)
    by_day = planned_cost_by_day([line])
    assert planned_amount(line, amount, through) == exact_sum(
        part for day, part in by_day.items() if day <= through
    )


def test_half_the_tokens_earn_half_the_money_energy_and_carbon() -> None:
    earned = {}
    for unit in Unit:
        state = earned_state(
            [make_line()],
            unit=unit,
            through=date(2026, 9, 17),
            progress=half_done(),
            spent=Spent(total=Decimal(400)),
        )
        assert state is not None
        earned[unit] = (state.earned_value, state.planned_value)
    assert earned == {
        Unit.MONEY: (Decimal(500), Decimal(400)),
        Unit.ENERGY: (Decimal(250), Decimal(200)),
        Unit.CARBON: (Decimal(100), Decimal(80)),
    }


def test_the_indices_are_those_of_the_textbook() -> None:
    state = earned_state(
        [make_line()],
        unit=Unit.MONEY,
        through=date(2026, 9, 18),
        progress={
            "main_run": LineProgress(completed_fraction=Decimal("0.4"), method=Method.TOKENS)
        },
        spent=Spent(total=Decimal(500)),
    )
    assert state is not None
    assert state.cost_performance_index == Decimal("0.8")
    assert state.schedule_performance_index == Decimal("0.8")
    assert state.to_complete_index == Decimal("1.2")
    assert state.estimate_at_cpi == Decimal(1250)
    assert state.estimate_at_plan == Decimal(1100)


def test_a_main_run_that_nobody_measures_leaves_the_earned_value_unknown() -> None:
    state = earned_state(
        [make_line(), make_line("evaluation", "50")],
        unit=Unit.MONEY,
        through=date(2026, 9, 18),
        progress={},
        spent=Spent(total=Decimal(500)),
    )
    assert state is not None
    assert state.earned_value is None
    assert state.cost_performance_index is None
    assert state.lines[1].method is Method.LEVEL_OF_EFFORT
    assert state.lines[1].earned_value == Decimal(25)


def test_a_cost_below_zero_has_no_index() -> None:
    state = earned_state(
        [make_line()],
        unit=Unit.MONEY,
        through=date(2026, 9, 18),
        progress=half_done(),
        spent=Spent(total=Decimal(-20)),
    )
    assert state is not None
    assert (state.cost_performance_index, state.estimate_at_cpi) == (None, None)


def test_the_contingency_earns_with_the_work_and_tells_what_was_drawn() -> None:
    state = earned_state(
        [make_line(), make_line("contingency", "200")],
        unit=Unit.MONEY,
        through=date(2026, 9, 18),
        progress=half_done(),
        spent=Spent(total=Decimal(560)),
    )
    assert state is not None
    assert state.earned_value == Decimal(600)  # 500 of work and 100 of the reserve
    assert (state.reserve, state.reserve_drawn) == (Decimal(200), Decimal(60))
    assert state.estimate_at_cpi == Decimal(1120)  # twice what half of it cost


def test_work_that_is_done_at_its_budget_ends_without_the_reserve() -> None:
    state = earned_state(
        [make_line(), make_line("contingency", "200")],
        unit=Unit.MONEY,
        through=END,
        progress={"main_run": LineProgress(completed_fraction=Decimal(1), method=Method.TOKENS)},
        spent=Spent(total=Decimal(1000)),
    )
    assert state is not None
    assert state.estimate_at_cpi == Decimal(1000)
    assert state.reserve_drawn == Decimal(0)


def test_a_plan_that_does_not_know_its_carbon_has_no_state_in_carbon() -> None:
    lines = [make_line(kgco2e=None)]
    spent = Spent(total=None)
    assert earned_state(lines, unit=Unit.CARBON, through=END, progress={}, spent=spent) is None


@given(
    amounts=st.lists(st.decimals("0.01", 10**9, places=2), min_size=1, max_size=6),
    done=st.decimals(0, 1, places=6),
    reserve=st.decimals(0, 10**9, places=2),
)
def test_what_is_earned_in_all_is_the_budget_once_all_is_done(
    amounts: list[Decimal], done: Decimal, reserve: Decimal
) -> None:
    lines = [make_line(f"line-{place}", str(one)) for place, one in enumerate(amounts)]
    lines.append(make_line("contingency", str(reserve)))
    progress = {
        line.key: LineProgress(completed_fraction=done, method=Method.MILESTONES)
        for line in lines[:-1]
    }
    state = earned_state(
        lines, unit=Unit.MONEY, through=START, progress=progress, spent=Spent(total=Decimal(1))
    )
    assert state is not None
    assert state.earned_value is not None
    assert abs(state.earned_value - done * state.budget_at_completion) < Decimal("1e-6")
    assert sum(line.budget for line in state.lines) == state.budget_at_completion


def test_the_runway_ends_with_the_last_day_that_the_budget_pays_for() -> None:
    through = date(2026, 11, 15)
    budget = Decimal(100)
    day = Decimal(20)
    assert runway_on(budget=budget, spent=Decimal(100), per_day=day, through=through) == through
    assert runway_on(budget=budget, spent=None, per_day=day, through=through) is None
    assert runway_on(budget=budget, spent=Decimal(1), per_day=Decimal(0), through=through) is None


def test_a_burn_rate_is_of_all_that_is_spent_or_not_known() -> None:
    by_day = {START + timedelta(days=one): Decimal(100) for one in range(3)}
    whole = Spending(
        through=START + timedelta(days=2),
        cost=Decimal(300),
        accrued=Decimal(0),
        by_day=by_day,
        by_line={},
        emissions=make_summary(),
    )
    assert burn_per_day(whole) == Decimal(100)
    assert burn_per_day(replace(whole, cost=None)) is None
    assert burn_per_day(replace(whole, accrued=None)) is None


def test_days_without_cost_slow_the_burn_and_the_day_that_is_not_over_does_not_count() -> None:
    spending = Spending(
        through=START + timedelta(days=4),
        cost=Decimal(210),
        accrued=Decimal(0),
        by_day={START: Decimal(200), START + timedelta(days=4): Decimal(10)},
        by_line={},
        emissions=make_summary(),
        whole_through=START + timedelta(days=3),
    )
    assert burn_per_day(spending) == Decimal(50)

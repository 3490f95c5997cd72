"""A project's forecast: what is spent stays, the rest follows the run, unknown stays unknown."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from planning.accrual_records import Accruals, AccruedDay
from planning.earned_records import WorkDone
from planning.forecast_records import EstimateBelief, ForecastBasis
from planning.forecasting import past_forecasts, project_forecast, tokens_made
from planning.records import Burndown, BurndownDay, CostGroup, LineBase, PlanLineRecord, PlanRecord
from tests.planning.test_burndown import make_summary

START = date(2026, 9, 14)
BELIEF = EstimateBelief(days_p10=40.0, days_p50=50.0, days_p90=62.0)
TOKENS = 5_000_000_000_000
COST_OF_DAY = Decimal(20_000)


def make_line(key: str, amount: int, first: int, last: int, **fields: Any) -> PlanLineRecord:
    given: dict[str, Any] = {
        "key": key,
        "name": key,
        "base": LineBase.AMOUNT,
        "fraction": None,
        "amount": Decimal(amount),
        "starts_on": START + timedelta(days=first),
        "ends_on": START + timedelta(days=last),
        "facility_energy_kwh": amount / 10,
        "kgco2e": amount / 25,
    }
    return PlanLineRecord(**(given | fields))


def make_plan() -> PlanRecord:
    return PlanRecord(
        version_id=7,
        number=1,
        is_approved=True,
        approved_at=datetime(2026, 9, 1, tzinfo=UTC),
        approved_by="lead",
        currency="USD",
        main_run_cost=Decimal(1_000_000),
        main_run_starts_on=START,
        main_run_ends_on=START + timedelta(days=50),
        main_run_facility_energy_kwh=100_000.0,
        main_run_kgco2e=40_000.0,
        estimate_id=uuid4(),
        lines=(
            make_line("main_run", 1_000_000, 0, 50),
            make_line("distillation", 150_000, 50, 64),
            make_line("contingency", 200_000, 0, 64),
        ),
    )


def make_day(offset: int, **fields: Any) -> BurndownDay:
    given: dict[str, Any] = {
        "day": START + timedelta(days=offset),
        "planned_value": Decimal(0),
        "actual_cost": COST_OF_DAY,
        "cost_by_group": {},
        "planned_facility_energy_kwh": 2000.0,
        "accelerator_energy_kwh": 1000.0,
        "facility_energy_kwh": 2000.0,
        "coverage_fraction": 1.0,
        "planned_kgco2e": 800.0,
        "scope_2_location_kgco2e": 800.0,
    }
    return BurndownDay(**(given | fields))


def make_burndown(days: int, *, pace: float = 1.0, with_progress: bool = True) -> Burndown:
    per_day = int(TOKENS / 50 * pace)
    tokens = {START + timedelta(days=one): per_day * (one + 1) for one in range(days)}
    return Burndown(
        as_of=datetime(2027, 1, 1, tzinfo=UTC),
        plan=make_plan(),
        currency="USD",
        basis="effective",
        days=tuple(make_day(one) for one in range(days)),
        billed_through=START + timedelta(days=days - 1),
        metered_through=START + timedelta(days=days - 1),
        planned_value=None,
        actual_cost=COST_OF_DAY * days,
        compute_cost=None,
        accelerator_h=None,
        energy_and_emissions=make_summary(),
        through=START + timedelta(days=days - 1),
        work=WorkDone(tokens_by_day=tokens if with_progress else {}, tokens_planned=TOKENS),
    )


def test_a_run_on_plan_ends_as_planned_and_costs_its_days_and_what_comes_after() -> None:
    found = project_forecast(make_burndown(25), BELIEF)
    assert found is not None
    assert found.cost is not None
    assert found.basis is ForecastBasis.PROGRESS
    assert abs((found.main_run_ends_p50 - (START + timedelta(days=50))).days) <= 2
    assert found.cost.p50 == pytest.approx(Decimal(1_150_000), rel=Decimal("0.04"))
    assert found.cost.p10 < found.cost.p50 < found.cost.p80 < found.cost.p90
    assert found.learned_fraction > 0.8


def test_a_run_at_two_thirds_of_its_pace_costs_half_as_much_again() -> None:
    found = project_forecast(make_burndown(30, pace=2 / 3), BELIEF)
    assert found is not None
    assert found.cost is not None
    assert found.facility_energy_kwh is not None
    assert found.cost.p50 == pytest.approx(Decimal(1_650_000), rel=Decimal("0.05"))
    assert found.facility_energy_kwh.p50 == pytest.approx(Decimal(165_000), rel=Decimal("0.05"))


def test_without_progress_the_end_is_the_estimates_and_the_interval_is_wider() -> None:
    blind = project_forecast(make_burndown(25, with_progress=False), BELIEF)
    seeing = project_forecast(make_burndown(25), BELIEF)
    assert blind is not None
    assert seeing is not None
    assert blind.cost is not None
    assert seeing.cost is not None
    assert (blind.basis, blind.learned_fraction) == (ForecastBasis.SPENDING, 0.0)
    assert blind.cost.p90 - blind.cost.p10 > 2 * (seeing.cost.p90 - seeing.cost.p10)


def test_emissions_that_nobody_metered_have_no_forecast() -> None:
    burndown = make_burndown(20)
    days = tuple(replace(row, scope_2_location_kgco2e=None) for row in burndown.days)
    found = project_forecast(replace(burndown, days=days), BELIEF)
    assert found is not None
    assert found.scope_2_location_kgco2e is None
    assert found.cost is not None


def test_a_plan_whose_estimate_names_no_days_has_no_forecast() -> None:
    assert project_forecast(make_burndown(5), None) is None


def test_past_forecasts_are_one_a_week_and_narrow_down() -> None:
    found = past_forecasts(make_burndown(45), BELIEF)
    assert [one.made_on for one in found] == [
        START + timedelta(days=6 + 7 * week) for week in range(6)
    ]
    widths = [one.cost.p90 - one.cost.p10 for one in found if one.cost]
    assert widths[-1] < widths[0] / 2


def test_tokens_of_a_gap_are_spread_over_its_days() -> None:
    made = tokens_made({START: 10, START + timedelta(days=3): 70})
    assert made == {START + timedelta(days=one): 20.0 for one in (1, 2, 3)}


def test_a_run_that_is_done_ended_when_its_last_token_was_trained() -> None:
    per_day = TOKENS // 40
    tokens = {START + timedelta(days=one): per_day * min(one + 1, 40) for one in range(45)}
    burndown = replace(
        make_burndown(45), work=WorkDone(tokens_by_day=tokens, tokens_planned=TOKENS)
    )
    found = project_forecast(burndown, BELIEF)
    assert found is not None
    assert found.cost is not None
    ends = (found.main_run_ends_p10, found.main_run_ends_p50, found.main_run_ends_p90)
    assert ends == (START + timedelta(days=39),) * 3
    assert found.cost.p10 == found.cost.p90 == COST_OF_DAY * 45 + 150_000


def test_what_comes_after_a_run_that_is_late_is_still_to_come() -> None:
    found = project_forecast(make_burndown(60, pace=0.7), BELIEF)
    assert found is not None
    assert found.cost is not None
    # 60 days for 84 % of the tokens: eleven and a half more, then all of the distillation
    assert found.cost.p50 == pytest.approx(
        60 * COST_OF_DAY + Decimal("11.4") * COST_OF_DAY + 150_000, rel=Decimal("0.02")
    )


def test_a_part_of_the_cost_is_not_forecast_as_the_whole() -> None:
    accrued = AccruedDay(
        day=START + timedelta(days=24),
        x_cost_class="accelerator",
        currency="USD",
        quantity=Decimal(192),
        unit="accelerator_h",
        rate=None,
        cost=None,
    )
    whole = make_burndown(25)
    days = tuple(
        replace(row, actual_cost=None, accrued_cost=COST_OF_DAY if place > 22 else None)
        for place, row in enumerate(whole.days)
    )
    foreign = replace(whole, days=days, actual_cost=None, other_currencies=("EUR",))
    unpriced = replace(whole, accruals=Accruals(days=(accrued,)))
    for burndown in (foreign, unpriced):
        found = project_forecast(burndown, BELIEF)
        assert found is not None
        assert found.cost is None
        assert found.facility_energy_kwh is not None
    before = project_forecast(unpriced, BELIEF, on=START + timedelta(days=20))
    assert before is not None
    assert before.cost is not None


def test_a_credit_that_comes_once_is_not_expected_again() -> None:
    burndown = make_burndown(25)
    credit = Decimal(-200_000)
    days = list(burndown.days)
    days[20] = replace(
        days[20], actual_cost=COST_OF_DAY + credit, cost_by_group={CostGroup.CREDITS: credit}
    )
    found = project_forecast(replace(burndown, days=tuple(days)), BELIEF)
    assert found is not None
    assert found.cost is not None
    assert found.cost.p50 == pytest.approx(Decimal(950_000), rel=Decimal("0.04"))


def test_a_run_whose_reports_stopped_is_taken_to_go_on_while_bills_do() -> None:
    burndown = make_burndown(25)
    told = {
        day: count
        for day, count in burndown.work.tokens_by_day.items()
        if day <= START + timedelta(days=14)
    }
    silent = replace(burndown, work=WorkDone(tokens_by_day=told, tokens_planned=TOKENS))
    found = project_forecast(silent, BELIEF)
    assert found is not None
    assert abs((found.main_run_ends_p50 - (START + timedelta(days=50))).days) <= 3


def test_one_whole_day_of_a_slow_start_does_not_outweigh_the_estimate() -> None:
    found = project_forecast(make_burndown(3, pace=0.5), BELIEF)
    assert found is not None
    assert found.learned_fraction < 0.75

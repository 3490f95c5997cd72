"""Lines of a plan spread over days: nothing is lost to rounding."""

from datetime import date, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from formulae.money import exact_sum
from planning.phasing import default_dates, planned_cost_by_day, planned_quantity_by_day
from planning.records import LineBase, PlanLineRecord

START = date(2026, 9, 14)


def make_line(
    *, amount: str = "100", days: int = 3, kwh: float | None = 9.0, in_programme: bool = True
) -> PlanLineRecord:
    return PlanLineRecord(
        key="main_run",
        name="Main run",
        base=LineBase.MAIN_RUN,
        fraction=Decimal(1),
        amount=Decimal(amount),
        starts_on=START,
        ends_on=START + timedelta(days=days),
        in_programme=in_programme,
        facility_energy_kwh=kwh,
        kgco2e=None,
    )


@given(
    amount=st.decimals(min_value=0, max_value=Decimal("1e15"), places=18),
    days=st.integers(min_value=1, max_value=400),
)
def test_the_days_of_a_line_sum_to_the_line_exactly(amount: Decimal, days: int) -> None:
    by_day = planned_cost_by_day([make_line(amount=str(amount), days=days)])
    assert len(by_day) == days
    assert exact_sum(by_day.values()) == amount


def test_lines_that_overlap_add_up_by_day() -> None:
    by_day = planned_cost_by_day([make_line(amount="30", days=3), make_line(amount="10", days=1)])
    assert by_day[START] == 20
    assert by_day[START + timedelta(days=1)] == 10


def test_energy_is_unknown_when_one_programme_line_does_not_know() -> None:
    assert (
        planned_quantity_by_day([make_line(), make_line(kwh=None)], "facility_energy_kwh") is None
    )


def test_a_line_outside_the_programme_needs_no_energy() -> None:
    lines = [make_line(days=3), make_line(kwh=None, in_programme=False)]
    by_day = planned_quantity_by_day(lines, "facility_energy_kwh")
    assert by_day is not None
    assert by_day[START] == 3.0


def test_experiments_come_before_the_main_run_and_distillation_after_it() -> None:
    end = START + timedelta(days=72)
    assert default_dates("experiments", run_start=START, run_end=end)[1] == START
    assert default_dates("distillation", run_start=START, run_end=end)[0] == end
    assert default_dates("my own line", run_start=START, run_end=end) == (START, end)

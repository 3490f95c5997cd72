"""Why a plan and its actuals differ: each cause from its own facts, nothing lost between them."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae.money import exact_sum
from formulae.time_ledger import Bucket
from formulae.variance import Cause
from planning.expenses import Expenses
from planning.records import CostGroup
from planning.variance import Known, build_variance
from planning.variance_records import Against, Variance, VarianceNote
from tests.planning.variance_builders import (
    AS_PLANNED,
    ASSUMED,
    START,
    THROUGH,
    TOKENS,
    make_energy,
    make_known,
    make_run,
    make_time,
    make_variance,
    make_work,
    moved,
    of,
    untold,
)

AMOUNTS = {"cost": "cost", "facility_energy_kwh": "facility_energy_kwh", "kgco2e": "kgco2e"}


def assert_sums(found: Variance) -> None:
    for name in AMOUNTS:
        whole = getattr(found, name).difference
        known = [getattr(one, name) for one in found.causes if getattr(one, name) is not None]
        assert whole == (exact_sum(known) if known else None)


def test_what_goes_as_planned_has_no_cause() -> None:
    found = make_variance()
    assert found.cost.planned == found.cost.actual == 1538
    assert moved(found) == moved(found, "facility_energy_kwh") == moved(found, "kgco2e") == {}
    assert found.notes == ()
    assert found.against is Against.WORK_DONE


@pytest.mark.parametrize(
    ("group", "amount", "cause"),
    [
        (CostGroup.ACCELERATOR, "1560", Cause.PRICE),
        (CostGroup.OTHER_COMPUTE, "60", Cause.EXPERIMENTS),
        (CostGroup.STORAGE_HOT, "60", Cause.STORAGE),
        (CostGroup.STORAGE_WARM, "80", Cause.STORAGE),
        (CostGroup.REQUESTS, "65", Cause.TRANSFER),
        (CostGroup.TRANSFER, "70", Cause.TRANSFER),
        (CostGroup.SERVICES, "63", Cause.OTHER_CHARGES),
        (CostGroup.TAX, "60", Cause.OTHER_CHARGES),
    ],
)
def test_charges_are_set_against_their_own_lines_of_the_plan(
    group: CostGroup, amount: str, cause: Cause
) -> None:
    found = make_variance(costs={group: amount})
    assert moved(found) == {cause: 60}
    opens = of(found, cause).opens
    assert opens.cost_classes
    assert (opens.start_on, opens.end_on.day) == (START, THROUGH.day + 1)
    assert [one.day for one in opens.days] == [START]


@pytest.mark.parametrize(
    ("bucket", "cause"),
    [
        (Bucket.DOWN, Cause.DOWN),
        (Bucket.STARTUP, Cause.RESTART),
        (Bucket.REWORK, Cause.REWORK),
        (Bucket.CHECKPOINT, Cause.CHECKPOINT),
        (Bucket.DATA_STALL, Cause.DATA_STALL),
        (Bucket.STRAGGLER, Cause.STRAGGLER),
        (Bucket.IDLE, Cause.IDLE),
    ],
)
def test_time_beyond_what_the_plan_allows_stands_under_what_took_it(
    bucket: Bucket, cause: Cause
) -> None:
    time = make_time({Bucket.PRODUCTIVE: 450, bucket: 55}, day=THROUGH)
    found = make_variance(time=time, hours="605", costs={CostGroup.ACCELERATOR: "1512.50"})
    assert moved(found) == {cause: Decimal("12.50")}
    driver = of(found, cause).driver
    assert driver is not None
    assert (driver.planned, driver.actual) == (Decimal(50), Decimal(55))  # as goodput allows
    opens = of(found, cause).opens
    assert opens.buckets == (bucket.value,)
    assert opens.run_ids == (time.main_runs[0].run_id,)
    assert [(one.day, one.accelerator_h) for one in opens.days] == [(THROUGH, Decimal(55))]


def test_slow_steps_are_efficiency_with_the_losses_that_the_plan_allows_per_useful_hour() -> None:
    time = make_time({Bucket.PRODUCTIVE: 450, Bucket.SLOW: 90, Bucket.DOWN: 60})
    found = make_variance(time=time, hours="700", costs={CostGroup.ACCELERATOR: "1750"})
    assert moved(found) == {Cause.EFFICIENCY: 250}
    mfu = of(found, Cause.EFFICIENCY).driver
    assert mfu is not None
    # 6e9 FLOP * 50e9 tokens / (450 h * 3600 s * 1e15 FLOP/s), and the same over 540 h
    assert round(mfu.planned or 0, 6) == Decimal("0.185185")
    assert round(mfu.actual or 0, 6) == Decimal("0.154321")
    assert [one.accelerator_h for one in of(found, Cause.EFFICIENCY).opens.days] == [90]


def test_being_late_is_no_saving_and_being_early_no_overrun() -> None:
    """A quarter of the work on half of the days, at the cost of a quarter."""
    time = make_time({Bucket.PRODUCTIVE: 225, Bucket.CHECKPOINT: 25})
    found = make_variance(
        work=make_work(TOKENS // 4),
        time=time,
        hours="350",
        costs={CostGroup.ACCELERATOR: "875"},
        energy=make_energy(350 * 0.65),
    )
    assert moved(found) == {}
    assert found.schedule is not None
    assert found.schedule < 0


def test_work_beyond_the_plan_is_volume() -> None:
    time = make_time({Bucket.PRODUCTIVE: 1080, Bucket.CHECKPOINT: 120})
    found = make_variance(
        work=make_work(TOKENS * 6 // 5),
        time=time,
        hours="1300",
        costs={CostGroup.ACCELERATOR: "3250"},
    )
    assert moved(found) == {Cause.VOLUME: 500}


def test_a_run_that_plans_more_tokens_than_were_approved_is_volume_from_the_start() -> None:
    time = make_time({Bucket.PRODUCTIVE: 540, Bucket.CHECKPOINT: 60})
    found = make_variance(
        work=make_work(TOKENS * 6 // 10, planned=TOKENS * 6 // 5),
        time=time,
        hours="700",
        costs={CostGroup.ACCELERATOR: "1750"},
    )
    assert moved(found) == {Cause.VOLUME: 250}


def test_a_token_that_takes_more_work_is_volume() -> None:
    run = make_run(flop_per_token=7.2e9)
    time = make_time({Bucket.PRODUCTIVE: 540, Bucket.CHECKPOINT: 60}, main_runs=(run,))
    found = make_variance(time=time, hours="700", costs={CostGroup.ACCELERATOR: "1750"})
    assert moved(found) == {Cause.VOLUME: 250}


def test_other_runs_are_experiments() -> None:
    found = make_variance(
        time=make_time(other_h=140), hours="640", costs={CostGroup.ACCELERATOR: "1600"}
    )
    assert moved(found) == {Cause.EXPERIMENTS: 100}
    assert len(of(found, Cause.EXPERIMENTS).opens.run_ids) == 1


@pytest.mark.parametrize("changes", [{"time": make_time(unassigned_h=20)}, {}])
def test_hours_that_no_run_had_are_unknown_time(changes: dict[str, Any]) -> None:
    found = make_variance(hours="620", costs={CostGroup.ACCELERATOR: "1550"}, **changes)
    assert moved(found) == {Cause.UNKNOWN_TIME: 50}
    assert found.notes == (VarianceNote.NOT_ASSIGNED,)


def test_time_of_a_run_that_nothing_tells_of_is_unknown_time() -> None:
    time = make_time({Bucket.PRODUCTIVE: 450, Bucket.CHECKPOINT: 50, Bucket.UNKNOWN: 40})
    found = make_variance(time=time, hours="640", costs={CostGroup.ACCELERATOR: "1600"})
    amounts = moved(found)
    assert amounts.keys() == {Cause.CHECKPOINT, Cause.UNKNOWN_TIME}  # they share the allowance
    assert sum(amounts.values()) == pytest.approx(100)


def test_hours_that_ran_and_were_not_charged_are_a_lower_price() -> None:
    found = make_variance(hours="500", costs={CostGroup.ACCELERATOR: "1250"})
    assert moved(found) == {Cause.PRICE: -250}


def test_losses_that_the_plan_names_are_set_against_the_same() -> None:
    fraction = ASSUMED.goodput and (1 - ASSUMED.goodput) / 2
    assert fraction is not None
    named = replace(ASSUMED, lost_fractions={Cause.RESTART: fraction, Cause.REWORK: fraction})
    time = make_time({Bucket.PRODUCTIVE: 450, Bucket.STARTUP: 50})
    assert moved(make_variance(assumed=named, time=time)) == {
        Cause.RESTART: Decimal("62.5"),
        Cause.REWORK: Decimal("-62.5"),
    }


def test_energy_and_carbon_have_causes_that_money_has_not() -> None:
    kwh = 420.0
    energy = make_energy(
        kwh,
        it_energy_kwh=kwh * 1.5,
        facility_energy_kwh=kwh * 1.5 * 1.1,
        scope_2_location_kgco2e=kwh * 1.5 * 1.1 * 0.3,
    )
    found = make_variance(energy=energy)
    assert moved(found) == {}
    assert moved(found, "facility_energy_kwh") == {
        Cause.POWER: 36,
        Cause.HOST_FACTOR: 252,
        Cause.PUE: -63,
    }
    assert moved(found, "kgco2e")[Cause.CARBON_INTENSITY] == Decimal("-69.3")
    pue = of(found, Cause.PUE).driver
    assert pue is not None
    assert (pue.planned, round(pue.actual or 0, 9)) == (Decimal("1.2"), Decimal("1.1"))


def test_with_bills_alone_the_calendar_is_compared_and_only_the_price_is_told() -> None:
    known = make_known(work=make_work(None), costs={CostGroup.ACCELERATOR: "1560"})
    found = build_variance(replace(known, time=None))
    assert found.against is Against.CALENDAR
    assert found.notes == (VarianceNote.PROGRESS_UNKNOWN, VarianceNote.TIME_UNKNOWN)
    assert moved(found) == {Cause.PRICE: 60}
    assert {Cause.VOLUME, Cause.EFFICIENCY, Cause.DOWN, Cause.EXPERIMENTS} <= untold(found)
    assert found.schedule is None
    assert_sums(found)


def test_with_much_time_unknown_useful_time_is_not_called_fast() -> None:
    """The tokens of all the run over its few known hours would look like a miracle."""
    time = make_time({Bucket.PRODUCTIVE: 100, Bucket.DOWN: 60, Bucket.UNKNOWN: 400})
    found = make_variance(time=time, hours="660", costs={CostGroup.ACCELERATOR: "1650"})
    assert VarianceNote.TIME_UNKNOWN in found.notes
    assert {Cause.EFFICIENCY, Cause.UNKNOWN_TIME, Cause.REWORK} <= untold(found)
    assert of(found, Cause.DOWN).cost == 25  # 10 h beyond the 50 h that are allowed
    assert of(found, Cause.UNEXPLAINED).cost == 125


def test_a_cost_that_is_not_known_has_no_causes_but_energy_has() -> None:
    found = make_variance(spent=Expenses(by_group=None, accelerator_h=Decimal(600)))
    assert untold(found) == set(Cause)
    assert moved(found, "facility_energy_kwh") == {}
    assert found.facility_energy_kwh.difference == 0
    assert found.notes == (VarianceNote.COST_UNKNOWN,)


def test_energy_that_was_not_all_seen_is_noted() -> None:
    found = make_variance(energy=make_energy(coverage_fraction=0.9))
    assert found.notes == (VarianceNote.ENERGY_NOT_COVERED,)


def test_the_difference_is_what_is_drawn_of_the_reserve() -> None:
    known = make_known(costs={CostGroup.STORAGE_HOT: "60"})
    found = build_variance(known)
    assert found.cost.difference == known.earned.money.reserve_drawn == 60
    assert found.reserve == 600
    assert found.cost.actual == known.earned.money.actual


hours = st.integers(0, 1000)
cents = st.integers(-(10**6), 10**6).map(lambda cent: str(Decimal(cent) / 100))


@st.composite
def anything_known(draw: st.DrawFn) -> Known:
    """Bills, time, progress and energy of any size, some of them missing."""
    buckets = draw(st.dictionaries(st.sampled_from(list(Bucket)), hours))
    known = make_known(
        costs=draw(st.dictionaries(st.sampled_from(list(CostGroup)), cents)),
        hours=draw(st.none() | hours.map(str)),
        time=make_time(buckets, other_h=draw(hours), unassigned_h=draw(hours)),
        work=make_work(draw(st.none() | st.integers(0, 2 * TOKENS))),
        energy=make_energy(draw(st.none() | st.floats(0, 10**6))),
    )
    missing: dict[str, Any] = {
        "time": None,
        "assumed": replace(ASSUMED, goodput=None),
        "spent": Expenses(by_group=None),
    }
    gone = draw(st.sets(st.sampled_from(sorted(missing))))
    return replace(known, **{name: missing[name] for name in gone})


@given(anything_known())
def test_causes_sum_to_the_difference_to_the_last_digit_whatever_is_known(known: Known) -> None:
    assert_sums(build_variance(known))


def test_the_whole_plan_is_compared_but_the_reserve() -> None:
    assert exact_sum(map(Decimal, AS_PLANNED.values())) == make_variance().cost.planned

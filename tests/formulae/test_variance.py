"""Causes sum to the difference, whatever is missing, and each stands for its own driver."""

import random
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae.drivers import AVAILABILITY, Exact
from formulae.units import QuantityError
from formulae.variance import Cause, CauseAmount, Drivers, variance_by_cause

# 256 GPUs at $2.50 an hour, 0.65 kW each, host factor 1, PUE 1.2, 400 g/kWh.
PRICE, KW, PUE, G_PER_KWH = Decimal("2.50"), Decimal("0.65"), Decimal("1.2"), 400
NAMES = ("cost", "facility_kwh", "kgco2e")
# Sevenths have no end as decimals.
amounts = st.integers(1, 10**9).map(lambda sevenths: Fraction(sevenths, 7))
money = st.integers(-(10**9), 10**9).map(lambda cents: Decimal(cents) / 100)


def p0(hours: Exact, *, tokens: Exact = 100, **changes: Any) -> Drivers:
    """Hours of the main run at the rates of the worked case, all of them productive."""
    kwh = Fraction(hours) * Fraction(KW)
    drivers = Drivers(
        tokens=tokens,
        productive_h=hours,
        main_h=hours,
        other_h=0,
        accelerator_cost=Fraction(hours) * Fraction(PRICE),
        accelerator_kwh=kwh,
        it_kwh=kwh,
        facility_kwh=kwh * Fraction(PUE),
        kgco2e=kwh * Fraction(PUE) * G_PER_KWH / 1000,
    )
    return replace(drivers, **changes)


def by_cause(planned: Drivers, actual: Drivers) -> dict[Cause, CauseAmount]:
    return {one.cause: one for one in variance_by_cause(planned, actual)}


def moved(planned: Drivers, actual: Drivers, name: str) -> set[Cause]:
    """The causes that add something."""
    return {one.cause for one in variance_by_cause(planned, actual) if getattr(one, name)}


@st.composite
def whole_drivers(draw: st.DrawFn, *, actual: bool) -> Drivers:
    """Drivers that agree with each other, all known."""
    lost = draw(st.dictionaries(st.sampled_from(AVAILABILITY), amounts))
    productive_h, other_h, rest = draw(amounts), draw(amounts), draw(amounts)
    unassigned_h = draw(amounts) if actual else 0
    main_h = productive_h + rest + sum(lost.values())
    return Drivers(
        tokens=draw(amounts),
        flop_per_token=draw(amounts),
        productive_h=productive_h,
        lost_h=lost,
        main_h=main_h,
        other_h=other_h,
        unassigned_h=unassigned_h,
        accelerator_h=main_h + other_h + unassigned_h,
        accelerator_cost=draw(money),
        other_compute_cost=draw(money),
        storage_cost=draw(money),
        transfer_cost=draw(money),
        other_cost=draw(money),
        currency_cost=draw(money) if actual else 0,
        accelerator_kwh=draw(amounts),
        it_kwh=draw(amounts),
        facility_kwh=draw(amounts),
        kgco2e=draw(amounts),
        price_per_accelerator_h=draw(amounts),
        accelerator_kw=draw(amounts),
        host_factor=draw(amounts),
        pue=draw(amounts),
        g_per_kwh=draw(amounts),
    )


@st.composite
def drivers_with_gaps(draw: st.DrawFn, *, actual: bool) -> Drivers:
    """The same with any of them unknown, or zero where that can be."""
    whole = draw(whole_drivers(actual=actual))
    names = sorted(
        one.name for one in fields(Drivers) if one.name not in ("lost_h", "unassigned_h")
    )
    zeros: dict[str, Any] = dict.fromkeys(draw(st.sets(st.sampled_from(names))), 0)
    hours = ("productive_h", "main_h", "other_h", "accelerator_h")
    unknown: dict[str, Any] = dict.fromkeys(draw(st.sets(st.sampled_from(names))))
    zeros = {name: zero for name, zero in zeros.items() if name not in hours}
    return replace(whole, **zeros | unknown)


def assert_sums(planned: Drivers, actual: Drivers) -> None:
    found = variance_by_cause(planned, actual)
    assert [one.cause for one in found] == list(Cause)
    for name in NAMES:
        ends = [getattr(one, name) for one in (planned, actual)]
        parts = [getattr(one, name) for one in found]
        if None in ends:
            assert parts == [None] * len(parts)
            continue
        known = [Fraction(part) for part in parts if part is not None]
        # The ends are rounded once to the 18 decimals that are stored.
        before, after = (Fraction(round(end * 10**18), 10**18) for end in map(Fraction, ends))
        assert sum(known) == after - before


@given(drivers_with_gaps(actual=False), drivers_with_gaps(actual=True))
def test_causes_sum_to_the_variance_to_the_last_digit_whatever_is_missing(
    planned: Drivers, actual: Drivers
) -> None:
    assert_sums(planned, actual)


@given(whole_drivers(actual=False), whole_drivers(actual=True))
def test_nothing_is_unexplained_where_everything_is_known(
    planned: Drivers, actual: Drivers
) -> None:
    found = by_cause(planned, actual)
    for name in NAMES:
        assert getattr(found[Cause.UNEXPLAINED], name) == 0
        assert all(getattr(one, name) is not None for one in found.values())


@given(whole_drivers(actual=True), st.randoms(use_true_random=False))
def test_the_order_of_what_was_lost_does_not_matter(actual: Drivers, chance: random.Random) -> None:
    planned = p0(1000)
    order = chance.sample(list(actual.lost_h), len(actual.lost_h))
    shuffled = replace(actual, lost_h={cause: actual.lost_h[cause] for cause in order})
    assert variance_by_cause(planned, actual) == variance_by_cause(planned, shuffled)


@given(whole_drivers(actual=False))
def test_what_went_as_planned_has_no_cause(drivers: Drivers) -> None:
    for name in NAMES:
        assert moved(drivers, drivers, name) == set()


def test_a_cluster_hour_that_was_down_costs_what_was_worked_by_hand() -> None:
    actual = p0(257 * 256, productive_h=256 * 256, lost_h={Cause.DOWN: 256})
    planned = p0(256 * 256)
    down = by_cause(planned, actual)[Cause.DOWN]
    assert (down.cost, down.facility_kwh, down.kgco2e) == (
        Decimal("640.00"),
        Decimal("199.68"),
        Decimal("79.872"),
    )
    assert moved(planned, actual, "cost") == {Cause.DOWN}


def test_six_hours_at_35_instead_of_55_percent_cost_what_was_worked_by_hand() -> None:
    planned = p0(Fraction(256 * 6 * 35, 55))  # the hours that the same tokens take at 55 %
    slower = by_cause(planned, p0(256 * 6))[Cause.EFFICIENCY]
    shown = f"{slower.cost:.2f} {slower.facility_kwh:.1f} {slower.kgco2e:.1f}"
    assert shown == "1396.36 435.7 174.3"


@pytest.mark.parametrize(
    ("changes", "cause", "name"),
    [
        ({"tokens": 110, "productive_h": 1100, "main_h": 1100}, Cause.VOLUME, "cost"),
        ({"productive_h": 1100, "main_h": 1100}, Cause.EFFICIENCY, "cost"),
        ({"lost_h": {Cause.REWORK: 10}, "main_h": 1010}, Cause.REWORK, "cost"),
        ({"main_h": 1010}, Cause.UNKNOWN_TIME, "cost"),
        ({"other_h": 10}, Cause.EXPERIMENTS, "cost"),
        ({"unassigned_h": 10}, Cause.UNKNOWN_TIME, "cost"),
    ],
)
def test_more_hours_stand_under_what_took_them(
    changes: dict[str, Any], cause: Cause, name: str
) -> None:
    planned, actual = p0(1000), replace(p0(1000), **changes)
    hours = actual.hours or Fraction(0)
    actual = replace(actual, accelerator_cost=hours * Fraction(PRICE))
    assert moved(planned, actual, name) == {cause}


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"accelerator_cost": 2501}, Cause.PRICE),
        ({"other_compute_cost": 1}, Cause.EXPERIMENTS),
        ({"storage_cost": 1}, Cause.STORAGE),
        ({"transfer_cost": 1}, Cause.TRANSFER),
        ({"other_cost": -1}, Cause.OTHER_CHARGES),
        ({"currency_cost": 1}, Cause.CURRENCY),
    ],
)
def test_money_that_no_hour_took_stands_under_its_cause(
    changes: dict[str, Any], cause: Cause
) -> None:
    planned = p0(1000)
    actual = replace(planned, **changes)
    found = by_cause(planned, actual)[cause]
    assert abs(found.cost or 0) == 1
    assert moved(planned, actual, "cost") == {cause}
    assert moved(planned, actual, "facility_kwh") == moved(planned, actual, "kgco2e") == set()


def test_energy_stands_under_power_host_and_pue_and_carbon_under_intensity() -> None:
    planned = p0(1000)
    drawn = replace(planned, accelerator_kwh=700, it_kwh=700, facility_kwh=840, kgco2e=336)
    assert moved(planned, drawn, "facility_kwh") == moved(planned, drawn, "kgco2e") == {Cause.POWER}
    hosts = replace(drawn, it_kwh=1050, facility_kwh=1260, kgco2e=504)
    assert moved(drawn, hosts, "facility_kwh") == {Cause.HOST_FACTOR}
    cooled = replace(hosts, facility_kwh=1155, kgco2e=462)
    assert moved(hosts, cooled, "facility_kwh") == {Cause.PUE}
    assert by_cause(hosts, cooled)[Cause.PUE].facility_kwh == -105
    windy = replace(cooled, kgco2e=231)
    assert moved(cooled, windy, "kgco2e") == {Cause.CARBON_INTENSITY}
    assert moved(cooled, windy, "facility_kwh") == moved(cooled, windy, "cost") == set()


def test_the_allowance_of_a_plan_is_used_up_before_anything_is_lost_beyond_it() -> None:
    planned = p0(1000, productive_h=900)  # a goodput of 90 %, whatever takes the rest
    as_allowed = p0(1000, productive_h=900, lost_h={Cause.DOWN: 60, Cause.CHECKPOINT: 40})
    assert moved(planned, as_allowed, "cost") == set()
    beyond = p0(1050, productive_h=900, lost_h={Cause.DOWN: 90, Cause.CHECKPOINT: 60})
    found = by_cause(planned, beyond)
    assert (found[Cause.DOWN].cost, found[Cause.CHECKPOINT].cost) == (Decimal(75), Decimal(50))
    spared = p0(900)
    assert by_cause(planned, spared)[Cause.DOWN].cost == -250


def test_what_is_paid_for_and_used_by_no_run_is_covered_by_no_allowance() -> None:
    planned = p0(1000, productive_h=900)
    actual = p0(1000, productive_h=900, unassigned_h=20, accelerator_cost=2550)
    found = by_cause(planned, actual)
    assert found[Cause.UNKNOWN_TIME].cost == 50
    assert moved(planned, replace(actual, productive_h=None), "cost") == {
        Cause.UNKNOWN_TIME,
    }


def test_what_a_plan_names_as_lost_is_set_against_the_same() -> None:
    planned = p0(1000, productive_h=900, lost_h={Cause.CHECKPOINT: 100})
    actual = p0(1000, productive_h=900, lost_h={Cause.DOWN: 100})
    found = by_cause(planned, actual)
    assert (found[Cause.DOWN].cost, found[Cause.CHECKPOINT].cost) == (Decimal(250), Decimal(-250))


def test_without_tokens_more_work_and_slower_work_are_not_told_apart() -> None:
    planned, actual = p0(1000), p0(1100, tokens=100)
    found = by_cause(planned, replace(actual, tokens=None))
    assert found[Cause.VOLUME].cost is None
    assert found[Cause.EFFICIENCY].cost is None
    assert found[Cause.UNEXPLAINED].cost == 250
    assert found[Cause.DOWN].cost == 0


def test_what_events_tell_is_told_where_useful_hours_are_not() -> None:
    planned = p0(1000, productive_h=950)
    actual = p0(1100, productive_h=None, lost_h={Cause.DOWN: 80})
    found = by_cause(planned, replace(actual, tokens=None))
    assert found[Cause.DOWN].cost == 75  # 30 h beyond the 50 h that the plan allows
    assert found[Cause.REWORK].cost is None
    assert found[Cause.UNEXPLAINED].cost == 175
    assert found[Cause.EXPERIMENTS].cost == 0


def test_with_bills_alone_the_price_is_told_and_the_hours_are_not() -> None:
    bills = Drivers(accelerator_h=1100, accelerator_cost=2860)
    found = by_cause(p0(1000), bills)
    assert found[Cause.PRICE].cost == 110
    assert found[Cause.UNEXPLAINED].cost == 250
    assert {found[cause].cost for cause in AVAILABILITY} == {None}
    assert found[Cause.PRICE].kgco2e is None


def test_before_any_work_is_done_waiting_is_priced_at_the_plans_rates() -> None:
    planned = replace(
        p0(0, tokens=0),
        price_per_accelerator_h=PRICE,
        accelerator_kw=KW,
        host_factor=1,
        pue=PUE,
        g_per_kwh=G_PER_KWH,
    )
    actual = p0(256, tokens=0, productive_h=0, lost_h={Cause.IDLE: 256})
    idle = by_cause(planned, actual)[Cause.IDLE]
    assert (idle.cost, idle.facility_kwh, idle.kgco2e) == (
        Decimal("640.00"),
        Decimal("199.68"),
        Decimal("79.872"),
    )


def test_a_total_that_is_not_known_has_no_causes() -> None:
    found = variance_by_cause(p0(1000), p0(1000, storage_cost=None))
    assert {one.cost for one in found} == {None}
    assert {one.kgco2e for one in found} == {Decimal(0)}


@pytest.mark.parametrize(
    "changes",
    [{"main_h": -1}, {"other_h": -1}, {"productive_h": 1001}, {"lost_h": {Cause.PRICE: 1}}],
)
def test_hours_that_cannot_be_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(QuantityError, match=r"hours|parts"):
        replace(p0(1000), **changes)

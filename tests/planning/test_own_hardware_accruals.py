"""Own hardware accrues until it is charged, and no device-hour counts twice in any order."""

from collections import defaultdict
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from uuid import UUID

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from billing.cost_questions import CostQuestion
from billing.own_records import OwnRateCard
from billing.selectors import cost_table
from formulae.time_ledger import HOUR_MICROSECOND
from planning.accrual_records import AccruedDay, DeviceDay, RateBasis
from planning.accruals import accruals_of
from planning.own_accrual_rules import accrued_own_hardware
from planning.rate_card_records import RateCardRecord
from projects.models import Project
from tests.billing.builders import focus_csv, imported, in_month
from tests.builders import organisation, project
from tests.planning.own_hardware_builders import (
    DAY,
    HOUR,
    START,
    assign,
    charged,
    devices,
    make_card,
    make_hall,
    power,
)

SITES = (UUID(int=1), UUID(int=2))
FIRST = START.date()
DAYS = st.integers(0, 5).map(lambda offset: FIRST + timedelta(days=offset))
SITE_DAYS = st.tuples(st.sampled_from(SITES), DAYS)


def device_day(site_id: UUID, day: date, hours: int) -> DeviceDay:
    return DeviceDay(
        day=day,
        site_id=site_id,
        provider="",
        region="",
        accelerator_key="h100-sxm-80gb",
        allocated_microsecond=hours * HOUR_MICROSECOND,
    )


def card_of(site_id: UUID, day: date) -> RateCardRecord | None:
    """Cards of the first site begin two days later than those of the second."""
    begins = FIRST + timedelta(days=2) if site_id == SITES[0] else FIRST
    if day < begins:
        return None
    return RateCardRecord(site_id=site_id, valid_from=begins, card=make_card())


def in_euro(_site: UUID, _day: date) -> RateCardRecord:
    card: OwnRateCard = make_card(currency="EUR")
    return RateCardRecord(site_id=SITES[0], valid_from=FIRST, card=card)


@given(
    ran=st.lists(st.tuples(SITE_DAYS, st.integers(1, 10_000)), max_size=20),
    energy=st.dictionaries(SITE_DAYS, st.decimals(0, 1_000_000, places=6)),
    charged_days=st.sets(SITE_DAYS),
)
def test_a_day_is_either_charged_or_accrued(ran, energy, charged_days) -> None:
    found = accrued_own_hardware(
        [device_day(site_id, day, hours) for (site_id, day), hours in ran],
        energy,
        charged=charged_days,
        card_of=card_of,
        currency="USD",
    )

    hours: defaultdict[tuple[UUID | None, date], Decimal] = defaultdict(Decimal)
    kwh: dict[tuple[UUID | None, date], Decimal] = {}
    for one in found:
        if one.unit == "kWh":
            kwh[one.site_id, one.day] = one.quantity
            assert one.cost == one.quantity * Decimal("0.1")
            assert one.rate is not None
            assert one.rate.basis is RateBasis.TARIFF
        else:
            hours[one.site_id, one.day] += one.quantity
            assert one.cost == one.quantity
    assert not (hours.keys() | kwh.keys()) & charged_days
    open_days = {
        place
        for place in {*energy, *(place for place, _hours in ran)}
        if place not in charged_days and card_of(*place)
    }
    for place in open_days:
        assert hours[place] == sum(amount for other, amount in ran if other == place)
        assert kwh.get(place) == energy.get(place)


def test_a_card_in_another_currency_leaves_the_cost_unknown() -> None:
    (one,) = accrued_own_hardware(
        [device_day(SITES[0], FIRST, 24)], {}, charged=set(), card_of=in_euro, currency="USD"
    )
    assert (one.quantity, one.rate, one.cost) == (Decimal(24), None, None)


# --- with real tables


@pytest.fixture
def moe(db: None) -> Project:
    return project("moe")


def accrued(one: Project) -> tuple[AccruedDay, ...]:
    return accruals_of(one, as_of=timezone.now(), currency="USD").days


def accrued_h(one: Project) -> Decimal:
    days = accrued(one)
    return sum((day.quantity for day in days if day.unit == "accelerator_h"), Decimal(0))


def billed() -> dict[tuple[str, str], tuple[Decimal, Decimal]]:
    """Cost and device-hours by class and unit, of everybody."""
    question = CostQuestion(group_by=("project", "x_cost_class"))
    return {
        (row.group[0] or "", row.group[1] or ""): (
            row.cost or Decimal(0),
            row.accelerator_h or Decimal(0),
        )
        for row in cost_table(organisation().pk, question).rows
    }


def test_what_accrued_is_what_is_charged_and_then_is_gone(moe: Project, tmp_path: Path) -> None:
    site = make_hall(host_factor=1.5, pue=1.2)
    assign(devices(site), moe, START, START + 30 * HOUR)
    power(tmp_path, site, *[0.5] * 30)
    power(tmp_path, site, *[0.5] * 30, device=1)

    before = accrued(moe)
    charged(site)

    by_class: defaultdict[str, Decimal] = defaultdict(Decimal)
    for one in before:
        assert one.cost is not None
        by_class[one.x_cost_class] += one.cost
    assert by_class == {"accelerator": Decimal(60), "other": Decimal("5.4")}
    costs = {name: cost for (slug, name), (cost, _hours) in billed().items() if slug == "moe"}
    assert costs == by_class
    assert accrued(moe) == ()


def test_a_bill_of_a_cloud_settles_nothing_of_the_own_hall(moe: Project) -> None:
    site = make_hall()
    assign(devices(site), moe, START, START + DAY)
    gpu = {"SkuMeter": "p5.48xlarge", "ConsumedUnit": "Hours", "Tags": '{"project": "moe"}'}
    imported(focus_csv([in_month("2025-11", **gpu)]))

    assert accrued_h(moe) == 48
    charged(site)
    assert accrued_h(moe) == 0


@pytest.mark.django_db
@pytest.mark.parametrize("order", list(permutations(range(4)))[::9])
def test_no_device_hour_counts_twice_whatever_order_things_arrive_in(
    order: tuple[int, ...], moe: Project, tmp_path: Path
) -> None:
    other = project("other")
    site = make_hall()
    first, second = devices(site)
    assign([first], moe, START, START + 2 * DAY)
    arrivals: list[Callable[[], object]] = [
        lambda: assign([second], other, START + 6 * HOUR, START + 30 * HOUR),
        lambda: power(tmp_path, site, *[0.5] * 30, device=1),
        lambda: charged(site, now=START + DAY + HOUR),
        lambda: charged(site),
    ]
    stood = Decimal(2 * 48)
    for number in order:
        arrivals[number]()
        billed_h = sum(hours for _cost, hours in billed().values())
        assert accrued_h(moe) + accrued_h(other) + billed_h <= stood

    charged(site)
    assert accrued_h(moe) + accrued_h(other) == 0
    assert sum(hours for _cost, hours in billed().values()) == stood
    assert billed()["moe", "accelerator"][0] == 48
    assert billed()["other", "accelerator"][0] == 24

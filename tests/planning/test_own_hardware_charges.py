"""Own hardware is charged to those who used it, whole months at a time, never twice."""

from datetime import date, timedelta
from decimal import Decimal

import pytest
from django.db import DatabaseError, transaction

from billing.allocation_selectors import newest_rule_set
from billing.allocation_wishes import RuleWish, TargetWish, wishes_of
from billing.cost_questions import CostQuestion
from billing.models import DailyCost, Delivery
from billing.records import RuleCondition
from billing.selectors import cost_by_day, cost_table
from billing.services import replace_rules
from carbon.device_days import device_energy_by_day
from carbon.energy_questions import EnergyQuestion
from carbon.energy_selectors import booked_total
from planning.charging import ChargingError, charge_month, months_to_charge
from planning.models import RateCard
from planning.rate_cards import RateCardError, card_on, cards_of, save_rate_card
from projects.models import Project
from tests.builders import organisation, project
from tests.carbon.builders import operator
from tests.carbon.builders import site as bare_site
from tests.planning.own_hardware_builders import (
    DAY,
    HOUR,
    MONTH,
    NOW,
    START,
    assign,
    charged,
    devices,
    make_card,
    make_hall,
    make_run,
    power,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def moe() -> Project:
    return project("moe")


def cost_of(one: Project) -> Decimal:
    """What a project's page shows: its cost on every day."""
    rows = cost_by_day(
        organisation().pk,
        one.pk,
        basis="effective",
        start_on=date(2025, 1, 1),
        end_on=date(2026, 1, 1),
    )
    return sum((row.cost for row in rows if row.cost is not None), Decimal(0))


def groups(*columns: str) -> dict[tuple[str | None, ...], Decimal | None]:
    rows = cost_table(organisation().pk, CostQuestion(group_by=columns)).rows
    return {row.group: row.cost for row in rows}


def test_hours_go_to_the_project_and_run_that_used_them_and_idle_ones_to_nobody(moe, tmp_path):
    site = make_hall()
    first, second = devices(site)
    run = make_run(moe)
    assign([first], moe, START, None, run.run_id)
    assign([second], moe, START, START + 6 * HOUR)
    power(tmp_path, site, *[0.5] * 6)
    power(tmp_path, site, *[0.5] * 6, device=1)
    power(tmp_path, site, 0.25, device=1, start=START + 10 * HOUR)

    charged(site)

    # 48 h of the run and 6 h without one at a dollar, 6 kWh at ten cents.
    assert cost_of(moe) == Decimal("54.6")
    found = groups("project", "run_key")
    assert found["moe", "main"] == Decimal("48.3")
    assert found["moe", None] == Decimal("6.3")
    # The second device stood there for 42 more hours, and drew 0.25 kWh.
    assert found[None, None] == Decimal("42.025")


def test_a_charge_carries_facility_energy_by_the_factors_of_the_books(moe, tmp_path):
    site = make_hall(host_factor=1.5, pue=1.2)
    first, _ = devices(site)
    assign([first], moe, START, START + HOUR / 2)
    power(tmp_path, site, 0.4, 0.6)

    rows = device_energy_by_day(site, start_on=START.date(), end_on=START.date() + DAY)

    booked = booked_total(EnergyQuestion(organisation_id=site.organisation_id))
    assert sum(row.facility_energy_kwh for row in rows) == pytest.approx(booked.facility_energy_kwh)
    by_owner = {row.project_id: row.facility_energy_kwh for row in rows}
    assert by_owner[moe.pk] == pytest.approx(0.2 * 1.8)
    assert by_owner[None] == pytest.approx(0.8 * 1.8)


def test_energy_without_a_host_factor_is_no_charge_of_zero(moe, tmp_path):
    site = bare_site("hall-1")
    save_rate_card(operator(), site, valid_from=START.date(), card=make_card())
    assign(devices(site, 1), moe, START, START + HOUR)
    power(tmp_path, site, 1.0)

    charged(site)

    assert cost_of(moe) == Decimal(1)
    (row,) = device_energy_by_day(site, start_on=START.date(), end_on=START.date() + DAY)
    assert row.facility_energy_kwh is None


def test_the_same_month_again_is_nothing_new_and_a_late_assignment_restates_it(moe):
    site = make_hall()
    first, second = devices(site)
    assign([first], moe, START, None)
    charged(site)
    again = charged(site)
    assert again.receipt.already_imported
    assert Delivery.objects.count() == 1

    assign([second], moe, START + DAY, None)
    charged(site)

    assert cost_of(moe) == Decimal(48 + 24)
    hours = DailyCost.objects.filter(x_cost_class="accelerator")
    assert sum(row.accelerator_h for row in hours) == Decimal(48 + 24)


def test_a_day_that_is_not_over_and_a_device_that_never_was_seen_are_not_charged(moe):
    site = make_hall()
    first, _second = devices(site)
    assign([first], moe, START + DAY, None)

    charged(site)

    assert cost_of(moe) == Decimal(24)
    assert groups("project") == {("moe",): Decimal(24)}


def test_two_sites_are_charged_side_by_side(moe):
    for slug in ("hall-1", "hall-2"):
        site = make_hall(slug)
        assign(devices(site, 1), moe, START, None)
        charged(site)

    assert cost_of(moe) == Decimal(96)


def test_a_rule_that_somebody_made_before_wins_and_own_rules_are_made_once(moe):
    other = project("other")
    wish = RuleWish(
        conditions=(RuleCondition(field="region", op="is", value="hall-1"),),
        targets=(TargetWish(project="other"),),
    )
    replace_rules(operator(), [wish])
    site = make_hall()
    assign(devices(site, 1), moe, START, None)
    charged(site)
    charged(site, now=NOW + DAY)

    assert cost_of(moe) == 0
    assert cost_of(other) == Decimal(72)
    rules = wishes_of(newest_rule_set(organisation().pk))
    assert [rule.name for rule in rules] == ["", "Own hardware of moe"]


def test_without_a_card_for_the_month_nothing_is_charged(moe):
    site = make_hall()
    assign(devices(site, 1), moe, START - 3 * DAY, None)

    with pytest.raises(ChargingError, match="no rate card for 2025-09"):
        charge_month(operator(), site, "2025-09", now=NOW)
    with pytest.raises(ChargingError, match="No day of 2025-11"):
        charge_month(operator(), site, "2025-11", now=NOW)
    assert charged(make_hall("empty")).records == 0
    assert not Delivery.objects.exists()


def test_the_last_two_months_are_restated_and_the_others_until_they_are_charged(moe):
    site = make_hall()
    assign(devices(site, 1), moe, START, None)
    cards = cards_of(site)
    later = NOW + timedelta(days=100)
    months = ["2025-10", "2025-11", "2025-12", "2026-01"]
    assert months_to_charge(site, cards, now=later) == months
    charged(site, MONTH, now=later)
    assert months_to_charge(site, cards, now=later) == months[1:]
    assert months_to_charge(site, cards, now=later, since=date(2025, 10, 1)) == months
    assert months_to_charge(site, cards, now=START) == []


def test_cards_are_added_and_never_changed():
    site = make_hall()
    assert not save_rate_card(operator(), site, valid_from=date(2025, 10, 1), card=make_card())
    dearer = make_card(capital_per_accelerator=Decimal(87600))
    assert save_rate_card(operator(), site, valid_from=date(2025, 10, 1), card=dearer)
    save_rate_card(operator(), site, valid_from=date(2026, 1, 1), card=make_card())

    cards = cards_of(site)
    assert [card.valid_from for card in cards] == [date(2026, 1, 1), date(2025, 10, 1)]
    assert card_on(cards, date(2025, 12, 31)).hour_rate == 2
    assert card_on(cards, date(2026, 1, 1)).hour_rate == 1
    assert card_on(cards, date(2025, 9, 30)) is None
    with pytest.raises(DatabaseError, match="frozen"), transaction.atomic():
        RateCard.objects.update(currency="EUR")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"life_years": Decimal(0)}, "life_years"),
        ({"residual_fraction": Decimal(1)}, "residual_fraction"),
        ({"electricity_per_kwh": Decimal("NaN")}, "electricity_per_kwh"),
        ({"capital_per_accelerator": Decimal(-1)}, "capital_per_accelerator"),
        ({"currency": "dollars"}, "currency"),
        ({"source": " "}, "source"),
    ],
)
def test_a_card_that_cannot_be_is_refused_by_its_field(changes, named):
    site = make_hall(with_card=False)
    with pytest.raises(RateCardError) as refusal:
        save_rate_card(operator(), site, valid_from=date(2025, 10, 1), card=make_card(**changes))
    assert refusal.value.field == named
    with pytest.raises(RateCardError, match="2025-10-01"):
        save_rate_card(operator(), site, valid_from=date(2025, 10, 2), card=make_card())

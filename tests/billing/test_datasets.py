"""A month's billed and amortised books side by side: no charge counts twice, none is made up."""

from datetime import date
from decimal import Decimal

import pytest
from django.db import transaction

from billing.checks import verify
from billing.cost_questions import Scope, make_question
from billing.cost_selectors import cost_table, shelf_of
from billing.lake_costs import costs_from_lake
from billing.models import BillingPeriod, DailyCost
from billing.records import Dataset
from billing.selectors import cost_by_day, costs_grouped
from billing.services.locking import lock_books
from billing.services.rollups import rules_in_force, write_daily_costs
from tests.billing.builders import charge, focus_csv, imported, in_force, organisation, rule
from tests.builders import project

pytestmark = pytest.mark.django_db(transaction=True)
USAGE = {"SkuMeter": "BoxUsage:p5.48xlarge", "ConsumedQuantity": "1", "ConsumedUnit": "Hours"}
BILLED = [
    charge(BilledCost="10", EffectiveCost="10", **USAGE),
    charge(
        BilledCost="90",
        EffectiveCost="90",
        ChargeCategory="Purchase",
        Tags='{"team": "x"}',
    ),
]
AMORTISED = [charge(BilledCost="", EffectiveCost="40", Tags='{"team": "x"}', **USAGE)]
IDLE = charge(
    BilledCost="",
    EffectiveCost="20",
    CommitmentDiscountId="reservation-1",
    CommitmentDiscountStatus="Unused",
    Tags='{"team": "x"}',
    **USAGE,
)
VIEWS = (["service_name"], ["tag:team"])


def hand_in_as(dataset, rows, source="azure"):
    """A delivery of one book: the same way as any other, then told to be that book."""
    BillingPeriod.objects.filter(source__name=source, dataset=Dataset.BILLED).update(
        dataset="set aside"
    )
    delivery = imported(focus_csv(rows), source=source)
    made = BillingPeriod.objects.filter(source__name=source, dataset=Dataset.BILLED)
    made.update(dataset=dataset)
    BillingPeriod.objects.filter(source__name=source, dataset="set aside").update(
        dataset=Dataset.BILLED
    )
    with transaction.atomic():
        lock_books(organisation().pk)
        for period in BillingPeriod.objects.filter(source__name=source):
            period.published_version.daily_costs.all().delete()
            write_daily_costs(period.published_version, rules_in_force(organisation().pk))
    return delivery


def answer(basis, group_by):
    """Total cost, accelerator-hours and rows, whatever way they are asked."""
    table = costs_grouped(
        organisation().pk, group_by=group_by, basis=basis, include_unallocated=True
    )
    (total,) = table.total
    return total.cost, total.accelerator_h, total.rows


def idle_h(basis, group_by):
    """Total idle accelerator-hours, whatever way they are asked."""
    table = costs_grouped(
        organisation().pk, group_by=group_by, basis=basis, include_unallocated=True
    )
    (total,) = table.total
    return total.idle_accelerator_h


@pytest.mark.parametrize("group_by", VIEWS)
def test_with_both_books_effective_cost_is_amortised_and_the_rest_is_billed(group_by):
    hand_in_as(Dataset.BILLED, BILLED)
    hand_in_as(Dataset.AMORTISED, AMORTISED)

    assert answer("billed", group_by) == (Decimal(100), Decimal(8), 2)
    assert answer("effective", group_by) == (Decimal(40), Decimal(8), 1)
    assert DailyCost.objects.count() == 3
    assert verify(organisation().pk) == []


@pytest.mark.parametrize("group_by", VIEWS)
def test_with_the_billed_book_only_it_answers_everything(group_by):
    hand_in_as(Dataset.BILLED, BILLED)

    assert answer("billed", group_by) == (Decimal(100), Decimal(8), 2)
    assert answer("effective", group_by) == (Decimal(100), Decimal(8), 2)


@pytest.mark.parametrize("group_by", VIEWS)
def test_with_the_amortised_book_only_other_costs_are_unknown_not_zero(group_by):
    hand_in_as(Dataset.AMORTISED, AMORTISED)

    assert answer("effective", group_by) == (Decimal(40), Decimal(8), 1)
    assert answer("billed", group_by) == (None, Decimal(8), 1)
    assert answer("list", group_by)[0] is None


@pytest.mark.parametrize("group_by", VIEWS)
def test_an_amortised_book_that_comes_later_takes_effective_cost_over(group_by):
    hand_in_as(Dataset.BILLED, BILLED)
    before = answer("effective", group_by)
    hand_in_as(Dataset.AMORTISED, AMORTISED)

    assert before[0] == Decimal(100)
    assert answer("effective", group_by)[0] == Decimal(40)
    assert answer("billed", group_by)[0] == Decimal(100)


@pytest.mark.parametrize("group_by", VIEWS)
@pytest.mark.parametrize("basis", ["billed", "effective"])
@pytest.mark.parametrize("order", ["billed first", "amortised first"])
def test_idle_hours_come_from_the_amortised_book_whichever_came_first(group_by, basis, order):
    books = [(Dataset.BILLED, BILLED), (Dataset.AMORTISED, [*AMORTISED, IDLE])]
    for dataset, rows in books if order == "billed first" else reversed(books):
        hand_in_as(dataset, rows)

    assert idle_h(basis, group_by) == Decimal(8)
    cost = {"billed": Decimal(100), "effective": Decimal(60)}[basis]
    assert answer(basis, group_by) == (cost, Decimal(8), 2)


@pytest.mark.parametrize("group_by", VIEWS)
@pytest.mark.parametrize("basis", ["billed", "effective"])
def test_idle_hours_come_from_the_only_book_where_there_is_one(group_by, basis):
    hand_in_as(Dataset.BILLED, [*BILLED, {**IDLE, "BilledCost": "20"}])
    assert idle_h(basis, group_by) == Decimal(8)

    hand_in_as(Dataset.AMORTISED, [*AMORTISED, IDLE], source="other")
    assert idle_h(basis, group_by) == Decimal(16)


@pytest.mark.parametrize("basis", ["billed", "effective"])
def test_with_both_books_the_lake_answers_as_the_roll_up_does(basis):
    hand_in_as(Dataset.BILLED, BILLED)
    hand_in_as(Dataset.AMORTISED, [*AMORTISED, {**IDLE, "RegionId": "idle-region"}])
    for group_by in (("region_id",), ("charge_category", "x_cost_class"), ("day",)):
        question = make_question(
            group_by=group_by,
            basis=basis,
            days=(None, None),
            filters=(),
            scope=Scope(include_unallocated=True),
        )
        rows = costs_from_lake(shelf_of(organisation().pk, question), question)
        assert list(cost_table(organisation().pk, question).rows) == rows


def test_books_of_two_sources_do_not_hide_each_other():
    hand_in_as(Dataset.AMORTISED, AMORTISED, source="azure")
    hand_in_as(Dataset.BILLED, BILLED, source="aws")

    assert answer("effective", ["service_name"])[0] == Decimal(140)
    assert answer("billed", ["service_name"])[0] is None


def test_shares_and_days_obey_the_choice_too():
    moe = project("moe")
    hand_in_as(Dataset.BILLED, BILLED)
    hand_in_as(Dataset.AMORTISED, AMORTISED)
    in_force(rule("tag", "x", "moe", key="team"))

    days = cost_by_day(
        organisation().pk,
        moe.pk,
        basis="effective",
        start_on=date(2026, 5, 1),
        end_on=date(2026, 6, 1),
    )
    assert [row.cost for row in days if row.cost] == [Decimal(40)]
    assert verify(organisation().pk) == []

"""The rate of an accrual: what was stated holds, in another currency by the day's rate or not."""

from datetime import date
from decimal import Decimal

import pytest
from django.utils import timezone

from billing.price_records import PriceWish, RateWish
from billing.services import add_exchange_rate, add_price
from formulae.money import Money
from planning.accrual_records import RateBasis
from planning.accruals import accruals_of
from tests.carbon.builders import operator
from tests.planning.test_variance_join import main_run
from tests.runs.builders import the_project

pytestmark = pytest.mark.django_db


def state_price(amount: str, currency: str) -> None:
    add_price(
        operator(),
        PriceWish(
            cost_class="accelerator",
            unit="accelerator_h",
            price=Money(amount=Decimal(amount), currency=currency),
            valid_from=date(2026, 1, 1),
            source="contract 7",
            accelerator_key="h100-sxm-80gb",
            purchase="contract",
        ),
    )


def accrued() -> set[tuple[Decimal | None, RateBasis | None]]:
    main_run()
    found = accruals_of(the_project(), as_of=timezone.now(), currency="USD")
    return {(one.cost, one.rate.basis if one.rate else None) for one in found.days}


def test_a_stated_price_is_the_rate() -> None:
    state_price("2.50", "USD")
    assert accrued() == {(Decimal("460.00"), RateBasis.OWN_PRICE)}  # 8 accelerators, 23 hours


def test_a_stated_price_in_another_currency_is_converted_by_the_days_rate() -> None:
    state_price("2.00", "EUR")
    wish = RateWish(
        base="EUR", quote="USD", rate=Decimal("1.25"), on_date=date(2026, 9, 1), source="ECB"
    )
    add_exchange_rate(operator(), wish)
    assert accrued() == {(Decimal("460.00"), RateBasis.OWN_PRICE)}


def test_without_an_exchange_rate_the_cost_is_unknown_and_no_list_price_stands_in() -> None:
    state_price("2.00", "EUR")
    assert accrued() == {(None, None)}

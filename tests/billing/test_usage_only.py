"""Usage that a provider sends without costs is priced from the books, and says so."""

from datetime import date
from decimal import Decimal

import pytest

from billing.models import DailyCost, Delivery
from billing.price_records import PriceWish
from billing.services import add_price
from formulae.money import Money
from tests.billing.builders import charge, focus_csv, imported, operator, total

pytestmark = pytest.mark.django_db
COSTS = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")


def usage(**columns: str) -> dict[str, str]:
    usual = {
        "ProviderName": "CoreWeave",
        "PublisherName": "CoreWeave",
        "InvoiceIssuerName": "CoreWeave",
        "ServiceName": "GPU compute",
        "SkuMeter": "H100 SXM GPU",
        "ConsumedUnit": "GPU-Hours",
        "ConsumedQuantity": "16.5",
        "RegionId": "",
    }
    row = charge(**{**usual, **columns})
    return {name: text for name, text in row.items() if name not in COSTS}


def priced(amount: str) -> None:
    add_price(
        operator(),
        PriceWish(
            cost_class="accelerator",
            unit="accelerator_h",
            price=Money.of(amount, "USD"),
            provider="coreweave",
            accelerator_key="h100-sxm-80gb",
            valid_from=date(2026, 1, 1),
            source="contract 7",
        ),
    )


def test_usage_without_costs_takes_its_price_from_the_book_and_is_marked():
    priced("2.123456789012345678")

    delivery = imported(focus_csv([usage(), usage(ConsumedQuantity="0.5")]))

    assert delivery.state == Delivery.State.PUBLISHED, delivery.refusal
    assert total() == Decimal("17") * Decimal("2.123456789012345678")
    assert set(DailyCost.objects.values_list("is_estimated", flat=True)) == {True}
    assert delivery.report["has_estimated"] is True
    (used,) = delivery.report["prices_used"]
    assert "contract 7" in used["price"]
    assert delivery.report["unpriced"] == []


def test_usage_without_a_price_is_unknown_named_and_counted():
    delivery = imported(focus_csv([usage(SkuMeter="Frobnicator GPU"), usage()]))

    assert total() is None
    assert {row["sku"] for row in delivery.report["unpriced"]} >= {"Frobnicator GPU"}


def test_a_bill_with_costs_is_never_estimated():
    priced("2")

    delivery = imported(focus_csv([charge()]))

    assert delivery.report["has_estimated"] is False
    assert set(DailyCost.objects.values_list("is_estimated", flat=True)) == {False}

"""Prices and exchange rates in the configuration document."""

import pytest

from billing.models import ExchangeRate, Price, PriceBook
from billing.services import import_exchange_rates
from costwatch.configuration import (
    ConfigurationError,
    apply_document,
    document_text,
    dump_document,
    read_document,
)
from projects.access import system_actor
from tests import builders

pytestmark = pytest.mark.django_db
DOCUMENT = """
price_books:
  - {name: Contract 12, source: frame contract, currency: EUR}
prices:
  - book: Contract 12
    cost_class: accelerator
    accelerator_key: h100-sxm-80gb
    unit: accelerator_h
    price: "2.50"
    currency: EUR
    purchase: contract
    valid_from: 2026-01-01
    source: Contract 12
exchange_rates:
  - {date: 2026-01-02, base: EUR, quote: USD, rate: "1.1", source: Bank}
"""


@pytest.fixture
def actor():
    return system_actor(builders.organisation().pk, "test")


def apply(actor, text):
    return apply_document(actor, read_document(text), dry_run=False)


def test_prices_and_rates_come_true_and_twice_is_once(actor):
    changes = apply(actor, DOCUMENT)

    assert any(
        line.startswith("+ prices[Contract 12/accelerator/h100-sxm-80gb") for line in changes
    )
    assert apply(actor, DOCUMENT) == []
    assert (Price.objects.count(), ExchangeRate.objects.count()) == (1, 1)
    assert PriceBook.objects.get().currency == "EUR"


def test_what_was_dumped_builds_the_same_books(actor):
    apply(actor, DOCUMENT)
    before = dump_document(actor.organisation_id)
    Price.objects.all().delete()
    PriceBook.objects.all().delete()
    ExchangeRate.objects.all().delete()

    apply(actor, document_text(before))

    assert dump_document(actor.organisation_id) == before


def test_the_banks_daily_rates_are_not_dumped(actor):
    import_exchange_rates(actor, b"Date,USD,CNY\n2026-01-02,1.1,7.9\n")
    assert dump_document(actor.organisation_id)["exchange_rates"] == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('price: "2.50"', 'price: "free"', r"prices\.0, column price"),
        ('price: "2.50"', "price: 2.50", "prices.0.price"),
        ('rate: "1.1"', 'rate: "0"', r"exchange_rates\.0, column rate"),
        ("h100-sxm-80gb", "h100", "accelerator_key"),
        ("source: frame", "sauce: frame", "sauce"),
    ],
)
def test_a_wrong_entry_is_named_and_nothing_changes(actor, old, new, said):
    with pytest.raises(ConfigurationError, match=said):
        apply(actor, DOCUMENT.replace(old, new))
    assert not PriceBook.objects.exists()


FEED = """
price_books:
  - {name: AWS list, feed: aws, regions: [us-east-1], kinds: [accelerators]}
"""


def test_a_price_feed_is_connected_by_the_document_and_its_prices_are_not_dumped(actor):
    assert apply(actor, FEED)
    book = PriceBook.objects.get()
    assert (book.feed, book.feed_settings["regions"]) == ("aws", ["us-east-1"])
    assert apply(actor, FEED) == []
    dumped = dump_document(actor.organisation_id)
    assert dumped["price_books"][0]["kinds"] == ["accelerators"]
    assert dumped["prices"] == []
    with pytest.raises(ConfigurationError, match="regions"):
        apply(actor, FEED.replace("[us-east-1]", "[]"))

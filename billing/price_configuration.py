"""Price books, prices and exchange rates as sections of the configuration document."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from billing.models import PriceBook
from billing.price_documents import price_document, rate_document
from billing.price_feeds.contract import FEED_SERVICES, FeedSettings
from billing.price_reading import (
    ECB_SOURCE,
    PRICE_COLUMNS,
    RATE_COLUMNS,
    price_from_texts,
    rate_from_texts,
)
from billing.price_records import KEY_FIELDS, OWN_BOOK, PricesRefusedError, PriceWish
from billing.price_selectors import exchange_rates, own_prices, rate_record
from billing.services import (
    add_exchange_rates,
    add_prices,
    connect_price_feed,
    ensure_price_book,
)
from projects.records import Actor

KEYS = ("price_books", "prices", "exchange_rates")


def _text(value: object) -> object:
    """YAML reads days and amounts as such; a price is read from its text. Floats stay refused."""
    if isinstance(value, float | bool) or value is None:
        return value
    return str(value)


Text = Annotated[str, BeforeValidator(_text)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Book(_Strict):
    name: str = Field(min_length=1, max_length=120)
    source: str = Field(default="", max_length=300)
    currency: str = Field(default="", pattern=r"^([A-Z]{3})?$")
    note: str = ""
    feed: str = ""
    regions: list[str] = []
    kinds: list[str] = list(FEED_SERVICES)


class _Price(_Strict):
    book: str = OWN_BOOK
    cost_class: Text
    provider: Text = ""
    region: Text = ""
    accelerator_key: Text = ""
    instance_type: Text = ""
    purchase: Text = ""
    unit: Text
    price: Text
    currency: Text
    valid_from: Text
    valid_to: Text = ""
    source: Text
    source_date: Text = ""
    note: Text = ""


class _Rate(_Strict):
    date: Text
    base: Text
    quote: Text
    rate: Text
    source: Text


class PriceSections(BaseModel):
    """The sections that this module reads."""

    model_config = ConfigDict(extra="ignore")

    price_books: list[_Book] = []
    prices: list[_Price] = []
    exchange_rates: list[_Rate] = []


def dump(organisation_id: UUID) -> dict[str, Any]:
    """The organisation's own books, prices and rates; not the ECB's, whose file is at hand."""
    rates = exchange_rates(organisation_id).exclude(source=ECB_SOURCE)
    return {
        "price_books": [
            _without_empty(
                {
                    "name": book.name,
                    "source": book.source,
                    "currency": book.currency,
                    "note": book.note,
                }
            )
            | _feed(book)
            for book in PriceBook.objects.filter(organisation_id=organisation_id)
        ],
        "prices": [
            {"book": record.book} | _without_empty(_chosen(price_document(record), PRICE_COLUMNS))
            for record in own_prices(organisation_id)
        ],
        "exchange_rates": [
            _chosen(rate_document(rate_record(rate)), RATE_COLUMNS)
            for rate in rates.order_by("on_date", "base", "quote")
        ],
    }


def _feed(book: PriceBook) -> dict[str, Any]:
    """What a price feed is asked for; its prices are not dumped, it reads them again."""
    if not book.feed:
        return {}
    asked = book.feed_settings
    return {
        "feed": book.feed,
        "regions": asked.get("regions", []),
        "kinds": asked.get("services", []),
    }


def _chosen(document: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: document[name] for name in names}


def _without_empty(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document without what is not said; a price's key stays whole: it names the entry."""
    return {
        name: value
        for name, value in document.items()
        if name in KEY_FIELDS or value not in ("", None)
    }


def apply(actor: Actor, wanted: PriceSections) -> list[str]:
    """Add what the document names and is not there; return what changed.

    Raises:
        PricesRefusedError: an entry cannot be; the message names it.
    """
    for book in wanted.price_books:
        ensure_price_book(
            actor, book.name, source=book.source, currency=book.currency, remark=book.note
        )
        if book.feed:
            wish = FeedSettings(regions=tuple(book.regions), services=tuple(book.kinds))
            connect_price_feed(actor, book.name, feed=book.feed, wish=wish)
    changes = []
    for name, wishes in _by_book(wanted.prices).items():
        imported = add_prices(actor, wishes, book=name)
        if imported.added:
            changes.append(f"prices[{name}]: {imported.added} added")
    rates = []
    for position, rate in enumerate(wanted.exchange_rates):
        try:
            rates.append(rate_from_texts(rate.model_dump(), source=""))
        except PricesRefusedError as error:
            raise _placed(error, f"exchange_rates.{position}") from error
    if rates and (added := add_exchange_rates(actor, rates).added):
        changes.append(f"exchange_rates: {added} added")
    return changes


def _by_book(prices: Sequence[_Price]) -> dict[str, list[PriceWish]]:
    found: dict[str, list[PriceWish]] = {}
    for position, price in enumerate(prices):
        try:
            wish = price_from_texts(price.model_dump(exclude={"book"}), currency="USD")
        except PricesRefusedError as error:
            raise _placed(error, f"prices.{position}") from error
        found.setdefault(price.book, []).append(wish)
    return found


def _placed(error: PricesRefusedError, place: str) -> PricesRefusedError:
    return PricesRefusedError(error.reason, file=place, column=error.column)

"""Reads of prices and exchange rates: which one was in force on a day, and where it comes from."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from typing import Final
from uuid import UUID

from django.db.models import QuerySet

from billing.models import ExchangeRate, Price, PriceBook
from billing.price_list import shipped_prices
from billing.price_records import (
    CROSS,
    INVERSE,
    ON_DEMAND,
    Converted,
    ExchangeRateRecord,
    PriceKey,
    PriceRecord,
)
from formulae.money import Money, divide, multiply

EURO: Final = "EUR"
# Two rates meet in the euro only where their days are this near: a long weekend apart.
CROSS_DAYS: Final = timedelta(days=7)


def price_in_force(  # noqa: PLR0913  # a price's key has this many parts
    organisation_id: UUID,
    *,
    cost_class: str,
    on: date,
    provider: str = "",
    region: str = "",
    accelerator_key: str = "",
    purchase: str = ON_DEMAND,
    unit: str = "",
) -> PriceRecord | None:
    """The price of one unit on a day; None where nobody stated one.

    An empty part of the question fits every price; an empty part of a price fits every question.
    The organisation's own prices beat a price feed's, and these the shipped list; then the same
    region beats any, the same provider any, the same accelerator any; then the latest `valid_from`;
    then the lowest price.
    """
    asked = (provider.lower(), region.lower(), accelerator_key.lower())
    fitting = [
        record
        for record in prices_in_force(organisation_id, on=on, cost_class=cost_class)
        if record.purchase == purchase
        and unit in ("", record.unit)
        and all(
            not wanted or not given or wanted == given
            for wanted, given in zip(asked, _place(record), strict=True)
        )
    ]
    return min(fitting, key=_rank(asked), default=None)


def _place(record: PriceRecord) -> tuple[str, str, str]:
    return (record.provider, record.region, record.accelerator_key)


def _rank(asked: tuple[str, str, str]) -> Callable[[PriceRecord], tuple[object, ...]]:
    """The order of preference: the first wins."""

    def rank(record: PriceRecord) -> tuple[object, ...]:
        provider, region, accelerator = (
            wanted != given for wanted, given in zip(asked, _place(record), strict=True)
        )
        return (
            record.is_shipped,
            bool(record.feed),
            region,
            provider,
            accelerator,
            -record.valid_from.toordinal(),
            record.price.amount,
            record.price.currency,
            record.book,
            record.instance_type,
            record.region,
            record.provider,
        )

    return rank


def prices_in_force(
    organisation_id: UUID, *, on: date, cost_class: str | None = None
) -> list[PriceRecord]:
    """Every price in force on a day; a shipped one is left out where an own one has its key."""
    own = _in_force(_dated(_records(_own(organisation_id, cost_class))), on)
    keys = {record.key for record in own}
    shipped = [
        record
        for record in _in_force(_shipped(), on)
        if record.key not in keys and cost_class in (None, record.cost_class)
    ]
    return sorted([*own, *shipped], key=lambda record: (*record.key, record.book))


def price_history(organisation_id: UUID, key: PriceKey) -> list[PriceRecord]:
    """Every price of one key, own and shipped, newest first, each closed by the one after it."""
    own = _records(_own(organisation_id, key[0]))
    found = [record for record in [*_dated(own), *_shipped()] if record.key == key]
    return sorted(found, key=lambda record: (record.valid_from, record.book), reverse=True)


def _own(organisation_id: UUID, cost_class: str | None) -> QuerySet[Price]:
    prices = Price.objects.filter(
        organisation_id=organisation_id, withdrawn_at__isnull=True
    ).select_related("book")
    return prices if cost_class is None else prices.filter(cost_class=cost_class)


def all_prices(organisation_id: UUID) -> list[PriceRecord]:
    """Every price of all days, own, fed and shipped, each ended by the next of its key."""
    return [*_dated(_records(_own(organisation_id, None))), *_shipped()]


def price_books(organisation_id: UUID) -> QuerySet[PriceBook]:
    """Every price book."""
    return PriceBook.objects.filter(organisation_id=organisation_id)


def own_prices(organisation_id: UUID) -> list[PriceRecord]:
    """The organisation's own prices of all days, as they were stated; not those of price feeds."""
    own = _own(organisation_id, None).filter(book__feed="")
    return _records(own.order_by("book__name", "valid_from", "pk"))


def _records(prices: Iterable[Price]) -> list[PriceRecord]:
    return [
        PriceRecord(
            price_id=price.pk,
            book=price.book.name,
            cost_class=price.cost_class,
            provider=price.provider,
            region=price.region,
            accelerator_key=price.accelerator_key,
            instance_type=price.instance_type,
            purchase=price.purchase,
            unit=price.unit,
            price=Money(amount=price.amount, currency=price.currency),
            valid_from=price.valid_from,
            valid_to=price.valid_to,
            source=price.source,
            source_date=price.source_date,
            note=price.note,
            feed=price.book.feed,
        )
        for price in prices
    ]


def _dated(records: Iterable[PriceRecord]) -> list[PriceRecord]:
    """The records, each ended at the latest by the next of its key in its book."""
    by_key: dict[tuple[str, PriceKey], list[PriceRecord]] = defaultdict(list)
    for record in records:
        by_key[record.book, record.key].append(record)
    return [closed for group in by_key.values() for closed in _closed(group)]


@cache
def _shipped() -> tuple[PriceRecord, ...]:
    return tuple(_dated(shipped_prices()))


def _closed(group: Sequence[PriceRecord]) -> list[PriceRecord]:
    ordered = sorted(group, key=lambda record: record.valid_from)
    followers = [*ordered[1:], None]
    return [
        record
        if follower is None
        or (record.valid_to is not None and record.valid_to <= follower.valid_from)
        else replace(record, valid_to=follower.valid_from)
        for record, follower in zip(ordered, followers, strict=True)
    ]


def _in_force(records: Iterable[PriceRecord], on: date) -> list[PriceRecord]:
    return [
        record
        for record in records
        if record.valid_from <= on and (record.valid_to is None or on < record.valid_to)
    ]


def exchange_rate(
    organisation_id: UUID, *, base: str, quote: str, on: date
) -> ExchangeRateRecord | None:
    """What one `base` was worth in `quote`, by the newest rate of that day or before; or None.

    A stated rate, one over the opposite rate, or two rates that meet in the euro and are at most
    7 days apart: the newest wins, at the same age in this order. Derived rates are rounded once,
    half-even, to 18 decimals. How old the rate is stands in `on_date`.
    """
    if base == quote:
        return ExchangeRateRecord(base=base, quote=quote, rate=Decimal(1), on_date=on, source="")
    found = [
        rate
        for rate in (
            _stated(organisation_id, base, quote, on),
            _inverted(_stated(organisation_id, quote, base, on)),
            _crossed(organisation_id, base, quote, on),
        )
        if rate is not None
    ]
    return max(found, key=lambda rate: rate.on_date, default=None)


def _stated(organisation_id: UUID, base: str, quote: str, on: date) -> ExchangeRateRecord | None:
    rate = exchange_rates(organisation_id).filter(base=base, quote=quote, on_date__lte=on).first()
    return rate_record(rate) if rate else None


def _inverted(rate: ExchangeRateRecord | None) -> ExchangeRateRecord | None:
    inverse = divide(Decimal(1), rate.rate) if rate else None
    if rate is None or not inverse:  # an inverse that rounds to nothing says nothing
        return None
    return replace(rate, base=rate.quote, quote=rate.base, rate=inverse, derivation=INVERSE)


def _crossed(organisation_id: UUID, base: str, quote: str, on: date) -> ExchangeRateRecord | None:
    """Base to quote by way of the euro: one rounding, of the quotient of the two rates."""
    if EURO in (base, quote):
        return None
    first = _stated(organisation_id, EURO, base, on)
    second = _stated(organisation_id, EURO, quote, on)
    if first is None or second is None or abs(first.on_date - second.on_date) > CROSS_DAYS:
        return None
    rate = divide(second.rate, first.rate)
    if not rate:
        return None
    sources = dict.fromkeys((first.source, second.source))
    return ExchangeRateRecord(
        base=base,
        quote=quote,
        rate=rate,
        on_date=min(first.on_date, second.on_date),
        source="; ".join(sources),
        derivation=CROSS,
    )


def converted(organisation_id: UUID, money: Money, *, currency: str, on: date) -> Converted | None:
    """The money in another currency by the rate of a day; None where no rate is known.

    The amount times the rate, rounded once, half-even, to 18 decimals.
    """
    if money.currency == currency:
        return Converted(money=money, rate=None)
    rate = exchange_rate(organisation_id, base=money.currency, quote=currency, on=on)
    if rate is None:
        return None
    amount = multiply(money.amount, rate.rate)
    return Converted(money=Money(amount=amount, currency=currency), rate=rate)


def exchange_rates(organisation_id: UUID) -> QuerySet[ExchangeRate]:
    """Every stated rate, newest first."""
    return ExchangeRate.objects.filter(
        organisation_id=organisation_id, withdrawn_at__isnull=True
    ).order_by("-on_date", "base", "quote")


def newest_exchange_rates(organisation_id: UUID) -> list[ExchangeRateRecord]:
    """The newest stated rate of each pair."""
    newest = exchange_rates(organisation_id).order_by("base", "quote", "-on_date")
    return [rate_record(rate) for rate in newest.distinct("base", "quote")]


def rate_record(rate: ExchangeRate) -> ExchangeRateRecord:
    """A stated rate as other rooms may hold it."""
    return ExchangeRateRecord(
        base=rate.base,
        quote=rate.quote,
        rate=rate.rate,
        on_date=rate.on_date,
        source=rate.source,
        rate_id=rate.pk,
    )

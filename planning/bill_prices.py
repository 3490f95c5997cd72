"""The price of one line of the bill: stated or from a dated book, in the plan's currency.

What is not known stays None and says why; nothing is guessed and no currency is left unconverted.
"""

from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from uuid import UUID

from django.utils.translation import gettext as _

from billing import price_selectors
from billing.amounts import exact_text
from billing.price_records import ExchangeRateRecord, PriceRecord
from billing.price_words import PRICE_CLASS_NAMES, UNIT_NAMES
from formulae.money import Money


@dataclass(frozen=True, slots=True, kw_only=True)
class BillTerms:
    """What holds for every line: the plan's currency, its day of prices, place and length.

    `compute_cost` is what shares of compute are taken of; None when it is not known.
    """

    currency: str
    on: date
    months: Decimal
    provider: str = ""
    region: str = ""
    compute_cost: Money | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A price in the plan's currency, or None with the code and the sentence of what is missing."""

    price: Money | None
    source: str
    note: str = ""
    missing_code: str = ""
    missing: str = ""


def price_of(
    organisation_id: UUID, terms: BillTerms, *, stated: Money | None, cost_class: str, unit: str
) -> Priced:
    """The stated price, else that in force in the books, in the plan's currency.

    Args:
        organisation_id: whose books and rates are read; its own come before the shipped list.
        terms: currency, day and place.
        stated: the plan's own price for one unit, or None.
        cost_class: the class of charges that is priced.
        unit: of the price; a book's price for another unit is not taken.
    """
    if stated is not None:
        return in_plan_currency(organisation_id, terms, stated, source=_("stated in the plan"))
    found = price_selectors.price_in_force(
        organisation_id,
        cost_class=cost_class,
        on=terms.on,
        provider=terms.provider,
        region=terms.region,
        unit=unit,
    )
    if found is None or found.unit != unit:
        return Priced(
            price=None,
            source="",
            missing_code="price_missing",
            missing=_missing_price(terms, cost_class=cost_class, unit=unit),
        )
    priced = in_plan_currency(organisation_id, terms, found.price, source=_book(found))
    notes = (_assumed_place(terms, found), priced.note, found.note)
    return replace(priced, note=" ".join(part for part in notes if part))


def in_plan_currency(
    organisation_id: UUID, terms: BillTerms, money: Money, *, source: str
) -> Priced:
    """An amount in the plan's currency, with the rate that took it there, or why there is none."""
    if money.currency == terms.currency:
        return Priced(price=money, source=source)
    found = price_selectors.converted(organisation_id, money, currency=terms.currency, on=terms.on)
    if found is None:
        return Priced(
            price=None,
            source=source,
            missing_code="rate_missing",
            missing=_(
                "No exchange rate from %(base)s to %(quote)s is known for %(day)s: add one to "
                "the exchange rates, or state the price in %(quote)s."
            )
            % {"base": money.currency, "quote": terms.currency, "day": terms.on.isoformat()},
        )
    note = "" if found.rate is None else _rate_note(money, found.rate)
    return Priced(price=found.money, source=source, note=note)


def _missing_price(terms: BillTerms, *, cost_class: str, unit: str) -> str:
    """What is missing, where it was looked for, and what to do."""
    place = ", ".join(part for part in (terms.provider, terms.region) if part) or _("any place")
    return _(
        "No price %(unit)s is known for “%(name)s” (%(place)s, %(day)s): "
        "add one to the price book, or state it in the plan."
    ) % {
        "unit": UNIT_NAMES[unit],
        "name": PRICE_CLASS_NAMES.get(cost_class, cost_class),
        "place": place,
        "day": terms.on.isoformat(),
    }


def _assumed_place(terms: BillTerms, record: PriceRecord) -> str:
    """That a price of one place was taken for a plan that names none."""
    if (terms.provider or not record.provider) and (terms.region or not record.region):
        return ""
    return _("The plan names no place: the price of %(place)s is taken.") % {
        "place": _place(record)
    }


def _place(record: PriceRecord) -> str:
    """Provider and region, as far as the price has them."""
    return ", ".join(part for part in (record.provider, record.region) if part)


def _book(record: PriceRecord) -> str:
    """Which book says so, of what and where, since when, and where it has it from."""
    parts = (
        record.book,
        _place(record),
        record.instance_type,
        _("from %(day)s") % {"day": record.valid_from.isoformat()},
        record.source,
        str(record.source_date or ""),
    )
    return "; ".join(part for part in parts if part)


def _rate_note(money: Money, rate: ExchangeRateRecord) -> str:
    """The amount as it was stated, and the rate with its day and source."""
    return _(
        "%(amount)s %(currency)s, at 1 %(base)s = %(rate)s %(quote)s of %(day)s (%(source)s)."
    ) % {
        "amount": exact_text(money.amount),
        "currency": money.currency,
        "base": rate.base,
        "rate": exact_text(rate.rate),
        "quote": rate.quote,
        "day": rate.on_date.isoformat(),
        "source": rate.source,
    }

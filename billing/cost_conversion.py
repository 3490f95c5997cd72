"""Costs in one currency: every rate is named, and one that is missing makes the total n/a.

The rule: what a month was charged is converted by the rate of the month's last day, or the newest
before it; with `on`, everything by the rate of that one day.
"""

from calendar import monthrange
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

from babel.numbers import list_currencies

from billing.amounts import exact_text, plain
from billing.cost_questions import CostQuestion
from billing.cost_records import CostTable
from billing.cost_selectors import cost_table
from billing.price_documents import rate_document
from billing.price_records import ExchangeRateRecord
from billing.price_selectors import exchange_rate
from formulae.money import exact_sum, multiply
from formulae.units import EXACT


class ConversionError(ValueError):
    """Costs cannot be converted so; the message says what to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedRate:
    """What was charged in one month and currency, and the rate that converted it."""

    month: str
    charged: Decimal
    converted: Decimal
    rate: ExchangeRateRecord  # of 1 where the currency is the wanted one


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRate:
    """A month in a currency that no rate is known for by its day."""

    month: str
    currency: str
    on: date


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedTable:
    """A total in one currency; None, never a part, where a rate or a cost is missing."""

    currency: str
    total: Decimal | None
    rates: tuple[UsedRate, ...]
    missing: tuple[MissingRate, ...]


def converted_costs(
    organisation_id: UUID, question: CostQuestion, *, currency: str, on: date | None = None
) -> ConvertedTable:
    """The total of a question's costs in one currency.

    Raises:
        ConversionError: ISO 4217 knows no such currency.
    """
    by_month = cost_table(organisation_id, replace(question, group_by=("month",)))
    return converted_table(organisation_id, by_month, currency=currency, on=on)


def converted_table(
    organisation_id: UUID, table: CostTable, *, currency: str, on: date | None = None
) -> ConvertedTable:
    """The total of a table that is grouped by month or day, in one currency.

    Each month's exact sum in a currency is multiplied by its rate and rounded once, half-even, to
    18 decimals; the total is the exact sum of these.

    Raises:
        ConversionError: the table tells no months apart, or ISO 4217 knows no such currency.
    """
    if currency not in list_currencies(locale="en"):
        raise ConversionError(f"{currency!r} is no currency of ISO 4217 such as USD")
    sums, is_whole = _by_month(table)
    used: list[UsedRate] = []
    missing: list[MissingRate] = []
    for (month, base), charged in sorted(sums.items()):
        day = on or _last_day(month)
        rate = exchange_rate(organisation_id, base=base, quote=currency, on=day)
        if rate is None:
            missing.append(MissingRate(month=month, currency=base, on=day))
        else:
            amount = charged if base == currency else multiply(charged, rate.rate)
            used.append(UsedRate(month=month, charged=charged, converted=amount, rate=rate))
    is_known = is_whole and not missing
    return ConvertedTable(
        currency=currency,
        total=exact_sum(one.converted for one in used) if is_known else None,
        rates=tuple(used),
        missing=tuple(missing),
    )


def _by_month(table: CostTable) -> tuple[dict[tuple[str, str], Decimal], bool]:
    """The sums by month and currency, and whether every row has its cost."""
    names: Sequence[str] = table.group_by
    if "month" not in names and "day" not in names:
        raise ConversionError("group the costs by month or day, so that each has its rate")
    place = names.index("month" if "month" in names else "day")
    sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    is_whole = True
    for row in table.rows:
        month = (row.group[place] or "")[:7]
        if row.cost is None:
            is_whole = False
        else:
            key = (month, row.currency)
            sums[key] = EXACT.add(sums[key], row.cost)
    return dict(sums), is_whole


def _last_day(month: str) -> date:
    year, number = int(month[:4]), int(month[5:7])
    return date(year, number, monthrange(year, number)[1])


def conversion_document(table: ConvertedTable) -> dict[str, Any]:
    """The keys that `costs --currency` and the API add: the total, its rates, what is missing."""
    return {
        "converted_total": {
            "currency": table.currency,
            "cost": plain(table.total),
            "rates": [
                {
                    "month": one.month,
                    "charged": exact_text(one.charged),
                    "converted": exact_text(one.converted),
                    **rate_document(one.rate),
                }
                for one in table.rates
                if one.rate.base != table.currency
            ],
            "missing_rates": [
                {"month": one.month, "currency": one.currency, "on": one.on.isoformat()}
                for one in table.missing
            ],
        }
    }

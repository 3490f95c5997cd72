"""Exact amounts as text and back: what JSON keeps of money; no currency, no rounding."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from billing.records import COST_COLUMNS
from formulae.units import EXACT


def exact_text(amount: Decimal) -> str:
    """The amount in plain digits, all of them, without trailing zeros.

    >>> exact_text(Decimal("20.520000000000000000")), exact_text(Decimal("1E+3"))
    ('20.52', '1000')
    """
    return format(EXACT.normalize(amount), "f")


def plain(value: Any) -> Any:
    """The value with exact decimals as text, for JSON."""
    if isinstance(value, Decimal):
        return exact_text(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def totals_document(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Totals by currency as the engine gives them, ready for JSON."""
    return [
        {
            "currency": row["billing_currency"],
            **{name: plain(row[name]) for name in COST_COLUMNS},
            "rows": row["rows"],
        }
        for row in rows
    ]


def summed(parts: Iterable[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Totals by currency of several parts: exact, and missing where one part lacks the cost."""
    found: dict[str, dict[str, Any]] = {}
    for entry in (entry for part in parts for entry in part):
        sums = found.get(entry["currency"])
        if sums is None:
            names = ("currency", *COST_COLUMNS, "rows")
            found[entry["currency"]] = {name: entry[name] for name in names}
            continue
        sums["rows"] += entry["rows"]
        for name in COST_COLUMNS:
            sums[name] = _plus(sums[name], entry[name])
    return [found[currency] for currency in sorted(found)]


def _plus(left: str | None, right: str | None) -> str | None:
    if left is None or right is None:
        return None
    return exact_text(EXACT.add(Decimal(left), Decimal(right)))

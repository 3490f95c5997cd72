"""Prices and rates as JSON and as rows of a CSV: what commands, doors and files say of them."""

import csv
import io
from typing import Any, Final

from billing.amounts import exact_text
from billing.price_reading import PRICE_COLUMNS, RATE_COLUMNS
from billing.price_records import ExchangeRateRecord, Imported, PriceRecord

# Examples of the layouts: what a person overwrites.
_PRICE_EXAMPLES: Final = (
    {
        "cost_class": "accelerator",
        "provider": "aws",
        "region": "us-east-1",
        "accelerator_key": "h100-sxm-80gb",
        "instance_type": "p5.48xlarge",
        "purchase": "contract",
        "unit": "accelerator_h",
        "price": "2.50",
        "currency": "USD",
        "valid_from": "2026-01-01",
        "source": "Contract 12",
        "source_date": "2025-12",
        "note": "20.00 USD an hour over 8 accelerators",
    },
    {
        "cost_class": "storage_object",
        "unit": "tb_month",
        "price": "21.00",
        "currency": "USD",
        "valid_from": "2026-01-01",
        "source": "Contract 12",
    },
)
_RATE_EXAMPLES: Final = (
    {"date": "2026-01-02", "base": "USD", "quote": "CNY", "rate": "7.01", "source": "Bank"},
)


def price_document(record: PriceRecord) -> dict[str, Any]:
    """One price, its amount as text."""
    return {
        "price_id": str(record.price_id) if record.price_id else None,
        "book": record.book,
        "is_shipped": record.is_shipped,
        "cost_class": record.cost_class,
        "provider": record.provider,
        "region": record.region,
        "accelerator_key": record.accelerator_key,
        "instance_type": record.instance_type,
        "purchase": record.purchase,
        "unit": record.unit,
        "price": exact_text(record.price.amount),
        "currency": record.price.currency,
        "valid_from": record.valid_from.isoformat(),
        "valid_to": record.valid_to.isoformat() if record.valid_to else None,
        "source": record.source,
        "source_date": record.source_date,
        "note": record.note,
    }


def rate_document(record: ExchangeRateRecord) -> dict[str, Any]:
    """One exchange rate, as text."""
    return {
        "rate_id": str(record.rate_id) if record.rate_id else None,
        "date": record.on_date.isoformat(),
        "base": record.base,
        "quote": record.quote,
        "rate": exact_text(record.rate),
        "source": record.source,
        "derivation": record.derivation,
    }


def imported_document(imported: Imported) -> dict[str, Any]:
    """What an import brought."""
    document: dict[str, Any] = {
        "rows": imported.rows,
        "added": imported.added,
        "unchanged": imported.unchanged,
    }
    return {"book": imported.book, **document} if imported.book else document


def price_template() -> str:
    """The layout of a price list as CSV, with two examples."""
    return _csv(PRICE_COLUMNS, _PRICE_EXAMPLES)


def rate_template() -> str:
    """The layout of exchange rates as CSV, with an example."""
    return _csv(RATE_COLUMNS, _RATE_EXAMPLES)


def _csv(columns: tuple[str, ...], rows: tuple[dict[str, str], ...]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()

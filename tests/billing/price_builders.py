"""Builders of prices and exchange rates, as people write them."""

from datetime import date
from decimal import Decimal

from billing.price_records import PriceWish, RateWish
from formulae.money import Money

PRICE = {
    "cost_class": "accelerator",
    "provider": "aws",
    "region": "us-east-1",
    "accelerator_key": "h100-sxm-80gb",
    "unit": "accelerator_h",
    "price": "2.50",
    "currency": "USD",
    "valid_from": "2026-01-01",
    "source": "Contract 12",
}


def price_wish(
    amount: str = "2.50",
    *,
    currency: str = "USD",
    valid_from: str = "2026-01-01",
    valid_to: str | None = None,
    **parts: str,
) -> PriceWish:
    """The price of an H100-hour, with some parts changed."""
    wanted = {
        "cost_class": "accelerator",
        "unit": "accelerator_h",
        "accelerator_key": "h100-sxm-80gb",
        "source": "Contract 12",
        **parts,
    }
    return PriceWish(
        price=Money.of(amount, currency),
        valid_from=date.fromisoformat(valid_from),
        valid_to=date.fromisoformat(valid_to) if valid_to else None,
        **wanted,
    )


def rate_wish(
    rate: str = "7.00", *, base: str = "USD", quote: str = "CNY", on: str = "2026-01-02"
) -> RateWish:
    """What a dollar is worth."""
    return RateWish(
        base=base,
        quote=quote,
        rate=Decimal(rate),
        on_date=date.fromisoformat(on),
        source="Bank",
    )


def price_row(**columns: str) -> dict[str, str]:
    """A row of a price list, with some columns changed."""
    return {**PRICE, **columns}


def price_csv(*rows: dict[str, str], newline: str = "\n") -> bytes:
    """The rows as a price list."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [",".join(names), *(",".join(row.get(name, "") for name in names) for row in rows)]
    return (newline.join(lines) + newline).encode()

"""The shipped list of published prices (billing/data/prices.csv); no tables, nobody's contract."""

from functools import cache
from pathlib import Path
from typing import Final

from billing.price_reading import read_prices
from billing.price_records import SHIPPED_BOOK, PriceRecord, PriceWish

PATH: Final = Path(__file__).resolve().parent / "data" / "prices.csv"


@cache
def shipped_prices() -> tuple[PriceRecord, ...]:
    """Every price of the list, of all days."""
    rows = read_prices(PATH.read_bytes(), file=PATH.name, currency="USD")
    return tuple(_record(wish) for _number, wish in rows)


def _record(wish: PriceWish) -> PriceRecord:
    return PriceRecord(
        price_id=None,
        book=SHIPPED_BOOK,
        cost_class=wish.cost_class,
        provider=wish.provider,
        region=wish.region,
        accelerator_key=wish.accelerator_key,
        instance_type=wish.instance_type,
        purchase=wish.purchase,
        unit=wish.unit,
        price=wish.price,
        valid_from=wish.valid_from,
        valid_to=wish.valid_to,
        source=wish.source,
        source_date=wish.source_date,
        note=wish.note,
    )

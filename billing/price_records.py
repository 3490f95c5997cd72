"""What other rooms may hold of prices and exchange rates, and the words they are written in."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final
from uuid import UUID

from formulae.money import Money

ON_DEMAND: Final = "on_demand"
PURCHASES: Final = (ON_DEMAND, "spot", "reserved_1y", "reserved_3y", "contract")
UNITS: Final = ("accelerator_h", "tb_month", "1000_requests", "gb", "month", "kwh")
# The classes of charges that have a price per unit, each with its units, and electricity.
UNITS_OF: Final = {
    "accelerator": ("accelerator_h",),
    "storage_file": ("tb_month",),
    "storage_block": ("tb_month",),
    "storage_object": ("tb_month",),
    "storage_object_infrequent": ("tb_month",),
    "storage_archive": ("tb_month",),
    "request_get": ("1000_requests",),
    "request_put": ("1000_requests",),
    "request_other": ("1000_requests",),
    "retrieval": ("gb",),
    "egress": ("gb",),
    "transfer_inter_region": ("gb",),
    "transfer_intra_region": ("gb",),
    "logging": ("gb", "month"),
    "support": ("month",),
    "other_compute": ("month",),
    "electricity": ("kwh",),
}
PRICE_CLASSES: Final = tuple(UNITS_OF)
SHIPPED_BOOK: Final = "Shipped list"
OWN_BOOK: Final = "Own prices"

# How a rate came to be: as somebody stated it, one over that, or by way of the euro.
STATED: Final = "stated"
INVERSE: Final = "inverse"
CROSS: Final = "cross"

PriceKey = tuple[str, str, str, str, str, str]
KEY_FIELDS: Final = (
    "cost_class",
    "provider",
    "region",
    "accelerator_key",
    "instance_type",
    "purchase",
)


class PricesRefusedError(ValueError):
    """A price, rate or file of them that cannot be taken: where, what, and what to do."""

    def __init__(
        self, message: str, *, file: str = "", row: int | None = None, column: str = ""
    ) -> None:
        self.reason, self.file, self.row, self.column = message, file, row, column
        super().__init__(self.sentence)

    @property
    def sentence(self) -> str:
        """File, row, column and reason in one line."""
        places = [
            self.file,
            f"row {self.row}" if self.row is not None else "",
            f"column {self.column}" if self.column else "",
        ]
        place = ", ".join(part for part in places if part)
        return f"{place}: {self.reason}" if place else self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceWish:
    """A price as people write it; an empty place, accelerator or instance means any."""

    cost_class: str
    unit: str
    price: Money
    valid_from: date
    source: str
    provider: str = ""
    region: str = ""
    accelerator_key: str = ""
    instance_type: str = ""
    purchase: str = ON_DEMAND
    valid_to: date | None = None
    source_date: str = ""
    note: str = ""

    @property
    def key(self) -> PriceKey:
        """What the prices of one thing share: a later one closes the earlier one."""
        return (
            self.cost_class,
            self.provider,
            self.region,
            self.accelerator_key,
            self.instance_type,
            self.purchase,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRecord:
    """A price: `price_id` is None on the shipped list; `valid_to` is the first day that is out."""

    price_id: UUID | None
    book: str
    cost_class: str
    provider: str
    region: str
    accelerator_key: str
    instance_type: str
    purchase: str
    unit: str
    price: Money
    valid_from: date
    valid_to: date | None
    source: str
    source_date: str
    note: str = ""
    feed: str = ""  # the price feed that fills the book

    @property
    def is_shipped(self) -> bool:
        """Whether it comes with Costwatch rather than from the organisation."""
        return self.price_id is None

    @property
    def key(self) -> PriceKey:
        """What the prices of one thing share."""
        return (
            self.cost_class,
            self.provider,
            self.region,
            self.accelerator_key,
            self.instance_type,
            self.purchase,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RateWish:
    """One `base` is worth `rate` of `quote` on a day, as people write it."""

    base: str
    quote: str
    rate: Decimal
    on_date: date
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRateRecord:
    """One `base` is worth `rate` of `quote`; `on_date` is the older day where two rates met."""

    base: str
    quote: str
    rate: Decimal
    on_date: date
    source: str
    derivation: str = STATED
    rate_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """Money in another currency and the rate that took it there; no rate where none was needed."""

    money: Money
    rate: ExchangeRateRecord | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What a file or list brought: how much was new, how much was there already."""

    rows: int
    added: int
    unchanged: int
    book: str = ""

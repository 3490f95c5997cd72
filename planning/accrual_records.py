"""What is accrued: cost of hours that ran and that no bill has told of yet. Plain records."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from uuid import UUID


class RateBasis(StrEnum):
    """Where the rate of an accrual comes from, best first."""

    OWN_PRICE = "own_price"  # a price that the organisation stated
    BILLED_LATELY = "billed_lately"  # cost over hours of the last settled days
    PRICE_LIST = "price_list"  # a price feed, or the shipped list
    TARIFF = "tariff"  # electricity of own hardware, for a kWh
    DAILY_MEAN = "daily_mean"  # mean of the last settled days, where nothing is counted


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDay:
    """How long accelerators of one kind at one site worked for the project on a UTC day."""

    day: date
    site_id: UUID
    provider: str
    region: str
    accelerator_key: str
    allocated_microsecond: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """An amount for one unit, its currency, and where it comes from."""

    amount: Decimal
    currency: str
    basis: RateBasis
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccruedDay:
    """An accrued cost of a day. `cost` is None where nobody stated a rate: unknown, never zero.

    `quantity` counts `unit`: accelerator-hours, kWh, or days of a daily mean.
    """

    day: date
    x_cost_class: str
    currency: str
    quantity: Decimal
    unit: str
    rate: Rate | None
    cost: Decimal | None
    accelerator_key: str = ""
    site_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accruals:
    """What is accrued for a project as of an instant.

    `settled_through` is the last day that every provider of the project's accelerators has billed
    whole; None where none has billed anything.
    """

    settled_through: date | None = None
    days: tuple[AccruedDay, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccrualError:
    """How far accruals were off where the bill came: accrued less billed, of the same days.

    Fractions are of the billed cost; None where nothing was billed.
    """

    days: int
    accrued: Decimal
    billed: Decimal
    currency: str
    total_fraction: Decimal | None
    mean_absolute_fraction: Decimal | None
    worst_day: date | None
    worst_fraction: Decimal | None

"""What a cost, its energy and its emissions are made of, and the causes that move it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Final

from formulae.money import divide
from formulae.time_ledger import Bucket
from formulae.units import MONEY_LIMIT, QuantityError

Exact = Decimal | Fraction | int


class Cause(StrEnum):
    """What moved a figure, in the order in which the plan's drivers become the actual ones."""

    VOLUME = "volume"
    EFFICIENCY = "efficiency"
    DOWN = "down"
    RESTART = "restart"
    REWORK = "rework"
    CHECKPOINT = "checkpoint"
    DATA_STALL = "data_stall"
    STRAGGLER = "straggler"
    IDLE = "idle"
    UNKNOWN_TIME = "unknown_time"
    EXPERIMENTS = "experiments"
    PRICE = "price"
    POWER = "power"
    HOST_FACTOR = "host_factor"
    PUE = "pue"
    CARBON_INTENSITY = "carbon_intensity"
    STORAGE = "storage"
    TRANSFER = "transfer"
    OTHER_CHARGES = "other_charges"
    CURRENCY = "currency"
    UNEXPLAINED = "unexplained"


# Slow steps are no bucket here: they are a lower MFU. What is productive is not lost.
CAUSE_OF_BUCKET: Final = {
    Bucket.DOWN: Cause.DOWN,
    Bucket.STARTUP: Cause.RESTART,
    Bucket.REWORK: Cause.REWORK,
    Bucket.CHECKPOINT: Cause.CHECKPOINT,
    Bucket.DATA_STALL: Cause.DATA_STALL,
    Bucket.STRAGGLER: Cause.STRAGGLER,
    Bucket.IDLE: Cause.IDLE,
    Bucket.UNKNOWN: Cause.UNKNOWN_TIME,
}
AVAILABILITY: Final = tuple(CAUSE_OF_BUCKET.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Drivers:
    """What a cost, its energy and its emissions are made of; None is not known.

    Planned drivers are those of the budget for the work that was done. `main_h` and `other_h` are
    accelerator-hours of the main run and of all other runs; `unassigned_h` were paid for and no
    run had them: unknown time that no allowance covers, 0 in a plan. `lost_h` holds hours of the
    main run by availability cause. What of `main_h` is neither productive nor lost is unknown time
    in actuals, and an allowance in a plan: it is set against what was lost beyond the plan's own
    `lost_h`, in proportion. `currency_cost` is what exchange rates that moved have added, the other
    amounts being at the plan's rates. The rates serve a plan that has no hours yet.
    """

    tokens: Exact | None = None
    flop_per_token: Exact | None = None
    productive_h: Exact | None = None
    lost_h: Mapping[Cause, Exact] = field(default_factory=dict)
    main_h: Exact | None = None
    other_h: Exact | None = None
    unassigned_h: Exact = 0
    accelerator_h: Exact | None = None
    accelerator_cost: Exact | None = None
    other_compute_cost: Exact | None = 0
    storage_cost: Exact | None = 0
    transfer_cost: Exact | None = 0
    other_cost: Exact | None = 0
    currency_cost: Exact | None = 0
    accelerator_kwh: Exact | None = None
    it_kwh: Exact | None = None
    facility_kwh: Exact | None = None
    kgco2e: Exact | None = None
    price_per_accelerator_h: Exact | None = None
    accelerator_kw: Exact | None = None
    host_factor: Exact | None = None
    pue: Exact | None = None
    g_per_kwh: Exact | None = None

    @property
    def cost(self) -> Decimal | None:
        """All amounts together, to 18 decimals; None where one is not known."""
        parts = (self.accelerator_cost, self.other_compute_cost, *self.around)
        return stored(sum_known(parts))

    @property
    def hours(self) -> Fraction | None:
        """All accelerator-hours: as given, else those of the main run, the others and no run."""
        if self.accelerator_h is not None:
            return Fraction(self.accelerator_h)
        return sum_known((self.main_h, self.other_h, self.unassigned_h))

    @property
    def around(self) -> tuple[Exact | None, ...]:
        """What is charged beside compute: storage, transfer, other charges, currency."""
        return (
            self.storage_cost,
            self.transfer_cost,
            self.other_cost,
            self.currency_cost,
        )

    @property
    def left_over_h(self) -> Fraction | None:
        """Hours of the main run that are neither productive nor lost to something."""
        if self.main_h is None or self.productive_h is None:
            return None
        lost = sum((Fraction(hours) for hours in self.lost_h.values()), Fraction(0))
        return Fraction(self.main_h) - Fraction(self.productive_h) - lost

    def __post_init__(self) -> None:
        """Refuse hours that cannot be."""
        given = (
            *(self.productive_h, self.main_h, self.other_h, self.accelerator_h),
            *(self.unassigned_h, *self.lost_h.values()),
        )
        if any(hours is not None and hours < 0 for hours in given):
            raise QuantityError("hours must be at least 0")
        if not self.lost_h.keys() <= set(AVAILABILITY):
            raise QuantityError(f"lost hours are of {', '.join(AVAILABILITY)}")
        left = self.left_over_h
        if left is not None and left < 0:
            raise QuantityError(f"the main run has {-left} h less than its parts together")


def sum_known(parts: Iterable[Exact | None]) -> Fraction | None:
    """The exact sum; None where a part is not known.

    >>> sum_known([Decimal("0.1"), 2]), sum_known([1, None])
    (Fraction(21, 10), None)
    """
    total = Fraction(0)
    for part in parts:
        if part is None:
            return None
        total += Fraction(part)
    return total


def stored(value: Fraction | None) -> Decimal | None:
    """The nearest number of 18 decimals; None where it is not known or too large to be stored.

    >>> stored(Fraction(1, 3))
    Decimal('0.333333333333333333')
    """
    if value is None or abs(value) >= MONEY_LIMIT:
        return None
    return divide(Decimal(value.numerator), Decimal(value.denominator))

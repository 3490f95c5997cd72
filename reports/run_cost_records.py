"""What a run cost and what that is for a token, a step, a checkpoint. Records; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Final

from formulae.loss_price import LossPrice, price_of_loss
from formulae.money import divide, exact_sum, multiply
from formulae.time_ledger import Bucket
from formulae.units import EXACT
from planning.accrual_records import AccruedDay
from runs.progress_records import MfuBasis, RunNow

LOST: Final = (
    Bucket.DOWN,
    Bucket.STARTUP,
    Bucket.REWORK,
    Bucket.CHECKPOINT,
    Bucket.DATA_STALL,
    Bucket.STRAGGLER,
    Bucket.SLOW,
    Bucket.IDLE,
)
MILLION: Final = Decimal(1_000_000)
MICROSECOND_PER_H: Final = Decimal(3_600_000_000)
S_PER_H: Final = Decimal(3600)


class CostBasis(StrEnum):
    """How a run's cost is known."""

    CHARGED = "charged"  # charges that allocation gives to the run
    RATED = "rated"  # its hours at the project's rate of the day
    MIXED = "mixed"  # charges, and its hours since they end
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledDay:
    """What a day's accelerators of a project cost, and for how many hours."""

    day: date
    cost: Decimal | None
    accelerator_h: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUse:
    """What the rooms below know of a run; None where they do not."""

    now: RunNow
    hours_by_day: Mapping[date, Decimal]
    charged: Decimal | None = None
    charged_through: date | None = None
    has_foreign_charges: bool = False
    accelerator_energy_kwh: float | None = None
    it_energy_kwh: float | None = None
    facility_energy_kwh: float | None = None
    kgco2e: float | None = None
    steps: int | None = None
    checkpoints: int = 0
    mfu_fraction: float | None = None
    mfu_basis: MfuBasis | None = None
    buckets: Mapping[Bucket, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCost:
    """A run with its cost; all money is in the currency of the page."""

    use: RunUse
    cost: Decimal | None
    basis: CostBasis
    loss: LossPrice | None

    @property
    def accelerator_h(self) -> Decimal | None:
        """Hours for which devices were assigned to the run."""
        found = self.use.hours_by_day.values()
        return exact_sum(found) if found else None

    @property
    def cost_badge(self) -> str:
        """From bills, or with hours at a rate."""
        return {
            CostBasis.CHARGED: "invoiced",
            CostBasis.RATED: "accrued",
            CostBasis.MIXED: "accrued",
            CostBasis.UNKNOWN: "",
        }[self.basis]

    def _per(self, amount: Decimal | float | None, count: int | Decimal | None) -> Decimal | None:
        """An amount for one of so many."""
        if amount is None or not count or count < 0:
            return None
        exact = amount if isinstance(amount, Decimal) else Decimal(repr(amount))
        return divide(exact, Decimal(count))

    def _per_million(self, amount: Decimal | float | None) -> Decimal | None:
        tokens = self.use.now.tokens_total
        return None if tokens is None else self._per(amount, EXACT.divide(Decimal(tokens), MILLION))

    @property
    def cost_per_hour(self) -> Decimal | None:
        return self._per(self.cost, self.accelerator_h)

    @property
    def cost_per_million(self) -> Decimal | None:
        return self._per_million(self.cost)

    @property
    def kwh_per_million(self) -> Decimal | None:
        return self._per_million(self.use.facility_energy_kwh)

    @property
    def kg_per_million(self) -> Decimal | None:
        return self._per_million(self.use.kgco2e)

    @property
    def cost_per_step(self) -> Decimal | None:
        return self._per(self.cost, self.use.steps)

    @property
    def cost_per_checkpoint(self) -> Decimal | None:
        return self._per(self.cost, self.use.checkpoints)

    def share(self, bucket: Bucket) -> float | None:
        """The share of the assigned time that went into a bucket."""
        whole = sum(self.use.buckets.values())
        return self.use.buckets.get(bucket, 0) / whole if whole else None

    @property
    def lost_h(self) -> Decimal | None:
        """Accelerator-hours that were lost; what nothing tells of is not among them."""
        return lost_h(self.use.buckets)


def daily_rates(
    billed: Sequence[BilledDay], accrued: Sequence[AccruedDay], *, currency: str
) -> dict[date, Decimal]:
    """The project's cost of an accelerator-hour by day, billed and accrued; known days only."""
    cost: dict[date, list[Decimal | None]] = {}
    hours: dict[date, list[Decimal]] = {}
    for one in billed:
        cost.setdefault(one.day, []).append(one.cost)
        hours.setdefault(one.day, []).append(one.accelerator_h)
    for each in accrued:
        if each.unit == "accelerator_h" and each.currency == currency:
            cost.setdefault(each.day, []).append(each.cost)
            hours.setdefault(each.day, []).append(each.quantity)
    rates = {}
    for day, amounts in cost.items():
        known = [amount for amount in amounts if amount is not None]
        rate = divide(exact_sum(known), exact_sum(hours[day]))
        if rate is not None and len(known) == len(amounts):
            rates[day] = rate
    return rates


def cost_of(use: RunUse, rates: Mapping[date, Decimal]) -> RunCost:
    """A run's cost: what is charged to it, and its hours since then at the rate of their day.

    A day without a rate takes that of the day before it that has one.
    """
    after = use.charged_through if use.charged is not None else None
    open_hours = {
        day: hours for day, hours in use.hours_by_day.items() if after is None or day > after
    }
    rated = _rated(open_hours, rates)
    cost: Decimal | None = None
    basis = CostBasis.UNKNOWN
    if use.has_foreign_charges or rated is None:
        pass
    elif use.charged is None:
        basis = CostBasis.RATED if open_hours else CostBasis.UNKNOWN
        cost = rated if open_hours else None
    else:
        basis = CostBasis.MIXED if rated else CostBasis.CHARGED
        cost = EXACT.add(use.charged, rated)
    return RunCost(use=use, cost=cost, basis=basis, loss=_loss(use, cost))


def _rated(hours: Mapping[date, Decimal], rates: Mapping[date, Decimal]) -> Decimal | None:
    """Hours at the rates of their days; None where a day has none, nor any day before it."""
    days = sorted(rates)
    total = Decimal(0)
    for day, amount in hours.items():
        known = [one for one in days if one <= day]
        if not known:
            return None
        total = EXACT.add(total, multiply(amount, rates[known[-1]]))
    return total


def lost_h(buckets: Mapping[Bucket, int]) -> Decimal | None:
    """The hours of the buckets that a run would be faster without; None while nothing is told."""
    if not any(spent for bucket, spent in buckets.items() if bucket is not Bucket.UNKNOWN):
        return None
    lost = sum(buckets.get(bucket, 0) for bucket in LOST)
    return divide(Decimal(lost), MICROSECOND_PER_H)


def _loss(use: RunUse, cost: Decimal | None) -> LossPrice | None:
    """What the lost hours cost at the run's own mean price, power and intensity."""
    lost = lost_h(use.buckets)
    hours = exact_sum(use.hours_by_day.values()) if use.hours_by_day else None
    if lost is None or not hours:
        return None
    return price_of_loss(
        lost_accelerator_h=lost,
        price_per_accelerator_h=None if cost is None else divide(cost, hours),
        accelerator_kw=_over(use.accelerator_energy_kwh, hours),
        host_factor=_over(use.it_energy_kwh, use.accelerator_energy_kwh),
        pue=_over(use.facility_energy_kwh, use.it_energy_kwh),
        intensity_g_per_kwh=_over(
            None if use.kgco2e is None else use.kgco2e * 1000, use.facility_energy_kwh
        ),
    )


def _over(amount: float | None, by: Decimal | float | None) -> Decimal | None:
    if amount is None or not by:
        return None
    divisor = by if isinstance(by, Decimal) else Decimal(repr(by))
    return divide(Decimal(repr(amount)), divisor)

"""Which hours are accrued, and at what cost: pure rules, no table, no clock.

A day is settled once every provider that lately billed the project's accelerators has billed a
later one: the last day of a bill is often only begun. What a settled day cost is the bill's word.
On later days the hours that ran and that no bill has told of yet are accrued, so that billed and
accrued hours of a day never exceed those that ran.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from formulae.allocation import split_integer
from formulae.money import divide, exact_sum, multiply, quantise_money
from formulae.units import EXACT
from planning.accrual_records import AccrualError, AccruedDay, DeviceDay, Rate, RateBasis

MICROSECONDS_PER_H: Final = 3_600_000_000
# A provider that has not billed for this long is used no more: no bill of it is outstanding.
QUIET_DAYS: Final = 45
RECENT_DAYS: Final = 7
# What costs about the same every day and is counted by nobody but the bill.
RUNNING_CLASSES: Final = frozenset(
    {
        "other_compute",
        "storage_file",
        "storage_block",
        "storage_object",
        "storage_object_infrequent",
        "storage_archive",
        "request_get",
        "request_put",
        "request_other",
        "egress",
        "transfer_inter_region",
        "transfer_intra_region",
        "logging",
    }
)

RateOf = Callable[[DeviceDay], Rate | None]


def settled_through(last_billed: Mapping[str, date]) -> date | None:
    """The last settled day from each provider's last day with accelerator charges.

    >>> settled_through({"AWS": date(2026, 11, 14), "CoreWeave": date(2026, 11, 12)})
    datetime.date(2026, 11, 11)
    """
    if not last_billed:
        return None
    newest = max(last_billed.values())
    current = [day for day in last_billed.values() if newest - day <= timedelta(days=QUIET_DAYS)]
    return min(current) - timedelta(days=1)


def hours_of(microsecond: int) -> Decimal:
    """Hours with 18 decimals.

    >>> hours_of(5_400_000_000)
    Decimal('1.500000000000000000')
    """
    return quantise_money(divide(Decimal(microsecond), Decimal(MICROSECONDS_PER_H)) or Decimal(0))


def accrued_accelerators(
    ran: Iterable[DeviceDay],
    *,
    billed_h: Mapping[date, Decimal],
    settled: date | None,
    rate_of: RateOf,
    currency: str,
) -> list[AccruedDay]:
    """The accelerator-hours of unsettled days that no bill has told of, each at its rate.

    Args:
        ran: what worked for the project, by day, site and accelerator.
        billed_h: accelerator-hours by day on any bill.
        settled: the last settled day; None = none.
        rate_of: the rate in force; None where nobody stated one.
        currency: of days without a rate.
    """
    by_day: defaultdict[date, list[DeviceDay]] = defaultdict(list)
    for one in ran:
        if settled is None or one.day > settled:
            by_day[one.day].append(one)
    found = []
    for day in sorted(by_day):
        some = sorted(by_day[day], key=lambda one: (str(one.site_id), one.accelerator_key))
        for one, missing in zip(some, _shortfall(some, billed_h.get(day)), strict=True):
            if missing:
                found.append(_accrued(one, hours_of(missing), rate_of(one), currency))
    return found


def _shortfall(some: Sequence[DeviceDay], billed_h: Decimal | None) -> list[int]:
    """Microseconds of each that are not billed yet: the billed ones are shared out by size."""
    weights = [one.allocated_microsecond for one in some]
    if not billed_h:
        return weights
    billed = int(EXACT.multiply(billed_h, Decimal(MICROSECONDS_PER_H)).to_integral_value())
    covered = split_integer(min(billed, sum(weights)), weights)
    return [weight - part for weight, part in zip(weights, covered, strict=True)]


def _accrued(one: DeviceDay, hours: Decimal, rate: Rate | None, currency: str) -> AccruedDay:
    return AccruedDay(
        day=one.day,
        x_cost_class="accelerator",
        currency=rate.currency if rate else currency,
        quantity=hours,
        unit="accelerator_h",
        rate=rate,
        cost=None if rate is None else quantise_money(multiply(hours, rate.amount)),
        accelerator_key=one.accelerator_key,
        site_id=one.site_id,
    )


def accrued_running_costs(
    billed: Mapping[tuple[date, str], Decimal],
    *,
    settled: date | None,
    last_day: date,
    currency: str,
) -> list[AccruedDay]:
    """Storage, transfer and the like of days without any such charge: the mean of the last week.

    Args:
        billed: cost by day and class, of one currency.
        settled: the last settled day; nothing is accrued before one.
        last_day: the last day to accrue, included.
        currency: of all of it.
    """
    if settled is None:
        return []
    week = [settled - timedelta(days=offset) for offset in range(RECENT_DAYS)]
    classes = sorted({name for _day, name in billed if name in RUNNING_CLASSES})
    found = []
    for name in classes:
        total = exact_sum(billed.get((day, name), Decimal(0)) for day in week)
        mean = quantise_money(divide(total, Decimal(len(week))) or Decimal(0))
        if not mean:
            continue
        rate = Rate(amount=mean, currency=currency, basis=RateBasis.DAILY_MEAN)
        day = settled + timedelta(days=1)
        while day <= min(last_day, settled + timedelta(days=QUIET_DAYS)):
            if (day, name) not in billed:
                found.append(
                    AccruedDay(
                        day=day,
                        x_cost_class=name,
                        currency=currency,
                        quantity=Decimal(1),
                        unit="day",
                        rate=rate,
                        cost=mean,
                    )
                )
            day += timedelta(days=1)
    return found


def accrual_error(
    accrued: Mapping[date, Decimal], billed: Mapping[date, Decimal], *, currency: str
) -> AccrualError:
    """Accrued against billed cost of the days that have both."""
    days = sorted(set(accrued) & set(billed))
    off = {
        day: fraction
        for day in days
        if (fraction := divide(EXACT.subtract(accrued[day], billed[day]), billed[day])) is not None
    }
    all_accrued = exact_sum(accrued[day] for day in days)
    all_billed = exact_sum(billed[day] for day in days)
    worst = max(off, key=lambda day: abs(off[day]), default=None)
    return AccrualError(
        days=len(days),
        accrued=all_accrued,
        billed=all_billed,
        currency=currency,
        total_fraction=divide(EXACT.subtract(all_accrued, all_billed), all_billed),
        mean_absolute_fraction=divide(
            exact_sum(abs(one) for one in off.values()), Decimal(len(off) or 1)
        )
        if off
        else None,
        worst_day=worst,
        worst_fraction=None if worst is None else off[worst],
    )

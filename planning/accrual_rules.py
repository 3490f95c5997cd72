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
from formulae.time_ledger import HOUR_MICROSECOND
from formulae.units import EXACT
from planning.accrual_records import AccrualError, AccruedDay, DeviceDay, Rate, RateBasis

# A provider that has not billed for this long is used no more: no bill of it is outstanding.
QUIET_DAYS: Final = 45
RECENT_DAYS: Final = 7
CHARGED_DAYS: Final = 5  # of the last seven: a class that goes on every day
LATE_DAYS: Final = 10  # a provider further behind the others bills no more of what goes on
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
    return quantise_money(divide(Decimal(microsecond), Decimal(HOUR_MICROSECOND)) or Decimal(0))


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
    billed = int(EXACT.multiply(billed_h, Decimal(HOUR_MICROSECOND)).to_integral_value())
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
    billed: Mapping[tuple[date, str, str], Decimal], *, last_day: date, currency: str
) -> list[AccruedDay]:
    """Storage, transfer and the like of days without any such charge: the mean of the last week.

    Only of a provider that still bills, and of a class that it charges on most days: what is
    charged once a month stands for the whole month, and what nobody charges lately is over.

    Args:
        billed: cost by day, class and provider, of one currency.
        last_day: the last day to accrue, included.
        currency: of all of it.
    """
    running = {key: cost for key, cost in billed.items() if key[1] in RUNNING_CLASSES}
    last: dict[str, date] = {}
    for day, _name, provider in running:
        last[provider] = max(last.get(provider, day), day)
    newest = max(last.values(), default=last_day)
    found: list[AccruedDay] = []
    for name, provider in sorted({key[1:] for key in running}):
        if newest - last[provider] <= timedelta(days=LATE_DAYS):
            settled = last[provider] - timedelta(days=1)
            days = {day: cost for (day, *what), cost in running.items() if what == [name, provider]}
            found += _running(name, days, settled=settled, last_day=last_day, currency=currency)
    return sorted(found, key=lambda one: (one.day, one.x_cost_class))


def _running(
    name: str, billed: Mapping[date, Decimal], *, settled: date, last_day: date, currency: str
) -> list[AccruedDay]:
    """A class's days after the settled one that no charge tells of, at the mean of the week."""
    week = [settled - timedelta(days=offset) for offset in range(RECENT_DAYS)]
    some = [billed[day] for day in week if day in billed]
    mean = quantise_money(divide(exact_sum(some), Decimal(len(some) or 1)) or Decimal(0))
    if len(some) < CHARGED_DAYS or not mean:
        return []
    rate = Rate(amount=mean, currency=currency, basis=RateBasis.DAILY_MEAN)
    until = min(last_day, settled + timedelta(days=QUIET_DAYS))
    days = (settled + timedelta(days=offset) for offset in range(1, (until - settled).days + 1))
    return [
        AccruedDay(
            day=day,
            x_cost_class=name,
            currency=currency,
            quantity=Decimal(1),
            unit="day",
            rate=rate,
            cost=mean,
        )
        for day in days
        if day not in billed
    ]


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

"""Reads accruals of a project: what ran since the bills end, at the rate in force."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from billing.cost_questions import CostQuestion, Scope
from billing.cost_records import CostRow
from billing.price_records import PriceRecord
from billing.price_selectors import converted, price_in_force
from billing.records import Basis
from billing.selectors import cost_table
from formulae.money import divide, exact_sum, quantise_money
from formulae.periods import Period, split_by_day
from formulae.units import EXACT
from planning.accrual_records import (
    AccrualError,
    Accruals,
    DeviceDay,
    Rate,
    RateBasis,
)
from planning.accrual_rules import (
    accrual_error,
    accrued_accelerators,
    accrued_running_costs,
    settled_through,
)
from planning.own_accruals import OwnSites, own_accruals, own_sites
from projects.models import Project
from runs.selectors import accelerator_keys, assignments_between, sites

RATE_DAYS: Final = 7
LOOKED_AT_DAYS: Final = 60
BACK_CAST_DAYS: Final = 28
FIRST_INSTANT: Final = datetime(2000, 1, 1, tzinfo=UTC)
_ACCELERATOR: Final = "accelerator"
PURCHASES: Final = ("contract", "on_demand")


@dataclass(frozen=True, slots=True, kw_only=True)
class Billed:
    """What the bills of a project say by day, in one currency: cost by class, hours, providers.

    Charges of own hardware are not among them: `settled_with_own` counts them as a provider.
    """

    currency: str
    cost: Mapping[tuple[date, str], Decimal]
    accelerator_h: Mapping[date, Decimal]
    lately: Mapping[str, Rate]  # accelerator key, or "" for all of them -> cost of an hour
    settled: date | None
    settled_with_own: date | None = None
    running: Mapping[tuple[date, str, str], Decimal] = field(default_factory=dict)


def accruals_of(
    project: Project, *, as_of: datetime, currency: str, basis: str = "effective"
) -> Accruals:
    """What ran up to `as_of` without a bill, priced.

    Args:
        project: whose.
        as_of: aware instant; bills that arrived later are left out.
        currency: of the plan; costs in another one are not accrued.
        basis: billed, effective, list or contracted: whose rate is taken from late bills.

    Returns:
        Accrued days after the last settled one; a day without a rate has no cost.
    """
    as_of = max(as_of, FIRST_INSTANT)
    last_day = as_of.astimezone(UTC).date()
    own = own_sites(project.organisation_id, as_of=as_of)
    billed = _billed(project, own, as_of=as_of, currency=currency, basis=Basis(basis))
    start = billed.settled + timedelta(days=1) if billed.settled else FIRST_INSTANT.date()
    ran = _ran(project, _midnight(min(start, own.open_from(last_day) or start)), as_of)
    found = accrued_accelerators(
        [one for one in ran if not own.is_own(one)],
        billed_h=billed.accelerator_h,
        settled=billed.settled,
        rate_of=_Rates(project, billed).rate_of,
        currency=currency,
    )
    # The day that is not over yet has not cost a whole day's storage.
    found += accrued_running_costs(
        billed.running, last_day=last_day - timedelta(days=1), currency=currency
    )
    found += own_accruals(project, ran, own, as_of=as_of, currency=currency)
    found.sort(key=lambda one: (one.day, one.x_cost_class, one.accelerator_key))
    return Accruals(settled_through=billed.settled_with_own, days=tuple(found))


def accrual_error_of(
    project: Project, *, as_of: datetime, currency: str, basis: str = "effective"
) -> AccrualError | None:
    """How accruals of the last four settled weeks would have been off; None without such days.

    Each week is accrued with no bill of it or of a later day, then set against its bill.
    """
    as_of = max(as_of, FIRST_INSTANT)
    own = own_sites(project.organisation_id, as_of=as_of)
    billed = _billed(project, own, as_of=as_of, currency=currency, basis=Basis(basis))
    if billed.settled is None:
        return None
    first = billed.settled - timedelta(days=BACK_CAST_DAYS - 1)
    ran = _ran(project, _midnight(first), _midnight(billed.settled + timedelta(days=1)))
    by_day: defaultdict[date, list[Decimal | None]] = defaultdict(list)
    for offset in range(0, BACK_CAST_DAYS, 7):
        known = _known_before(billed, first + timedelta(days=offset))
        week = {first + timedelta(days=offset + one) for one in range(7)}
        for one in accrued_accelerators(
            [one for one in ran if one.day in week and not own.is_own(one)],
            billed_h={},
            settled=known.settled,
            rate_of=_Rates(project, known).rate_of,
            currency=currency,
        ):
            by_day[one.day].append(one.cost)
    accrued = {
        day: exact_sum(cost for cost in costs if cost is not None)
        for day, costs in by_day.items()
        if None not in costs
    }
    found = {
        day: cost
        for (day, name), cost in billed.cost.items()
        if name == _ACCELERATOR and first <= day <= billed.settled
    }
    error = accrual_error(accrued, found, currency=currency)
    return error if error.days else None


def _known_before(billed: Billed, day: date) -> Billed:
    """The bills as if nothing from `day` on had arrived."""
    cost = {key: amount for key, amount in billed.cost.items() if key[0] < day}
    hours = {one: amount for one, amount in billed.accelerator_h.items() if one < day}
    settled = day - timedelta(days=1)
    return Billed(
        currency=billed.currency,
        cost=cost,
        accelerator_h=hours,
        lately=_rate_of_all(cost, hours, settled, billed.currency),
        settled=settled,
    )


def _rate_of_all(
    cost: Mapping[tuple[date, str], Decimal],
    hours: Mapping[date, Decimal],
    settled: date,
    currency: str,
) -> dict[str, Rate]:
    """The cost of an hour of the project's accelerators over the last settled days."""
    days = [settled - timedelta(days=offset) for offset in range(RATE_DAYS)]
    some = [day for day in days if (day, _ACCELERATOR) in cost and hours.get(day)]
    amount = divide(
        exact_sum(cost[day, _ACCELERATOR] for day in some), exact_sum(hours[day] for day in some)
    )
    return {} if amount is None or not some else {"": _lately(amount, currency)}


def _lately(amount: Decimal, currency: str) -> Rate:
    return Rate(amount=quantise_money(amount), currency=currency, basis=RateBasis.BILLED_LATELY)


def _billed(
    project: Project, own: OwnSites, *, as_of: datetime, currency: str, basis: Basis
) -> Billed:
    lately = as_of.date() - timedelta(days=LOOKED_AT_DAYS + BACK_CAST_DAYS)
    every = _charges(project, as_of=as_of, basis=basis, start_on=lately)
    if not any(row.group[1] == _ACCELERATOR for row in every):
        every = _charges(project, as_of=as_of, basis=basis, start_on=None)
    rows = [row for row in every if not own.is_own_charge(row.group[2], row.group[4])]
    hours: defaultdict[date, Decimal] = defaultdict(Decimal)
    cost: dict[tuple[date, str], Decimal] = {}
    running: dict[tuple[date, str, str], Decimal] = {}
    for row in rows:
        day, name = date.fromisoformat(row.group[0] or ""), row.group[1] or ""
        if row.accelerator_h:
            hours[day] = EXACT.add(hours[day], row.accelerator_h)
        if row.currency == currency and row.cost is not None:
            cost[day, name] = EXACT.add(cost.get((day, name), Decimal(0)), row.cost)
            key = (day, name, row.group[2] or "")
            running[key] = EXACT.add(running.get(key, Decimal(0)), row.cost)
    last = _settling(rows)
    settled = settled_through(last)
    # Own hardware is charged by whole days: its last one is settled.
    of_own = _last_days(
        row for row in every if row.accelerator_h and own.is_own_charge(row.group[2], row.group[4])
    )
    charged = {name: day + timedelta(days=1) for name, day in of_own.items()}
    return Billed(
        currency=currency,
        cost=cost,
        accelerator_h=dict(hours),
        lately={} if settled is None else _rates_lately(rows, settled, currency),
        settled=settled,
        settled_with_own=settled_through(last | charged),
        running=running,
    )


def _charges(
    project: Project, *, as_of: datetime, basis: Basis, start_on: date | None
) -> list[CostRow]:
    """A project's costs by day, class, provider, accelerator and region."""
    question = CostQuestion(
        group_by=("day", "x_cost_class", "provider_name", "x_accelerator", "region_id"),
        basis=basis,
        scope=Scope(project_id=project.pk),
        start_on=start_on,
        end_on=as_of.date() + timedelta(days=1),
        as_of=as_of,
    )
    return [row for row in cost_table(project.organisation_id, question).rows if row.group[0]]


def _settling(rows: Sequence[CostRow]) -> dict[str, date]:
    """The last day of each provider's accelerators, the one that may be only begun.

    Of a provider that counts no hours nobody can tell what is missing of its last day: none is.
    """
    counted = _last_days(row for row in rows if row.accelerator_h)
    charged = _last_days(row for row in rows if row.group[1] == _ACCELERATOR and row.cost)
    return {name: day + timedelta(days=1) for name, day in charged.items()} | counted


def _last_days(rows: Iterable[CostRow]) -> dict[str, date]:
    """The last day of each provider among these rows."""
    last: dict[str, date] = {}
    for row in rows:
        provider, day = row.group[2] or "", date.fromisoformat(row.group[0] or "")
        last[provider] = max(last.get(provider, day), day)
    return last


def _rates_lately(rows: Sequence[CostRow], settled: date, currency: str) -> dict[str, Rate]:
    """The cost of an hour by accelerator over the last settled days, and of all as ""."""
    first = settled - timedelta(days=RATE_DAYS)
    sums: dict[str, list[Decimal]] = {}
    for row in rows:
        day = date.fromisoformat(row.group[0] or "")
        if row.group[1] != _ACCELERATOR or row.currency != currency or not first < day <= settled:
            continue
        if row.cost is None or not row.accelerator_h:
            continue
        for key in {row.group[3] or "", ""}:
            known = sums.setdefault(key, [Decimal(0), Decimal(0)])
            known[0] = EXACT.add(known[0], row.cost)
            known[1] = EXACT.add(known[1], row.accelerator_h)
    rates = {key: divide(cost, hours) for key, (cost, hours) in sums.items()}
    return {key: _lately(rate, currency) for key, rate in rates.items() if rate is not None}


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, tzinfo=UTC)


def _ran(project: Project, start: datetime, end: datetime) -> list[DeviceDay]:
    """What worked for the project in [start, end), summed by day, site and accelerator."""
    if start >= end:
        return []
    organisation_id = project.organisation_id
    found = assignments_between(organisation_id, start, end, project_id=project.pk)
    places = {site.site_id: site for site in sites(organisation_id)}
    keys = accelerator_keys(organisation_id, {one.device_id for one in found})
    sums: defaultdict[tuple[date, UUID, str], int] = defaultdict(int)
    spans: defaultdict[tuple[UUID, str, datetime, datetime], int] = defaultdict(int)
    for one in found:  # a fleet's devices begin and end together: split each span once
        key = keys.get(one.device_id, "")
        spans[one.site_id, key, max(one.start, start), min(one.end or end, end)] += 1
    for (site_id, key, begins, ends), count in spans.items():
        if ends <= begins:
            continue
        for part in split_by_day(Period(start=begins, end=ends)):
            sums[part.start.date(), site_id, key] += part.duration_microsecond * count
    return [
        DeviceDay(
            day=day,
            site_id=site_id,
            provider=places[site_id].provider,
            region=places[site_id].region,
            accelerator_key=key,
            allocated_microsecond=microsecond,
        )
        for (day, site_id, key), microsecond in sorted(sums.items(), key=str)
    ]


class _Rates:
    """The rate of an accelerator-hour: stated by the organisation, billed lately, or listed."""

    def __init__(self, project: Project, billed: Billed) -> None:
        self.project, self.billed = project, billed

    def rate_of(self, one: DeviceDay) -> Rate | None:
        """The rate in force for what ran; None where nobody stated one in the currency.

        A stated price in another currency is converted by the day's rate. Without one the cost is
        unknown: a list's price in its place would pass over the contract.
        """
        prices = [price for purchase in PURCHASES if (price := self._price(one, purchase))]
        own = next((price for price in prices if not price.is_shipped and not price.feed), None)
        if own is not None:
            return self._in_currency(own, RateBasis.OWN_PRICE, one.day)
        lately = self.billed.lately
        if one.accelerator_key in lately:
            return lately[one.accelerator_key]
        listed = self._in_currency(prices[0], RateBasis.PRICE_LIST, one.day) if prices else None
        # Bills that name other accelerators say nothing of this one's price.
        is_named = bool(one.accelerator_key) and any(lately)
        return (listed if is_named else None) or lately.get("") or listed

    def _price(self, one: DeviceDay, purchase: str) -> PriceRecord | None:
        return price_in_force(
            self.project.organisation_id,
            cost_class=_ACCELERATOR,
            on=one.day,
            provider=one.provider,
            region=one.region,
            accelerator_key=one.accelerator_key,
            purchase=purchase,
            unit="accelerator_h",
        )

    def _in_currency(self, price: PriceRecord, basis: RateBasis, on: date) -> Rate | None:
        found = converted(
            self.project.organisation_id, price.price, currency=self.billed.currency, on=on
        )
        if found is None:
            return None
        return Rate(
            amount=found.money.amount,
            currency=found.money.currency,
            basis=basis,
            source=price.source,
        )

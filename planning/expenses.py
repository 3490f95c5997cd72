"""Reads what a project has cost until now by band, billed and accrued, at the plan's rates."""

from calendar import monthrange
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

from billing.price_selectors import exchange_rate
from billing.records import DailyCostRow
from billing.selectors import cost_by_day
from formulae.money import exact_sum, multiply
from formulae.units import EXACT
from planning.accrual_records import AccruedDay
from planning.classes import group_of
from planning.records import Burndown, CostGroup, PlanRecord
from projects.models import Project

FIRST_DAY = date(2000, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expenses:
    """Billed and accrued cost by band in the plan's currency; None where a part is not known.

    Charges in another currency stand here at the rate of the day on which the plan was approved;
    `currency_cost` is what the rates of their own months add to that. `accelerator_h` are hours
    that are billed or accrued.
    """

    by_group: Mapping[CostGroup, Decimal] | None
    currency_cost: Decimal = Decimal(0)
    accelerator_h: Decimal | None = None
    is_rate_missing: bool = False

    def of(self, groups: Sequence[CostGroup]) -> Fraction | None:
        """What was charged in some bands."""
        if self.by_group is None:
            return None
        return sum((Fraction(self.by_group.get(one, 0)) for one in groups), Fraction(0))


def expenses_of(project: Project, found: Burndown, plan: PlanRecord) -> Expenses:
    """What the burn-down's charges and accruals come to, by band."""
    accrued = found.accruals.days if found.accruals else ()
    billed_h = [] if found.accelerator_h is None else [found.accelerator_h]
    hours = billed_h + [one.quantity for one in accrued if one.unit == "accelerator_h"]
    hours_known = exact_sum(hours) if hours else None
    unpriced = any(one.cost is None for one in accrued)
    if unpriced or (found.billed_through and found.actual_cost is None and not _foreign(found)):
        return Expenses(by_group=None, accelerator_h=hours_known)
    billed: Iterable[Mapping[CostGroup, Decimal]] = (row.cost_by_group for row in found.days)
    currency_cost = Decimal(0)
    if _foreign(found):
        converted = _converted(project, found, plan)
        if converted is None:
            return Expenses(by_group=None, accelerator_h=hours_known, is_rate_missing=True)
        by_group, currency_cost = converted
        billed = [by_group]
    return Expenses(
        by_group=_added(billed, accrued), currency_cost=currency_cost, accelerator_h=hours_known
    )


def _foreign(found: Burndown) -> bool:
    return bool(found.other_currencies)


def _added(
    billed: Iterable[Mapping[CostGroup, Decimal]], accrued: Iterable[AccruedDay]
) -> dict[CostGroup, Decimal]:
    sums: defaultdict[CostGroup, Decimal] = defaultdict(Decimal)
    for bands in billed:
        for group, cost in bands.items():
            sums[group] = EXACT.add(sums[group], cost)
    for one in accrued:
        group = group_of(one.x_cost_class)
        sums[group] = EXACT.add(sums[group], one.cost or Decimal(0))
    return dict(sums)


def _converted(
    project: Project, found: Burndown, plan: PlanRecord
) -> tuple[dict[CostGroup, Decimal], Decimal] | None:
    """Charges by band at the plan's rates, and what the rates of their months add; None if one
    is missing.
    """
    rows = cost_by_day(
        project.organisation_id,
        project.pk,
        basis=found.basis,
        start_on=FIRST_DAY,
        end_on=(found.through or found.as_of.date()) + timedelta(days=1),
        as_of=found.as_of,
    )
    approved = (plan.approved_at or found.as_of).date()
    sums: defaultdict[CostGroup, Decimal] = defaultdict(Decimal)
    added = Decimal(0)
    for (group, currency, month), charged in _by_month(rows).items():
        if charged is None:
            return None
        then, now = charged, charged
        if currency != plan.currency:
            rates = [
                _rate(project.organisation_id, currency, plan.currency, on=day)
                for day in (approved, min(_last_day(month), found.as_of.date()))
            ]
            if None in rates:
                return None
            then, now = (multiply(charged, rate or Decimal(0)) for rate in rates)
        sums[group] = EXACT.add(sums[group], then)
        added = EXACT.add(added, EXACT.subtract(now, then))
    return dict(sums), added


def _rate(organisation_id: UUID, base: str, quote: str, *, on: date) -> Decimal | None:
    found = exchange_rate(organisation_id, base=base, quote=quote, on=on)
    return None if found is None else found.rate


def _by_month(
    rows: Iterable[DailyCostRow],
) -> dict[tuple[CostGroup, str, date], Decimal | None]:
    """Charges by band, currency and first day of the month; None where a row has no cost."""
    sums: dict[tuple[CostGroup, str, date], Decimal | None] = {}
    for row in rows:
        key = (group_of(row.x_cost_class), row.currency, row.day.replace(day=1))
        before = sums.get(key, Decimal(0))
        is_known = before is not None and row.cost is not None
        sums[key] = EXACT.add(before or Decimal(0), row.cost or Decimal(0)) if is_known else None
    return sums


def _last_day(month: date) -> date:
    return month.replace(day=monthrange(month.year, month.month)[1])

"""Answers of the cost explorer: groups by bars of time beside the days before. Reads."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.db.models import Max, Min

from billing.charge_words import value_name
from billing.cost_questions import CostQuestion, Scope
from billing.cost_records import CostRow, CurrencyTotal, merged, total_of
from billing.cost_selectors import cost_table, costs_in_scope
from formulae.money import divide
from formulae.units import EXACT
from reports.explorer_questions import Asked, Every, period_start, step_of

MOVERS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """Some days, [start_on, end_on)."""

    start_on: date
    end_on: date

    @property
    def last_on(self) -> date:
        """The last day that is in."""
        return self.end_on - timedelta(days=1)

    @property
    def count(self) -> int:
        """How many they are."""
        return (self.end_on - self.start_on).days


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A line: what it is told apart by, its sums, its cost by bar, and its cost before."""

    key: tuple[str | None, ...]
    row: CostRow
    previous: Decimal | None = None
    by_period: dict[date, CostRow] = field(default_factory=dict)
    is_estimated: bool = False

    @property
    def difference(self) -> Decimal | None:
        """What it costs more than before; None where one of the two is not known."""
        if self.row.cost is None or self.previous is None:
            return None
        return EXACT.subtract(self.row.cost, self.previous)

    @property
    def change(self) -> Decimal | None:
        """The difference over what it was; None where that was nothing, or less."""
        if self.difference is None or self.previous is None or self.previous <= 0:
            return None
        return divide(self.difference, self.previous)


@dataclass(frozen=True, slots=True, kw_only=True)
class Movers:
    """The groups of a currency that rose and fell most."""

    currency: str
    rises: tuple[Group, ...]
    falls: tuple[Group, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the explorer shows. `rest` are the groups that there is no room for, by currency."""

    asked: Asked
    every: Every
    days: Days | None
    known: Days | None  # the days with charges, whatever the filters
    compared: Days | None  # the days that are billed of those asked
    before: Days | None  # the days before these, as many
    periods: tuple[date, ...]
    groups: tuple[Group, ...]
    rest: tuple[Group, ...]
    rest_count: int
    totals: tuple[Group, ...]
    movers: tuple[Movers, ...]

    @property
    def currencies(self) -> list[str]:
        """Every currency of the answer."""
        return [total.row.currency for total in self.totals]


def known_days(organisation_id: UUID, scope: Scope) -> Days | None:
    """The days with charges that the scope lets see."""
    found = costs_in_scope(organisation_id, scope).aggregate(first=Min("day"), last=Max("day"))
    if found["first"] is None:
        return None
    return Days(start_on=found["first"], end_on=found["last"] + timedelta(days=1))


def explore(organisation_id: UUID, asked: Asked) -> Answer:
    """The answer to a question of the explorer."""
    question = asked.question
    known = known_days(organisation_id, question.scope)
    days = _days(question, known)
    every = step_of(asked, days.count if days else 1)
    compared, before = _compared(asked, days, known)
    rows = _rows(organisation_id, question, every)
    earlier = _earlier(organisation_id, question, before)
    groups = _groups(rows, question, every, earlier)
    kept, rest = _kept(groups, asked.top)
    return Answer(
        asked=asked,
        every=every,
        days=days,
        known=known,
        compared=compared,
        before=before,
        periods=tuple(sorted({day for group in groups for day in group.by_period})),
        groups=tuple(kept),
        rest=tuple(_totals(rest, has_before=before is not None)),
        rest_count=len(rest),
        totals=tuple(_totals(groups, has_before=before is not None)),
        movers=tuple(_movers(groups)) if before else (),
    )


def _days(question: CostQuestion, known: Days | None) -> Days | None:
    """The days of the question; where it leaves them open, those with charges."""
    start = question.start_on or (known and known.start_on)
    end = question.end_on or (known and known.end_on)
    return Days(start_on=start, end_on=end) if start and end and start < end else None


def _compared(
    asked: Asked, days: Days | None, known: Days | None
) -> tuple[Days | None, Days | None]:
    """The billed part of the days, and as many days before them; None where nothing is known.

    A month that is not over is compared with as many days as it has bills: no false fall.
    """
    if not (asked.is_compared and asked.can_be_compared and days and known):
        return None, None
    compared = Days(start_on=days.start_on, end_on=min(days.end_on, known.end_on))
    if compared.count <= 0 or days.start_on <= known.start_on:
        return None, None
    start_on = compared.start_on - timedelta(days=compared.count)
    return compared, Days(start_on=start_on, end_on=compared.start_on)


def _rows(organisation_id: UUID, question: CostQuestion, every: Every) -> list[CostRow]:
    """The costs by the question's columns, by day or month, and whether they are estimated."""
    time = "month" if every is Every.MONTH else "day"
    wanted = replace(question, group_by=(*question.group_by, time, "x_estimated"))
    return list(cost_table(organisation_id, wanted).rows)


def _earlier(
    organisation_id: UUID, question: CostQuestion, before: Days | None
) -> dict[tuple[tuple[str | None, ...], str], CostRow] | None:
    """The costs of the days before, by group and currency."""
    if before is None:
        return None
    asked = replace(question, start_on=before.start_on, end_on=before.end_on)
    return {(row.group, row.currency): row for row in cost_table(organisation_id, asked).rows}


def _groups(
    rows: Sequence[CostRow],
    question: CostQuestion,
    every: Every,
    earlier: dict[tuple[tuple[str | None, ...], str], CostRow] | None,
) -> list[Group]:
    """A group for each that costs now or did before, by currency, the dearest first."""
    width = len(question.group_by)
    whole = {
        (row.group, row.currency): row
        for row in merged(replace(row, group=row.group[:width]) for row in rows)
    }
    bars: dict[tuple[tuple[str | None, ...], str], dict[date, CostRow]] = {}
    dated = (
        replace(row, group=(*row.group[:width], _first(row.group[width], every).isoformat()))
        for row in rows
    )
    for row in merged(dated):
        start = date.fromisoformat(row.group[-1] or "")
        bars.setdefault((row.group[:-1], row.currency), {})[start] = row
    estimated = {
        (row.group[:width], row.currency) for row in rows if row.group[width + 1] == "true"
    }
    found = [
        Group(
            key=key,
            row=whole.get((key, currency)) or _nothing(key, currency),
            previous=_before(earlier, key, currency),
            by_period=bars.get((key, currency), {}),
            is_estimated=(key, currency) in estimated,
        )
        for key, currency in {**whole, **(earlier or {})}
    ]
    return sorted(found, key=_order)


def _first(text: str | None, every: Every) -> date:
    day = text or ""
    return period_start(date.fromisoformat(day if len(day) > 7 else f"{day}-01"), every)


def _nothing(key: tuple[str | None, ...], currency: str) -> CostRow:
    """No charges: they cost nothing, which is known."""
    return CostRow(group=key, currency=currency, cost=Decimal(0))


def _before(
    earlier: dict[tuple[tuple[str | None, ...], str], CostRow] | None,
    key: tuple[str | None, ...],
    currency: str,
) -> Decimal | None:
    if earlier is None:
        return None
    row = earlier.get((key, currency))
    return Decimal(0) if row is None else row.cost


def _order(group: Group) -> tuple[object, ...]:
    cost = group.row.cost
    names = tuple(text or "" for text in group.key)
    return (group.row.currency, cost is None, -(cost or 0), -(group.previous or 0), names)


def _kept(groups: Sequence[Group], top: int) -> tuple[list[Group], list[Group]]:
    """The first groups of each currency, and those that there is no room for."""
    kept: list[Group] = []
    rest: list[Group] = []
    counts: dict[str, int] = {}
    for group in groups:
        currency = group.row.currency
        counts[currency] = counts.get(currency, 0) + 1
        (kept if counts[currency] <= top else rest).append(group)
    return kept, rest


def _totals(groups: Sequence[Group], *, has_before: bool) -> list[Group]:
    """The exact sum of groups, one for each currency, with its bars and its days before."""
    totals = []
    for total in total_of(group.row for group in groups):
        own = [group for group in groups if group.row.currency == total.currency]
        bars = {
            day: _summed([one.by_period[day] for one in own if day in one.by_period])
            for day in {day for group in own for day in group.by_period}
        }
        totals.append(
            Group(
                key=(),
                row=_as_row(total),
                previous=_whole(one.previous for one in own) if has_before else None,
                by_period=bars,
                is_estimated=any(one.is_estimated for one in own),
            )
        )
    return totals


def _summed(rows: Iterable[CostRow]) -> CostRow:
    (total,) = total_of(rows)
    return _as_row(total)


def _as_row(total: CurrencyTotal) -> CostRow:
    return CostRow(
        group=(),
        currency=total.currency,
        cost=total.cost,
        accelerator_h=total.accelerator_h,
        idle_accelerator_h=total.idle_accelerator_h,
        storage_tb_month=total.storage_tb_month,
        requests=total.requests,
        transfer_bytes=total.transfer_bytes,
        rows=total.rows,
    )


def _whole(values: Iterable[Decimal | None]) -> Decimal | None:
    """The exact sum; None where a part is missing."""
    total = Decimal(0)
    for value in values:
        if value is None:
            return None
        total = EXACT.add(total, value)
    return total


def _movers(groups: Sequence[Group]) -> list[Movers]:
    """By currency, what rose and fell most between the two periods."""
    found = []
    for currency in dict.fromkeys(group.row.currency for group in groups):
        moved = [
            (group.difference, group)
            for group in groups
            if group.row.currency == currency and group.difference
        ]
        rises = sorted((pair for pair in moved if pair[0] > 0), key=lambda pair: -pair[0])
        falls = sorted((pair for pair in moved if pair[0] < 0), key=lambda pair: pair[0])
        if rises or falls:
            found.append(
                Movers(
                    currency=currency,
                    rises=tuple(group for _difference, group in rises[:MOVERS]),
                    falls=tuple(group for _difference, group in falls[:MOVERS]),
                )
            )
    return found


def group_names(group: Group, dimensions: Sequence[str]) -> list[str]:
    """What a group is called, column by column."""
    return [value_name(name, value) for name, value in zip(dimensions, group.key, strict=True)]

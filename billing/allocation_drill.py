"""What no rule gives to a project, seen closer: by account, service, tag; reads only."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final
from uuid import UUID

from billing.allocation_preview import BASIS, Catch, catches_of
from billing.cost_questions import CostQuestion, Filter, Scope
from billing.cost_records import CostRow as Row
from billing.cost_records import CostTable, CurrencyTotal, total_of
from billing.cost_selectors import billed_through, cost_table, shelf_of
from billing.expressions import allocated
from billing.lake_costs import asked_charges, pools
from lake.engine import open_duckdb

MONTHS: Final = 3
NOBODYS: Final = Scope(allowed=(), include_unallocated=True)
MAX_TAG_KEYS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class TagKey:
    """A tag's key among charges that no rule matched; a charge with two tags is in both."""

    key: str
    rows: int
    totals: tuple[CurrencyTotal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The last months with charges, [start_on, end_on)."""

    start_on: date
    end_on: date


def last_months(organisation_id: UUID) -> Window | None:
    """The calendar month of the last charge and those before it; None without charges."""
    last = billed_through(organisation_id, None)
    if last is None:
        return None
    month = last.year * 12 + last.month - 1
    return Window(start_on=_first_of(month - MONTHS + 1), end_on=_first_of(month + 1))


def _first_of(month: int) -> date:
    return date(month // 12, month % 12 + 1, 1)


def catches(organisation_id: UUID, window: Window) -> dict[int | None, Catch]:
    """What each rule in force caught in the window; None = what no rule matched."""
    question = CostQuestion(
        group_by=("rule_position",), basis=BASIS, start_on=window.start_on, end_on=window.end_on
    )
    return catches_of(cost_table(organisation_id, question).rows)


def nobodys_costs(
    organisation_id: UUID, window: Window, *, by: str, filters: tuple[Filter, ...] = ()
) -> CostTable:
    """What is unallocated in the window, on purpose or not, by one column."""
    question = CostQuestion(
        group_by=(by,),
        basis=BASIS,
        start_on=window.start_on,
        end_on=window.end_on,
        filters=filters,
        scope=NOBODYS,
    )
    return cost_table(organisation_id, question)


def nobodys_tag_keys(
    organisation_id: UUID, window: Window, *, filters: tuple[Filter, ...] = ()
) -> tuple[TagKey, ...]:
    """The keys of tags on charges that no rule matched, the dearest first."""
    question = CostQuestion(
        group_by=("project",),
        basis=BASIS,
        start_on=window.start_on,
        end_on=window.end_on,
        filters=filters,
        scope=NOBODYS,
    )
    found: dict[str, list[Row]] = {}
    shelf = shelf_of(organisation_id, question)
    with open_duckdb() as engine:
        for pool in pools(shelf, allocating=True):
            if not pool.book.for_cost:
                continue
            charges = allocated(asked_charges(engine, pool, question), pool.rules)
            charges = charges.filter(charges.rule_position.isnull())
            keys = charges.mutate(tag_key=charges.tags.keys().unnest())
            cost = keys[question.basis.column].sum()
            grouped = keys.group_by(["tag_key", "billing_currency"]).agg(
                cost=cost, known=keys[question.basis.column].count(), rows=keys.count()
            )
            for row in engine.rows(grouped):
                is_whole = pool.book.knows_cost and row["known"] == row["rows"]
                found.setdefault(row["tag_key"], []).append(
                    Row(
                        group=(row["tag_key"],),
                        currency=row["billing_currency"],
                        cost=row["cost"] if is_whole else None,
                        rows=row["rows"],
                    )
                )
    ranked = sorted(found.items(), key=lambda item: (-_largest(item[1]), item[0]))
    return tuple(
        TagKey(key=key, rows=sum(one.rows for one in rows), totals=total_of(rows))
        for key, rows in ranked[:MAX_TAG_KEYS]
    )


def _largest(rows: list[Row]) -> Decimal:
    """A rank only: the largest amount of any currency, of any sign."""
    return max(abs(row.cost or Decimal(0)) for row in rows)

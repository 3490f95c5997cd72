"""What cost questions are answered with: groups with their cost and measures, totals. No Django."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

from billing.records import Basis
from formulae.units import EXACT

# What stands beside a cost, under the name it has in an answer -> in a stored charge.
MEASURES: Final = {
    "accelerator_h": "x_accelerator_h",
    "idle_accelerator_h": "x_idle_accelerator_h",
    "storage_tb_month": "x_storage_tb_month",
    "requests": "x_requests",
    "transfer_bytes": "x_transfer_bytes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """One group of a cost table: its group columns in order, cost and measures.

    A measure is None where no charge of the group is of its kind.
    """

    group: tuple[str | None, ...]
    currency: str
    cost: Decimal | None  # None where a charge of the group lacks this cost
    accelerator_h: Decimal | None = None
    idle_accelerator_h: Decimal | None = None
    storage_tb_month: Decimal | None = None
    requests: Decimal | None = None
    transfer_bytes: Decimal | None = None
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrencyTotal:
    """A total in one currency; the cost is None where a charge lacks it."""

    currency: str
    cost: Decimal | None
    accelerator_h: Decimal | None = None
    idle_accelerator_h: Decimal | None = None
    storage_tb_month: Decimal | None = None
    requests: Decimal | None = None
    transfer_bytes: Decimal | None = None
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CostTable:
    """Costs by groups; `total` has one line a currency, never two in one sum."""

    group_by: tuple[str, ...]
    basis: Basis
    start_on: date | None
    end_on: date | None  # the first day that is out
    rows: tuple[CostRow, ...]
    total: tuple[CurrencyTotal, ...]


def known_sum(left: Decimal | None, right: Decimal | None) -> Decimal | None:
    """The exact sum of what is known: None only where neither is."""
    if left is None or right is None:
        return right if left is None else left
    return EXACT.add(left, right)


def whole_sum(left: Decimal | None, right: Decimal | None) -> Decimal | None:
    """The exact sum, None where a part is missing: a partial sum would read as the whole."""
    return None if left is None or right is None else EXACT.add(left, right)


def merged(rows: Iterable[CostRow]) -> list[CostRow]:
    """Rows of the same group and currency as one, ordered by group; missing groups come last."""
    found: dict[tuple[tuple[str | None, ...], str], CostRow] = {}
    for row in rows:
        key = (row.group, row.currency)
        found[key] = _plus(found[key], row) if key in found else row
    return sorted(found.values(), key=_order)


def _order(row: CostRow) -> tuple[object, ...]:
    return (*((value is None, value or "") for value in row.group), row.currency)


def _plus(left: CostRow, right: CostRow) -> CostRow:
    sums = {name: known_sum(getattr(left, name), getattr(right, name)) for name in MEASURES}
    return CostRow(
        group=left.group,
        currency=left.currency,
        cost=whole_sum(left.cost, right.cost),
        rows=left.rows + right.rows,
        **sums,
    )


def total_of(rows: Iterable[CostRow]) -> tuple[CurrencyTotal, ...]:
    """Exact totals, one for each currency; a cost is None where a part is missing."""
    one_group = (
        CostRow(
            group=(),
            currency=row.currency,
            cost=row.cost,
            rows=row.rows,
            **{name: getattr(row, name) for name in MEASURES},
        )
        for row in rows
    )
    return tuple(
        CurrencyTotal(
            currency=row.currency,
            cost=row.cost,
            rows=row.rows,
            **{name: getattr(row, name) for name in MEASURES},
        )
        for row in merged(one_group)
    )

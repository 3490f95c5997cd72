"""Costs straight from the lake: by tag, or as known earlier; the roll-up answers the rest."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

import ibis

from billing.expressions import allocated, whole_sum
from billing.records import Basis, CostRow, RuleRecord
from lake.engine import open_engine

TAG_PREFIX = "tag:"


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeQuestion:
    """Which charges, grouped by what; days are [start_on, end_on)."""

    group_by: tuple[str, ...]
    basis: Basis
    start_on: date | None
    end_on: date | None
    project_id: UUID | None
    allowed: tuple[UUID, ...] | None
    include_unallocated: bool


def costs_from_lake(
    paths: Sequence[str], rules: Sequence[RuleRecord], question: LakeQuestion
) -> list[CostRow]:
    """Costs of the charges in these files; projects are named by id."""
    if not paths:
        return []
    with open_engine() as engine:
        charges = allocated(engine.table(paths), rules)
        charges = charges.mutate(day=charges.charge_period_start.date())
        charges = charges.filter(*_conditions(charges, question))
        names = [f"group_{index}" for index in range(len(question.group_by))]
        columns = {
            name: _column(charges, wanted)
            for name, wanted in zip(names, question.group_by, strict=True)
        }
        charges = charges.mutate(**columns)
        grouped = charges.group_by([*names, "billing_currency"]).agg(
            cost=whole_sum(charges, question.basis.column), hours=charges.x_accelerator_h.sum()
        )
        found = engine.rows(grouped.order_by([*names, "billing_currency"]))
    return [
        CostRow(
            group=tuple(row[name] for name in names),
            currency=row["billing_currency"],
            cost=row["cost"],
            accelerator_h=row["hours"],
        )
        for row in found
    ]


def _conditions(charges: ibis.Table, question: LakeQuestion) -> list[Any]:
    conditions: list[Any] = [ibis.literal(True)]
    if question.start_on is not None:
        conditions.append(charges.day >= ibis.literal(question.start_on))
    if question.end_on is not None:
        conditions.append(charges.day < ibis.literal(question.end_on))
    if question.project_id is not None:
        conditions.append(charges.project_id == str(question.project_id))
    elif question.allowed is not None:
        allowed = charges.project_id.isin([str(one) for one in question.allowed]).fill_null(False)
        unallocated = charges.project_id.isnull() & ibis.literal(question.include_unallocated)
        conditions.append(allowed | unallocated)
    elif not question.include_unallocated:
        conditions.append(charges.project_id.notnull())
    return conditions


def _column(charges: ibis.Table, name: str) -> Any:
    if name.startswith(TAG_PREFIX):
        return charges.tags[name.removeprefix(TAG_PREFIX)]
    if name == "project":
        return charges.project_id
    if name == "month":
        return charges.day.cast("string").substr(0, 7)
    if name == "day":
        return charges.day.cast("string")
    return charges[name]

"""What the pages of reports show: rows ready to print. No Django; nothing but running sums."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TypeVar

from formulae.money import exact_sum
from formulae.units import EXACT
from planning.records import Burndown, BurndownDay, CostGroup

Number = TypeVar("Number", Decimal, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRow:
    """One row of the tables under the charts: the same cumulated numbers as the charts draw."""

    day: date
    planned_value: Decimal | None
    actual_cost: Decimal | None
    groups: tuple[Decimal | None, ...]
    planned_facility_energy_kwh: float | None
    accelerator_energy_kwh: float | None
    facility_energy_kwh: float | None
    coverage_fraction: float | None
    planned_kgco2e: float | None
    scope_2_location_kgco2e: float | None
    accrued_cost: Decimal | None = None
    cost_to_date: Decimal | None = None
    earned_value: Decimal | None = None


def running_sums(
    values: Sequence[Number | None], add: Callable[[Number, Number], Number]
) -> list[Number | None]:
    """The sum of the known values so far, None before the first and after the last known one.

    A hole in between shows the sum before it: the day's coverage says that something is missing.

    >>> from operator import add
    >>> running_sums([None, 1.0, None, 2.0, None], add)
    [None, 1.0, 1.0, 3.0, None]
    """
    known = [index for index, value in enumerate(values) if value is not None]
    sums: list[Number | None] = []
    total: Number | None = None
    for index, value in enumerate(values):
        if value is not None:
            total = value if total is None else add(total, value)
        sums.append(total if known and index <= known[-1] else None)
    return sums


def day_rows(burndown: Burndown, groups: Sequence[CostGroup]) -> tuple[DayRow, ...]:
    """The days of a burn-down as running sums."""
    days = burndown.days

    def money(values: list[Decimal | None]) -> list[Decimal | None]:
        return running_sums(values, EXACT.add)

    def quantity(name: str) -> list[float | None]:
        return running_sums([getattr(row, name) for row in days], operator.add)

    planned_value = money([row.planned_value if burndown.plan else None for row in days])
    actual_cost = money([row.actual_cost for row in days])
    accrued_cost = money([row.accrued_cost for row in days])
    cost_to_date = money([_billed_and_accrued(row) for row in days])
    by_group = [money([_in_group(row, group) for row in days]) for group in groups]
    planned_kwh = quantity("planned_facility_energy_kwh")
    accelerator_kwh = quantity("accelerator_energy_kwh")
    facility_kwh = quantity("facility_energy_kwh")
    planned_kg = quantity("planned_kgco2e")
    location_kg = quantity("scope_2_location_kgco2e")
    return tuple(
        DayRow(
            day=row.day,
            planned_value=planned_value[index],
            actual_cost=actual_cost[index],
            groups=tuple(sums[index] for sums in by_group),
            planned_facility_energy_kwh=planned_kwh[index],
            accelerator_energy_kwh=accelerator_kwh[index],
            facility_energy_kwh=facility_kwh[index],
            coverage_fraction=row.coverage_fraction,
            planned_kgco2e=planned_kg[index],
            scope_2_location_kgco2e=location_kg[index],
            accrued_cost=accrued_cost[index],
            cost_to_date=cost_to_date[index],
            earned_value=row.earned_value_to_date,
        )
        for index, row in enumerate(days)
    )


def _billed_and_accrued(row: BurndownDay) -> Decimal | None:
    """A day's cost, billed and accrued; None where neither is known."""
    known = [one for one in (row.actual_cost, row.accrued_cost) if one is not None]
    return exact_sum(known) if known else None


def _in_group(row: BurndownDay, group: CostGroup) -> Decimal | None:
    """A day's cost in one band: zero when the day is billed without it, None when it is not."""
    return None if row.actual_cost is None else row.cost_by_group.get(group, Decimal(0))

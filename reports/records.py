"""What the pages of reports show: rows ready to print. No Django; nothing but running sums."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TypeVar

from planning.records import Burndown, CostGroup

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


def running_sums(values: Sequence[Number | None], zero: Number) -> list[Number | None]:
    """The sum of the known values so far, None before the first and after the last known one.

    A hole in between shows the sum before it: the day's coverage says that something is missing.

    >>> running_sums([None, 1.0, None, 2.0, None], 0.0)
    [None, 1.0, 1.0, 3.0, None]
    """
    known = [index for index, value in enumerate(values) if value is not None]
    if not known:
        return [None] * len(values)
    sums: list[Number | None] = []
    total = zero
    for index, value in enumerate(values):
        if value is not None:
            total = total + value
        sums.append(total if known[0] <= index <= known[-1] else None)
    return sums


def day_rows(burndown: Burndown, groups: Sequence[CostGroup]) -> tuple[DayRow, ...]:
    """The days of a burn-down as running sums."""
    days, nothing = burndown.days, Decimal(0)
    planned = [row.planned_value if burndown.plan else None for row in days]
    by_group = [
        running_sums(
            [
                None if row.actual_cost is None else row.cost_by_group.get(group, nothing)
                for row in days
            ],
            nothing,
        )
        for group in groups
    ]
    columns = {
        "planned_value": running_sums(planned, nothing),
        "actual_cost": running_sums([row.actual_cost for row in days], nothing),
    }
    quantities = {
        name: running_sums([getattr(row, name) for row in days], 0.0)
        for name in (
            "planned_facility_energy_kwh",
            "accelerator_energy_kwh",
            "facility_energy_kwh",
            "planned_kgco2e",
            "scope_2_location_kgco2e",
        )
    }
    return tuple(
        DayRow(
            day=row.day,
            groups=tuple(sums[index] for sums in by_group),
            coverage_fraction=row.coverage_fraction,
            **{name: sums[index] for name, sums in columns.items()},
            **{name: sums[index] for name, sums in quantities.items()},
        )
        for index, row in enumerate(days)
    )

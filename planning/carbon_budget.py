"""The carbon budget of an approved plan and its burn-down. Pure: no table, no clock.

The plan's emissions are its energy times PUE and grid intensity, line by line, with contingency:
the same programme multiplier as its money. What was emitted beyond or below it is split into energy
and intensity, which add up to the whole.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from planning.records import Burndown, BurndownDay

RECENT_DAYS: Final = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class CarbonBudget:
    """Emissions against the plan, kgCO2e, location-based; None where it cannot be said.

    `at_rate_so_far` and `at_recent_rate` scale what is still planned by what was emitted for each
    planned kilogram, over all days and over the last fourteen; `as_planned` leaves it as it is.
    """

    budget_kgco2e: float
    through: date | None
    days_without: int
    emitted_kgco2e: float | None
    planned_to_date_kgco2e: float
    energy_effect_kgco2e: float | None
    intensity_effect_kgco2e: float | None
    as_planned_kgco2e: float | None
    at_rate_so_far_kgco2e: float | None
    at_recent_rate_kgco2e: float | None
    used_up_on: date | None

    @property
    def used_fraction(self) -> float | None:
        """Share of the budget that is emitted, 0 and more."""
        if self.emitted_kgco2e is None or not self.budget_kgco2e:
            return None
        return self.emitted_kgco2e / self.budget_kgco2e

    @property
    def over_plan_kgco2e(self) -> float | None:
        """Emitted less planned over the same days; above 0 is more than planned."""
        if self.emitted_kgco2e is None:
            return None
        return self.emitted_kgco2e - self.planned_to_date_kgco2e

    @property
    def forecast_kgco2e(self) -> tuple[float, float] | None:
        """The lowest and the highest of the three ends."""
        ends = (self.as_planned_kgco2e, self.at_rate_so_far_kgco2e, self.at_recent_rate_kgco2e)
        known = [one for one in ends if one is not None]
        return (min(known), max(known)) if known else None

    @property
    def will_exceed(self) -> bool | None:
        """Whether the budget ends before the plan at the rate so far."""
        end = self.at_rate_so_far_kgco2e
        return None if end is None else end > self.budget_kgco2e


def carbon_budget(burndown: Burndown) -> CarbonBudget | None:
    """The carbon budget of the burn-down's plan; None without a plan that knows its emissions."""
    plan = burndown.plan
    if plan is None or plan.kgco2e is None:
        return None
    emitted = [row for row in burndown.days if row.scope_2_location_kgco2e is not None]
    through = max((row.day for row in emitted), default=None)
    days = [row for row in burndown.days if through is not None and row.day <= through]
    rest = [row for row in burndown.days if through is None or row.day > through]
    planned = _sum(row.planned_kgco2e for row in days)
    spent = _sum(row.scope_2_location_kgco2e for row in emitted) if emitted else None
    # What was emitted on days without readings is not known; those are told, not taken for zero.
    missing = sum(
        1 for row in days if row.scope_2_location_kgco2e is None and (row.planned_kgco2e or 0) > 0
    )
    energy_effect, intensity_effect = _effects(emitted, planned)
    left = _sum(row.planned_kgco2e for row in rest)
    so_far = _rate(days)
    recent = _rate(days[-RECENT_DAYS:])
    return CarbonBudget(
        budget_kgco2e=plan.kgco2e,
        through=through,
        days_without=missing,
        emitted_kgco2e=spent,
        planned_to_date_kgco2e=planned,
        energy_effect_kgco2e=energy_effect if not missing else None,
        intensity_effect_kgco2e=intensity_effect if not missing else None,
        as_planned_kgco2e=None if spent is None else spent + left,
        at_rate_so_far_kgco2e=_end(spent, left, so_far),
        at_recent_rate_kgco2e=_end(spent, left, recent),
        used_up_on=_used_up_on(plan.kgco2e, spent, rest, so_far, through),
    )


def _sum(values: Iterable[float | None]) -> float:
    return math.fsum(value or 0.0 for value in values)


def _rate(days: Sequence[BurndownDay]) -> float | None:
    """Emitted for each planned kilogram over days that have readings."""
    known = [row for row in days if row.scope_2_location_kgco2e is not None]
    planned = _sum(row.planned_kgco2e for row in known)
    return _sum(row.scope_2_location_kgco2e for row in known) / planned if planned else None


def _end(spent: float | None, left: float, rate: float | None) -> float | None:
    return None if spent is None or rate is None else spent + left * rate


def _effects(days: Sequence[BurndownDay], planned: float) -> tuple[float | None, float | None]:
    """Emitted less planned, split: more energy at the planned intensity, then its intensity.

    (E_a - E_p) * I_p + E_a * (I_a - I_p) = E_a * I_a - E_p * I_p
    """
    if not days or any(row.facility_energy_kwh is None for row in days):
        return None, None
    planned_kwh = _sum(row.planned_facility_energy_kwh for row in days)
    used_kwh = _sum(row.facility_energy_kwh for row in days)
    planned_here = _sum(row.planned_kgco2e for row in days)
    if not planned_kwh or not used_kwh or planned_here != planned:
        return None, None
    planned_kg_per_kwh = planned_here / planned_kwh
    spent = _sum(row.scope_2_location_kgco2e for row in days)
    energy_effect = (used_kwh - planned_kwh) * planned_kg_per_kwh
    return energy_effect, spent - planned_here - energy_effect


def _used_up_on(
    budget: float,
    spent: float | None,
    rest: Sequence[BurndownDay],
    rate: float | None,
    through: date | None,
) -> date | None:
    """The day on which the budget is gone, at the rate so far; None while the plan ends first."""
    if spent is None or rate is None or through is None:
        return None
    running = spent
    if running > budget:
        return through
    for row in rest:
        running += (row.planned_kgco2e or 0.0) * rate
        if running > budget:
            return row.day
    return None

"""Earned value of a plan in money, kWh and kgCO2e, line by line. Plain records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

from formulae.earned_value import EarnedValue


class Unit(StrEnum):
    """What is planned, earned and spent; money is in the plan's currency."""

    MONEY = "money"
    ENERGY = "kWh"
    CARBON = "kgCO2e"


class Method(StrEnum):
    """How a line's earned value is measured (ANSI/PMI 19-006-2019)."""

    TOKENS = "tokens"  # physical measurement: net tokens trained of tokens planned
    MILESTONES = "milestones"  # weighted milestones that are reached
    LEVEL_OF_EFFORT = "level_of_effort"  # earned as planned: nothing measures it
    RESERVE = "reserve"  # contingency: earned in proportion to the work of all other lines


@dataclass(frozen=True, slots=True, kw_only=True)
class LineProgress:
    """How far a line is, 0 to 1, and how that is known."""

    completed_fraction: Decimal
    method: Method


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDone:
    """How far each measured line is at the end of each day on which somebody said so.

    `by_line` holds only lines that something measures; `tokens_by_day` is the main run's net count
    at the end of the day.
    """

    by_line: Mapping[str, Mapping[date, LineProgress]] = field(default_factory=dict)
    tokens_by_day: Mapping[date, int] = field(default_factory=dict)
    tokens_planned: int | None = None
    last_at: datetime | None = None

    def at(self, day: date) -> dict[str, LineProgress]:
        """The progress of each measured line by the end of a day: the last word until then."""
        found = {}
        for key, days in self.by_line.items():
            told = [one for one in days if one <= day]
            if told:
                found[key] = days[max(told)]
        return found

    def tokens_at(self, day: date) -> int | None:
        """The main run's net tokens by the end of a day; None before the first word."""
        told = [one for one in self.tokens_by_day if one <= day]
        return self.tokens_by_day[max(told)] if told else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What was spent in one unit: on everything, None when not known, and where a line is named."""

    total: Decimal | None
    by_line: Mapping[str, Decimal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineState:
    """One line: its budget, what should be and what is done, what was spent on it.

    `earned_value` is None where the work done is not known; `actual` where no charge names the
    line, or where it is not known.
    """

    key: str
    name: str
    method: Method
    budget: Decimal
    planned_value: Decimal
    earned_value: Decimal | None
    actual: Decimal | None
    completed_fraction: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EarnedState:
    """A plan in one unit at one instant. Every index is None while it is undefined.

    `reserve_drawn` is what was spent beyond the budget of the work done, of the contingency; below
    0 the work cost less than its budget.
    """

    unit: Unit
    lines: tuple[LineState, ...]
    budget_at_completion: Decimal
    planned_value: Decimal
    earned_value: Decimal | None
    actual: Decimal | None
    cost_performance_index: Decimal | None = None
    schedule_performance_index: Decimal | None = None
    to_complete_index: Decimal | None = None
    estimate_at_cpi: Decimal | None = None
    estimate_at_plan: Decimal | None = None
    estimate_at_cpi_and_spi: Decimal | None = None
    reserve: Decimal = Decimal(0)
    reserve_drawn: Decimal | None = None

    @property
    def state(self) -> EarnedValue | None:
        """The four amounts together; None while one of them is not known."""
        if self.earned_value is None or self.actual is None:
            return None
        return EarnedValue(
            budget_at_completion=self.budget_at_completion,
            planned_value=self.planned_value,
            earned_value=self.earned_value,
            actual_cost=self.actual,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EarnedStates:
    """A project's plan in money, energy and carbon; energy and carbon where the plan knows them.

    `runway_on` is the last day that the approved budget pays for at the burn rate of the last two
    weeks; None where that is ten years away, or nobody can say.
    """

    currency: str
    through: date | None
    money: EarnedState
    energy: EarnedState | None
    carbon: EarnedState | None
    tokens_trained: int | None
    tokens_planned: int | None
    burn_per_day: Decimal | None
    runway_on: date | None
    programme_multiple_at_completion: Decimal | None
    sci_g_per_million_tokens: float | None

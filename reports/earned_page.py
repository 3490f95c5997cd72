"""Earned value as a project's page shows it: indices in words, lines with their method."""

from dataclasses import dataclass
from decimal import Decimal

from django.utils.translation import gettext as _

from planning.earned_records import EarnedStates, LineState, Method


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow:
    """An index in money, energy and carbon; None while it is not defined or not known."""

    name: str
    words: str
    values: tuple[Decimal | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRow:
    """A line of the plan and how it is measured."""

    line: LineState
    method: str


def index_rows(earned: EarnedStates) -> tuple[IndexRow, ...]:
    """The indices that a review looks at."""
    states = (earned.money, earned.energy, earned.carbon)

    def values(name: str) -> tuple[Decimal | None, ...]:
        return tuple(None if state is None else getattr(state, name) for state in states)

    return (
        IndexRow(
            name="CPI",
            words=_("earned for each unit spent; below 1 is over budget"),
            values=values("cost_performance_index"),
        ),
        IndexRow(
            name="SPI",
            words=_("earned for each unit planned by now; below 1 is late"),
            values=values("schedule_performance_index"),
        ),
        IndexRow(
            name="TCPI",
            words=_("what the rest must earn for each unit to end on budget"),
            values=values("to_complete_index"),
        ),
    )


def line_rows(earned: EarnedStates) -> tuple[LineRow, ...]:
    """The lines of the plan in money."""
    return tuple(LineRow(line=line, method=method_name(line.method)) for line in earned.money.lines)


def method_name(method: Method) -> str:
    """How a line's earned value is measured."""
    return {
        Method.TOKENS: _("tokens"),
        Method.MILESTONES: _("milestones"),
        Method.LEVEL_OF_EFFORT: _("as planned"),
        Method.RESERVE: _("with the other lines"),
    }[method]

"""The JSON of earned value, for the command line and HTTP alike; exact amounts as strings."""

from decimal import Decimal
from typing import Any

from planning.earned_records import EarnedState, EarnedStates, LineState

_RATIO = Decimal("0.000001")


def _text(amount: Decimal | None) -> str | None:
    return None if amount is None else format(amount, "f")


def _ratio(ratio: Decimal | None) -> str | None:
    """An index with six decimals: more would be false precision."""
    return None if ratio is None else format(ratio.quantize(_RATIO), "f")


def earned_document(earned: EarnedStates | None) -> dict[str, Any] | None:
    """Earned value in money, energy and carbon; null without an approved plan."""
    if earned is None:
        return None
    return {
        "through": earned.through.isoformat() if earned.through else None,
        "tokens_trained": earned.tokens_trained,
        "tokens_planned": earned.tokens_planned,
        "burn_per_day": _text(earned.burn_per_day),
        "runway_on": earned.runway_on.isoformat() if earned.runway_on else None,
        "programme_multiple_at_completion": _ratio(earned.programme_multiple_at_completion),
        "sci_gco2e_per_million_tokens": earned.sci_g_per_million_tokens,
        "money": _state(earned.money),
        "facility_energy_kwh": _state(earned.energy),
        "scope_2_location_kgco2e": _state(earned.carbon),
    }


def _state(state: EarnedState | None) -> dict[str, Any] | None:
    if state is None:
        return None
    return {
        "budget_at_completion": _text(state.budget_at_completion),
        "planned_value": _text(state.planned_value),
        "earned_value": _text(state.earned_value),
        "actual": _text(state.actual),
        "cost_performance_index": _ratio(state.cost_performance_index),
        "schedule_performance_index": _ratio(state.schedule_performance_index),
        "to_complete_index": _ratio(state.to_complete_index),
        "estimate_at_completion": {
            "at_cpi": _text(state.estimate_at_cpi),
            "at_plan": _text(state.estimate_at_plan),
            "at_cpi_and_spi": _text(state.estimate_at_cpi_and_spi),
        },
        "reserve": _text(state.reserve),
        "reserve_drawn": _text(state.reserve_drawn),
        "lines": [_line(line) for line in state.lines],
    }


def _line(line: LineState) -> dict[str, Any]:
    return {
        "key": line.key,
        "name": line.name,
        "method": line.method.value,
        "budget": _text(line.budget),
        "planned_value": _text(line.planned_value),
        "earned_value": _text(line.earned_value),
        "actual": _text(line.actual),
        "completed_fraction": _ratio(line.completed_fraction),
    }

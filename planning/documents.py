"""The JSON of plans and burn-downs, for the command line and HTTP alike; money as strings."""

from decimal import Decimal
from typing import Any

from planning.carbon_budget import CarbonBudget, carbon_budget
from planning.differences import InputDifference, LineDifference, LineState, PlanDifferences
from planning.earned_documents import earned_document
from planning.forecast_documents import forecast_document, interval_document
from planning.records import Burndown, BurndownDay, PlanRecord


def _text(amount: Decimal | None) -> str | None:
    """Money and exact ratios travel as strings; unknown stays null."""
    return None if amount is None else format(amount, "f")


def _multiple(ratio: Decimal | None) -> str | None:
    """A multiple of the main run with six decimals: more would be false precision."""
    return None if ratio is None else format(ratio.quantize(Decimal("0.000001")), "f")


def plan_document(plan: PlanRecord, differences: PlanDifferences | None = None) -> dict[str, Any]:
    """One version of a plan, and what differs from the version before it, if there is one."""
    return {
        "version": plan.number,
        "state": "approved" if plan.is_approved else "draft",
        "approved_at": plan.approved_at.isoformat() if plan.approved_at else None,
        "approved_by": plan.approved_by or None,
        "reason": plan.reason or None,
        "estimate": str(plan.estimate_id),
        "level": plan.level,
        "currency": plan.currency,
        "main_run_cost": _text(plan.main_run_cost),
        "main_run_starts_on": plan.main_run_starts_on.isoformat(),
        "main_run_ends_on": plan.main_run_ends_on.isoformat(),
        "budget_at_completion": _text(plan.budget_at_completion),
        "programme_multiple": _multiple(plan.programme_multiple),
        "all_in_multiple": _multiple(plan.all_in_multiple),
        "facility_energy_kwh": plan.facility_energy_kwh,
        "scope_2_location_kgco2e": plan.kgco2e,
        "lines": [
            {
                "key": line.key,
                "name": line.name,
                "base": line.base.value,
                "fraction": _text(line.fraction),
                "amount": _text(line.amount),
                "starts_on": line.starts_on.isoformat(),
                "ends_on": line.ends_on.isoformat(),
                "in_programme": line.in_programme,
                "facility_energy_kwh": line.facility_energy_kwh,
                "scope_2_location_kgco2e": line.kgco2e,
            }
            for line in plan.lines
        ],
        "differences": None if differences is None else differences_document(differences),
    }


def differences_document(found: PlanDifferences) -> dict[str, Any]:
    """What differs between two versions; amounts of two currencies have no change."""
    return {
        "before_version": found.before_number,
        "level": {"before": found.before_level, "after": found.after_level},
        "currency": {"before": found.before_currency, "after": found.after_currency},
        "lines": [_line_difference(line) for line in found.lines],
        "totals": {
            total.key: {
                "unit": total.unit,
                "before": _total(total.before, total.unit),
                "after": _total(total.after, total.unit),
                "change": _total(total.change, total.unit),
            }
            for total in found.totals
        },
        "inputs": [_input_difference(one) for one in found.inputs],
        "assumptions": [_input_difference(one) for one in found.assumptions],
    }


def _total(value: Decimal | float | None, unit: str) -> str | float | None:
    """Money and multiples as text, quantities as numbers."""
    if isinstance(value, Decimal):
        return _multiple(value) if unit == "multiple" else _text(value)
    return value


def _line_difference(line: LineDifference) -> dict[str, Any]:
    return {
        "key": line.key,
        "name": line.name,
        "change": line.change.value,
        "before": _line_state(line.before),
        "after": _line_state(line.after),
        "amount_change": _text(line.amount_change),
    }


def _line_state(state: LineState | None) -> dict[str, Any] | None:
    if state is None:
        return None
    return {
        "base": state.base.value,
        "fraction": _text(state.fraction),
        "amount": _text(state.amount),
        "in_programme": state.in_programme,
        "starts_on": state.starts_on.isoformat(),
        "ends_on": state.ends_on.isoformat(),
    }


def _input_difference(one: InputDifference) -> dict[str, Any]:
    return {"field": one.field, "before": one.before, "after": one.after}


def burndown_document(burndown: Burndown) -> dict[str, Any]:
    """The burn-down as documented in docs/cli.md."""
    plan, energy = burndown.plan, burndown.energy_and_emissions
    return {
        "as_of": burndown.as_of.isoformat(),
        "currency": burndown.currency,
        "basis": burndown.basis,
        "other_currencies": list(burndown.other_currencies),
        "through": burndown.through.isoformat() if burndown.through else None,
        "billed_through": burndown.billed_through.isoformat() if burndown.billed_through else None,
        "metered_through": burndown.metered_through.isoformat()
        if burndown.metered_through
        else None,
        "main_run_cost": _text(plan.main_run_cost) if plan else None,
        "budget_at_completion": _text(plan.budget_at_completion) if plan else None,
        "planned_programme_multiple": _multiple(plan.programme_multiple) if plan else None,
        "planned_all_in_multiple": _multiple(plan.all_in_multiple) if plan else None,
        "programme_multiple": _multiple(burndown.programme_multiple),
        "all_in_multiple": _multiple(burndown.all_in_multiple),
        "planned_value": _text(burndown.planned_value),
        "earned_value": _text(burndown.earned.money.earned_value) if burndown.earned else None,
        "actual_cost": _text(burndown.actual_cost),
        "accrued_cost": _text(burndown.accrued_cost),
        "accelerator_h": _text(burndown.accelerator_h),
        "accelerator_energy_kwh": energy.accelerator_energy_kwh,
        "it_energy_kwh": energy.it_energy_kwh,
        "facility_energy_kwh": energy.facility_energy_kwh,
        "coverage_fraction": energy.coverage_fraction,
        "measured_fraction": energy.measured_fraction,
        "scope_2_location_kgco2e": energy.scope_2_location_kgco2e,
        "estimate_at_completion": interval_document(
            burndown.forecast.cost if burndown.forecast else None
        ),
        "forecast": forecast_document(burndown.forecast),
        "earned": earned_document(burndown.earned),
        "carbon_budget": _carbon_document(carbon_budget(burndown)),
        "series": [_day_document(row) for row in burndown.days],
    }


def _carbon_document(budget: CarbonBudget | None) -> dict[str, Any] | None:
    """The carbon budget and its burn-down, kgCO2e."""
    if budget is None:
        return None
    return {
        "budget_kgco2e": budget.budget_kgco2e,
        "through": budget.through.isoformat() if budget.through else None,
        "days_without": budget.days_without,
        "emitted_kgco2e": budget.emitted_kgco2e,
        "planned_to_date_kgco2e": budget.planned_to_date_kgco2e,
        "energy_effect_kgco2e": budget.energy_effect_kgco2e,
        "intensity_effect_kgco2e": budget.intensity_effect_kgco2e,
        "end_kgco2e": {
            "as_planned": budget.as_planned_kgco2e,
            "at_rate_so_far": budget.at_rate_so_far_kgco2e,
            "at_recent_rate": budget.at_recent_rate_kgco2e,
        },
        "used_up_on": budget.used_up_on.isoformat() if budget.used_up_on else None,
    }


def _day_document(row: BurndownDay) -> dict[str, Any]:
    """One day of the series, not cumulated."""
    return {
        "day": row.day.isoformat(),
        "planned_value": _text(row.planned_value),
        "actual_cost": _text(row.actual_cost),
        "accrued_cost": _text(row.accrued_cost),
        "earned_value_to_date": _text(row.earned_value_to_date),
        "cost_by_group": {group.value: _text(cost) for group, cost in row.cost_by_group.items()},
        "accelerator_energy_kwh": row.accelerator_energy_kwh,
        "facility_energy_kwh": row.facility_energy_kwh,
        "coverage_fraction": row.coverage_fraction,
        "scope_2_location_kgco2e": row.scope_2_location_kgco2e,
    }

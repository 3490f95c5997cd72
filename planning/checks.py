"""Checks of plans: stored amounts against the fractions they come from, recomputed here."""

from decimal import Decimal
from fractions import Fraction
from math import isclose
from typing import Any, Final
from uuid import UUID

from audit.records import Finding
from formulae.money import exact_sum
from planning.models import PlanVersion
from planning.phasing import planned_cost_by_day
from planning.records import LineBase, PlanRecord
from planning.selectors import plan_record

# Of floats that were multiplied in another order.
_ROUNDING: Final = 1e-9


def verify(organisation_id: UUID) -> tuple[Finding, ...]:
    """Recompute every line of every plan version; one finding for each difference."""
    versions = PlanVersion.objects.filter(organisation_id=organisation_id)
    findings: list[Finding] = []
    for version in versions.select_related("estimate").prefetch_related("lines"):
        plan = plan_record(version)
        findings += _main_run_is_the_estimates(plan, version.estimate.result)
        findings += _lines_follow_their_fractions(plan)
        findings += _quantities_follow_the_money(plan)
        findings += _days_sum_to_the_budget(plan)
    return tuple(findings)


def _where(plan: PlanRecord, what: str) -> str:
    return f"plan version {plan.version_id} (number {plan.number}), {what}"


def _lines_follow_their_fractions(plan: PlanRecord) -> list[Finding]:
    """Amount = fraction * base, by exact fractions instead of decimals."""
    findings = []
    subtotal = Fraction(0)
    for line in plan.lines:
        if line.fraction is not None:
            base = Fraction(plan.main_run_cost) if line.base == LineBase.MAIN_RUN else subtotal
            expected = base * Fraction(line.fraction)
            # What is stored has 18 decimals: half a unit in the last place is rounding, not error.
            if abs(expected - Fraction(line.amount)) > Fraction(Decimal("5E-19")):
                findings.append(
                    Finding(
                        code="plan-line-amount",
                        where=_where(plan, line.key),
                        expected=str(float(expected)),
                        found=format(line.amount, "f"),
                    )
                )
        subtotal += Fraction(line.amount)
    return findings


def _main_run_is_the_estimates(plan: PlanRecord, answer: dict[str, Any]) -> list[Finding]:
    """1.0x and the main run's line are the frozen estimate's cost at the planned percentile."""
    stated = (answer.get("cost") or {}).get(plan.level)
    line = next((line for line in plan.lines if line.key == "main_run"), None)
    found = [("plan-main-run", plan.main_run_cost), ("plan-main-run-line", line and line.amount)]
    return [
        Finding(
            code=code,
            where=_where(plan, f"main run at {plan.level}"),
            expected=str(stated),
            found="none" if amount is None else format(amount, "f"),
        )
        for code, amount in found
        if stated is None or amount != Decimal(stated)
    ]


def _quantities_follow_the_money(plan: PlanRecord) -> list[Finding]:
    """A programme line has its share of the main run's energy and carbon; the bill's is unknown."""
    findings = []
    for line in plan.lines:
        share = line.amount / plan.main_run_cost if line.in_programme else None
        for name, main_run, found in (
            ("energy", plan.main_run_facility_energy_kwh, line.facility_energy_kwh),
            ("carbon", plan.main_run_kgco2e, line.kgco2e),
        ):
            expected = None if main_run is None or share is None else main_run * float(share)
            if expected is None or found is None:
                is_same = expected is found
            else:
                is_same = isclose(expected, found, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
            if not is_same:
                findings.append(
                    Finding(
                        code=f"plan-line-{name}",
                        where=_where(plan, line.key),
                        expected=str(expected),
                        found=str(found),
                    )
                )
    return findings


def _days_sum_to_the_budget(plan: PlanRecord) -> list[Finding]:
    """The phased days sum to the budget at completion to the last digit."""
    phased = exact_sum(planned_cost_by_day(plan.lines).values())
    if phased == plan.budget_at_completion:
        return []
    return [
        Finding(
            code="plan-phasing",
            where=_where(plan, "days"),
            expected=format(plan.budget_at_completion, "f"),
            found=format(phased, "f"),
        )
    ]

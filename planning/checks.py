"""Checks of plans: stored amounts against the fractions they come from, recomputed here."""

from decimal import Decimal
from fractions import Fraction
from uuid import UUID

from audit.records import Finding
from formulae.money import exact_sum
from planning.models import PlanVersion
from planning.phasing import planned_cost_by_day
from planning.records import LineBase, PlanRecord
from planning.selectors import plan_record


def verify(organisation_id: UUID) -> tuple[Finding, ...]:
    """Recompute every line of every plan version; one finding for each difference."""
    versions = PlanVersion.objects.filter(organisation_id=organisation_id)
    findings: list[Finding] = []
    for version in versions.prefetch_related("lines"):
        plan = plan_record(version)
        findings += _lines_follow_their_fractions(plan)
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

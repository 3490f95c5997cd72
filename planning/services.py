"""Writes of intent: frozen estimates, plan drafts, and the approval of a baseline."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from math import ceil

from django.db import transaction
from django.utils.translation import gettext as _

from formulae.money import Money
from planning.drafting import drafted_lines
from planning.estimating import Answer, answer_request
from planning.line_changes import (
    PlanError,
    draft_for_update,
    recompute,
    record_change,
    write_line,
)
from planning.models import Estimate, Plan, PlanVersion
from planning.records import PlanRecord
from planning.selectors import plan_record
from planning.spec import EstimateRequest
from projects.models import Project
from projects.records import Actor

__all__ = ["DraftChoice", "PlanError", "approve_plan", "draft_plan", "freeze_estimate"]


@transaction.atomic
def freeze_estimate(
    actor: Actor, request: EstimateRequest, *, as_of: datetime, project: Project | None = None
) -> Estimate:
    """Answer a question and keep both for good.

    Raises:
        SpecError: the question cannot be answered; nothing is kept.
    """
    answer = answer_request(actor.organisation_id, request, as_of=as_of)
    estimate = Estimate.objects.create(
        organisation_id=actor.organisation_id,
        project=project,
        name=request.name,
        spec=request.document(),
        result=answer.document,
        created_by=actor.label,
        created_by_user_id=actor.user_id,
    )
    record_change(actor, "estimate.freeze", estimate, {"name": request.name})
    return estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftChoice:
    """How a draft is made from an estimate: its first day, percentile and reserve.

    `contingency` is flat, as the lines say, or p80: the amount P80 less P50 of the programme.
    """

    starts_on: date
    level: str = "p50"
    contingency: str = "flat"


def _draftable(project: Project, estimate: Estimate, choice: DraftChoice) -> Money:
    """The main run's cost at the chosen percentile.

    Raises:
        PlanError: the estimate has no price, another currency than the project, or no days.
    """
    answer = Answer.from_document(estimate.result)
    cost = answer.cost(choice.level)
    if estimate.organisation_id != project.organisation_id:
        raise PlanError(_("This estimate belongs to another organisation."))
    if cost is None:
        raise PlanError(_("The estimate has no price: give one per accelerator-hour first."))
    if cost.currency != project.currency:
        raise PlanError(
            _("The estimate is in %(estimate)s, the project in %(project)s: a plan has one.")
            % {"estimate": cost.currency, "project": project.currency}
        )
    if choice.contingency == "p80" and choice.level not in ("p10", "p50"):
        raise PlanError(
            _(
                "P80 less P50 is the reserve over a plan at P50: a plan at %(level)s holds it "
                "already. Choose the flat percentage, or plan at P50."
            )
            % {"level": choice.level.upper() if choice.level != "mean" else _("the mean")}
        )
    if answer.figure("days") is None:
        raise PlanError(_("The estimate has no days: say how many accelerators run at once."))
    return cost


@transaction.atomic
def draft_plan(
    actor: Actor, project: Project, estimate: Estimate, choice: DraftChoice
) -> PlanVersion:
    """Write a new draft: the main run at a percentile, and the estimate's lines around it.

    Args:
        actor: who drafts.
        project: whose plan; `estimate` must be of the same organisation.
        estimate: a frozen estimate with a price.
        choice: first day, percentile and kind of reserve.

    Raises:
        PlanError: the estimate cannot become a plan of this project; the message says why.
    """
    cost = _draftable(project, estimate, choice)
    answer = Answer.from_document(estimate.result)
    days = ceil(answer.figure("days", choice.level) or 0)
    plan, _created = Plan.objects.select_for_update().get_or_create(
        project=project, defaults={"organisation_id": project.organisation_id}
    )
    newest = plan.versions.first()
    version = PlanVersion.objects.create(
        organisation_id=project.organisation_id,
        plan=plan,
        number=newest.number + 1 if newest else 1,
        estimate=estimate,
        level=choice.level,
        currency=cost.currency,
        main_run_cost=cost.amount,
        main_run_facility_energy_kwh=answer.figure("facility_energy_kwh", choice.level),
        main_run_kgco2e=answer.figure("scope_2_location_kgco2e", choice.level),
        main_run_starts_on=choice.starts_on,
        main_run_ends_on=choice.starts_on + timedelta(days=max(1, days)),
        created_by=actor.label,
    )
    for position, line in enumerate(drafted_lines(answer, contingency=choice.contingency)):
        write_line(version, position, line)
    recompute(version)
    record_change(
        actor, "plan.draft", version, {"number": version.number, "estimate": str(estimate.pk)}
    )
    return version


@transaction.atomic
def approve_plan(
    actor: Actor, version: PlanVersion, *, as_of: datetime, reason: str = ""
) -> PlanRecord:
    """Make a draft the baseline; from now on it never changes.

    Raises:
        PlanError: it is approved already, rests on an impossible estimate, or replaces a baseline
            without a reason.
    """
    draft = draft_for_update(actor.organisation_id, version.pk)
    replaces = draft.plan.versions.filter(state=PlanVersion.State.APPROVED).exists()
    if replaces and not reason.strip():
        raise PlanError(_("A new baseline replaces an approved one: say why."))
    answer = Answer.from_document(draft.estimate.result)
    if answer.is_blocked:
        red = [w["message"] for w in answer.document["warnings"] if w["severity"] == "red"]
        raise PlanError(
            _("The estimate cannot be approved: %(why)s Estimate again.") % {"why": " ".join(red)}
        )
    draft.state = PlanVersion.State.APPROVED
    draft.approved_at = as_of
    draft.approved_by = actor.label
    draft.reason = reason.strip()
    draft.save()
    record_change(actor, "plan.approve", draft, {"number": draft.number, "reason": draft.reason})
    return plan_record(draft)

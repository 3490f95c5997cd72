"""Writes of intent: frozen estimates, plan drafts, their lines, and the approval of a baseline."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import ceil
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from audit.services import record
from formulae.money import Money
from formulae.units import EXACT
from planning.drafting import DraftedLine, drafted_lines
from planning.estimating import Answer, answer_request
from planning.models import Estimate, Plan, PlanLine, PlanVersion
from planning.names import line_name
from planning.phasing import default_dates
from planning.records import LineBase, PlanRecord
from planning.selectors import plan_record
from planning.spec import EstimateRequest
from projects.models import Project
from projects.records import Actor


class PlanError(ValueError):
    """A change of a plan that cannot be made; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChange:
    """What a person may change of a draft's line. None leaves it as it is."""

    key: str
    fraction: Decimal | None = None
    amount: Decimal | None = None
    starts_on: date | None = None
    ends_on: date | None = None


def _audit(actor: Actor, action: str, thing: Estimate | PlanVersion, after: dict[str, Any]) -> None:
    """One line of the trail, in the transaction of the change."""
    record(
        organisation_id=actor.organisation_id,
        actor_label=actor.label,
        user_id=actor.user_id,
        token_id=actor.token_id,
        ip=actor.ip,
        action=action,
        object_type=thing._meta.model_name or "",
        object_id=str(thing.pk),
        before=None,
        after=after,
        reason=str(after.get("reason", "")),
    )


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
    _audit(actor, "estimate.freeze", estimate, {"name": request.name})
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
        _write_line(version, position, line)
    _recompute(version)
    _audit(actor, "plan.draft", version, {"number": version.number, "estimate": str(estimate.pk)})
    return version


def _write_line(version: PlanVersion, position: int, line: DraftedLine) -> None:
    """One line with its default dates; `_recompute` follows the fractions."""
    if line.fraction is None and line.amount is None:
        raise PlanError(
            _("%(line)s has no price: state one in the estimate or in a price book.")
            % {"line": line.name}
        )
    starts_on, ends_on = default_dates(
        line.key, run_start=version.main_run_starts_on, run_end=version.main_run_ends_on
    )
    PlanLine.objects.create(
        organisation_id=version.organisation_id,
        version=version,
        key=line.key,
        name=line.name,
        position=position,
        base=line.base.value,
        fraction=line.fraction,
        in_programme=line.in_programme,
        amount=line.amount or Decimal(0),
        starts_on=starts_on,
        ends_on=ends_on,
    )


def _recompute(version: PlanVersion) -> None:
    """Follow the fractions again: amounts, energy and carbon of every line of a draft."""
    subtotal = Decimal(0)
    for line in version.lines.order_by("position"):
        if line.base == LineBase.MAIN_RUN and line.fraction is not None:
            line.amount = _times(version.main_run_cost, line.fraction)
        elif line.base == LineBase.SUBTOTAL and line.fraction is not None:
            line.amount = _times(subtotal, line.fraction)
        subtotal = EXACT.add(subtotal, line.amount)
        share = float(line.amount / version.main_run_cost) if line.in_programme else 0.0
        energy, carbon = version.main_run_facility_energy_kwh, version.main_run_kgco2e
        line.facility_energy_kwh = None if energy is None else energy * share
        line.kgco2e = None if carbon is None else carbon * share
        line.save()


def _times(amount: Decimal, fraction: Decimal) -> Decimal:
    """An exact product, to the 18 decimals that are stored."""
    return Money(amount=amount, currency="XXX").times(fraction).amount


def _draft_for_update(organisation_id: UUID, version_id: int) -> PlanVersion:
    """The draft, locked.

    Raises:
        PlanError: it is approved: baselines do not change.
    """
    version = PlanVersion.objects.select_for_update().get(
        pk=version_id, organisation_id=organisation_id
    )
    if version.state != PlanVersion.State.DRAFT:
        raise PlanError(_("This version is approved and frozen: draft a new one."))
    return version


@transaction.atomic
def change_lines(actor: Actor, version: PlanVersion, changes: list[LineChange]) -> PlanVersion:
    """Change fractions, fixed amounts or dates of a draft's lines.

    Raises:
        PlanError: the version is approved, or a line would end before it starts.
    """
    draft = _draft_for_update(actor.organisation_id, version.pk)
    lines = {line.key: line for line in draft.lines.all()}
    for change in changes:
        line = lines[change.key]
        changes_amount = change.amount is not None or change.fraction not in (None, line.fraction)
        if change.key == "main_run" and changes_amount:
            raise PlanError(_("The main run is the estimate's 1.0×: estimate again to change it."))
        if change.fraction is not None:
            line.fraction = change.fraction
        if change.amount is not None:
            line.base, line.fraction, line.amount = LineBase.AMOUNT, None, change.amount
        line.starts_on = change.starts_on or line.starts_on
        line.ends_on = change.ends_on or line.ends_on
        if line.ends_on <= line.starts_on:
            raise PlanError(
                _("%(line)s must end after it starts.")
                % {"line": line_name(line.key, own_name=line.name)}
            )
        line.save()
    _recompute(draft)
    _audit(actor, "plan.change", draft, {"lines": [change.key for change in changes]})
    return draft


@transaction.atomic
def approve_plan(
    actor: Actor, version: PlanVersion, *, as_of: datetime, reason: str = ""
) -> PlanRecord:
    """Make a draft the baseline; from now on it never changes.

    Raises:
        PlanError: it is approved already, rests on an impossible estimate, or replaces a baseline
            without a reason.
    """
    draft = _draft_for_update(actor.organisation_id, version.pk)
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
    _audit(actor, "plan.approve", draft, {"number": draft.number, "reason": draft.reason})
    return plan_record(draft)

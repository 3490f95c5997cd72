"""Pages of a project's plan: its baseline, its draft, its versions."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from formulae.plan_lines import evidence_preset
from formulae.units import QuantityError
from planning.estimating import Answer
from planning.line_changes import (
    PlanError,
    add_line,
    apply_evidence,
    change_lines,
    choose_contingency,
    remove_line,
)
from planning.milestone_views import milestones_context
from planning.models import PlanVersion
from planning.names import evidence_name
from planning.plan_forms import ApprovePlanForm, NewLineForm, PlanLineForm
from planning.plan_page import draft_context, first_approval_on, version_context
from planning.records import PlanLineRecord, PlanRecord
from planning.selectors import (
    baseline_of,
    estimate_by_id,
    may_see_estimate,
    plan_versions,
    version_differences,
)
from planning.services import approve_plan
from projects.access import Actor, Role, actor_of, project_for
from projects.models import Project


def _draft_of(versions: list[PlanRecord]) -> PlanRecord | None:
    """The newest version, while it is still a draft."""
    return versions[0] if versions and not versions[0].is_approved else None


def _may(actor: Actor, slug: str, role: Role) -> bool:
    """Whether the actor holds at least this role in a project that it sees."""
    try:
        project_for(actor, slug, role)
    except PermissionDenied:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftForms:
    """The forms of a draft's page, and what is wanted of them: `remove`, `experiments`."""

    lines: tuple[tuple[PlanLineRecord, PlanLineForm], ...]
    new_line: NewLineForm
    wanted: str = ""
    of: str = ""

    @classmethod
    def of_request(cls, request: HttpRequest, draft: PlanRecord) -> Self:
        """The forms as they were posted, or as the draft fills them."""
        wanted, _colon, of = request.POST.get("do", "save").partition(":")
        if wanted == "save" and request.POST.get("new-name", "").strip():
            # Enter in a field of a new line saves; the line that was typed is not lost.
            wanted = "add"
        # A button outside the table may be sent alone: then the lines stay as they are.
        data = request.POST if f"{draft.lines[0].key}-starts_on" in request.POST else None
        return cls(
            lines=tuple((line, PlanLineForm.for_line(line, data)) for line in draft.lines),
            new_line=NewLineForm(request.POST if wanted == "add" else None, prefix="new"),
            wanted=wanted,
            of=of,
        )

    def changed(self) -> list[tuple[PlanLineRecord, PlanLineForm]]:
        """The lines that were posted and stay."""
        return [
            (line, form)
            for line, form in self.lines
            if form.is_bound and not (self.wanted == "remove" and line.key == self.of)
        ]

    def are_valid(self) -> bool:
        """Check every posted form, so that each shows what is wrong with it."""
        checks = [form.is_valid() for _line, form in self.changed()]
        if self.wanted == "add":
            checks.append(self.new_line.is_valid())
        return all(checks)


@require_http_methods(["GET", "HEAD", "POST"])
def plan(request: HttpRequest, slug: str) -> HttpResponse:
    """The baseline of a project, its draft with editable lines, and the versions before."""
    actor = actor_of(request)
    project = project_for(actor, slug, Role.ANALYST if request.method == "POST" else Role.VIEWER)
    versions = plan_versions(project)
    draft = _draft_of(versions)
    forms = DraftForms.of_request(request, draft) if draft else None
    if request.method == "POST" and draft and forms and forms.are_valid():
        try:
            said = _edit(actor, draft, forms)
        except PlanError as error:
            messages.error(request, str(error))
        else:
            messages.success(request, said)
            return redirect("plan", slug=slug)
    baseline = baseline_of(project, as_of=datetime.now(UTC))
    context = {
        "project": project,
        "versions": versions,
        "forms": forms,
        "may_edit": _may(actor, slug, Role.ANALYST),
        "may_approve": _may(actor, slug, Role.OWNER),
        "approve_form": ApprovePlanForm.replacing(baseline.number)
        if baseline
        else ApprovePlanForm(),
        "milestones": milestones_context(
            project, versions, baseline or draft, today=datetime.now(UTC).date()
        ),
        **_both_versions(actor, project, draft, baseline),
    }
    return render(request, "planning/plan.html", context)


@transaction.atomic
def _edit(actor: Actor, draft: PlanRecord, forms: DraftForms) -> str:
    """Save the posted lines, then do what was wanted; the answer says what was done.

    Raises:
        PlanError: it cannot be done, and then nothing was.
    """
    version = PlanVersion.objects.get(pk=draft.version_id)
    if posted := forms.changed():
        change_lines(actor, version, [form.change(line.key) for line, form in posted])
    if forms.wanted == "add":
        add_line(actor, version, forms.new_line.line())
        return _("The line was added.")
    if forms.wanted == "remove":
        remove_line(actor, version, forms.of)
        return _("The line was removed.")
    if forms.wanted == "contingency":
        choose_contingency(actor, version, forms.of)
        return _("The contingency was changed.")
    if forms.wanted == "evidence":
        try:
            preset = evidence_preset(forms.of)
        except QuantityError as error:
            raise PlanError(str(error)) from error
        apply_evidence(actor, version, preset)
        return _("The lines are those of %(name)s now.") % {"name": evidence_name(preset.key)}
    return _("Draft saved.")


def _both_versions(
    actor: Actor, project: Project, draft: PlanRecord | None, baseline: PlanRecord | None
) -> dict[str, Any]:
    """Draft and baseline as the page shows them."""
    shown: dict[str, Any] = {}
    if draft:
        found = _version(actor, project, draft)
        shown["draft"] = {**found, **draft_context(draft, found["answer"])}
    if baseline:
        shown["baseline"] = _version(actor, project, baseline)
    return shown


def _version(actor: Actor, project: Project, record: PlanRecord) -> dict[str, Any]:
    """One version with the estimate under it, linked where the actor may see it."""
    estimate = estimate_by_id(project.organisation_id, record.estimate_id)
    if estimate is None:
        raise Http404("No such estimate.")
    answer = Answer.from_document(estimate.result)
    first_on = first_approval_on(plan_versions(project)) or datetime.now(UTC).date()
    return {
        "answer": answer,
        "estimate": estimate,
        "may_see_estimate": may_see_estimate(actor, estimate),
        **version_context(
            record,
            answer,
            differences=version_differences(project).get(record.number),
            first_on=first_on,
        ),
    }


@require_safe
def plan_version(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """One version as it was frozen, and what it changed."""
    actor = actor_of(request)
    project = project_for(actor, slug)
    record = next((one for one in plan_versions(project) if one.number == number), None)
    if record is None:
        raise Http404("No such version.")
    context = {"project": project, "version": _version(actor, project, record)}
    return render(request, "planning/plan_version.html", context)


@require_POST
def plan_approve(request: HttpRequest, slug: str) -> HttpResponse:
    """Make the draft the baseline."""
    actor = actor_of(request)
    project = project_for(actor, slug, Role.OWNER)
    draft = _draft_of(plan_versions(project))
    if draft is None:
        raise Http404("No draft.")
    form = ApprovePlanForm(request.POST)
    version = PlanVersion.objects.get(pk=draft.version_id)
    try:
        reason = form.cleaned_data["reason"] if form.is_valid() else ""
        approve_plan(actor, version, as_of=datetime.now(UTC), reason=reason)
    except PlanError as error:
        messages.error(request, str(error))
        return redirect("plan", slug=slug)
    messages.success(request, _("Version %(n)s is the baseline now.") % {"n": version.number})
    return redirect("project", slug=slug)

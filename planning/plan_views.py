"""Pages of a project's plan: its baseline, its draft, its versions."""

from datetime import UTC, datetime
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from formulae.plan_lines import REFERENCE_BAND
from planning.models import PlanVersion
from planning.plan_forms import ApprovePlanForm, PlanLineForm
from planning.records import PlanRecord
from planning.selectors import baseline_of, plan_versions
from planning.services import PlanError, approve_plan, change_lines
from projects.access import Actor, Role, actor_of, project_for


def _draft_of(versions: list[PlanRecord]) -> PlanRecord | None:
    """The newest version, while it is still a draft."""
    return versions[0] if versions and not versions[0].is_approved else None


@require_http_methods(["GET", "HEAD", "POST"])
def plan(request: HttpRequest, slug: str) -> HttpResponse:
    """The baseline of a project, its draft with editable lines, and the versions before."""
    actor = actor_of(request)
    project = project_for(actor, slug, Role.ANALYST if request.method == "POST" else Role.VIEWER)
    versions = plan_versions(project)
    draft = _draft_of(versions)
    forms = []
    if draft:
        data = request.POST if request.method == "POST" else None
        forms = [(line, PlanLineForm.for_line(line, data)) for line in draft.lines]
    if request.method == "POST" and draft and _save_lines(request, actor, draft, forms):
        return redirect("plan", slug=slug)
    context = {
        "project": project,
        "baseline": baseline_of(project, as_of=datetime.now(UTC)),
        "draft": draft,
        "line_forms": forms,
        "versions": versions,
        "approve_form": ApprovePlanForm(),
        "reference_band": REFERENCE_BAND,
    }
    return render(request, "planning/plan.html", context)


def _save_lines(
    request: HttpRequest,
    actor: Actor,
    draft: PlanRecord,
    forms: list[tuple[Any, PlanLineForm]],
) -> bool:
    """Save the posted lines; False leaves the errors on the page."""
    if not all(form.is_valid() for _line, form in forms):
        return False
    version = PlanVersion.objects.get(pk=draft.version_id)
    try:
        change_lines(actor, version, [form.change(line.key) for line, form in forms])
    except PlanError as error:
        messages.error(request, str(error))
        return False
    messages.success(request, _("Draft saved."))
    return True


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

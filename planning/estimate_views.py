"""Pages of kickoff estimates: the list, the question, the answer."""

from datetime import UTC, datetime
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from planning.estimate_forms import EstimateForm
from planning.estimate_page import answer_context, list_row
from planning.plan_forms import DraftPlanForm
from planning.presets import PRESETS
from planning.selectors import estimate_by_id, estimates_of, may_see_estimate
from planning.services import DraftChoice, PlanError, draft_plan, freeze_estimate
from planning.spec import SpecError, parse_request
from projects.access import Role, actor_of, project_for, projects_for, require_analyst
from runs.selectors import accelerators


@require_safe
def estimates(request: HttpRequest) -> HttpResponse:
    """Every estimate that the actor may see."""
    actor = actor_of(request)
    rows = [
        list_row(estimate)
        for estimate in estimates_of(actor.organisation_id)
        if may_see_estimate(actor, estimate)
    ]
    return render(request, "planning/estimates.html", {"rows": rows})


@require_http_methods(["GET", "HEAD", "POST"])
def estimate_new(request: HttpRequest) -> HttpResponse:
    """Ask a kickoff question."""
    actor = actor_of(request)
    require_analyst(actor)
    catalogue = accelerators(organisation_id=actor.organisation_id)
    preset = request.GET.get("preset", "")
    initial = EstimateForm.initial_from(PRESETS.get(preset, PRESETS["chapter-10b-moe"]))
    form = EstimateForm(request.POST or None, catalogue=catalogue, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            question = parse_request(form.document())
            estimate = freeze_estimate(actor, question, as_of=datetime.now(UTC))
        except SpecError as error:
            for field, why in error.problems.items():
                form.add_error(field if field in form.fields else None, why)
        else:
            return redirect("estimate", estimate_id=estimate.pk)
    context = {"form": form, "presets": PRESETS, "preset": preset}
    return render(request, "planning/estimate_new.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def estimate(request: HttpRequest, estimate_id: UUID) -> HttpResponse:
    """One answer, and the door from it to a plan."""
    actor = actor_of(request)
    found = estimate_by_id(actor.organisation_id, estimate_id)
    if found is None or not may_see_estimate(actor, found):
        raise Http404("No such estimate.")
    choices = [(project.slug, project.name) for project in projects_for(actor)]
    form = DraftPlanForm(
        request.POST or None, projects=choices, initial={"starts_on": datetime.now(UTC).date()}
    )
    if request.method == "POST" and form.is_valid():
        project = project_for(actor, form.cleaned_data["project"], Role.ANALYST)
        try:
            draft_plan(actor, project, found, DraftChoice(starts_on=form.cleaned_data["starts_on"]))
        except PlanError as error:
            form.add_error(None, str(error))
        else:
            return redirect("plan", slug=project.slug)
    context = {**answer_context(found), "form": form, "has_projects": bool(choices)}
    return render(request, "planning/estimate.html", context)

"""Pages of intent: estimates, and the plan of a project."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from carbon.words import level_name
from formulae.plan_lines import REFERENCE_BAND, plan_lines, programme_multiple
from formulae.money import sum_money
from formulae.units import FLOP_PER_TFLOP
from planning.estimating import Answer
from planning.forms import ApprovePlanForm, DraftPlanForm, EstimateForm, PlanLineForm
from planning.models import Estimate, PlanVersion
from planning.names import line_name
from planning.presets import PRESETS
from planning.records import PlanRecord
from planning.selectors import (
    baseline_of,
    estimate_by_id,
    estimates_of,
    may_see_estimate,
    plan_versions,
)
from planning.services import (
    PlanError,
    approve_plan,
    change_lines,
    DraftChoice,
    draft_plan,
    freeze_estimate,
)
from planning.spec import SpecError, parse_request
from projects.access import Actor, Role, actor_of, project_for, projects_for, require_analyst
from runs.selectors import accelerators

LEVELS = ("p10", "p50", "p80", "p90", "mean")


@require_safe
def estimates(request: HttpRequest) -> HttpResponse:
    """Every estimate that the actor may see."""
    actor = actor_of(request)
    rows = [
        {"estimate": estimate, "answer": Answer.from_document(estimate.result)}
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
            draft_plan(
                actor, project, found, DraftChoice(starts_on=form.cleaned_data["starts_on"])
            )
        except PlanError as error:
            form.add_error(None, str(error))
        else:
            return redirect("plan", slug=project.slug)
    context = {**_answer_context(found), "form": form, "has_projects": bool(choices)}
    return render(request, "planning/estimate.html", context)


def _answer_context(found: Estimate) -> dict[str, Any]:
    """What the page of an answer shows."""
    answer = Answer.from_document(found.result)
    lines = plan_lines(answer.cost) if answer.cost else ()
    return {
        "estimate": found,
        "answer": answer,
        "spec": found.spec,
        "grid_level": level_name((answer.assumptions["grid"] or {}).get("level", "")),
        "peak_dense_tflop_per_s": answer.assumptions["peak_dense_flop_per_s"] / FLOP_PER_TFLOP,
        "point_mfu": _most_likely(found.spec["mfu"]),
        "point_goodput": _most_likely(found.spec.get("goodput", 1.0)),
        "point_power_w": _most_likely(found.spec.get("power_w")),
        "lines": [
            {
                "name": line_name(line.rule.key),
                "amount": line.amount,
                "multiple": line.amount.ratio_to(answer.cost) if answer.cost else None,
            }
            for line in lines
        ],
        "total": sum_money((line.amount for line in lines), currency=answer.cost.currency)
        if answer.cost
        else None,
        "programme_multiple": programme_multiple(),
        "reference_band": REFERENCE_BAND,
        "interval_rows": _interval_rows(answer),
    }


def _most_likely(value: Any) -> Any:
    """The mode of a range, or the value itself."""
    return value["mode"] if isinstance(value, dict) else value


def _interval_rows(answer: Answer) -> list[dict[str, Any]]:
    """The interval as rows: a label, a unit, and the percentiles."""
    if answer.interval is None:
        return []
    labels = (
        ("days", _("Days"), "days"),
        ("accelerator_h", _("Accelerator-hours"), "h"),
        ("cost", _("Cost"), "money"),
        ("facility_energy_kwh", _("Facility energy"), "kwh"),
        ("scope_2_location_kgco2e", _("Emissions, location-based"), "kgco2e"),
    )
    return [
        {
            "label": label,
            "unit": unit,
            "values": [answer.interval[key][level] for level in LEVELS],
        }
        for key, label, unit in labels
        if answer.interval.get(key) is not None
    ]


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

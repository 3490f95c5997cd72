"""Pages of kickoff estimates: the list, the question, the answer, the chapter's example."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from planning.chapter import chapter_example
from planning.estimate_choices import form_context
from planning.estimate_export import csv_of, json_of
from planning.estimate_forms import EstimateForm, initial_from
from planning.estimate_links import packed, unpacked
from planning.estimate_live import HARDWARE, PLACES, side_table_name
from planning.estimate_notes import notes_of
from planning.estimate_page import answer_context, list_row
from planning.estimate_question import add_problems, question_of, unreadable_link
from planning.estimating import Answer, answer_request
from planning.first_answers import todays_question
from planning.models import Estimate
from planning.plan_forms import DraftPlanForm
from planning.presets import DEFAULT_PRESET, PRESETS
from planning.selectors import estimate_by_id, estimates_of, may_see_estimate
from planning.services import PlanError, draft_plan, freeze_estimate
from planning.spec import EstimateRequest, SpecError, parse_request
from projects.access import (
    Actor,
    Role,
    actor_of,
    project_for,
    projects_for,
    require_analyst,
)


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
    """Ask a kickoff question; its answer stands beside it."""
    actor = actor_of(request)
    require_analyst(actor)
    if request.method == "POST":
        return _posted(request, actor)
    question = _question_to_start_from(request, actor)
    form = EstimateForm(initial=initial_from(question.document()))
    return render(request, "planning/estimate_new.html", _page(request, actor, form, question))


def _posted(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Freeze what was asked; or, without script, answer it on the page."""
    form = EstimateForm(request.POST)
    question = None
    try:
        question = question_of(form)
        if request.POST.get("action") != "preview":
            estimate = freeze_estimate(actor, question, as_of=datetime.now(UTC))
            return redirect("estimate", estimate_id=estimate.pk)
    except SpecError as error:
        add_problems(error, form)
        question = None
    return render(request, "planning/estimate_new.html", _page(request, actor, form, question))


def _question_to_start_from(request: HttpRequest, actor: Actor) -> EstimateRequest:
    """That of the link, of an estimate to ask again, of the chosen preset, or the usual one."""
    document = PRESETS.get(request.GET.get("preset", ""), PRESETS[DEFAULT_PRESET])
    try:
        if "q" in request.GET:
            return unpacked(request.GET["q"])
        if "from" in request.GET:
            found = _found(actor, _uuid(request.GET["from"]))
            return parse_request(todays_question(found.spec))
    except SpecError:
        messages.warning(request, unreadable_link())
    return parse_request(document)


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except (ValueError, ValidationError) as error:
        raise Http404("No such estimate.") from error


def _found(actor: Actor, estimate_id: UUID) -> Estimate:
    """The estimate, if the actor may see it."""
    found = estimate_by_id(actor.organisation_id, estimate_id)
    if found is None or not may_see_estimate(actor, found):
        raise Http404("No such estimate.")
    return found


def _page(
    request: HttpRequest, actor: Actor, form: EstimateForm, question: EstimateRequest | None
) -> dict[str, Any]:
    """The page of a question: its form, and the answer while there is one."""
    context: dict[str, Any] = {
        **form_context(actor.organisation_id, form),
        "preset": request.GET.get("preset", ""),
    }
    if question is None:
        return context
    try:
        answer = answer_request(actor.organisation_id, question, as_of=datetime.now(UTC))
    except SpecError as error:
        if form.is_bound:
            add_problems(error, form)
        else:
            context["why_not"] = str(error)
        return context
    link = request.build_absolute_uri(f"{request.path}?q={packed(question)}")
    notes = {note.field: note for note in notes_of(answer.document)}
    return context | answer_context(answer) | {"notes": notes, "share_link": link}


@require_http_methods(["GET", "HEAD", "POST"])
def estimate(request: HttpRequest, estimate_id: UUID) -> HttpResponse:
    """One answer in full, and the door from it to a plan."""
    actor = actor_of(request)
    found = _found(actor, estimate_id)
    choices = [(project.slug, project.name) for project in projects_for(actor)]
    initial = {"starts_on": datetime.now(UTC).date()}
    form = DraftPlanForm(request.POST or None, projects=choices, initial=initial)
    if request.method == "POST" and form.is_valid():
        project = project_for(actor, form.cleaned_data["project"], Role.ANALYST)
        try:
            draft_plan(actor, project, found, form.choice())
        except PlanError as error:
            form.add_error(None, str(error))
        else:
            return redirect("plan", slug=project.slug)
    context = {
        **answer_context(Answer.from_document(found.result)),
        "estimate": found,
        "spec_text": json.dumps(todays_question(found.spec), indent=1, ensure_ascii=False),
        "form": form,
        "has_projects": bool(choices),
        "side_tables": _side_tables(found),
    }
    return render(request, "planning/estimate.html", context)


def _side_tables(found: Estimate) -> list[tuple[str, str, str]]:
    """The tables that are loaded when they come into sight: kind, title, address."""
    return [
        (kind, side_table_name(kind), reverse(f"estimate_{kind}", args=[found.pk]))
        for kind in (PLACES, HARDWARE)
    ]


@require_safe
def estimate_export(request: HttpRequest, estimate_id: UUID, kind: str) -> HttpResponse:
    """Question, answer and working as a file: json or csv."""
    found = _found(actor_of(request), estimate_id)
    body, content_type = (
        (csv_of(found), "text/csv; charset=utf-8")
        if kind == "csv"
        else (json_of(found), "application/json")
    )
    response = HttpResponse(body, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="estimate-{found.pk}.{kind}"'
    return response


@require_safe
def estimate_chapter(request: HttpRequest) -> HttpResponse:
    """The chapter's example as printed and corrected."""
    actor_of(request)
    return render(request, "planning/estimate_chapter.html", {"example": chapter_example()})

"""Fragments of the estimator: the answer while a question is typed, a config.json, side tables."""

import json
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from planning.alternatives import known, on_other_hardware, same_run_elsewhere
from planning.estimate_forms import SHAPE, EstimateForm, model_initial
from planning.estimate_links import packed
from planning.estimate_notes import notes_of
from planning.estimate_page import answer_context
from planning.estimate_question import problems_of, question_of
from planning.estimating import answer_request
from planning.first_answers import todays_question
from planning.model_config import ConfigError, ConfigRead, model_from_config
from planning.models import Estimate
from planning.presets import DEFAULT_PRESET, PRESETS
from planning.selectors import estimate_by_id, may_see_estimate
from planning.spec import EstimateRequest, SpecError, parse_request
from projects.access import Actor, actor_of, require_analyst

_LARGEST_CONFIG: Final = 1_000_000
# Enough for a median to the percent while somebody types; a frozen answer draws what was asked.
_MOST_DRAWS: Final = 10_000
PLACES, HARDWARE = "places", "hardware"


@require_POST
def estimate_preview(request: HttpRequest) -> HttpResponse:
    """Answer a question that nobody keeps."""
    actor = actor_of(request)
    require_analyst(actor)
    form = EstimateForm(request.POST)
    try:
        question = question_of(form)
        light = question.model_copy(update={"draws": min(question.draws, _MOST_DRAWS)})
        answer = answer_request(actor.organisation_id, light, as_of=datetime.now(UTC))
    except SpecError as error:
        return _refused(request, error, form)
    context = {
        **answer_context(answer),
        "notes": {note.field: note for note in notes_of(answer.document)},
        "share_link": request.build_absolute_uri(f"{reverse('estimate_new')}?q={packed(question)}"),
    }
    return render(request, "planning/_live.html", context)


def _refused(request: HttpRequest, error: SpecError, form: EstimateForm) -> HttpResponse:
    """The problems by field; the answer before stays on the page, dimmed."""
    problems = list(problems_of(error, form))
    response = render(request, "planning/_problems.html", {"problems": problems})
    response["HX-Retarget"] = "#problems"
    response["HX-Reswap"] = "innerHTML"
    return response


@require_POST
def estimate_read_config(request: HttpRequest) -> HttpResponse:
    """Read a Hugging Face config.json into the fields of the model; nothing is kept."""
    require_analyst(actor_of(request))
    try:
        read = model_from_config(_config(request))
    except (ConfigError, _UnreadableError) as error:
        return _unread(request, str(error))
    if not request.headers.get("HX-Request"):
        return _opened(request, read)
    initial = model_initial(read.model) | {"model_way": SHAPE, "seq_len": read.seq_len}
    context = {"form": EstimateForm(initial=initial), "read": read, "found": _found_in(read)}
    return render(request, "planning/_model.html", context)


class _UnreadableError(ValueError):
    """No config.json at all; the message is shown."""


def _config(request: HttpRequest) -> Any:
    """The JSON that was dropped, chosen or pasted.

    Raises:
        _UnreadableError: nothing was sent, too much, or no JSON.
    """
    file = request.FILES.get("config_file")
    text = request.POST.get("config_text", "")
    if file is None and not text.strip():
        raise _UnreadableError(_("Drop a config.json, or paste its text."))
    size = len(text) if file is None else file.size or 0
    if size > _LARGEST_CONFIG:
        raise _UnreadableError(_("This is larger than 1 MB: a config.json has a few kB."))
    raw = text if file is None else file.read()
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _UnreadableError(_("This is no JSON: %(why)s") % {"why": error}) from error


def _opened(request: HttpRequest, read: ConfigRead) -> HttpResponse:
    """Without script: the usual question with this model in it."""
    document = PRESETS[DEFAULT_PRESET] | {"model": read.model, "seq_len": read.seq_len}
    try:
        question = parse_request(document)
    except SpecError as error:
        return _unread(request, str(error))
    return redirect(f"{reverse('estimate_new')}?q={packed(question)}")


def _unread(request: HttpRequest, why: str) -> HttpResponse:
    if not request.headers.get("HX-Request"):
        messages.error(request, why)
        return redirect("estimate_new")
    response = render(request, "planning/_config_refused.html", {"why": why})
    response["HX-Retarget"] = "#config-read"
    response["HX-Reswap"] = "innerHTML"
    return response


def _found_in(read: ConfigRead) -> int:
    """How many keys of the model the config gave."""
    return len(read.model)


@require_POST
def estimate_alternatives_new(request: HttpRequest, kind: str) -> HttpResponse:
    """The typed question in other regions, or on other hardware."""
    actor = actor_of(request)
    require_analyst(actor)
    try:
        return _table(request, actor, question_of(EstimateForm(request.POST)), kind)
    except SpecError as error:
        return render(request, "planning/_config_refused.html", {"why": str(error)})


@require_safe
def estimate_alternatives(request: HttpRequest, estimate_id: UUID, kind: str) -> HttpResponse:
    """A kept question in other regions, or on other hardware, as of today."""
    actor = actor_of(request)
    found = estimate_by_id(actor.organisation_id, estimate_id)
    if found is None or not may_see_estimate(actor, found):
        raise Http404("No such estimate.")
    try:
        question = parse_request(todays_question(found.spec))
        return _table(request, actor, question, kind, estimate=found)
    except SpecError as error:
        return render(request, "planning/_config_refused.html", {"why": str(error)})


def side_table_name(kind: str) -> str:
    """What a table of alternatives is called."""
    if kind == PLACES:
        return _("The same run in other regions")
    return _("The run on other hardware")


def _table(
    request: HttpRequest,
    actor: Actor,
    question: EstimateRequest,
    kind: str,
    *,
    estimate: Estimate | None = None,
) -> HttpResponse:
    """One table of alternatives, or without script its page; an empty column is left out."""
    ask = same_run_elsewhere if kind == PLACES else on_other_hardware
    rows = ask(actor.organisation_id, question, as_of=datetime.now(UTC))
    context = {
        "rows": rows,
        "kind": kind,
        "title": side_table_name(kind),
        "estimate": estimate,
        "has_market": known(rows, "scope_2_market_kgco2e"),
        "has_cost": kind == HARDWARE and known(rows, "cost"),
        "has_days": kind == HARDWARE and known(rows, "days"),
    }
    is_fragment = request.headers.get("HX-Request") is not None
    name = "_alternatives" if is_fragment else "estimate_alternatives"
    return render(request, f"planning/{name}.html", context)

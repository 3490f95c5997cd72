"""The page of energy and carbon: by time, owner or device, at three boundaries, by two methods."""

from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from carbon.energy_answers import bounded, energy_table, usual_group
from carbon.energy_pages import (
    MAX_ROWS,
    badge_of,
    chips_of,
    choices_of,
    figure_of,
    shown_row,
    shown_rows,
)
from carbon.energy_questions import EnergyQuestion, QuestionError, question_in
from carbon.energy_records import EnergyTable
from carbon.energy_selectors import filters_of
from carbon.readers import READERS
from projects.access import actor_of, require_scope, sees_unallocated
from projects.records import Actor


def asked_question(request: HttpRequest, actor: Actor) -> EnergyQuestion:
    """The question of the page's address, with days where it takes some.

    Raises:
        QuestionError: it cannot be read, or asks for more than a page holds.
    """
    question = question_in(request.GET.dict(), actor)
    if not request.GET.get("by") and not question.is_by_device:
        question = replace(question, by=usual_group(question))
    return bounded(question)


def refused(request: HttpRequest, error: QuestionError) -> HttpResponse:
    """What cannot be answered, and why."""
    return render(request, "carbon/energy_refused.html", {"message": str(error)}, status=400)


@require_safe
def energy(request: HttpRequest) -> HttpResponse:
    """Energy and carbon of what the address asks for."""
    actor = actor_of(request)
    require_scope(actor, *READERS)
    try:
        question = asked_question(request, actor)
    except QuestionError as error:
        return refused(request, error)
    table = energy_table(question)
    return render(request, "carbon/energy.html", _context(actor, question, table))


def _context(actor: Actor, question: EnergyQuestion, table: EnergyTable) -> dict[str, Any]:
    kept = [pair for pair in question.written() if pair[0] not in ("from", "to")]
    return {
        "tab": "energy",
        "question": question,
        "table": table,
        "rows": shown_rows(table, question),
        "hidden": max(0, len(table.rows) - MAX_ROWS),
        "total": shown_row(table.total, question),
        "badge": badge_of(question, table),
        "figure": figure_of(table, question),
        "chips": chips_of(question),
        "query": question.query(),
        "kept": kept,
        "first_on": question.start,
        "out_on": question.end,
        "has_share": question.by not in ("hour", "day", "month"),
        "sees_all": sees_unallocated(actor),
        **choices_of(question),
        **filters_of(question.organisation_id, question.allowed),
    }

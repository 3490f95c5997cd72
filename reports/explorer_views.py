"""The cost explorer, its files, and the views that people saved of it. Parse, select, render."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from billing.charge_pages import period_text
from billing.charge_rows import tag_keys
from billing.charge_selectors import is_invoiced, known_since, months_with_charges, stack_of
from billing.charge_words import BASIS_NAMES, BASIS_WORDS
from billing.cost_questions import QuestionError
from billing.doors import cost_scope, may_upload
from billing.records import Basis
from projects.access import Actor, actor_of, require_scope, sees_unallocated
from projects.records import Scope
from reports.explorer import Answer, explore, known_days
from reports.explorer_choices import (
    address_of_form,
    column_choices,
    month_of,
    steps,
    values_of,
)
from reports.explorer_questions import (
    TOPS,
    Asked,
    asked_in,
    is_without_days,
    kept_query,
    pairs_of,
    query_of,
)
from reports.explorer_sheet import (
    chart_currency,
    chips,
    cost_figure,
    cost_sheet,
    mover_lines,
)
from reports.note_selectors import views_of
from reports.services import ViewWish, delete_view, rename_view, save_view
from reports.sheet_files import CSV_TYPE, XLSX_TYPE, as_csv, as_xlsx

# What the form of choices has no field for, and hands on.
_NOT_CHOSEN: Final = ("basis", "filter", "table")


def _asked(request: HttpRequest, actor: Actor) -> Asked:
    """The question of the address; without days, of the newest month with charges.

    Raises:
        QuestionError: the address cannot be read.
    """
    scope = cost_scope(actor)
    parameters = {name: list(values) for name, values in request.GET.lists()}
    if is_without_days(parameters):
        newest = known_days(actor.organisation_id, scope)
        parameters["month"] = [f"{newest.last_on:%Y-%m}" if newest else ""]
    return asked_in(parameters, scope)


def _refused(request: HttpRequest, error: QuestionError) -> HttpResponse:
    context = {"message": error.message}
    return render(request, "reports/costs_refused.html", context, status=400)


def _actor(request: HttpRequest) -> Actor:
    actor = actor_of(request)
    require_scope(actor, Scope.READ_COSTS)
    return actor


@require_safe
def costs(request: HttpRequest) -> HttpResponse:
    """Costs by any columns and steps of time, beside the days before."""
    actor = _actor(request)
    try:
        asked = _asked(request, actor)
        address = address_of_form(request.GET, asked)
    except QuestionError as error:
        return _refused(request, error)
    if address is not None:
        return HttpResponseRedirect(f"{reverse('costs')}?{address}")
    answer = explore(actor.organisation_id, asked)
    context = {
        "asked": asked,
        "question": asked.question,
        "answer": answer,
        "sheet": cost_sheet(answer),
        "figure": cost_figure(answer),
        "chart_currency": chart_currency(answer),
        "movers": mover_lines(answer),
        "query": query_of(asked),
        "kept_query": kept_query(asked, dict(request.GET.lists())),
        "known_at": known_since(actor.organisation_id),
        "sees_unallocated": sees_unallocated(actor),
        "may_upload": may_upload(actor),
        "has_no_project": asked.question.scope.allowed == (),
        **_choices(request, actor, answer),
    }
    return render(request, "reports/costs.html", context)


def _choices(request: HttpRequest, actor: Actor, answer: Answer) -> dict[str, Any]:
    """What the page's forms and links offer, and what is chosen."""
    asked, question = answer.asked, answer.asked.question
    tags = tag_keys(stack_of(actor.organisation_id, question), question)
    picked = request.GET.get("add_column") or (asked.dimensions or ("service_name",))[0]
    return {
        "columns": column_choices(tags, (*asked.dimensions, picked)),
        "first": asked.dimensions[0] if asked.dimensions else "",
        "second": asked.dimensions[1] if len(asked.dimensions) > 1 else "",
        "picked": picked,
        "is_filtering": "add_column" in request.GET,
        "values": values_of(actor.organisation_id, answer, picked),
        "tag_keys": tags,
        "steps": steps(),
        "tops": TOPS,
        "months": [
            f"{one:%Y-%m}" for one in months_with_charges(actor.organisation_id, question.scope)
        ],
        "month": month_of(question),
        "first_on": question.start_on,
        "last_on": question.end_on and question.end_on - timedelta(days=1),
        "kept": pairs_of(asked),
        "kept_by_choices": [pair for pair in pairs_of(asked) if pair[0] in _NOT_CHOSEN],
        "chips": chips(asked),
        "bases": [
            {
                "name": BASIS_NAMES[basis],
                "url": f"?{query_of(replace(asked, question=replace(question, basis=basis)))}",
                "is_current": basis is question.basis,
            }
            for basis in Basis
        ],
        "basis_words": BASIS_WORDS[question.basis],
        "tables": [
            {
                "name": name,
                "url": f"?{query_of(replace(asked, by_period=by_period))}",
                "is_current": asked.by_period is by_period,
            }
            for name, by_period in ((_("Sums"), False), (_("Each period"), True))
        ],
        "is_invoiced": question.basis is Basis.BILLED
        and is_invoiced(actor.organisation_id, start_on=question.start_on, end_on=question.end_on),
        "views": views_of(actor, reverse("costs")),
        "unfiltered": f"?{query_of(replace(asked, question=replace(question, filters=())))}",
    }


@require_safe
def costs_csv(request: HttpRequest) -> HttpResponse:
    """The table of the page as CSV."""
    return _file(request, "csv")


@require_safe
def costs_xlsx(request: HttpRequest) -> HttpResponse:
    """The table of the page as a workbook."""
    return _file(request, "xlsx")


def _file(request: HttpRequest, kind: str) -> HttpResponse:
    actor = _actor(request)
    try:
        asked = _asked(request, actor)
    except QuestionError as error:
        return _refused(request, error)
    sheet = cost_sheet(explore(actor.organisation_id, asked))
    stem = f"cost-explorer-{asked.question.basis.value}-{period_text(asked.question)}"
    headers = {"Content-Disposition": f'attachment; filename="{stem}.{kind}"'}
    content = as_csv(sheet) if kind == "csv" else as_xlsx([sheet])
    content_type = CSV_TYPE if kind == "csv" else XLSX_TYPE
    return HttpResponse(content, content_type=content_type, headers=headers)


@require_POST
def saved_views(request: HttpRequest) -> HttpResponse:
    """Keep the explorer's question under a name."""
    actor = _actor(request)
    path = reverse("costs")
    query = request.POST.get("query", "")
    try:
        sent = {name: list(values) for name, values in QueryDict(query).lists()}
        asked = asked_in(sent, cost_scope(actor))
        wish = ViewWish(
            name=request.POST.get("name", ""),
            path=path,
            query=kept_query(asked, sent),
            is_shared=request.POST.get("is_shared") == "on",
        )
        saved = save_view(actor, wish)
        messages.success(request, _("Saved as {name}.").format(name=saved.name))
    except QuestionError as error:
        messages.warning(request, error.message)
    except ValidationError as error:
        messages.warning(request, " ".join(error.messages))
    return _back(request, f"{path}?{query}")


@require_POST
def saved_view(request: HttpRequest, view_id: UUID) -> HttpResponse:
    """Give a view another name, share it or not."""
    try:
        rename_view(
            actor_of(request),
            view_id,
            name=request.POST.get("name", ""),
            is_shared=request.POST.get("is_shared") == "on",
        )
        messages.success(request, _("The view is changed."))
    except ValidationError as error:
        messages.warning(request, " ".join(error.messages))
    return _back(request, reverse("costs"))


@require_POST
def saved_view_delete(request: HttpRequest, view_id: UUID) -> HttpResponse:
    """Delete a view."""
    path = delete_view(actor_of(request), view_id)
    messages.success(request, _("The view is deleted."))
    return _back(request, path)


def _back(request: HttpRequest, fallback: str) -> HttpResponse:
    """To the page that the form was on."""
    wanted = request.POST.get("back", "")
    is_ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts=None)
    response = HttpResponseRedirect(wanted if is_ours and wanted.startswith("/") else fallback)
    response.status_code = 303
    return response

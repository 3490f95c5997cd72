"""Pages of charges: by any column, single ones, one to its last detail, and files of them."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any, Final
from uuid import UUID

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from billing.allocation_words import condition_in_words
from billing.charge_pages import (
    MAX_ROWS,
    chips_of,
    figure_of,
    folded,
    groups_of,
    measures_of,
    month_of,
    period_text,
    query_of,
    table_csv,
    visible_fields,
)
from billing.charge_rows import FoundCharge, charge_rows, count_and_page, find_charge, tag_keys
from billing.charge_selectors import (
    history_of,
    is_invoiced,
    known_since,
    months_with_charges,
    origin_of,
    slice_by_id,
    stack_of,
    stack_of_one,
)
from billing.charge_words import BASIS_NAMES, BASIS_WORDS, TABS, column_name
from billing.class_reasons import reasons
from billing.columns import STORED_TYPES
from billing.cost_questions import (
    TAG_PREFIX,
    CostQuestion,
    Filter,
    QuestionError,
    Scope,
    question_in,
    written,
)
from billing.cost_records import CostRow, total_of
from billing.cost_selectors import billed_through, cost_table
from billing.doors import cost_scope
from billing.exporting import CONTENT_TYPES, CSV, FORMATS, export_file
from billing.focus_columns import EXPORT_COLUMNS, VERSION
from billing.records import Basis
from billing.words import CLASS_NAMES
from projects.access import Actor, actor_of, require_scope, sees_unallocated
from projects.records import Scope as TokenScope

PAGE_ROWS: Final = 50
MAX_CHART_DAYS: Final = 100
_STORED: Final = {theirs: ours for theirs, ours in EXPORT_COLUMNS.items() if ours in STORED_TYPES}


def _asked(request: HttpRequest, actor: Actor) -> CostQuestion:
    """The question of a page's address; without days, the newest month with charges.

    Raises:
        QuestionError: the address cannot be read.
    """
    scope = cost_scope(actor)
    parameters = {key: list(values) for key, values in request.GET.lists()}
    tag = (request.GET.get("tag") or "").strip()
    if tag:
        parameters["group_by"] = [TAG_PREFIX + tag]
    if parameters.get("month") == ["all"]:
        parameters["month"] = [""]
    elif not any(parameters.get(name, [""])[-1] for name in ("month", "from", "to")):
        months = months_with_charges(actor.organisation_id, scope)
        parameters["month"] = [f"{months[0]:%Y-%m}"] if months else [""]
    question = question_in(parameters, scope)
    return replace(question, group_by=question.group_by[:1] or ("x_cost_class",))


def _refused(request: HttpRequest, error: QuestionError) -> HttpResponse:
    context = {"message": error.message}
    return render(request, "billing/charges_refused.html", context, status=400)


@require_safe
def charges(request: HttpRequest) -> HttpResponse:
    """Costs by one column, of the days and filters of the address."""
    actor = actor_of(request)
    require_scope(actor, TokenScope.READ_COSTS)
    try:
        question = _asked(request, actor)
    except QuestionError as error:
        return _refused(request, error)
    by_day, rows = _rows_by_day(actor, question)
    groups = groups_of(rows, question, _estimated(actor, question))
    totals = total_of(rows)
    context = {
        "question": question,
        "column": column_name(question.group_by[0]),
        "groups": groups[:MAX_ROWS],
        "hidden": _hidden(groups[MAX_ROWS:]),
        "hidden_count": max(0, len(groups) - MAX_ROWS),
        "totals": totals,
        "measures": measures_of(rows),
        "is_estimated": any(group.is_estimated for group in groups),
        "chart": _chart(by_day, question),
        "export_query": query_of(question),
        "known_at": known_since(actor.organisation_id),
        "billed_through": billed_through(actor.organisation_id, None)
        if sees_unallocated(actor)
        else None,
        "sees_unallocated": sees_unallocated(actor),
        "tag_keys": tag_keys(stack_of(actor.organisation_id, question), question),
        **_choices(actor, question),
    }
    return render(request, "billing/charges.html", context)


def _rows_by_day(actor: Actor, question: CostQuestion) -> tuple[list[CostRow], list[CostRow]]:
    """The rows by group and day, or month where there are many days, and those by group."""
    start, end = question.start_on, question.end_on
    few = start is not None and end is not None and (end - start).days <= MAX_CHART_DAYS
    over = replace(question, group_by=(question.group_by[0], "day" if few else "month"))
    table = cost_table(actor.organisation_id, over)
    return list(table.rows), folded(table.rows)


def _estimated(actor: Actor, question: CostQuestion) -> frozenset[str | None]:
    """The groups with charges that we priced, since the bill states no cost."""
    only = Filter(column="x_estimated", values=("true",))
    kept = question.without_filter("x_estimated")
    asked = replace(kept, filters=(*kept.filters, only))
    return frozenset(row.group[0] for row in cost_table(actor.organisation_id, asked).rows)


def _hidden(groups: list[Any]) -> list[Any]:
    """The sums of the groups that the table has no room for."""
    return list(total_of([group.row for group in groups]))


def _chart(by_day: list[CostRow], question: CostQuestion) -> dict[str, Any] | None:
    """The figure in the currency of most rows, and the same numbers for a table."""
    currencies = sorted({row.currency for row in by_day})
    days = [row.group[1] or "" for row in by_day]
    if not days:
        return None
    counts = {name: sum(1 for row in by_day if row.currency == name) for name in currencies}
    currency = max(currencies, key=lambda name: counts[name])
    known = [date.fromisoformat(day if len(day) > 7 else f"{day}-01") for day in days]
    span = (min(known), max(known) + timedelta(days=1))
    totals = total_of_days(by_day, currency)
    return {
        "is_monthly": any(len(day) == 7 for day in days),
        "figure": figure_of(by_day, question, currency, span),
        "currency": currency,
        "others": [name for name in currencies if name != currency],
        "days": totals,
    }


def total_of_days(by_day: list[CostRow], currency: str) -> list[dict[str, Any]]:
    """The total of each day in one currency."""
    found = []
    for day in sorted({row.group[1] or "" for row in by_day}):
        rows = [row for row in by_day if row.group[1] == day and row.currency == currency]
        found += [{"day": day, "cost": total.cost} for total in total_of(rows)]
    return found


def _choices(actor: Actor, question: CostQuestion) -> dict[str, Any]:
    """The links that ask something else, and what is asked now."""
    months = months_with_charges(actor.organisation_id, question.scope)
    is_open = question.start_on is None and question.end_on is None
    month = "all" if is_open else month_of(question)
    group = question.group_by[0]
    return {
        "tabs": [
            {
                "name": column_name(name),
                "url": f"?{query_of(replace(question, group_by=(name,)))}",
                "is_current": name == group,
            }
            for name in (*TABS, *((group,) if group not in TABS else ()))
        ],
        "bases": [
            {
                "name": BASIS_NAMES[basis],
                "url": f"?{query_of(replace(question, basis=basis))}",
                "is_current": basis is question.basis,
            }
            for basis in Basis
        ],
        "basis_words": BASIS_WORDS[question.basis],
        "basis_name": BASIS_NAMES[question.basis],
        "months": [f"{one:%Y-%m}" for one in months],
        "month": month,
        "kept": [pair for pair in written(question) if pair[0] not in ("from", "to")],
        "kept_for_tag": [pair for pair in _with_days(question) if pair[0] != "group_by"],
        "chips": chips_of(question),
        "first_on": question.start_on,
        "last_on": question.end_on and question.end_on - timedelta(days=1),
        "has_no_project": question.scope.allowed == (),
        "is_invoiced": question.basis is Basis.BILLED
        and is_invoiced(actor.organisation_id, start_on=question.start_on, end_on=question.end_on),
    }


def _with_days(question: CostQuestion) -> list[tuple[str, str]]:
    pairs = written(question)
    is_open = question.start_on is None and question.end_on is None
    return [*pairs, ("month", "all")] if is_open else pairs


@require_safe
def charges_table(request: HttpRequest) -> HttpResponse:
    """The table of the page as CSV."""
    actor = actor_of(request)
    require_scope(actor, TokenScope.READ_COSTS)
    try:
        question = _asked(request, actor)
    except QuestionError as error:
        return _refused(request, error)
    _by_day, rows = _rows_by_day(actor, question)
    groups = groups_of(rows, question, frozenset())
    name = f"costs-{question.basis.value}-{period_text(question)}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    text = table_csv(groups, total_of(rows), question)
    return HttpResponse(text, content_type=CONTENT_TYPES["csv"], headers=headers)


@require_safe
def charges_export(request: HttpRequest) -> HttpResponse | FileResponse:
    """The charges of the page as a FOCUS file."""
    actor = actor_of(request)
    require_scope(actor, TokenScope.READ_COSTS)
    kind = request.GET.get("format") or CSV
    try:
        question = _asked(request, actor)
        if kind not in FORMATS:
            raise QuestionError("format", _("the format is csv or parquet"))
    except QuestionError as error:
        return _refused(request, error)
    return export_response(actor, question, kind)


def export_response(actor: Actor, question: CostQuestion, kind: str) -> FileResponse:
    """A FOCUS file, made in the lake's scratch space and sent from there."""
    file = export_file(actor.organisation_id, question, kind=kind)
    return FileResponse(
        file,
        as_attachment=True,
        filename=f"charges-focus-{VERSION}-{period_text(question)}.{kind}",
        content_type=CONTENT_TYPES[kind],
    )


@require_safe
def charge_rows_page(request: HttpRequest) -> HttpResponse:
    """Single charges of a question, the dearest first; their sum is the group's."""
    actor = actor_of(request)
    require_scope(actor, TokenScope.READ_COSTS)
    try:
        question = _asked(request, actor)
    except QuestionError as error:
        return _refused(request, error)
    stack = stack_of(actor.organisation_id, question)
    asked = request.GET.get("page", "1")
    offset = (count_and_page(10**9 * PAGE_ROWS, PAGE_ROWS, asked)[1] - 1) * PAGE_ROWS
    found = charge_rows(stack, question, limit=PAGE_ROWS, offset=offset)
    last, number = count_and_page(found.count, PAGE_ROWS, asked)
    if number * PAGE_ROWS - PAGE_ROWS != offset:
        found = charge_rows(stack, question, limit=PAGE_ROWS, offset=(number - 1) * PAGE_ROWS)
    whole = cost_table(actor.organisation_id, replace(question, group_by=()))
    for row in found.rows:
        row["class_name"] = CLASS_NAMES.get(row["x_cost_class"], row["x_cost_class"])
    query = query_of(question)
    context = {
        "question": question,
        "rows": found.rows,
        "count": found.count,
        "totals": whole.total,
        "query": query,
        "page_number": number,
        "last_page": last,
        "previous_url": f"?{query}&page={number - 1}" if number > 1 else "",
        "next_url": f"?{query}&page={number + 1}" if number < last else "",
        "has_shares": any(row["share"] is not None for row in found.rows),
        **_choices(actor, question),
    }
    return render(request, "billing/charge_rows.html", context)


@require_safe
def charge_detail(request: HttpRequest, slice_id: UUID, number: int) -> HttpResponse:
    """One charge: every field, why its class, whose it is, and the line in its file."""
    actor = actor_of(request)
    require_scope(actor, TokenScope.READ_COSTS)
    one = slice_by_id(actor.organisation_id, slice_id)
    if one is None or number >= one.rows:
        raise Http404("No such charge.")
    found = find_charge(stack_of_one(one), number)
    if found is None or not _may_see(found, cost_scope(actor)):
        raise Http404("No such charge.")
    values = found.values
    origin = origin_of(one, file_name=values["x_source_file"], row=values["x_source_row"])
    fields = visible_fields(values, _STORED)
    context = {
        "charge": values,
        "class_name": CLASS_NAMES.get(values["x_cost_class"], values["x_cost_class"]),
        "reasons": reasons(found.class_rule),
        "fields": [field for field in fields if field["value"] is not None],
        "empty": [field["name"] for field in fields if field["value"] is None],
        "unknown": visible_fields(
            dict(values["x_unknown"] or ()),
            {name: name for name, _text in values["x_unknown"] or ()},
        ),
        "rule": found.rule,
        "rule_words": [condition_in_words(each) for each in found.rule.conditions]
        if found.rule
        else [],
        "given": found.given,
        "origin": origin,
        "sees_all": sees_unallocated(actor),
        "history": history_of(one),
        "period": str(one.period),
        **_way_back(request, actor),
    }
    return render(request, "billing/charge_detail.html", context)


def _way_back(request: HttpRequest, actor: Actor) -> dict[str, str]:
    """The addresses of the table and the list that a single charge was found in."""
    charges_url, list_url = reverse("charges"), reverse("charge_rows")
    if not request.GET:
        return {"charges_url": charges_url, "list_url": list_url}
    try:
        query = query_of(_asked(request, actor))
    except QuestionError:
        return {"charges_url": charges_url, "list_url": list_url}
    page = request.GET.get("page", "")
    paged = f"{query}&page={page}" if page.isascii() and page.isdecimal() else query
    return {"charges_url": f"{charges_url}?{query}", "list_url": f"{list_url}?{paged}"}


def _may_see(found: FoundCharge, scope: Scope) -> bool:
    """Whether any share of the charge is in the scope."""
    if scope.is_everything:
        return True
    allowed = {str(one) for one in scope.allowed or ()}
    return any(one["project_id"] in allowed for one in found.given)

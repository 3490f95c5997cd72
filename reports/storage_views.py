"""The storage and transfer page of a project, and its files. Parse, select, render."""

from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from billing.charge_words import BASIS_NAMES, BASIS_WORDS
from billing.cost_questions import QuestionError, read_day
from billing.records import Basis
from projects.access import actor_of, project_for, require_scope, sees_unallocated
from projects.models import Project
from projects.records import Scope
from reports.sheet_files import CSV_TYPE, XLSX_TYPE, as_csv, as_xlsx
from reports.storage import StoragePage, StorageQuestion, storage_page
from reports.storage_sheets import storage_sheets, tier_figure

MOST_MEGABYTES = 100_000
MOST_READS = 10_000


def _question(request: HttpRequest) -> StorageQuestion:
    """The question of the address; what cannot be read keeps its default."""
    asked = request.GET
    basis = asked.get("basis", "")
    known = StorageQuestion()
    first, out, last = (_day(name, asked.get(name, "")) for name in ("from", "to", "through"))
    end_on = out or (last + timedelta(days=1) if last else None)
    if first and end_on and first >= end_on:
        first = end_on = None
    return StorageQuestion(
        basis=basis if basis in list(Basis) else known.basis,
        start_on=first,
        end_on=end_on,
        shard_megabytes=_whole(asked.get("shard_mb"), known.shard_megabytes, MOST_MEGABYTES),
        reads_per_month=_whole(asked.get("reads"), known.reads_per_month, MOST_READS),
    )


def _day(name: str, text: str) -> date | None:
    try:
        return read_day(name, text)
    except QuestionError:
        return None


def _whole(text: str | None, default: int, most: int) -> int:
    number = int(text) if text and text.isascii() and text.isdecimal() and len(text) < 9 else 0
    return number if 1 <= number <= most else default


def _pairs(question: StorageQuestion) -> list[tuple[str, str]]:
    """The question as an address has it."""
    pairs = [("basis", question.basis)]
    days = (("from", question.start_on), ("to", question.end_on))
    pairs += [(name, day.isoformat()) for name, day in days if day]
    pairs += [
        ("shard_mb", str(question.shard_megabytes)),
        ("reads", str(question.reads_per_month)),
    ]
    return pairs


def _found(request: HttpRequest, slug: str) -> tuple[Project, StoragePage]:
    actor = actor_of(request)
    require_scope(actor, Scope.READ_COSTS)
    project = project_for(actor, slug)
    return project, storage_page(project, _question(request), as_of=datetime.now(UTC))


@require_safe
def storage(request: HttpRequest, slug: str) -> HttpResponse:
    """Tiers, requests and transfer of a project, and what could be saved."""
    project, page = _found(request, slug)
    question = page.question
    query = _pairs(question)
    drawn = tier_figure(page)
    sheets = storage_sheets(project, page)
    context = {
        "project": project,
        "page": page,
        "question": question,
        "sheets": sheets,
        "figure": drawn[0] if drawn else None,
        "currency": drawn[1] if drawn else "",
        "query": urlencode(query),
        "kept": [pair for pair in query if pair[0] == "basis"],
        "last_on": question.end_on and question.end_on - timedelta(days=1),
        "basis_words": BASIS_WORDS[Basis(question.basis)],
        "sees_findings": sees_unallocated(actor_of(request)),
        "bases": [
            {
                "name": BASIS_NAMES[basis],
                "url": f"?{urlencode([('basis', basis.value), *query[1:]])}",
                "is_current": basis.value == question.basis,
            }
            for basis in Basis
        ],
        "help": {
            "tiers": _("Retrieval counts to the cold tier's cost, not to its price per TB-month."),
            "requests": _("The price is implied: the bill's money over its requests."),
            "transfer": _("The price is implied: the bill's money over its bytes, 1 TB = 10¹² B."),
            "savings": _("Each rests on what stands beside it; a name leads to its charges."),
        },
    }
    return render(request, "reports/storage.html", context)


@require_safe
def storage_csv(request: HttpRequest, slug: str, table: str) -> HttpResponse:
    """One table of the page as CSV."""
    project, page = _found(request, slug)
    sheet = next((one for one in storage_sheets(project, page) if one.key == table), None)
    if sheet is None:
        raise Http404("No such table.")
    name = f"{project.slug}-{table}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(as_csv(sheet), content_type=CSV_TYPE, headers=headers)


@require_safe
def storage_xlsx(request: HttpRequest, slug: str) -> HttpResponse:
    """Every table of the page in one workbook."""
    project, page = _found(request, slug)
    name = f"{project.slug}-storage.xlsx"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    content = as_xlsx(storage_sheets(project, page))
    return HttpResponse(content, content_type=XLSX_TYPE, headers=headers)

"""The first page, the portfolio and a project's page. Parse, select, render."""

from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from formulae.periods import parse_utc
from planning.selectors import BASES
from projects.access import Role, actor_of, project_for, sees_unallocated
from reports.selectors import portfolio, project_page


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The portfolio; while there is no project of one's own, the three doors to begin with."""
    actor = actor_of(request)
    rows = portfolio(actor, as_of=datetime.now(UTC))
    context = {
        "rows": rows,
        "demo": next((row.project for row in rows if row.project.is_synthetic), None),
        "is_first_run": all(row.project.is_synthetic for row in rows),
        "sees_unallocated": sees_unallocated(actor),
    }
    return render(request, "reports/home.html", context)


def _asked_instant(text: str) -> datetime:
    """The instant that the page is asked for; now when it is absent or unreadable."""
    try:
        return parse_utc(text)
    except ValueError:
        return datetime.now(UTC)


@require_safe
def project(request: HttpRequest, slug: str) -> HttpResponse:
    """Plan against actuals in money, energy and carbon."""
    found = project_for(actor_of(request), slug, Role.VIEWER)
    basis = request.GET.get("basis", "")
    basis = basis if basis in BASES else "effective"
    page = project_page(found, as_of=_asked_instant(request.GET.get("as_of", "")), basis=basis)
    context = {"project": found, "page": page, "burndown": page.burndown, "bases": BASES[:2]}
    return render(request, "reports/project.html", context)

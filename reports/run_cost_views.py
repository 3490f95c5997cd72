"""The page of what runs cost. Parse, select, render."""

from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from planning.selectors import BASES
from projects.access import Role, actor_of, project_for
from reports.run_costs import run_costs


@require_safe
def run_costs_page(request: HttpRequest, slug: str) -> HttpResponse:
    """What each run of a project cost, for a token, a step, a checkpoint, and what was lost."""
    project = project_for(actor_of(request), slug, Role.VIEWER)
    asked = request.GET.get("basis", "")
    basis = asked if asked in BASES[:2] else "effective"
    page = run_costs(project, as_of=datetime.now(UTC), basis=basis)
    context = {"project": project, "page": page, "bases": BASES[:2]}
    return render(request, "reports/run_costs.html", context)

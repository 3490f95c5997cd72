"""The part of a project's page that asks again by itself. Parse, select, render."""

from datetime import UTC, datetime
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from projects.access import Role, actor_of, project_for
from reports.live import live_of

STOP_ASKING: Final = 286  # what htmx takes for the end of a poll


@never_cache
@require_safe
def project_now(request: HttpRequest, slug: str) -> HttpResponse:
    """What the project's devices draw and cost at this moment; over when none is assigned."""
    project = project_for(actor_of(request), slug, Role.VIEWER)
    live = live_of(project, now=datetime.now(UTC))
    context = {"project": project, "live": live}
    status = 200 if live else STOP_ASKING
    return render(request, "reports/_now.html", context, status=status)

"""What the frame of every page needs: the actor's projects and the chosen theme."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from billing.source_doors import sees_sources
from costwatch.demo.story import DEMO_PASSWORD, DEMO_USERS
from projects.access import actor_of, projects_for
from projects.selectors import has_synthetic_project

THEMES = ("system", "light", "dark")


def shell(request: HttpRequest) -> dict[str, Any]:
    """Give templates `theme`, `shell_projects` and `actor`."""
    theme = request.COOKIES.get("theme", "system")
    context: dict[str, Any] = {
        "theme": theme if theme in THEMES else "system",
        "version": settings.VERSION,
    }
    user = getattr(request, "user", None)
    is_stranger = user is not None and not user.is_authenticated
    # Elsewhere the demo comes without its accounts, whose password is published.
    if is_stranger and settings.INSECURE_HTTP and has_synthetic_project():
        context["demo_login"] = {"username": DEMO_USERS[0].username, "password": DEMO_PASSWORD}
    if user is not None and user.is_authenticated and user.organisation_id:
        actor = actor_of(request)
        context["actor"] = actor
        context["sees_sources"] = sees_sources(actor)
        seen = list(projects_for(actor))
        context["shell_projects"] = seen
        context["holds_synthetic"] = any(project.is_synthetic for project in seen)
    return context

"""What people add on a project's page: annotations of days, comments. Parse, call, go back."""

from collections.abc import Callable
from datetime import date
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from projects.access import Role, actor_of, project_for
from reports.services import Subject, annotate, comment, delete_annotation, delete_comment

PROJECT_KIND = "project"


@require_POST
def annotations(request: HttpRequest, slug: str) -> HttpResponse:
    """Say what happened on a day of the project."""
    actor = actor_of(request)
    project_for(actor, slug, Role.ANALYST)

    def add() -> None:
        day = _day(request.POST.get("day", ""))
        annotate(actor, slug, day=day, text=request.POST.get("text", ""))

    return _done(request, add, said=_("The day is annotated."), back=_page(slug, "money"))


@require_POST
def annotation_delete(request: HttpRequest, annotation_id: UUID) -> HttpResponse:
    """Take an annotation off the charts."""
    gone = delete_annotation(actor_of(request), annotation_id)
    messages.success(request, _("The annotation is deleted."))
    return _back(_page(gone.project.slug, "money"))


@require_POST
def comments(request: HttpRequest, slug: str) -> HttpResponse:
    """Say something of the project; whoever sees it may."""
    actor = actor_of(request)
    project_for(actor, slug, Role.VIEWER)
    subject = Subject(kind=PROJECT_KIND, project_slug=slug)

    def add() -> None:
        comment(actor, subject, request.POST.get("text", ""))

    return _done(request, add, said=_("Your comment is kept."), back=_page(slug, "comments"))


@require_POST
def comment_delete(request: HttpRequest, comment_id: UUID) -> HttpResponse:
    """Take a comment back."""
    gone = delete_comment(actor_of(request), comment_id)
    messages.success(request, _("The comment is deleted."))
    if gone.project is None:
        return _back(reverse("home"))
    return _back(_page(gone.project.slug, "comments"))


def _day(text: str) -> date:
    """The day of the form.

    Raises:
        ValidationError: it is none.
    """
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ValidationError({"day": _("Write a day as in 2026-11-16.")}) from error


def _page(slug: str, part: str) -> str:
    return f"{reverse('project', args=[slug])}#{part}"


def _done(request: HttpRequest, act: Callable[[], None], *, said: str, back: str) -> HttpResponse:
    """Do it and say so, or say what is wrong; then back to the page."""
    try:
        act()
    except ValidationError as error:
        messages.warning(request, " ".join(error.messages))
    else:
        messages.success(request, said)
    return _back(back)


def _back(address: str) -> HttpResponse:
    response = HttpResponseRedirect(address)
    response.status_code = 303
    return response

"""Reads of what people added to reports: saved views, annotations of days, comments."""

from datetime import date
from uuid import UUID

from django.db.models import Q, QuerySet

from projects.records import Actor
from reports.models import Annotation, Comment, SavedView


def views_of(actor: Actor, path: str) -> QuerySet[SavedView]:
    """The views of a page that the actor may open: its own, and the organisation's shared ones."""
    views = SavedView.objects.filter(organisation_id=actor.organisation_id, path=path)
    mine = Q(owner_id=actor.user_id) if actor.user_id is not None else Q(pk__in=[])
    return views.filter(mine | Q(is_shared=True)).select_related("owner")


def annotations_of(
    project_id: UUID, *, start_on: date | None = None, end_on: date | None = None
) -> QuerySet[Annotation]:
    """What was said of a project's days in [start_on, end_on), oldest first."""
    found = Annotation.objects.filter(project_id=project_id, deleted_at__isnull=True)
    if start_on is not None:
        found = found.filter(day__gte=start_on)
    if end_on is not None:
        found = found.filter(day__lt=end_on)
    return found


def comments_of(
    organisation_id: UUID, *, project_id: UUID | None, subject_kind: str, subject_key: str = ""
) -> QuerySet[Comment]:
    """What was said of a thing, oldest first; whoever calls has checked that it may be seen."""
    of_project = Q(project__isnull=True) if project_id is None else Q(project_id=project_id)
    return Comment.objects.filter(
        of_project,
        organisation_id=organisation_id,
        subject_kind=subject_kind,
        subject_key=subject_key,
        deleted_at__isnull=True,
    )

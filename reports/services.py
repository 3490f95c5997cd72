"""Writes of what people add to reports: saved views, annotations, comments; each in the trail."""

from dataclasses import dataclass
from datetime import date
from typing import Final, TypeVar
from uuid import UUID

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import Http404
from django.urls import Resolver404, resolve
from django.utils import timezone
from django.utils.translation import gettext as _

from projects.access import (
    project_for,
    projects_for,
    require_organisation_role,
)
from projects.models import Project, User
from projects.records import Actor, OrganisationRole, Role
from projects.trail import note
from reports.models import Annotation, Comment, SavedView

MAX_VIEWS: Final = 200
MAX_QUERY: Final = 8000
Note = TypeVar("Note", Annotation, Comment)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewWish:
    """The address of a page and the name to find it by."""

    name: str
    path: str
    query: str = ""
    is_shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a comment is about: a kind and a key that the page understands, maybe of a project."""

    kind: str
    key: str = ""
    project_slug: str | None = None


@transaction.atomic
def save_view(actor: Actor, wish: ViewWish) -> SavedView:
    """Keep an address under a name; the same name of the same page is overwritten.

    Raises:
        PermissionDenied: not a person: a token has no views.
        ValidationError: no name, no page of ours, or too many views.
    """
    if actor.user_id is None:
        raise PermissionDenied(_("Only people save views."))
    _check_page(wish)
    name = _line(wish.name, field="name", longest=120)
    _lock_shelf(actor.user_id)
    mine = SavedView.objects.filter(organisation_id=actor.organisation_id, owner_id=actor.user_id)
    known = mine.filter(path=wish.path, name=name).first()
    if known is None and mine.count() >= MAX_VIEWS:
        raise ValidationError(
            {"name": _("At most {limit} views; delete one first.").format(limit=MAX_VIEWS)}
        )
    before = None if known is None else _view_document(known)
    saved = known or SavedView(
        organisation_id=actor.organisation_id, owner_id=actor.user_id, path=wish.path, name=name
    )
    saved.query, saved.is_shared = wish.query, wish.is_shared
    saved.save()
    note(
        actor,
        "view.save",
        subject=("saved_view", saved.pk),
        before=before,
        after=_view_document(saved),
    )
    return saved


@transaction.atomic
def rename_view(actor: Actor, view_id: UUID, *, name: str, is_shared: bool) -> SavedView:
    """Give a view another name, share it or keep it to oneself.

    Raises:
        Http404: no such view, or a private one of somebody else.
        PermissionDenied: it is somebody else's.
        ValidationError: no name, or one that is taken.
    """
    found = _view(actor, view_id)
    if found.owner_id != actor.user_id:
        raise PermissionDenied(_("Only its owner renames a view."))
    _lock_shelf(found.owner_id)
    before = _view_document(found)
    found.name, found.is_shared = _line(name, field="name", longest=120), is_shared
    taken = SavedView.objects.filter(owner_id=found.owner_id, path=found.path, name=found.name)
    if taken.exclude(pk=found.pk).exists():
        raise ValidationError({"name": _("You have a view of this name.")})
    found.save(update_fields=["name", "is_shared"])
    note(
        actor,
        "view.rename",
        subject=("saved_view", found.pk),
        before=before,
        after=_view_document(found),
    )
    return found


@transaction.atomic
def delete_view(actor: Actor, view_id: UUID) -> str:
    """Delete a view: its owner's right, and for shared ones an administrator's; the page's path.

    Raises:
        Http404: no such view, or a private one of somebody else.
        PermissionDenied: it is somebody else's.
    """
    found = _view(actor, view_id)
    if found.owner_id != actor.user_id:
        require_organisation_role(actor, write=True)
    note(
        actor,
        "view.delete",
        subject=("saved_view", found.pk),
        before=_view_document(found),
    )
    found.delete()
    return found.path


def _lock_shelf(user_id: int) -> None:
    """Let one change of a person's views wait for another: a name is there once."""
    User.objects.select_for_update(of=("self",)).only("pk").get(pk=user_id)


def _view(actor: Actor, view_id: UUID) -> SavedView:
    """A view that the actor sees: its own, or a shared one of its organisation."""
    views = SavedView.objects.select_for_update().filter(organisation_id=actor.organisation_id)
    found = views.filter(pk=view_id).first()
    if found is None or not (found.is_shared or found.owner_id == actor.user_id):
        raise Http404("No such view.")
    return found


def _check_page(wish: ViewWish) -> None:
    """Refuse an address that is no page of ours: a view never leads elsewhere."""
    try:
        resolve(wish.path)
    except Resolver404 as error:
        raise ValidationError({"path": _("This is no page of Costwatch.")}) from error
    if len(wish.query) > MAX_QUERY or "\x00" in wish.query:
        raise ValidationError({"query": _("The question is too long to be kept.")})


def _view_document(view: SavedView) -> dict[str, str | bool]:
    return {
        "name": view.name,
        "path": view.path,
        "query": view.query,
        "is_shared": view.is_shared,
    }


@transaction.atomic
def annotate(actor: Actor, project_slug: str, *, day: date, text: str) -> Annotation:
    """Say what happened on a day of a project.

    Raises:
        Http404: no such project. PermissionDenied: the actor only views it.
        ValidationError: no text, or too long a one.
    """
    project = project_for(actor, project_slug, Role.ANALYST)
    made = Annotation.objects.create(
        organisation_id=actor.organisation_id,
        project=project,
        day=day,
        text=_line(text, field="text", longest=200),
        author=actor.label,
        author_user_id=actor.user_id,
    )
    note(
        actor,
        "annotation.add",
        subject=("annotation", made.pk),
        after={"project": project.slug, "day": day.isoformat(), "text": made.text},
    )
    return made


@transaction.atomic
def delete_annotation(actor: Actor, annotation_id: UUID) -> Annotation:
    """Take an annotation off the charts: its author's right, or a project owner's.

    Raises:
        Http404: no such annotation, or of a project that the actor does not see.
        PermissionDenied: it is somebody else's.
    """
    found = _of_ours(Annotation, actor, annotation_id)
    _require_author_or_owner(actor, found)
    found.deleted_at = timezone.now()
    found.save(update_fields=["deleted_at"])
    note(
        actor,
        "annotation.delete",
        subject=("annotation", found.pk),
        before={"day": found.day.isoformat(), "text": found.text, "author": found.author},
    )
    return found


@transaction.atomic
def comment(actor: Actor, subject: Subject, text: str) -> Comment:
    """Say something of a thing; whoever sees its project may.

    Without a project the thing is the organisation's: for its administrators and auditors.

    Raises:
        Http404: no such project. PermissionDenied: the actor does not see the organisation's.
        ValidationError: no text, or too long a one.
    """
    project: Project | None = None
    if subject.project_slug is None:
        require_organisation_role(actor, write=False)
    else:
        project = project_for(actor, subject.project_slug)
    made = Comment.objects.create(
        organisation_id=actor.organisation_id,
        project=project,
        subject_kind=_line(subject.kind, field="kind", longest=40),
        subject_key=subject.key and _line(subject.key, field="key", longest=200),
        text=_text(text, field="text", longest=4000),
        author=actor.label,
        author_user_id=actor.user_id,
    )
    note(
        actor,
        "comment.add",
        subject=("comment", made.pk),
        after={"kind": subject.kind, "key": subject.key, "text": made.text},
    )
    return made


@transaction.atomic
def delete_comment(actor: Actor, comment_id: UUID) -> Comment:
    """Take a comment back: its author's right, or a project owner's.

    Raises:
        Http404: no such comment, or of a project that the actor does not see.
        PermissionDenied: it is somebody else's.
    """
    found = _of_ours(Comment, actor, comment_id)
    _require_author_or_owner(actor, found)
    found.deleted_at = timezone.now()
    found.save(update_fields=["deleted_at"])
    note(
        actor,
        "comment.delete",
        subject=("comment", found.pk),
        before={"kind": found.subject_kind, "text": found.text, "author": found.author},
    )
    return found


def _of_ours(model: type[Note], actor: Actor, key: UUID) -> Note:
    """A note that is not deleted, of a project that the actor sees."""
    notes = model._default_manager.select_for_update(of=("self",))
    found = notes.filter(
        organisation_id=actor.organisation_id, deleted_at__isnull=True, pk=key
    ).first()
    if found is None or not _sees(actor, found):
        raise Http404("No such note.")
    return found


def _sees(actor: Actor, found: Annotation | Comment) -> bool:
    if found.project_id is not None:
        return projects_for(actor).filter(pk=found.project_id).exists()
    if actor.is_token:
        return actor.token_project_id is None and not actor.is_of_one_site_or_source
    return actor.organisation_role != OrganisationRole.MEMBER


def _require_author_or_owner(actor: Actor, found: Annotation | Comment) -> None:
    """Let its author pass, and who owns its project or, without one, the organisation."""
    if actor.user_id is not None and found.author_user_id == actor.user_id:
        return
    if found.project is None:
        require_organisation_role(actor, write=True)
    else:
        project_for(actor, found.project.slug, Role.OWNER)


def _line(text: str, *, field: str, longest: int) -> str:
    """One line of text."""
    return _text(" ".join(text.split()), field=field, longest=longest)


def _text(text: str, *, field: str, longest: int) -> str:
    """A text of some length.

    Raises:
        ValidationError: it is empty or too long, or holds what no database keeps.
    """
    kept = text.strip()
    if not kept or "\x00" in kept:
        raise ValidationError({field: _("Write something here.")})
    if len(kept) > longest:
        raise ValidationError({field: _("At most {limit} characters.").format(limit=longest)})
    return kept

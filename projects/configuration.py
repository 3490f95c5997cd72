"""What people set about the organisation and its projects, as one document; no passwords."""

from collections.abc import Mapping
from datetime import date
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from pydantic import BaseModel, ConfigDict, Field
from pydantic import ValidationError as DocumentError

from projects import services
from projects.access import projects_for
from projects.models import Membership, Organisation, Project, User
from projects.records import Actor, Role
from projects.trail import note

KEYS = ("organisation", "projects")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Organisation(_Strict):
    slug: str
    name: str = Field(min_length=1, max_length=200)


class _Member(_Strict):
    username: str
    role: Role


class _Project(_Strict):
    slug: str
    name: str = ""
    description: str = ""
    currency: str = "USD"
    starts_on: date | None = None
    is_synthetic: bool = False
    members: list[_Member] = []


class _Document(BaseModel):
    model_config = ConfigDict(extra="ignore")

    organisation: _Organisation | None = None
    projects: list[_Project] = []


def dump(organisation_id: UUID) -> dict[str, Any]:
    """The organisation's name, and its projects with their members; archived ones left out."""
    organisation = Organisation.objects.get(pk=organisation_id)
    projects = Project.objects.filter(organisation=organisation, archived_at__isnull=True)
    return {
        "organisation": {"slug": organisation.slug, "name": organisation.name},
        "projects": [_dumped_project(project) for project in projects.order_by("slug")],
    }


def _dumped_project(project: Project) -> dict[str, Any]:
    memberships = Membership.objects.filter(project=project).select_related("user")
    return {
        "slug": project.slug,
        "name": project.name,
        "description": project.description,
        "currency": project.currency,
        "starts_on": project.starts_on,
        "is_synthetic": project.is_synthetic,
        "members": [
            {"username": membership.user.get_username(), "role": membership.role}
            for membership in memberships.order_by("user__username")
        ],
    }


@transaction.atomic
def apply(actor: Actor, document: Mapping[str, Any]) -> None:
    """Bring what the document names to what it says; what it does not name stays.

    Raises:
        ValidationError: an entry is malformed, names a person who is not there, or would change
            what cannot change.
    """
    try:
        wanted = _Document.model_validate(
            {key: document[key] for key in KEYS if document.get(key) is not None}
        )
    except DocumentError as error:
        raise ValidationError(_first_problem(error)) from error
    if wanted.organisation is not None:
        _apply_organisation(actor, wanted.organisation)
    for project in wanted.projects:
        _apply_project(actor, project)


def _first_problem(error: DocumentError) -> str:
    first = error.errors()[0]
    where = ".".join(str(step) for step in first["loc"])
    return f"{where}: {first['msg']} (given: {first.get('input')!r})"


def _apply_organisation(actor: Actor, wanted: _Organisation) -> None:
    """Rename the organisation; a document of another one is refused."""
    organisation = Organisation.objects.select_for_update().get(pk=actor.organisation_id)
    if organisation.slug != wanted.slug:
        raise ValidationError(
            f"organisation.slug: the document is for {wanted.slug!r}, this is "
            f"{organisation.slug!r}; apply it there with --organisation, or change the slug"
        )
    if organisation.name == wanted.name:
        return
    before = {"name": organisation.name}
    organisation.name = wanted.name
    organisation.save(update_fields=["name"])
    note(
        actor,
        "organisation.update",
        subject=("organisation", organisation.pk),
        before=before,
        after={"name": wanted.name},
    )


def _apply_project(actor: Actor, wanted: _Project) -> None:
    project = projects_for(actor).filter(slug=wanted.slug).first()
    name = wanted.name or wanted.slug
    if project is None:
        project = services.create_project(
            actor,
            slug=wanted.slug,
            name=name,
            description=wanted.description,
            currency=wanted.currency,
            starts_on=wanted.starts_on,
            is_synthetic=wanted.is_synthetic,
        )
    else:
        _refuse_change_of_kind(project, wanted)
        services.update_project(
            actor,
            wanted.slug,
            name=name,
            description=wanted.description,
            starts_on=wanted.starts_on,
        )
    for member in wanted.members:
        _apply_member(actor, project, member)


def _refuse_change_of_kind(project: Project, wanted: _Project) -> None:
    """Currency and being synthetic are fixed at birth: sums and pages stand on them."""
    for field in ("currency", "is_synthetic"):
        old, new = getattr(project, field), getattr(wanted, field)
        if old != new:
            raise ValidationError(
                f"projects[{wanted.slug}].{field}: is {old!r} since the project was made and "
                f"cannot become {new!r}; make another project"
            )


def _apply_member(actor: Actor, project: Project, wanted: _Member) -> None:
    user = User.objects.filter(
        organisation_id=actor.organisation_id, username=wanted.username
    ).first()
    if user is None:
        raise ValidationError(
            f"projects[{project.slug}].members: no person {wanted.username!r}; invite them first"
        )
    membership = Membership.objects.filter(project=project, user=user).first()
    if membership is None or membership.role != wanted.role:
        services.set_membership(actor, project.slug, user_id=user.pk, role=wanted.role)

"""Reads of who: organisations, members, tokens."""

from uuid import UUID

from django.db.models import Prefetch, Q, QuerySet
from django.http import Http404

from projects.access import (
    memberships_of,
    project_for,
    projects_for,
    require_organisation_role,
)
from projects.models import ApiToken, Membership, Organisation, Project, User
from projects.records import Actor, OrganisationRole, Role, Scope

NO_ID = UUID(int=0)


class NoOrganisationError(LookupError):
    """The database holds no such organisation."""


def the_organisation() -> Organisation:
    """The first organisation, which set-up makes; the only one of most installations.

    Raises:
        NoOrganisationError: the database is empty.
    """
    organisation = Organisation.objects.order_by("created_at", "id").first()
    if organisation is None:
        raise NoOrganisationError("There is no organisation yet: run `manage.py migrate`.")
    return organisation


def organisation_by_slug(slug: str) -> Organisation:
    """The organisation with this slug.

    Raises:
        NoOrganisationError: there is none; the message names those that exist.
    """
    organisation = Organisation.objects.filter(slug=slug).first()
    if organisation is None:
        known = ", ".join(Organisation.objects.order_by("slug").values_list("slug", flat=True))
        raise NoOrganisationError(
            f"There is no organisation {slug!r}; there are: {known or 'none'}."
        )
    return organisation


def has_synthetic_project() -> bool:
    """Whether the demo is loaded, so that the sign-in page may offer its account."""
    return Project.objects.filter(is_synthetic=True, archived_at__isnull=True).exists()


def people(actor: Actor) -> QuerySet[User]:
    """Everybody in the actor's organisation, for organisation-wide roles."""
    require_organisation_role(actor, write=False)
    return User.objects.filter(organisation_id=actor.organisation_id).order_by("username")


def teams(actor: Actor) -> QuerySet[Project]:
    """The projects that the actor may see, each with its `memberships` and their people."""
    memberships = Membership.objects.select_related("user").order_by("user__username")
    return projects_for(actor).prefetch_related(Prefetch("memberships", queryset=memberships))


def tokens(actor: Actor) -> QuerySet[ApiToken]:
    """The tokens that the actor may see: all of them, or its own."""
    visible = ApiToken.objects.filter(organisation_id=actor.organisation_id).select_related(
        "project", "created_by"
    )
    if actor.is_token:
        is_limited = actor.token_project_id is not None or actor.is_of_one_site_or_source
        sees_all = Scope.ADMIN_ORG in actor.scopes and not is_limited
        return visible if sees_all else visible.filter(pk=actor.token_id or NO_ID)
    if actor.organisation_role != OrganisationRole.MEMBER:
        return visible
    owned = memberships_of(actor).filter(role=Role.OWNER).values("project_id")
    return visible.filter(Q(created_by_id=actor.user_id) | Q(project_id__in=owned))


def token_for(actor: Actor, token_id: UUID) -> ApiToken | None:
    """One of the tokens that the actor may see."""
    return tokens(actor).filter(pk=token_id).first()


def owned_project(actor: Actor, slug: str) -> Project:
    """The project, if the actor may manage its members."""
    return project_for(actor, slug, Role.OWNER)


def owned_projects(actor: Actor) -> QuerySet[Project]:
    """The projects whose members the actor may manage."""
    visible = projects_for(actor)
    if not actor.is_token and actor.organisation_role == OrganisationRole.ADMIN:
        return visible
    return visible.filter(memberships__in=memberships_of(actor).filter(role=Role.OWNER))


def person_for(actor: Actor, user_id: int) -> User:
    """Somebody of the actor's organisation.

    Raises:
        Http404: nobody here, or somebody elsewhere (the two look alike).
    """
    user = User.objects.filter(organisation_id=actor.organisation_id, pk=user_id).first()
    if user is None:
        raise Http404("No such person.")
    return user


def person_named(actor: Actor, username: str) -> User | None:
    """Somebody of the actor's organisation, by user name."""
    return User.objects.filter(organisation_id=actor.organisation_id, username=username).first()

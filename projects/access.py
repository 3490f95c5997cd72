"""The one permission door: every view, API and command gets its project and its rights here."""

from typing import Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404

from projects.models import Membership, Project, User
from projects.records import Actor, OrganisationRole, Role, Scope

__all__ = [
    "Actor",
    "Role",
    "Scope",
    "actor_of",
    "memberships_of",
    "project_for",
    "projects_for",
    "require_analyst",
    "require_organisation_role",
    "require_scope",
    "sees_unallocated",
    "system_actor",
]


def actor_of(request: Any) -> Actor:
    """The actor of a Django or REST request.

    Raises:
        PermissionDenied: nobody is signed in, or the person belongs to no organisation.
    """
    token_actor = getattr(request, "auth", None)
    if isinstance(token_actor, Actor):
        return token_actor
    user = request.user
    if not isinstance(user, User) or not user.is_active or user.organisation_id is None:
        raise PermissionDenied("Sign in with an account that belongs to an organisation.")
    return Actor(
        organisation_id=user.organisation_id,
        label=user.get_username(),
        user_id=user.pk,
        organisation_role=OrganisationRole(user.organisation_role),
        ip=request.META.get("REMOTE_ADDR"),
    )


def system_actor(organisation_id: UUID, label: str) -> Actor:
    """The host's operator or the schedule: full rights in one organisation."""
    return Actor(
        organisation_id=organisation_id,
        label=label,
        organisation_role=OrganisationRole.ADMIN,
        scopes=frozenset(Scope),
    )


def projects_for(actor: Actor) -> QuerySet[Project]:
    """The projects that the actor may see, archived ones left out."""
    projects = Project.objects.filter(
        organisation_id=actor.organisation_id, archived_at__isnull=True
    )
    if actor.is_of_one_site_or_source:
        return projects.none()
    if actor.token_project_id is not None:
        return projects.filter(pk=actor.token_project_id)
    if actor.is_token or actor.organisation_role != OrganisationRole.MEMBER:
        return projects
    return projects.filter(memberships__in=memberships_of(actor))


def memberships_of(actor: Actor) -> QuerySet[Membership]:
    """The memberships of the person who acts; none for tokens and the system."""
    if actor.user_id is None:
        return Membership.objects.none()
    return Membership.objects.filter(user_id=actor.user_id)


def _role_in(actor: Actor, project: Project) -> Role:
    """The role of an actor in a project that it may see."""
    if actor.is_token:
        return Role.OWNER if actor.scopes & {Scope.MANAGE_PROJECT, Scope.ADMIN_ORG} else Role.VIEWER
    if actor.organisation_role == OrganisationRole.ADMIN:
        return Role.OWNER
    membership = memberships_of(actor).filter(project=project).first()
    return Role(membership.role) if membership else Role.VIEWER


def project_for(actor: Actor, slug: str, role: Role = Role.VIEWER) -> Project:
    """The project with this slug, if the actor holds at least `role` in it.

    Raises:
        Http404: no such project, or one that the actor may not see (the two look alike).
        PermissionDenied: the actor sees it, but with a lower role.
    """
    project = projects_for(actor).filter(slug=slug).first()
    if project is None:
        raise Http404("No such project.")
    if _role_in(actor, project).rank < role.rank:
        raise PermissionDenied(f"This needs the role {role.value} in the project.")
    return project


def has_role(actor: Actor, project: Project, role: Role) -> bool:
    """Whether an actor that sees the project holds at least `role` in it: what a page may offer."""
    return _role_in(actor, project).rank >= role.rank


def require_organisation_role(actor: Actor, *, write: bool) -> None:
    """Let organisation-wide roles pass: admins to write, auditors too to read.

    Raises:
        PermissionDenied: the actor's role or token scope does not reach over the organisation.
    """
    if actor.is_token:
        is_limited = actor.token_project_id is not None or actor.is_of_one_site_or_source
        allowed = not is_limited and Scope.ADMIN_ORG in actor.scopes
    elif write:
        allowed = actor.organisation_role == OrganisationRole.ADMIN
    else:
        allowed = actor.organisation_role != OrganisationRole.MEMBER
    if not allowed:
        raise PermissionDenied("This needs an organisation-wide role.")


def require_analyst(actor: Actor) -> None:
    """Let people pass who may change something: admins, and analysts or owners of any project.

    Raises:
        PermissionDenied: a viewer, an auditor, or a token that may not manage.
    """
    if actor.is_token:
        may_change = bool(actor.scopes & {Scope.MANAGE_PROJECT, Scope.ADMIN_ORG})
        allowed = may_change and not actor.is_of_one_site_or_source
    elif actor.organisation_role == OrganisationRole.ADMIN:
        allowed = True
    else:
        changing = memberships_of(actor).filter(role__in=(Role.ANALYST, Role.OWNER))
        allowed = changing.filter(project__organisation_id=actor.organisation_id).exists()
    if not allowed:
        raise PermissionDenied("This needs the role analyst or owner in a project.")


def require_scope(actor: Actor, *scopes: Scope) -> None:
    """Let a token pass that holds one of `scopes`; people pass, their roles are checked elsewhere.

    Raises:
        PermissionDenied: a token without any of the scopes.
    """
    if actor.is_token and not actor.scopes & set(scopes):
        raise PermissionDenied(f"This token lacks the scope {' or '.join(scopes)}.")


def sees_unallocated(actor: Actor) -> bool:
    """Whether the actor may see what no project was charged with."""
    if actor.token_project_id is not None or actor.is_of_one_site_or_source:
        return False
    if actor.is_token:
        return bool(actor.scopes & {Scope.ADMIN_ORG, Scope.READ_COSTS})
    return actor.organisation_role != OrganisationRole.MEMBER

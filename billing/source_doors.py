"""Who may see that a source exists, and who may see and change where it lies."""

from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404

from billing.models import Source
from projects.access import memberships_of, require_organisation_role
from projects.records import Actor, OrganisationRole, Role


def require_source_reader(actor: Actor) -> None:
    """Let through who may read the names and states of sources.

    Raises:
        PermissionDenied: a token, a viewer or an analyst.
    """
    if actor.is_token:
        raise PermissionDenied("Tokens do not read sources.")
    if actor.organisation_role != OrganisationRole.MEMBER:
        return
    owned = memberships_of(actor).filter(
        role=Role.OWNER, project__organisation_id=actor.organisation_id
    )
    if not owned.exists():
        raise PermissionDenied("This needs the role owner in a project.")


def sees_sources(actor: Actor) -> bool:
    """Whether the actor may read the names and states of sources."""
    try:
        require_source_reader(actor)
    except PermissionDenied:
        return False
    return True


def may_change_sources(actor: Actor) -> bool:
    """Whether the actor may connect and change sources, and see where they lie."""
    try:
        require_organisation_role(actor, write=True)
    except PermissionDenied:
        return False
    return True


def source_for(actor: Actor, source_id: UUID) -> Source:
    """A source that the actor may change, its connection in sight.

    Raises:
        Http404: the organisation has no such source.
        PermissionDenied: the actor is no administrator.
    """
    source = (
        Source.objects.select_related("secret")
        .filter(pk=source_id, organisation_id=actor.organisation_id)
        .first()
    )
    if source is None:
        raise Http404("No such source.")
    require_organisation_role(actor, write=True)
    return source

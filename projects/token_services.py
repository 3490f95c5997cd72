"""Writes of tokens: make one, shown once; revoke one. Who may make which stands in one table."""

import uuid
from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import Http404
from django.utils import timezone
from django.utils.translation import gettext as _

from projects import selectors, tokens
from projects.access import project_for, require_organisation_role, require_scope
from projects.models import ApiToken, Project, User
from projects.records import (
    INGEST_SCOPES,
    Actor,
    NewToken,
    OrganisationRole,
    Role,
    Scope,
    TokenReach,
)
from projects.trail import note

LONGEST_DAYS = 90
LONGEST_INGEST_DAYS = 365
# The lowest role in a project that may make a token of this scope for it; other scopes are the
# administrators', because they reach beyond one project.
PROJECT_SCOPES = {
    Scope.READ_COSTS: Role.VIEWER,
    Scope.READ_REPORTS: Role.VIEWER,
    Scope.INGEST_RUNS: Role.ANALYST,
    Scope.MANAGE_PROJECT: Role.OWNER,
}


@transaction.atomic
def create_token(
    actor: Actor, *, name: str, scopes: Collection[Scope], days: int, reach: TokenReach
) -> NewToken:
    """Make a token. The answer is the only place where its secret is ever readable.

    Raises:
        Http404: the project is unknown, or not the actor's to see.
        PermissionDenied: the actor may not hand out these rights.
        ValidationError: by field, what is wrong.
    """
    wanted = frozenset(scopes)
    _check(name, wanted, days)
    project = _may_hand_out(actor, wanted, reach)
    token_id = uuid.uuid4()
    text = tokens.new_text(token_id, wanted)
    token = ApiToken.objects.create(
        id=token_id,
        organisation_id=actor.organisation_id,
        project=project,
        site_id=reach.site_id,
        source_id=reach.source_id,
        name=name,
        scopes=sorted(wanted),
        secret_hash=tokens.hash_text(text),
        created_by_id=actor.user_id,
        expires_at=timezone.now() + timedelta(days=days),
    )
    after = {"name": name, "scopes": sorted(wanted), "expires_at": token.expires_at}
    note(
        actor,
        "token.create",
        subject=("token", token_id),
        after={
            **after,
            "project": project and project.slug,
            "site_id": reach.site_id,
            "source_id": reach.source_id,
        },
    )
    return NewToken(token_id=token_id, secret=text)


def _check(name: str, scopes: frozenset[Scope], days: int) -> None:
    if not name.strip() or len(name) > 120:
        raise ValidationError({"name": _("Give the token a name of 1 to 120 characters.")})
    if not scopes:
        raise ValidationError({"scopes": _("Choose at least one thing that the token may do.")})
    longest = LONGEST_INGEST_DAYS if scopes <= INGEST_SCOPES else LONGEST_DAYS
    if not 1 <= days <= longest:
        raise ValidationError(
            {"days": _("A token of these scopes lives 1 to %(days)s days.") % {"days": longest}}
        )


def _may_hand_out(actor: Actor, scopes: frozenset[Scope], reach: TokenReach) -> Project | None:
    """The project that the token is bound to, once the actor is known to hold what it hands out."""
    if actor.is_token:
        require_scope(actor, Scope.ADMIN_ORG)
    if reach.project_slug is None or not scopes <= PROJECT_SCOPES.keys():
        require_organisation_role(actor, write=True)
    if reach.project_slug is None:
        return None
    if Scope.ADMIN_ORG in scopes:
        raise ValidationError({"scopes": _("admin:org cannot be limited to one project.")})
    least = max(
        (PROJECT_SCOPES.get(scope, Role.OWNER) for scope in scopes), key=lambda role: role.rank
    )
    return project_for(actor, reach.project_slug, least)


@transaction.atomic
def revoke_token(actor: Actor, token_id: UUID, *, reason: str = "") -> None:
    """End a token now.

    Raises:
        Http404: no such token, or one that the actor may not see.
        PermissionDenied: an auditor sees it, but changes nothing.
    """
    token = selectors.token_for(actor, token_id)
    if token is None:
        raise Http404("No such token.")
    is_own = actor.user_id is not None and token.created_by_id == actor.user_id
    if actor.organisation_role == OrganisationRole.AUDITOR and not is_own:
        raise PermissionDenied("Auditors read; they revoke only tokens of their own.")
    revoked = ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(
        revoked_at=timezone.now()
    )
    if revoked:
        before = {"name": token.name, "scopes": token.scopes}
        note(actor, "token.revoke", subject=("token", token.pk), before=before, reason=reason)


def end_tokens_above(user: User, project: Project, role: Role) -> None:
    """Revoke a person's tokens for a project that the person's new role there may not make."""
    above = [scope for scope, least in PROJECT_SCOPES.items() if least.rank > role.rank]
    tokens_of = ApiToken.objects.filter(created_by=user, project=project, revoked_at__isnull=True)
    tokens_of.filter(scopes__overlap=above).update(revoked_at=timezone.now())


def end_organisation_tokens(user: User) -> None:
    """Revoke the tokens by which somebody who is no administrator now would still act as one.

    Tokens that only send stay: agents of a whole hall may use them.
    """
    acting = [scope for scope in Scope if scope not in {*INGEST_SCOPES, Scope.UPLOAD_BILLING}]
    tokens_of = ApiToken.objects.filter(
        created_by=user, project__isnull=True, revoked_at__isnull=True
    )
    tokens_of.filter(scopes__overlap=acting).update(revoked_at=timezone.now())

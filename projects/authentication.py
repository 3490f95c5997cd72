"""How the REST API learns who calls: bearer tokens, and sessions under CSRF protection."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import authentication, exceptions, permissions
from rest_framework.request import Request

from projects import tokens
from projects.models import ApiToken, User
from projects.records import INGEST_SCOPES, Actor, Scope

LAST_USED_EVERY = timedelta(minutes=1)
NO_TOKEN_HASH = "0" * 64
REFUSED = "This token is unknown, expired or revoked."


class TokenAuthentication(authentication.BaseAuthentication):
    """`Authorization: Bearer cw_…`. The request's `auth` becomes an Actor, `user` stays None."""

    def authenticate(self, request: Request) -> tuple[None, Actor] | None:
        kind, _, text = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if kind.lower() != "bearer":
            return None
        return None, actor_of_token(text.strip(), request.META.get("REMOTE_ADDR"))

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="costwatch"'


def actor_of_token(text: str, ip: str | None) -> Actor:
    """The actor that a token stands for.

    Raises:
        AuthenticationFailed: unknown, expired or revoked, or its maker may no longer sign in.
    """
    token = _genuine(text)
    if token is None or not _is_live(token):
        raise exceptions.AuthenticationFailed(REFUSED)
    _note_use(token)
    return _actor(token, ip)


def bearer_of(header: str) -> Actor | None:
    """Whose token a header carries, even one that is expired or revoked and opens nothing.

    It tells a site's people who is refused. Give nobody any right by it: it holds no scopes.
    """
    kind, _, text = header.partition(" ")
    token = _genuine(text.strip()) if kind.lower() == "bearer" else None
    return None if token is None else replace(_actor(token, None), scopes=frozenset())


def _genuine(text: str) -> ApiToken | None:
    """The token with this text, live or not."""
    parsed = tokens.parse(text)
    token = (
        ApiToken.objects.select_related("created_by").filter(pk=parsed.token_id).first()
        if parsed
        else None
    )
    is_genuine = tokens.matches(text, token.secret_hash if token else NO_TOKEN_HASH)
    return token if is_genuine else None


def _actor(token: ApiToken, ip: str | None) -> Actor:
    return Actor(
        organisation_id=token.organisation_id,
        label=f"token {token.name}",
        token_id=token.pk,
        scopes=frozenset(Scope(scope) for scope in token.scopes),
        token_project_id=token.project_id,
        token_site_id=token.site_id,
        token_source_id=token.source_id,
        ip=ip,
    )


def _is_live(token: ApiToken) -> bool:
    maker_may_sign_in = token.created_by is None or token.created_by.is_active
    return token.revoked_at is None and token.expires_at > timezone.now() and maker_may_sign_in


def _note_use(token: ApiToken) -> None:
    now = timezone.now()
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - LAST_USED_EVERY)
    if token.last_used_at is None or token.last_used_at < now - LAST_USED_EVERY:
        ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)


class SessionAuthentication(authentication.SessionAuthentication):
    """The browser's session; every write needs the CSRF token."""

    def authenticate_header(self, request: Request) -> str:
        return 'Session realm="costwatch"'


class IsSignedIn(permissions.BasePermission):
    """Nobody passes without a token or a session; a token that may only ingest reads nothing."""

    message = "Sign in, or send a token."

    def has_permission(self, request: Request, view: Any) -> bool:
        actor = request.auth
        if isinstance(actor, Actor):
            if request.method in permissions.SAFE_METHODS and actor.scopes <= INGEST_SCOPES:
                raise exceptions.PermissionDenied("This token may only send, not read.")
            return True
        user = request.user
        return isinstance(user, User) and user.is_active and user.organisation_id is not None


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the OpenAPI document names bearer tokens."""

    target_class = "projects.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "cw_<kind>_<id>_<secret>"}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the OpenAPI document names the browser's session."""

    target_class = "projects.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}

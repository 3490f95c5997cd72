"""How a token's text is made, read and hashed. No database."""

import hmac
import secrets
import uuid
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from django.conf import settings

from projects.records import INGEST_SCOPES, Scope

PREFIX = "cw"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenText:
    """A token as a program sends it, taken apart."""

    token_id: UUID
    text: str


def new_text(token_id: UUID, scopes: frozenset[Scope]) -> str:
    """Return `cw_<kind>_<id>_<secret>`; the kind tells people what a found token opens."""
    kind = "ingest" if scopes <= INGEST_SCOPES else "api"
    return f"{PREFIX}_{kind}_{token_id.hex}_{secrets.token_urlsafe(32)}"


def parse(text: str) -> TokenText | None:
    """Take a token apart; None when it cannot be one of ours."""
    parts = text.split("_", 3)
    if len(parts) != 4 or parts[0] != PREFIX or len(parts[2]) != 32 or len(text) > 200:
        return None
    try:
        return TokenText(token_id=uuid.UUID(hex=parts[2]), text=text)
    except ValueError:
        return None


def hash_text(text: str) -> str:
    """Return the peppered hash under which a token is stored."""
    pepper = settings.TOKEN_PEPPER.encode("utf-8")
    return hmac.new(pepper, text.encode("utf-8"), sha256).hexdigest()


def matches(text: str, secret_hash: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(hash_text(text), secret_hash)

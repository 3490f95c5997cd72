"""What other rooms may hold of who: actors, roles, scopes. No Django."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class Role(StrEnum):
    """A person's role in a project, lowest first."""

    VIEWER = "viewer"
    ANALYST = "analyst"
    OWNER = "owner"

    @property
    def rank(self) -> int:
        """0 for viewer, 1 for analyst, 2 for owner."""
        return list(Role).index(self)


class Scope(StrEnum):
    """What a token may do."""

    INGEST_POWER = "ingest:power"
    INGEST_ALERTS = "ingest:alerts"
    INGEST_RUNS = "ingest:runs"
    UPLOAD_BILLING = "upload:billing"
    READ_COSTS = "read:costs"
    READ_REPORTS = "read:reports"
    MANAGE_PROJECT = "manage:project"
    ADMIN_ORG = "admin:org"


INGEST_SCOPES = frozenset({Scope.INGEST_POWER, Scope.INGEST_ALERTS, Scope.INGEST_RUNS})


class OrganisationRole(StrEnum):
    """What a person may do over all projects of the organisation."""

    MEMBER = "member"
    AUDITOR = "auditor"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acts: a person, a token, or the system itself. `label` is for the audit trail."""

    organisation_id: UUID
    label: str
    user_id: int | None = None
    token_id: UUID | None = None
    organisation_role: OrganisationRole = OrganisationRole.MEMBER
    scopes: frozenset[Scope] = frozenset()
    token_project_id: UUID | None = None
    token_site_id: UUID | None = None
    token_source_id: UUID | None = None
    ip: str | None = None

    @property
    def is_token(self) -> bool:
        """Whether a program acts."""
        return self.token_id is not None

    @property
    def is_of_one_site_or_source(self) -> bool:
        """Whether a token reaches no further than one site or one source of bills."""
        return self.token_site_id is not None or self.token_source_id is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token at birth: the only moment its secret is readable."""

    token_id: UUID
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """An account without a password, and the two parts of the link that sets one."""

    user_id: int
    username: str
    uid: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenReach:
    """What a token is limited to; nothing given means the whole organisation."""

    project_slug: str | None = None
    site_id: UUID | None = None
    source_id: UUID | None = None

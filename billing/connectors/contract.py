"""What every connector promises: units of a bill, their objects, what is missing. No tables."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Protocol

JsonObject = Mapping[str, Any]

# What a check tries, in this order; it ends with the first step that fails.
REACH: Final = "reach"
LIST: Final = "list"
MANIFEST: Final = "manifest"
READ: Final = "read"

# The unit is not whole: old figures stay, the source is incomplete, not broken.
INCOMPLETE_CODES: Final = frozenset({"missing", "size", "changed", "manifest", "extra"})
# Waiting may help: the pull is tried again.
TEMPORARY_CODES: Final = frozenset({"throttled", "unavailable", "timeout", "listing"})


class ConnectorError(Exception):
    """A store that cannot be read: what is wrong, with which object, and whether waiting helps.

    Codes: access_denied, expired, credentials, not_found, endpoint, settings, key, too_large
    (permanent); throttled, unavailable, timeout, listing (temporary); missing, size, changed,
    manifest, extra (the unit is incomplete).
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        permanent: bool | None = None,
        object: str = "",  # the word of the contract
        missing_permission: str = "",
    ) -> None:
        self.code, self.message, self.object = code, message, object
        self.permanent = code not in TEMPORARY_CODES if permanent is None else permanent
        self.missing_permission = missing_permission  # s3:GetObject on arn:aws:s3:::bills/*
        super().__init__(f"{object}: {message}" if object else message)

    @property
    def is_incomplete(self) -> bool:
        """Whether the unit is not whole yet, or changed under our hands."""
        return self.code in INCOMPLETE_CODES


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What the operator of this installation lets connections reach; nothing private by default."""

    hosts: frozenset[str] = frozenset()  # hosts and addresses that may be private: minio.internal
    folders: tuple[Path, ...] = ()  # watched folders lie below one of these
    protocols: frozenset[str] = frozenset()  # of other fsspec stores: sftp, oss, …
    max_object_bytes: int = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Where a source lies (`settings`, never a secret) and by which right (`secret`)."""

    kind: str  # billing.models.Source.Kind
    settings: JsonObject
    secret: JsonObject | None = None
    allowed: Allowed = Allowed()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckStep:
    """One step of a connection's test; `missing_permission` names exactly what to grant."""

    name: str  # reach, list, manifest, read
    ok: bool
    message: str
    missing_permission: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """How the test of a connection went, as far as it came."""

    steps: tuple[CheckStep, ...]

    @property
    def ok(self) -> bool:
        """Whether every step went well."""
        return bool(self.steps) and all(step.ok for step in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRef:
    """One object in one state; `size` and `etag` are empty where the store does not say."""

    key: str
    size: int | None = None
    etag: str = ""

    @property
    def name(self) -> str:
        """The last part of the key: what the file is called."""
        return self.key.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedTotal:
    """What a manifest says that its files come to."""

    amount: Decimal
    currency: str
    invoice_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What is fetched and delivered as one, whole or not at all.

    The same key with the same fingerprint is not fetched twice. `problem` says why a unit that was
    seen cannot be fetched now: its manifest is broken or one of its files is missing. `watermark`
    is merged into the source's watermark once the unit is delivered.
    """

    key: str
    fingerprint: str  # assembly id, run id, ETags with sizes, newest export time; at most 200
    objects: tuple[ObjectRef, ...]
    period: str | None = None  # 2026-10, where the store says it
    version_at: datetime | None = None  # the provider's own time of this state
    stated_total: StatedTotal | None = None
    origin: JsonObject = field(default_factory=dict)  # manifest, assembly id, …: shown to people
    watermark: JsonObject = field(default_factory=dict)
    problem: ConnectorError | None = None


class Connector(Protocol):
    """One kind of store, opened with one connection."""

    def check(self) -> CheckReport:
        """Try reach, list, manifest, read; never raises ConnectorError."""
        ...

    def units(self, watermark: JsonObject) -> Iterator[Unit]:
        """Every unit to look at. The whole listing is read before the first one is given.

        Raises:
            ConnectorError: the store cannot be reached or listed.
        """
        ...

    def open(self, object: ObjectRef) -> Iterator[bytes]:
        """The object's bytes, in the very state that `units` saw.

        Raises:
            ConnectorError: gone, changed (size or ETag), refused, or the store gave up.
        """
        ...

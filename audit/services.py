"""The one write of the trail: record a change, in the transaction of the change."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from audit.chain import FIRST_HASH, hash_of, plain
from audit.models import AuditEntry

LOCK_CLASS = 0x61756474  # "audt": keeps our advisory locks apart from everybody else's


def record(
    *,
    organisation_id: UUID,
    actor_label: str,
    action: str,
    object_type: str,
    object_id: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    reason: str = "",
    ip: str | None = None,
    user_id: int | None = None,
    token_id: UUID | None = None,
) -> AuditEntry:
    """Append one entry to the organisation's chain.

    Call it last in the transaction: from here to the commit, other writers of the same organisation
    wait, so that no two entries follow the same one.

    Raises:
        TransactionManagementError: there is no transaction, so the change and its trace could part.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            "Record a change in the transaction that makes it."
        )
    _lock_chain(organisation_id)
    last = AuditEntry.objects.filter(organisation_id=organisation_id).order_by("position").last()
    fields: dict[str, Any] = {
        "organisation_id": organisation_id,
        "position": last.position + 1 if last else 1,
        "at": timezone.now(),
        "user_id": user_id,
        "token_id": token_id,
        "actor_label": plain(actor_label)[:200],
        "ip": ip,
        "action": action,
        "object_type": object_type,
        "object_id": plain(object_id)[:200],
        "before": None if before is None else plain(before),
        "after": None if after is None else plain(after),
        "reason": plain(reason),
        "previous_hash": last.entry_hash if last else FIRST_HASH,
    }
    return AuditEntry.objects.create(**fields, entry_hash=hash_of(fields))


def _lock_chain(organisation_id: UUID) -> None:
    """Wait for this organisation's chain; PostgreSQL lets go at commit or rollback."""
    key = int.from_bytes(organisation_id.bytes[:4], "big", signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [LOCK_CLASS, key])

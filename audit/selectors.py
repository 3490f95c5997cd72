"""Reads of the trail."""

from uuid import UUID

from django.db.models import Max

from audit.models import AuditEntry
from audit.records import TrailEntry


def trail(
    organisation_id: UUID,
    *,
    before_position: int | None = None,
    object_type: str = "",
    limit: int = 100,
) -> tuple[TrailEntry, ...]:
    """The newest entries first; `before_position` continues where the last page ended."""
    entries = AuditEntry.objects.filter(organisation_id=organisation_id)
    if before_position is not None:
        entries = entries.filter(position__lt=before_position)
    if object_type:
        entries = entries.filter(object_type=object_type)
    return tuple(_record(entry) for entry in entries.order_by("-position")[:limit])


def last_position(organisation_id: UUID) -> int:
    """How many entries the organisation's trail holds."""
    entries = AuditEntry.objects.filter(organisation_id=organisation_id)
    return entries.aggregate(last=Max("position"))["last"] or 0


def _record(entry: AuditEntry) -> TrailEntry:
    return TrailEntry(
        position=entry.position,
        at=entry.at,
        actor_label=entry.actor_label,
        ip=entry.ip,
        action=entry.action,
        object_type=entry.object_type,
        object_id=entry.object_id,
        before=entry.before,
        after=entry.after,
        reason=entry.reason,
        entry_hash=entry.entry_hash,
        token_id=entry.token_id,
    )

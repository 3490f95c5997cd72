"""Writes what an actor changed into the audit trail: the bridge from who to what."""

from collections.abc import Mapping
from typing import Any

from audit import services as audit
from projects.records import Actor


def note(  # noqa: PLR0913  # mirrors the columns of the trail
    actor: Actor,
    action: str,
    *,
    subject: tuple[str, object],
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    reason: str = "",
) -> None:
    """Record a change of `subject`, its type and id, last in the transaction that makes it."""
    object_type, object_id = subject
    audit.record(
        organisation_id=actor.organisation_id,
        actor_label=actor.label,
        action=action,
        object_type=object_type,
        object_id=str(object_id),
        before=before,
        after=after,
        reason=reason,
        ip=actor.ip,
        user_id=actor.user_id,
        token_id=actor.token_id,
    )

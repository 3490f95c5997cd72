"""What is to be sent if its cause is committed: written with it, sent after it, never lost."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils.module_loading import import_string

from jobs.leases import seconds_from_now
from jobs.models import Outbox
from jobs.records import OutboxEvent
from jobs.services import readable

log = structlog.get_logger(__name__)
SENDS_AT_ONCE = 100
LONGEST_PAUSE_S = 3600


def post(
    *, organisation_id: UUID, topic: str, payload: Mapping[str, Any], event_id: UUID | None = None
) -> UUID:
    """Write an event in the caller's transaction; return the id under which it will arrive.

    Raises:
        ValueError: no such topic in settings.OUTBOX_TOPICS.
    """
    if topic not in settings.OUTBOX_TOPICS:
        raise ValueError(f"{topic} is not a topic: see OUTBOX_TOPICS in the settings")
    row = Outbox.objects.create(
        event_id=event_id or uuid.uuid4(),
        organisation_id=organisation_id,
        topic=topic,
        payload=dict(payload),
    )
    return row.event_id


def send_waiting(limit: int = SENDS_AT_ONCE) -> int:
    """Send what waits, oldest first; return how many arrived."""
    return sum(_send(row) for row in _take(limit))


def _take(limit: int) -> list[Outbox]:
    """Reserve waiting rows: the attempt is counted and the next one dated before the sending."""
    pause_s = settings.JOB_LEASE_S
    with transaction.atomic():
        rows = list(
            Outbox.objects.select_for_update(skip_locked=True)
            .filter(sent_at__isnull=True, send_after__lte=Now())
            .order_by("id")[:limit]
        )
        for row in rows:
            wait_s = min(pause_s * 2 ** min(row.attempts, 20), LONGEST_PAUSE_S)
            Outbox.objects.filter(pk=row.pk).update(
                attempts=F("attempts") + 1, send_after=seconds_from_now(wait_s)
            )
    return rows


def _send(row: Outbox) -> bool:
    event = OutboxEvent(
        event_id=row.event_id,
        organisation_id=row.organisation_id,
        topic=row.topic,
        payload=row.payload,
    )
    waiting = Outbox.objects.filter(pk=row.pk)
    try:
        deliver: Callable[[OutboxEvent], None] = import_string(
            settings.OUTBOX_TOPICS[row.topic].replace(":", ".")
        )
        deliver(event)
    except Exception as error:  # one bad event must not stop the others
        log.exception("event not sent", event_id=str(row.event_id), topic=row.topic)
        waiting.update(last_error=readable(error))
        return False
    waiting.update(sent_at=Now(), last_error="")
    return True

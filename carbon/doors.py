"""What every door of readings does: names its sender, stores what came, rings the booking.

Nothing is looked up or counted here: a door's 2xx means that the body is on the disk.
"""

import time
from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID

import psycopg
import structlog
from django.db import DatabaseError, connection, transaction
from django.utils.translation import gettext as _

from carbon.backlog import refuse_when_full
from carbon.models import Sender
from carbon.packed import Brought, pack
from jobs import services as jobs
from runs.records import SiteRecord

log = structlog.get_logger(__name__)
BOOKING: Final = "carbon.book_readings"
RING_EVERY_S: Final = 5.0  # of one site by one process; the schedule rings for what is left
CACHED_SENDERS: Final = 50_000
_senders: dict[tuple[UUID, str, str], tuple[int, str]] = {}
_rung: dict[UUID, float] = {}

# A body that was acknowledged must survive a crash, whatever the server's default is.
INSERT_BODY: Final = (
    "WITH durable AS (SELECT set_config('synchronous_commit', "
    "CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' "
    "ELSE current_setting('synchronous_commit') END, true)) "
    "INSERT INTO carbon_intakebody "
    "(organisation_id, site_id, sender_id, sha256, body, rows, received_at) "
    "SELECT %s, %s, %s, %s, %s, %s, %s FROM durable "
    "ON CONFLICT (sender_id, sha256) DO NOTHING"
)


def ensure_sender(
    site: SiteRecord, kind: str, name: str, *, version: str = "", now: datetime
) -> int:
    """The key of a sender of a site, made at its first sight; `version` is kept when it changes."""
    key = (site.site_id, kind, name)
    known = _senders.get(key)
    if known is not None and version in ("", known[1]):
        return known[0]
    sender, _created = Sender.objects.get_or_create(
        site_id=site.site_id,
        kind=kind,
        name=name,
        defaults={
            "organisation_id": site.organisation_id,
            "version": version,
            "first_seen_at": now,
            "last_seen_at": now,
        },
    )
    if version and sender.version != version:
        Sender.objects.filter(pk=sender.pk).update(version=version)
    # Not before the commit: a sender whose transaction failed does not exist.
    transaction.on_commit(partial(_remember, key, (sender.pk, version or sender.version)))
    return sender.pk


def _remember(key: tuple[UUID, str, str], known: tuple[int, str]) -> None:
    if len(_senders) >= CACHED_SENDERS:
        _senders.clear()
    _senders[key] = known


def accept(
    site: SiteRecord, sender_id: int, brought: Brought, *, sha256: bytes, received_at: datetime
) -> bool:
    """Store a body in the caller's transaction, and ring for booking when it commits.

    False: the same bytes of this sender wait already, durably; nothing is added.

    Raises:
        IntakeFullError: too much waits at the site; the sender keeps what it has.
    """
    body = pack(brought)
    refuse_when_full(site.site_id, len(body))
    # The body goes as it is: a cursor of Django's would write it out as twice as much text.
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(
            INSERT_BODY,
            [
                site.organisation_id,
                site.site_id,
                sender_id,
                sha256,
                body,
                brought.rows,
                received_at,
            ],
        )
        stored: int = cursor.rowcount
    transaction.on_commit(partial(_ring, site), robust=True)
    return stored == 1


def _ring(site: SiteRecord) -> None:
    """Ask a worker to book, at most every few seconds; a failure is no loss, the schedule rings."""
    now_s = time.monotonic()
    if now_s - _rung.get(site.site_id, -RING_EVERY_S) < RING_EVERY_S:
        return
    _rung[site.site_id] = now_s
    try:
        enqueue_booking(site)
    except DatabaseError as error:
        log.warning("booking not rung", site=str(site.site_id), error=type(error).__name__)


def enqueue_booking(site: SiteRecord) -> UUID:
    """Ask a worker to book what waits at a site; one waiting job a site is enough."""
    return jobs.enqueue(
        organisation_id=site.organisation_id,
        kind=BOOKING,
        scope="organisation",
        payload={"site_id": str(site.site_id)},
        dedupe_key=f"{site.site_id}:book",
        title=_("Readings of %(site)s") % {"site": site.name},
    ).pk

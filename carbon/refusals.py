"""Notes on a sender's row that its requests were refused, so that people see why energy is missing.

A Prometheus drops what is answered 400, 401 or 403 and tells only its own log.
"""

import time
from datetime import datetime
from typing import Final
from uuid import UUID

import structlog
from django.db import DatabaseError, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce

from carbon.doors import ensure_sender
from carbon.models import Sender
from runs.records import SiteRecord

log = structlog.get_logger(__name__)
SHOWN: Final = 400
LOOK_EVERY_S: Final = 10.0  # whether another process has noted a refusal
KEPT: Final = 10_000
PART_MARK: Final = " · "  # between a token's name and the exporter
_seen_well: dict[tuple[UUID, str], float] = {}


def sender_name(token: str, *parts: str) -> str:
    """The name of a sender: its token's, then the exporter's and the replica's."""
    return PART_MARK.join(one for one in (token, *parts) if one)[:200]


def note_refused(site: SiteRecord, token: str, why: str, *, now: datetime) -> None:
    """Say since when the senders of a token are refused, and why; a failure is logged only."""
    _seen_well.pop((site.site_id, token), None)
    try:
        with transaction.atomic():
            if not _senders(site, token).exists():
                ensure_sender(site, Sender.Kind.REMOTE_WRITE, sender_name(token), now=now)
            _senders(site, token).filter(
                Q(refused_since__isnull=True) | ~Q(last_error=why[:SHOWN])
            ).update(refused_since=Coalesce("refused_since", now), last_error=why[:SHOWN])
    except DatabaseError as error:
        log.warning("refusal not noted", site=str(site.site_id), error=type(error).__name__)


def note_taken(site: SiteRecord, token: str, complaint: str) -> None:
    """Say that the senders of a token are no longer refused; `complaint` is of a part, or empty."""
    key, now_s = (site.site_id, token), time.monotonic()
    if not complaint and now_s - _seen_well.get(key, -LOOK_EVERY_S) < LOOK_EVERY_S:
        return
    known = Q(refused_since__isnull=False)
    if complaint:
        known |= ~Q(last_error=complaint[:SHOWN])
    _senders(site, token).filter(known).update(refused_since=None, last_error=complaint[:SHOWN])
    if len(_seen_well) >= KEPT:
        _seen_well.clear()
    _seen_well[key] = now_s


def _senders(site: SiteRecord, token: str) -> QuerySet[Sender]:
    name = sender_name(token)
    return Sender.objects.filter(
        Q(name=name) | Q(name__startswith=f"{name}{PART_MARK}"),
        site_id=site.site_id,
        kind=Sender.Kind.REMOTE_WRITE,
    )

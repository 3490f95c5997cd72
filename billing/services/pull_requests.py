"""Asks for pulls: by a person, by the schedule; builds a source's connection. Fetches nothing."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from billing.connectors import CONNECTORS, Allowed, Connection, ConnectorError
from billing.models import Delivery, Pull, Source
from billing.services.secrets import open_secret
from jobs import services as jobs
from jobs.records import UnknownJobError
from jobs.selectors import job_progress
from projects.records import Actor
from projects.sealing import SealingError
from projects.trail import note

MEBIBYTE = 2**20


def allowed() -> Allowed:
    """What the operator of this installation lets connections reach."""
    return Allowed(
        hosts=frozenset(settings.PRIVATE_HOSTS),
        folders=tuple(settings.WATCHED_FOLDERS),
        protocols=frozenset(settings.STORE_PROTOCOLS),
        max_object_bytes=settings.MAX_UPLOAD_MB * MEBIBYTE,
    )


def connection_of(source: Source) -> Connection:
    """The connection of a source with its secret opened: for a pull or a test, never to show.

    Raises:
        ConnectorError: the stored credential cannot be opened.
    """
    try:
        secret = open_secret(source)
    except SealingError as error:
        raise ConnectorError("credentials", str(error)) from error
    return Connection(
        kind=source.kind, settings=source.connection, secret=secret, allowed=allowed()
    )


def ask_for_pull(source: Source, actor: Actor | None = None) -> UUID:
    """Ask for a pull and return its job; one that is under way is not asked for twice.

    A person's wish looks again at what was refused before.

    Raises:
        ValidationError: nothing can be pulled from this source.
    """
    if source.kind not in CONNECTORS:
        raise ValidationError(_("Nothing can be pulled from this kind of source."))
    with transaction.atomic():
        under_way = _under_way(source)
        if under_way is not None:
            return under_way
        job = jobs.enqueue(
            organisation_id=source.organisation_id,
            kind="billing.pull_source",
            scope=f"source:{source.pk}",
            payload={"source_id": str(source.pk), "again": actor is not None},
            dedupe_key=f"pull:{source.pk}",
            title=_("Pull charges from {source}").format(source=source.name),
            created_by_user_id=actor.user_id if actor else None,
            created_by_token_id=actor.token_id if actor else None,
        )
        if actor is not None:
            note(actor, "source.pull", subject=("source", source.pk))
    return job.pk


def _under_way(source: Source) -> UUID | None:
    """The job of a pull that a worker has begun and not ended."""
    running = Pull.objects.filter(source=source, state=Pull.State.RUNNING, job_id__isnull=False)
    for pull in running[:5]:
        job_id = pull.job_id
        try:
            if job_id and not job_progress(job_id, source.organisation_id).is_over:
                return job_id
        except UnknownJobError:
            continue
    return None


def due_pulls(as_of: datetime) -> list[Source]:
    """The sources whose time to be pulled has come."""
    waiting = Source.objects.filter(kind__in=CONNECTORS, is_paused=False, every_h__gt=0)
    return [
        source
        for source in waiting
        if source.tried_at is None
        or source.tried_at + timedelta(hours=source.every_h or 0) <= as_of
    ]


def ask_for_due_pulls(as_of: datetime) -> int:
    """Ask for every pull that is due; return how many."""
    due = due_pulls(as_of)
    for source in due:
        ask_for_pull(source)
    return len(due)


def note_refused_pull(delivery: Delivery, refusal: Mapping[str, Any]) -> None:
    """Say on a pulled source that one of its bills was refused; a hand-in tells its person."""
    if "unit" not in delivery.origin:
        return
    error = {
        "code": "refused",
        "message": _("this bill was refused: {reason}").format(reason=refusal.get("reason")),
        "object": str(refusal.get("file") or ""),
        "at": timezone.now().isoformat().replace("+00:00", "Z"),
    }
    Source.objects.filter(pk=delivery.source_id).update(
        state=Source.State.INCOMPLETE, last_error=error
    )

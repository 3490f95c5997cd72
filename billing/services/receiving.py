"""Takes files in: stores their bytes, notes the delivery, asks for the job; reads nothing."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from billing.adapters import AUTO, FORMATS
from billing.models import ChargeSlice, Delivery, DeliveryFile, Source
from billing.services.arrivals import Arrival, IncomingFile, Received, arrive, shown_name
from billing.services.locking import lock_blobs
from formulae.periods import InstantError, PeriodError, month_from_label
from jobs import services as jobs
from jobs.records import UnknownJobError
from jobs.selectors import job_progress
from lake import blobs
from lake.places import LakeError
from projects.records import Actor
from projects.trail import note

__all__ = [
    "IncomingFile",
    "NewDelivery",
    "Receipt",
    "ask_for_staging",
    "ensure_source",
    "give_up_blobs",
    "receive_files",
    "shown_name",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """What somebody hands in; `periods` are the billing months it replaces whole, as 2026-05.

    A pulled delivery names its `source`, the provider's own time of this state and its origin.
    """

    source_name: str
    files: Sequence[IncomingFile]
    periods: Sequence[str] = ()
    bill_format: str = AUTO
    confirm_shrink: bool = False
    again: bool = False  # publish known bytes again where others have replaced them since
    adds: bool = False  # a further part of an export: its rows join the months, replacing nothing
    source: Source | None = None
    version_at: datetime | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of the hand-in: a delivery with its job, or one that was there already."""

    delivery_id: UUID
    job_id: UUID
    already_imported: bool


def receive_files(actor: Actor, wish: NewDelivery) -> Receipt:
    """Store the files durably and ask for their import. The same bytes again are nothing new.

    Raises:
        ChargesRefusedError: a file is no CSV or too large; nothing is kept of it.
        ConnectorError: a file could not be fetched whole; nothing is kept of the others.
        ValidationError: the source's name, a period or the format cannot be.
    """
    _check(wish)
    arrival = arrive(wish.files, give_up=give_up_blobs)
    wish, received = _as_manifest_says(wish, arrival), arrival.files
    with transaction.atomic():
        lock_blobs()
        source = wish.source or ensure_source(actor, wish.source_name, wish.bill_format)
        content = _content_of(received)
        known = _same_bytes(source, content)
        if known is not None:
            if wish.again or _is_back(known, wish):
                return _publish_again(known, wish)
            return _known(known, wish)
        for file in received:
            if not blobs.exists(file.blob.sha256):
                raise LakeError(_("The file was swept away while it arrived; send it again."))
        delivery = _note_delivery(actor, wish, source, received)
    return Receipt(delivery_id=delivery.pk, job_id=_job_of(delivery), already_imported=False)


def _check(wish: NewDelivery) -> None:
    if not wish.files:
        raise ValidationError({"file": _("Give at least one file.")})
    if wish.bill_format not in FORMATS:
        known = ", ".join(FORMATS)
        raise ValidationError(
            {"format": _("The format must be one of {known}.").format(known=known)}
        )
    if wish.adds and wish.periods:
        raise ValidationError(
            {"period": _("Files that add to what is published replace no month: name none.")}
        )
    for period in wish.periods:
        try:
            month_from_label(period)
        except (InstantError, PeriodError) as error:
            raise ValidationError({"period": str(error)}) from error


def _as_manifest_says(wish: NewDelivery, arrival: Arrival) -> NewDelivery:
    """The wish with what the manifest tells and nobody said otherwise."""
    return replace(
        wish,
        periods=wish.periods or ([arrival.period] if arrival.period else ()),
        version_at=wish.version_at or arrival.version_at,
        origin={**arrival.origin, **wish.origin},
    )


def ensure_source(actor: Actor, name: str, bill_format: str = AUTO) -> Source:
    """The source of this name, made when it is new. Call it in a transaction.

    Raises:
        ValidationError: the name is empty or too long.
    """
    name = shown_name(name)
    if len(name) > 120:
        raise ValidationError({"source": _("The name of a source has at most 120 letters.")})
    source, is_new = Source.objects.get_or_create(
        organisation_id=actor.organisation_id, name=name, defaults={"bill_format": bill_format}
    )
    if is_new:
        note(actor, "source.create", subject=("source", source.pk), after={"name": name})
    return source


def _content_of(received: Sequence[Received]) -> str:
    """One hash for the set of files, whatever their order and names."""
    hashes = sorted({_address(file) for file in received})
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def _address(file: Received) -> str:
    """What tells a file from any other: its bytes, and for a member which one it is."""
    is_member = file.compression.startswith("zip:")
    return f"{file.blob.sha256} {file.compression}" if is_member else file.blob.sha256


def _same_bytes(source: Source, content: str) -> Delivery | None:
    return (
        Delivery.objects.filter(source=source, content_sha256=content)
        .exclude(state=Delivery.State.REFUSED)
        .first()
    )


def _is_back(delivery: Delivery, wish: NewDelivery) -> bool:
    """Whether a provider has gone back to these bytes after others."""
    before, now = delivery.version_at, wish.version_at
    return before is not None and now is not None and now > before


def _publish_again(delivery: Delivery, wish: NewDelivery) -> Receipt:
    """Let known bytes be the newest state again; what they mean is stored already."""
    delivery = Delivery.objects.select_for_update(of=("self",)).get(pk=delivery.pk)
    if not wish.again:
        delivery.version_at, delivery.origin = wish.version_at, dict(wish.origin)
    gone = ChargeSlice.objects.filter(delivery=delivery, is_main=True).exclude(
        versions__published_period__isnull=False
    )
    is_again = delivery.state == Delivery.State.PUBLISHED and gone.exists()
    if is_again:
        delivery.state, delivery.received_at = Delivery.State.RECEIVED, timezone.now()
        delivery.confirm_shrink = delivery.confirm_shrink or wish.confirm_shrink
    delivery.save(update_fields=["version_at", "origin", "state", "received_at", "confirm_shrink"])
    if is_again:
        ask_for_staging(delivery)
    return Receipt(delivery_id=delivery.pk, job_id=_job_of(delivery), already_imported=not is_again)


def _known(delivery: Delivery, wish: NewDelivery) -> Receipt:
    """The receipt of bytes that are here already; a job that gave up is asked for again."""
    waits = delivery.state in (Delivery.State.RECEIVED, Delivery.State.NEEDS_CONFIRMATION)
    is_new_wish = wish.confirm_shrink and not delivery.confirm_shrink
    if waits and is_new_wish:
        Delivery.objects.filter(pk=delivery.pk).update(confirm_shrink=True)
    if waits and wish.adds and not delivery.origin.get("adds"):
        is_new_wish = True
        Delivery.objects.filter(pk=delivery.pk).update(origin={**delivery.origin, "adds": True})
        delivery.slices.update(is_main=False)
    if waits and (is_new_wish or _gave_up(delivery)):
        ask_for_staging(delivery)
        return Receipt(delivery_id=delivery.pk, job_id=_job_of(delivery), already_imported=False)
    return Receipt(delivery_id=delivery.pk, job_id=_job_of(delivery), already_imported=True)


def _gave_up(delivery: Delivery) -> bool:
    """Whether a received delivery's job is over without having settled it."""
    if delivery.state != Delivery.State.RECEIVED or delivery.job_id is None:
        return False
    try:
        return job_progress(delivery.job_id, delivery.organisation_id).is_over
    except UnknownJobError:
        return True


def _note_delivery(
    actor: Actor, wish: NewDelivery, source: Source, received: Sequence[Received]
) -> Delivery:
    delivery = Delivery.objects.create(
        organisation_id=actor.organisation_id,
        source=source,
        bill_format=wish.bill_format if wish.bill_format != AUTO else source.bill_format,
        content_sha256=_content_of(received),
        declared_periods=sorted(set(wish.periods)),
        confirm_shrink=wish.confirm_shrink,
        received_by=actor.label[:200],
        version_at=wish.version_at,
        origin={**wish.origin, "adds": True} if wish.adds else dict(wish.origin),
    )
    seen = set(
        DeliveryFile.objects.filter(
            delivery__source=source,
            delivery__state=Delivery.State.PUBLISHED,
            sha256__in=[file.blob.sha256 for file in received],
        ).values_list("sha256", flat=True)
    )
    names: set[str] = set()
    for position, file in enumerate(received):
        name = file.name if file.name not in names else f"{file.name[:240]} ({position + 1})"
        names.add(name)
        DeliveryFile.objects.create(
            organisation_id=actor.organisation_id,
            delivery=delivery,
            position=position,
            name=name,
            sha256=file.blob.sha256,
            size_bytes=file.size_bytes,
            compression=file.compression,
            already_imported=file.blob.sha256 in seen,
        )
    ask_for_staging(delivery, actor)
    after = {"source": source.name, "files": sorted(names), "periods": delivery.declared_periods}
    note(actor, "delivery.receive", subject=("delivery", delivery.pk), after=after)
    return delivery


def ask_for_staging(delivery: Delivery, actor: Actor | None = None) -> None:
    """Enqueue the job that stages and publishes the delivery."""
    job = jobs.enqueue(
        organisation_id=delivery.organisation_id,
        kind="billing.stage_delivery",
        scope=f"source:{delivery.source_id}",
        payload={"delivery_id": str(delivery.pk)},
        dedupe_key=f"delivery:{delivery.pk}",
        title=_("Import charges from {source}").format(source=delivery.source.name),
        created_by_user_id=actor.user_id if actor else None,
        created_by_token_id=actor.token_id if actor else None,
    )
    delivery.job_id = job.pk
    Delivery.objects.filter(pk=delivery.pk).update(job_id=job.pk)


def _job_of(delivery: Delivery) -> UUID:
    if delivery.job_id is None:
        raise LakeError(f"delivery {delivery.pk} has no job")
    return delivery.job_id


def give_up_blobs(hashes: Iterable[str]) -> None:
    """Forget received bytes that no delivery refers to but refused ones."""
    with transaction.atomic():
        lock_blobs()
        for sha256 in set(hashes):
            wanted = DeliveryFile.objects.filter(sha256=sha256).exclude(
                delivery__state=Delivery.State.REFUSED
            )
            if not wanted.exists():
                blobs.remove(sha256)

"""Stages published bills again whose costs are our estimates, after prices have changed."""

import hashlib
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from billing.models import Delivery, DeliveryFile
from billing.services.locking import lock_books
from billing.services.receiving import ask_for_staging
from jobs.records import JobContext
from projects.access import system_actor
from projects.trail import note


def reprice_estimated(context: JobContext) -> dict[str, Any]:
    """Hand every estimated bill in once more: the job of kind `billing.reprice`.

    Its months get a new version with today's prices. A bill is left as it is where a newer delivery
    has taken the place of one of its months: the newer one is priced again instead.
    """
    handed_in, left = [], 0
    with transaction.atomic():
        lock_books(context.organisation_id)
        context.assert_still_mine()
        estimated = Delivery.objects.filter(
            organisation_id=context.organisation_id,
            state=Delivery.State.PUBLISHED,
            report__has_estimated=True,
        ).select_related("source")
        for delivery in estimated.order_by("received_at"):
            if _is_whole(delivery):
                handed_in.append(str(_hand_in_again(delivery, context.job_id).pk))
            else:
                left += 1
    return {"deliveries": handed_in, "left_as_they_are": left}


def _is_whole(delivery: Delivery) -> bool:
    """Whether all its months that it meant whole are what readers see."""
    mains = delivery.slices.filter(is_main=True)
    live = mains.filter(versions__published_period__isnull=False).distinct()
    return mains.exists() and live.count() == mains.count()


def _hand_in_again(delivery: Delivery, job_id: UUID) -> Delivery:
    """A delivery of the same files, which says that it is one; staging prices it by the books."""
    marked = f"{delivery.content_sha256}:{job_id}"
    months = delivery.slices.filter(is_main=True).order_by("period__start")
    again = Delivery.objects.create(
        organisation_id=delivery.organisation_id,
        source=delivery.source,
        bill_format=delivery.bill_format,
        content_sha256=hashlib.sha256(marked.encode()).hexdigest(),
        declared_periods=sorted({str(one.period) for one in months.select_related("period")}),
        received_by=_("new prices"),
        version_at=delivery.version_at,
        origin={**delivery.origin, "repriced": True, "repriced_from": str(delivery.pk)},
    )
    DeliveryFile.objects.bulk_create(
        DeliveryFile(
            organisation_id=file.organisation_id,
            delivery=again,
            position=file.position,
            name=file.name,
            sha256=file.sha256,
            size_bytes=file.size_bytes,
            compression=file.compression,
            already_imported=True,
        )
        for file in delivery.files.all()
    )
    ask_for_staging(again)
    actor = system_actor(delivery.organisation_id, "new prices")
    after = {"of": str(delivery.pk), "periods": again.declared_periods}
    after["at"] = timezone.now().isoformat()
    note(actor, "delivery.reprice", subject=("delivery", again.pk), after=after)
    return again

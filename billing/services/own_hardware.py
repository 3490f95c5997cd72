"""Charges own hardware: metered records and a rate card become a delivery like any other."""

from collections.abc import Sequence

from django.db import transaction

from billing.adapters.focus import FOCUS
from billing.models import Source
from billing.own_charges import own_charges
from billing.own_records import MeteredDay, OwnRateCard
from billing.services.receiving import (
    IncomingFile,
    NewDelivery,
    Receipt,
    ensure_source,
    receive_files,
)
from projects.records import Actor


def charge_own_hardware(
    actor: Actor,
    *,
    source_name: str,
    month: str,
    days: Sequence[MeteredDay],
    card: OwnRateCard,
) -> Receipt:
    """Store a month of own hardware as charges; the month is replaced whole.

    The same records by the same card again are nothing new; other ones restate the month.

    Raises:
        ChargesRefusedError: a record or the card cannot be; nothing is stored.
    """
    content = own_charges(month, days, card)
    with transaction.atomic():
        source = ensure_source(actor, source_name, FOCUS.name)
        Source.objects.filter(pk=source.pk).update(kind=Source.Kind.OWN_HARDWARE)
    return receive_files(
        actor,
        NewDelivery(
            source_name=source_name,
            files=[IncomingFile(name=f"own-hardware-{month}.csv", chunks=[content])],
            periods=(month,),
            bill_format=FOCUS.name,
            confirm_shrink=True,  # the records are the month's whole word
            again=True,
        ),
    )

"""States what an invoice or a month comes to; takes such a statement back. Changes no charge."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from uuid import UUID

from babel.numbers import list_currencies
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from billing.amounts import exact_text
from billing.models import InvoiceTotal, Source
from projects.records import Actor
from projects.trail import note


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalWish:
    """A total as somebody reads it off an invoice; no invoice id = the whole billing month."""

    source_id: UUID
    month_on: date
    amount: Decimal
    currency: str
    invoice_id: str = ""
    tolerance: Decimal = Decimal(0)
    note: str = ""
    origin: str = InvoiceTotal.Origin.ENTERED


def state_total(actor: Actor, wish: TotalWish) -> InvoiceTotal:
    """Keep an outside total; the one that it replaces is withdrawn, not changed.

    Raises:
        ValidationError: the source, the currency or the tolerance cannot be.
    """
    _check(actor, wish)
    with transaction.atomic():
        now = timezone.now()
        same = InvoiceTotal.objects.filter(
            source_id=wish.source_id,
            start=wish.month_on,
            invoice_id=wish.invoice_id,
            currency=wish.currency,
            withdrawn_at=None,
        )
        before = [exact_text(one.amount) for one in same.select_for_update()]
        same.update(withdrawn_at=now)
        try:
            total = InvoiceTotal.objects.create(
                organisation_id=actor.organisation_id,
                source_id=wish.source_id,
                start=wish.month_on,
                invoice_id=wish.invoice_id,
                currency=wish.currency,
                amount=wish.amount,
                tolerance=wish.tolerance,
                origin=wish.origin,
                note=wish.note,
                recorded_by=actor.label[:200],
            )
        except IntegrityError as error:
            raise ValidationError(
                _("Somebody else stated this total at the same time; look again.")
            ) from error
        note(
            actor,
            "invoice_total.state",
            subject=("source", wish.source_id),
            before={"amounts": before},
            after={
                "month": f"{wish.month_on:%Y-%m}",
                "invoice": wish.invoice_id,
                "amount": exact_text(wish.amount),
                "currency": wish.currency,
                "origin": str(wish.origin),
            },
        )
    return total


def withdraw_total(actor: Actor, total_id: UUID) -> None:
    """Take a stated total back.

    Raises:
        ValidationError: there is no such total in force.
    """
    with transaction.atomic():
        found = InvoiceTotal.objects.select_for_update().filter(
            pk=total_id, organisation_id=actor.organisation_id, withdrawn_at=None
        )
        total = found.first()
        if total is None:
            raise ValidationError(_("There is no such total; it may have been withdrawn already."))
        found.update(withdrawn_at=timezone.now())
        note(
            actor,
            "invoice_total.withdraw",
            subject=("source", total.source_id),
            before={"amount": exact_text(total.amount), "currency": total.currency},
        )


def _check(actor: Actor, wish: TotalWish) -> None:
    known = Source.objects.filter(pk=wish.source_id, organisation_id=actor.organisation_id)
    if not known.exists():
        raise ValidationError({"source": _("There is no such source.")})
    if wish.currency not in list_currencies(locale="en"):
        raise ValidationError(
            {"currency": _("{code} is not a currency of ISO 4217.").format(code=wish.currency)}
        )
    if not wish.amount.is_finite() or abs(wish.amount) >= Decimal(10) ** 20:
        raise ValidationError({"amount": _("The amount is no amount of money.")})
    if not wish.tolerance.is_finite() or wish.tolerance < 0:
        raise ValidationError({"tolerance": _("The tolerance is zero or more.")})
    if wish.month_on.day != 1:
        raise ValidationError({"month": _("Write a month as 2026-05.")})

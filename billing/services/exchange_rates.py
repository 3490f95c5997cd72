"""Writes of exchange rates: add, import, withdraw; a rate is never changed."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from billing.amounts import exact_text
from billing.models import ExchangeRate
from billing.price_reading import read_rates
from billing.price_records import Imported, PricesRefusedError, RateWish
from billing.services.locking import lock_prices
from projects.access import require_organisation_role
from projects.records import Actor
from projects.trail import note

BATCH_ROWS = 5000
Numbered = tuple[int | None, RateWish]
Day = tuple[str, str, date]


def add_exchange_rate(actor: Actor, wish: RateWish) -> ExchangeRate:
    """State a rate of a day; the same rate again is the one that is there.

    Raises:
        PricesRefusedError: another rate of that pair and day is there.
        PermissionDenied: the actor's role does not reach over the organisation.
    """
    require_organisation_role(actor, write=True)
    with transaction.atomic():
        lock_prices(actor.organisation_id)
        new = _store(actor, [(None, wish)], file="")
        if not new:
            return ExchangeRate.objects.get(
                organisation_id=actor.organisation_id,
                base=wish.base,
                quote=wish.quote,
                on_date=wish.on_date,
                withdrawn_at=None,
            )
        after = rate_summary(new[0])
        note(actor, "exchange_rate.add", subject=("exchange_rate", new[0].pk), after=after)
    return new[0]


def add_exchange_rates(actor: Actor, wishes: Sequence[RateWish]) -> Imported:
    """State several rates, all of them or, on any problem, none.

    Raises:
        PricesRefusedError: one cannot be; the message names its place in the list, from 1.
        PermissionDenied: the actor's role does not reach over the organisation.
    """
    numbered: list[Numbered] = list(enumerate(wishes, start=1))
    return _import(actor, numbered, file="", origin={})


def import_exchange_rates(
    actor: Actor, content: bytes, *, file: str = "", source: str = "", since: date | None = None
) -> Imported:
    """State the rates of a CSV from a day on, all of them or none; again adds nothing.

    Raises:
        PricesRefusedError: the file or a row cannot be taken; the message says where and why.
        PermissionDenied: the actor's role does not reach over the organisation.
    """
    require_organisation_role(actor, write=True)
    named = source or file
    numbered: list[Numbered] = list(read_rates(content, file=file, source=named, since=since))
    origin = {"file": file, "sha256": hashlib.sha256(content).hexdigest()}
    return _import(actor, numbered, file=file, origin=origin)


def _import(
    actor: Actor, numbered: Sequence[Numbered], *, file: str, origin: Mapping[str, Any]
) -> Imported:
    require_organisation_role(actor, write=True)
    with transaction.atomic():
        lock_prices(actor.organisation_id)
        new = _store(actor, numbered, file=file)
        if new:
            after: dict[str, Any] = {"added": len(new), **origin}
            if not origin:
                after["exchange_rates"] = [rate_summary(rate) for rate in new]
            subject = ("organisation", actor.organisation_id)
            note(actor, "exchange_rates.import", subject=subject, after=after)
    return Imported(rows=len(numbered), added=len(new), unchanged=len(numbered) - len(new))


def withdraw_exchange_rate(
    actor: Actor, rate_id: UUID, *, now: datetime, reason: str
) -> ExchangeRate | None:
    """Take a wrong rate out. None where there is no such rate.

    Raises:
        PermissionDenied: the actor's role does not reach over the organisation.
    """
    require_organisation_role(actor, write=True)
    with transaction.atomic():
        rate = (
            ExchangeRate.objects.select_for_update()
            .filter(organisation_id=actor.organisation_id, pk=rate_id, withdrawn_at=None)
            .first()
        )
        if rate is None:
            return None
        rate.withdrawn_at = now
        rate.save(update_fields=["withdrawn_at"])
        subject = ("exchange_rate", rate.pk)
        before = rate_summary(rate)
        note(actor, "exchange_rate.withdraw", subject=subject, before=before, reason=reason)
    return rate


def rate_summary(rate: ExchangeRate) -> dict[str, str]:
    """A rate as the audit trail keeps it."""
    return {
        "date": rate.on_date.isoformat(),
        "base": rate.base,
        "quote": rate.quote,
        "rate": exact_text(rate.rate),
        "source": rate.source,
    }


def _store(actor: Actor, numbered: Sequence[Numbered], *, file: str) -> list[ExchangeRate]:
    """Store what is not there yet; call it with the prices locked."""
    known = _known(actor.organisation_id, (wish for _number, wish in numbered))
    fresh: dict[Day, ExchangeRate] = {}
    for number, wish in numbered:
        day = (wish.base, wish.quote, wish.on_date)
        there = known.get(day)
        if there is None:
            known[day] = wish.rate
            fresh[day] = _rate(actor, wish)
        elif there != wish.rate:
            raise PricesRefusedError(
                _(
                    "{wanted} {quote} / {base} cannot be: {there} is known for {day}. "
                    "Withdraw that rate first, or leave this one out."
                ).format(
                    wanted=exact_text(wish.rate),
                    there=exact_text(there),
                    quote=wish.quote,
                    base=wish.base,
                    day=wish.on_date.isoformat(),
                ),
                file=file,
                row=number,
                column="rate",
            )
    return ExchangeRate.objects.bulk_create(fresh.values(), batch_size=BATCH_ROWS)


def _known(organisation_id: UUID, wishes: Iterable[RateWish]) -> dict[Day, Decimal]:
    """The stated rates of the days and base currencies that the wishes touch."""
    days, bases = set(), set()
    for wish in wishes:
        days.add(wish.on_date)
        bases.add(wish.base)
    if not days:
        return {}
    rates = ExchangeRate.objects.filter(
        organisation_id=organisation_id,
        withdrawn_at__isnull=True,
        base__in=bases,
        on_date__gte=min(days),
        on_date__lte=max(days),
    )
    return {
        (base, quote, on_date): rate
        for base, quote, on_date, rate in rates.values_list("base", "quote", "on_date", "rate")
    }


def _rate(actor: Actor, wish: RateWish) -> ExchangeRate:
    return ExchangeRate(
        organisation_id=actor.organisation_id,
        base=wish.base,
        quote=wish.quote,
        rate=wish.rate,
        on_date=wish.on_date,
        source=wish.source,
        recorded_by=actor.label[:200],
    )

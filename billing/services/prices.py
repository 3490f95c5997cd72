"""Writes of the organisation's own prices: add, import, withdraw; a price is never changed."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from billing.amounts import exact_text
from billing.models import Delivery, Price, PriceBook
from billing.price_reading import read_prices
from billing.price_records import (
    KEY_FIELDS,
    OWN_BOOK,
    SHIPPED_BOOK,
    Imported,
    PriceKey,
    PricesRefusedError,
    PriceWish,
)
from billing.services.locking import lock_prices
from jobs import services as jobs
from projects.access import require_organisation_role
from projects.records import Actor
from projects.trail import note
from runs.selectors import accelerators

Numbered = tuple[int | None, PriceWish]


def ensure_price_book(
    actor: Actor, name: str, *, source: str = "", currency: str = "", remark: str = ""
) -> PriceBook:
    """The book of this name, made where there is none; what is given changes it.

    Raises:
        PricesRefusedError: the name is empty, too long, or that of the shipped list.
        PermissionDenied: the actor's role does not reach over the organisation.
    """
    require_organisation_role(actor, write=True)
    name = name.strip()
    if not 0 < len(name) <= 120 or name.casefold() == SHIPPED_BOOK.casefold():
        raise PricesRefusedError(
            _("{name} is no name for a book of your own; write 1 to 120 signs.").format(
                name=repr(name[:60])
            ),
            column="book",
        )
    with transaction.atomic():
        lock_prices(actor.organisation_id)
        book, made = PriceBook.objects.get_or_create(
            organisation_id=actor.organisation_id, name=name
        )
        before = None if made else _book_document(book)
        book.source, book.note = source or book.source, remark or book.note
        book.currency = currency or book.currency
        after = _book_document(book)
        if before != after:
            book.save(update_fields=["source", "currency", "note"])
            action = "price_book.add" if made else "price_book.change"
            note(actor, action, subject=("price_book", book.pk), before=before, after=after)
    return book


def _book_document(book: PriceBook) -> dict[str, str]:
    return {
        "name": book.name,
        "source": book.source,
        "currency": book.currency,
        "note": book.note,
    }


def add_price(actor: Actor, wish: PriceWish, *, book: str = OWN_BOOK) -> Price:
    """State a price from its day on; the same price again is the one that is there.

    Raises:
        PricesRefusedError: it cannot be, or another price of that key begins on that day.
        PermissionDenied: the actor's role does not reach over the organisation.
    """
    require_organisation_role(actor, write=True)
    with transaction.atomic():
        kept = ensure_price_book(actor, book)
        lock_prices(actor.organisation_id)
        new = _store(actor, kept, [(None, wish)], file="")
        if not new:
            return Price.objects.get(book=kept, withdrawn_at=None, **_identity(wish))
        note(actor, "price.add", subject=("price", new[0].pk), after=price_summary(new[0]))
        ask_for_repricing(actor.organisation_id)
    return new[0]


def add_prices(actor: Actor, wishes: Sequence[PriceWish], *, book: str = OWN_BOOK) -> Imported:
    """State several prices, all of them or, on any problem, none.

    Raises:
        PricesRefusedError: one cannot be; the message names its place in the list, from 1.
        PermissionDenied: the actor's role does not reach over the organisation.
    """
    numbered: list[Numbered] = list(enumerate(wishes, start=1))
    return _import(actor, numbered, book=book, file="", origin={})


def import_prices(
    actor: Actor, content: bytes, *, file: str = "", book: str = OWN_BOOK
) -> Imported:
    """State the prices of a CSV, all of them or none; the same file again adds nothing.

    Raises:
        PricesRefusedError: the file or a row cannot be taken; the message says where and why.
        PermissionDenied: the actor's role does not reach over the organisation.
    """
    require_organisation_role(actor, write=True)
    known = PriceBook.objects.filter(
        organisation_id=actor.organisation_id, name=book.strip()
    ).first()
    numbered = read_prices(content, file=file, currency=known.currency if known else "USD")
    origin = {"file": file, "sha256": hashlib.sha256(content).hexdigest()}
    return _import(actor, numbered, book=book, file=file, origin=origin)


def _import(
    actor: Actor,
    numbered: Sequence[Numbered],
    *,
    book: str,
    file: str,
    origin: Mapping[str, Any],
) -> Imported:
    require_organisation_role(actor, write=True)
    with transaction.atomic():
        kept = ensure_price_book(actor, book)
        lock_prices(actor.organisation_id)
        new = _store(actor, kept, numbered, file=file)
        if new:
            after = {"book": kept.name, "added": len(new), **origin}
            if not origin:
                after["prices"] = [price_summary(price) for price in new]
            note(actor, "prices.import", subject=("price_book", kept.pk), after=after)
            ask_for_repricing(actor.organisation_id)
    return Imported(
        rows=len(numbered),
        added=len(new),
        unchanged=len(numbered) - len(new),
        book=kept.name,
    )


def withdraw_price(actor: Actor, price_id: UUID, *, now: datetime, reason: str) -> Price | None:
    """Take a wrong price out: from now on it counts on no day. None where there is no such price.

    Raises:
        PermissionDenied: the actor's role does not reach over the organisation.
    """
    require_organisation_role(actor, write=True)
    with transaction.atomic():
        price = (
            Price.objects.select_for_update()
            .filter(organisation_id=actor.organisation_id, pk=price_id, withdrawn_at=None)
            .first()
        )
        if price is None:
            return None
        price.withdrawn_at = now
        price.save(update_fields=["withdrawn_at"])
        subject = ("price", price.pk)
        before = price_summary(price)
        note(actor, "price.withdraw", subject=subject, before=before, reason=reason)
        ask_for_repricing(actor.organisation_id)
    return price


def ask_for_repricing(organisation_id: UUID) -> None:
    """Prices have changed: have the published bills whose costs are our estimates staged again."""
    estimated = Delivery.objects.filter(
        organisation_id=organisation_id,
        state=Delivery.State.PUBLISHED,
        report__has_estimated=True,
    )
    if estimated.exists():
        jobs.enqueue(
            organisation_id=organisation_id,
            kind="billing.reprice",
            scope="organisation",
            payload={},
            dedupe_key="reprice",
            title=_("Price estimated charges again"),
        )


def price_summary(price: Price) -> dict[str, Any]:
    """A price as the audit trail keeps it."""
    return {
        "cost_class": price.cost_class,
        "provider": price.provider,
        "region": price.region,
        "accelerator_key": price.accelerator_key,
        "instance_type": price.instance_type,
        "purchase": price.purchase,
        "price": exact_text(price.amount),
        "currency": price.currency,
        "unit": price.unit,
        "valid_from": price.valid_from.isoformat(),
        "valid_to": price.valid_to.isoformat() if price.valid_to else None,
        "source": price.source,
    }


def _store(
    actor: Actor, book: PriceBook, numbered: Sequence[Numbered], *, file: str
) -> list[Price]:
    """Store what is not there yet; call it with the prices locked."""
    if book.feed:
        raise PricesRefusedError(
            _("A price feed fills the book {book}; write your own prices to another.").format(
                book=book.name
            ),
            file=file,
            column="book",
        )
    check_accelerators(actor.organisation_id, numbered, file)
    known = {
        (*key_of(price), price.valid_from): price
        for price in Price.objects.filter(book=book, withdrawn_at=None)
    }
    fresh: dict[tuple[Any, ...], Price] = {}
    for number, wish in numbered:
        at = (*wish.key, wish.valid_from)
        there = known.get(at) or fresh.get(at)
        if there is None:
            fresh[at] = new_price(actor, book, wish)
        elif terms_of(there) != terms_of_wish(wish):
            raise PricesRefusedError(
                _(
                    "{wanted} cannot be: this book has {there} for the same thing from {day} on. "
                    "Write a later valid_from, or withdraw the other price first."
                ).format(
                    wanted=_said(wish.price.amount, wish.price.currency, wish.unit),
                    there=_said(there.amount, there.currency, there.unit),
                    day=wish.valid_from.isoformat(),
                ),
                file=file,
                row=number,
                column="price",
            )
    return Price.objects.bulk_create(fresh.values(), batch_size=1000)


def _said(amount: Any, currency: str, unit: str) -> str:
    return f"{exact_text(amount)} {currency} / {unit}"


def check_accelerators(organisation_id: UUID, numbered: Iterable[Numbered], file: str) -> None:
    """An accelerator's price names an accelerator of the catalogue; other prices name none."""
    keys = [spec.key for spec in accelerators(organisation_id)]
    for number, wish in numbered:
        named, wanted = wish.accelerator_key, wish.cost_class == "accelerator"
        if (named in keys) if wanted else not named:
            continue
        if wanted:
            near = get_close_matches(named, keys, n=3, cutoff=0.4) or keys[:3]
            reason = _("{key} is not in the catalogue; write its key, such as {near}.").format(
                key=repr(named), near=", ".join(near)
            )
        else:
            reason = _("{key} cannot be: leave it empty, {cost_class} has none.").format(
                key=repr(named), cost_class=wish.cost_class
            )
        raise PricesRefusedError(reason, file=file, row=number, column="accelerator_key")


def _identity(wish: PriceWish) -> dict[str, Any]:
    return {**dict(zip(KEY_FIELDS, wish.key, strict=True)), "valid_from": wish.valid_from}


def key_of(price: Price) -> PriceKey:
    """What the prices of one thing share."""
    return (
        price.cost_class,
        price.provider,
        price.region,
        price.accelerator_key,
        price.instance_type,
        price.purchase,
    )


def terms_of(price: Price) -> tuple[Any, ...]:
    """What makes two prices of one key and day the same price."""
    return (price.unit, price.amount, price.currency, price.valid_to)


def terms_of_wish(wish: PriceWish) -> tuple[Any, ...]:
    """The same of a price that is wished for."""
    return (wish.unit, wish.price.amount, wish.price.currency, wish.valid_to)


def new_price(actor: Actor, book: PriceBook, wish: PriceWish) -> Price:
    """A price of a book, not stored yet."""
    return Price(
        organisation_id=actor.organisation_id,
        book=book,
        **_identity(wish),
        unit=wish.unit,
        amount=wish.price.amount,
        currency=wish.price.currency,
        valid_to=wish.valid_to,
        source=wish.source,
        source_date=wish.source_date,
        note=wish.note,
        recorded_by=actor.label[:200],
    )

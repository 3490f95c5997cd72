"""Writes of price feeds: connect a book to a provider's price list, and refresh its prices."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from billing.models import Price, PriceBook
from billing.price_feeds.clients import feed_of
from billing.price_feeds.contract import (
    FEED_NAMES,
    FEED_SERVICES,
    FeedMachine,
    FeedReading,
    FeedSettings,
    PriceFeedError,
)
from billing.price_records import PriceKey, PricesRefusedError, PriceWish
from billing.services.locking import lock_prices
from billing.services.prices import (
    ask_for_repricing,
    check_accelerators,
    ensure_price_book,
    key_of,
    new_price,
    terms_of,
    terms_of_wish,
)
from jobs import services as jobs
from jobs.records import JobContext, PermanentJobError
from projects.access import require_organisation_role, system_actor
from projects.records import Actor
from projects.trail import note
from runs.selectors import instance_types

MOST_REGIONS = 40
MOST_NAMES = 50
OnReport = Callable[[int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What a refresh changed, and what of the price list is no price of ours."""

    book: str
    seen: int
    added: int
    unchanged: int
    withdrawn: int
    gone: int  # in the book, but no longer on the list: they stay
    ignored: Mapping[str, int]
    unknown_names: Sequence[str]

    def document(self) -> dict[str, Any]:
        """As the job, the command and the audit trail keep it."""
        return {
            "book": self.book,
            "seen": self.seen,
            "added": self.added,
            "unchanged": self.unchanged,
            "withdrawn": self.withdrawn,
            "gone": self.gone,
            "ignored": dict(self.ignored),
            "unknown_names": list(self.unknown_names),
        }


def connect_price_feed(actor: Actor, name: str, *, feed: str, wish: FeedSettings) -> PriceBook:
    """Let a provider's price list fill a book, made where there is none; again changes its wish.

    Raises:
        PricesRefusedError: an unknown feed or kind, no region, or a book with prices of its own.
        PermissionDenied: the actor's role does not reach over the organisation.
    """
    require_organisation_role(actor, write=True)
    wanted = _checked(feed, wish)
    with transaction.atomic():
        book = ensure_price_book(actor, name, source=FEED_NAMES[feed])
        if book.feed not in ("", feed) or (not book.feed and book.prices.exists()):
            raise PricesRefusedError(
                _("The book {name} has other prices; give the feed a book of its own.").format(
                    name=book.name
                ),
                column="book",
            )
        before = _asked(book)
        book.feed = feed
        book.feed_settings = {
            **book.feed_settings,
            "regions": list(wanted.regions),
            "services": list(wanted.services),
        }
        after = _asked(book)
        if before != after:
            book.save(update_fields=["feed", "feed_settings"])
            subject = ("price_book", book.pk)
            note(actor, "price_feed.connect", subject=subject, before=before, after=after)
    return book


def _asked(book: PriceBook) -> dict[str, Any]:
    """What a book's feed is asked for, as the audit trail keeps it."""
    wish = {name: book.feed_settings.get(name, []) for name in ("regions", "services")}
    return {"feed": book.feed, **wish}


def _checked(feed: str, wish: FeedSettings) -> FeedSettings:
    regions = tuple(dict.fromkeys(one.strip().lower() for one in wish.regions if one.strip()))
    services = tuple(one for one in FEED_SERVICES if one in wish.services)
    if feed not in FEED_NAMES:
        raise PricesRefusedError(
            _("{feed} is no price feed; write one of {names}.").format(
                feed=repr(feed), names=", ".join(FEED_NAMES)
            ),
            column="feed",
        )
    if not regions or len(regions) > MOST_REGIONS or any(len(one) > 60 for one in regions):
        raise PricesRefusedError(
            _("Name 1 to {most} regions as the provider writes them, such as us-east-1.").format(
                most=MOST_REGIONS
            ),
            column="regions",
        )
    if not services or set(wish.services) - set(FEED_SERVICES):
        raise PricesRefusedError(
            _("Choose of {names}.").format(names=", ".join(FEED_SERVICES)), column="services"
        )
    return FeedSettings(regions=regions, services=services)


def disconnect_price_feed(actor: Actor, book_id: int) -> PriceBook | None:
    """Refresh a book no longer; its prices stay. None where no feed fills such a book.

    Raises:
        PermissionDenied: the actor's role does not reach over the organisation.
    """
    require_organisation_role(actor, write=True)
    with transaction.atomic():
        book = (
            PriceBook.objects.select_for_update()
            .filter(organisation_id=actor.organisation_id, pk=book_id)
            .exclude(feed="")
            .first()
        )
        if book is None:
            return None
        before = _asked(book)
        book.feed, book.feed_settings, book.refresh_error = "", {}, None
        book.save(update_fields=["feed", "feed_settings", "refresh_error"])
        note(actor, "price_feed.disconnect", subject=("price_book", book.pk), before=before)
    return book


def ask_for_refresh(actor: Actor, book: PriceBook) -> UUID:
    """Enqueue the job that refreshes a book and return its id; one that waits already is that job.

    Raises:
        PermissionDenied: the actor's role does not reach over the organisation.
    """
    require_organisation_role(actor, write=True)
    with transaction.atomic():
        job = jobs.enqueue(
            organisation_id=actor.organisation_id,
            kind="billing.refresh_prices",
            scope="organisation",
            payload={"book_id": book.pk, "asked_by": actor.label[:200]},
            dedupe_key=f"price_book:{book.pk}",
            title=_("Refresh the prices of {book}").format(book=book.name),
            created_by_user_id=actor.user_id,
            created_by_token_id=actor.token_id,
        )
        locked = PriceBook.objects.select_for_update().get(pk=book.pk)
        locked.feed_settings = {**locked.feed_settings, "job": str(job.pk)}
        locked.save(update_fields=["feed_settings"])
    return job.pk


def ask_for_all_refreshes() -> int:
    """Enqueue a refresh of every book that a feed fills; return how many."""
    books = list(PriceBook.objects.exclude(feed="").order_by("pk"))
    for book in books:
        ask_for_refresh(system_actor(book.organisation_id, "schedule"), book)
    return len(books)


def refresh_prices(context: JobContext) -> dict[str, Any]:
    """Refresh one book: the job of kind `billing.refresh_prices`. Again changes nothing more.

    Raises:
        PermanentJobError: the book is gone, or the provider refuses; people read why.
        PriceFeedError: the price list could not be read now.
    """
    book = PriceBook.objects.filter(
        pk=context.payload["book_id"], organisation_id=context.organisation_id
    ).first()
    if book is None or not book.feed:
        raise PermanentJobError(_("No price feed fills this book any more."))
    actor = system_actor(context.organisation_id, str(context.payload.get("asked_by", "schedule")))
    try:
        refreshed = refresh_price_book(
            actor,
            book,
            on_report=lambda done, message: context.report(done, None, message),
            assert_still_mine=context.assert_still_mine,
        )
    except PriceFeedError as error:
        if error.is_permanent:
            raise PermanentJobError(error.message) from error
        raise
    return refreshed.document()


def _nothing(*_args: object) -> None:
    """For a refresh that nobody watches."""


def refresh_price_book(
    actor: Actor,
    book: PriceBook,
    *,
    on_report: OnReport = _nothing,
    assert_still_mine: Callable[[], None] = _nothing,
) -> Refreshed:
    """Read the provider's price list and store what changed, all of it or nothing.

    Raises:
        PriceFeedError: the list could not be read; the book keeps its prices and says why.
        PermissionDenied: the actor's role does not reach over the organisation.
    """
    require_organisation_role(actor, write=True)
    try:
        reading = _read(book, on_report)
        with transaction.atomic():
            assert_still_mine()
            return _store(actor, book, reading, now=timezone.now())
    except PricesRefusedError as error:
        failure = PriceFeedError("refused", error.sentence, is_permanent=True)
        _note_failure(book, failure)
        raise failure from error
    except PriceFeedError as error:
        _note_failure(book, error)
        raise


def _read(book: PriceBook, on_report: OnReport) -> FeedReading:
    feed = feed_of(
        book.feed,
        gcp_endpoint=settings.CLOUD_BILLING_ENDPOINT,
        gcp_api_key=settings.CLOUD_BILLING_API_KEY,
    )
    wish = FeedSettings(
        regions=tuple(book.feed_settings.get("regions", ())),
        services=tuple(book.feed_settings.get("services", FEED_SERVICES)),
    )
    reading = feed(wish, _machines(book), on_report)
    if not reading.prices:
        raise PriceFeedError(
            "nothing_found",
            _("The price list has no price for {regions}: are the regions spelt so?").format(
                regions=", ".join(wish.regions)
            ),
            is_permanent=True,
        )
    return reading


def _machines(book: PriceBook) -> list[FeedMachine]:
    return [
        FeedMachine(
            name=spec.name,
            accelerator_key=spec.accelerator_key,
            accelerator_count=spec.accelerator_count,
        )
        for spec in instance_types(book.organisation_id)
        if spec.provider == book.feed and spec.accelerator_count
    ]


def _note_failure(book: PriceBook, error: PriceFeedError) -> None:
    PriceBook.objects.filter(pk=book.pk).update(
        refresh_error={
            "code": error.code,
            "message": error.message,
            "at": timezone.now().isoformat(),
        }
    )


def _store(actor: Actor, book: PriceBook, reading: FeedReading, *, now: datetime) -> Refreshed:
    """Let changed prices succeed their old ones; call it inside a transaction."""
    lock_prices(actor.organisation_id)
    book = PriceBook.objects.select_for_update().get(pk=book.pk)
    if not book.feed:
        raise PricesRefusedError(
            _("No price feed fills {book} any more.").format(book=book.name), column="book"
        )
    wishes = [price.wish() for price in reading.prices]
    check_accelerators(actor.organisation_id, ((None, wish) for wish in wishes), file=book.name)
    known = _known(book)
    fresh: list[Price] = []
    wrong: list[UUID] = []
    for wish in wishes:
        there = known.pop(wish.key, [])
        outdated = _outdated(there, wish)
        wrong += [price.pk for price in outdated]
        newest = there[len(there) - len(outdated) - 1] if len(there) > len(outdated) else None
        if newest is None or terms_of(newest) != terms_of_wish(wish):
            fresh.append(new_price(actor, book, wish))
    Price.objects.filter(pk__in=wrong).update(withdrawn_at=now)
    Price.objects.bulk_create(fresh, batch_size=1000)
    refreshed = Refreshed(
        book=book.name,
        seen=reading.seen,
        added=len(fresh),
        unchanged=len(wishes) - len(fresh),
        withdrawn=len(wrong),
        gone=len(known),
        ignored=dict(reading.ignored),
        unknown_names=sorted(reading.unknown_names)[:MOST_NAMES],
    )
    book.refreshed_at, book.refresh_error = now, None
    book.feed_settings = {**book.feed_settings, "last": refreshed.document()}
    book.save(update_fields=["refreshed_at", "refresh_error", "feed_settings"])
    if fresh or wrong:
        note(actor, "prices.refresh", subject=("price_book", book.pk), after=refreshed.document())
        ask_for_repricing(actor.organisation_id)
    return refreshed


def _known(book: PriceBook) -> dict[PriceKey, list[Price]]:
    """The book's prices by key, oldest first."""
    found: dict[PriceKey, list[Price]] = defaultdict(list)
    for price in Price.objects.filter(book=book, withdrawn_at=None).order_by("valid_from"):
        found[key_of(price)].append(price)
    return dict(found)


def _outdated(there: Iterable[Price], wish: PriceWish) -> list[Price]:
    """The newest prices that cannot be: the list now says another one for their first day.

    A price that the list states again, with a later first day, stays as it is.
    """
    found: list[Price] = []
    for price in reversed(list(there)):
        if terms_of(price) == terms_of_wish(wish) or price.valid_from < wish.valid_from:
            break
        found.append(price)
    return found

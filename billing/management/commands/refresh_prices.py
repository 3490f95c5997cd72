"""manage.py refresh_prices: fill price books from the providers' price lists."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from billing.models import PriceBook
from billing.price_feeds.contract import (
    FEED_NAMES,
    FEED_SERVICES,
    FeedSettings,
    PriceFeedError,
    ignored_in_words,
)
from billing.price_records import PricesRefusedError
from billing.services import Refreshed, connect_price_feed, refresh_price_book
from projects.access import system_actor
from projects.chosen_organisation import chosen_organisation
from projects.records import Actor
from ui.console import JsonCommand


class Command(JsonCommand):
    help = (
        "Refresh price books from the providers' price lists: only changed prices are added, and "
        "nothing where a list cannot be read. With --feed the book is connected first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--book", metavar="NAME", help="default: every book with a feed")
        parser.add_argument("--feed", choices=list(FEED_NAMES), help="connect the book to it first")
        parser.add_argument("--region", action="append", default=[], metavar="REGION")
        parser.add_argument(
            "--kind", action="append", default=[], choices=FEED_SERVICES, help="default: all"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        actor = system_actor(organisation.pk, "manage.py refresh_prices")
        try:
            books = _books(actor, options)
            done = [refresh_price_book(actor, book, on_report=self._tell) for book in books]
        except (PricesRefusedError, ValidationError) as error:
            raise CommandError(str(error)) from error
        except PriceFeedError as error:
            raise CommandError(f"Nothing stored of this book. {error.message}") from error
        words = "\n".join(_in_words(one) for one in done)
        self.emit({"books": [one.document() for one in done]}, words)

    def _tell(self, done: int, message: str) -> None:
        self.say(f"{message} ({done})")


def _books(actor: Actor, options: dict[str, Any]) -> list[PriceBook]:
    if options["feed"]:
        wish = FeedSettings(
            regions=tuple(options["region"]), services=tuple(options["kind"]) or FEED_SERVICES
        )
        name = options["book"] or FEED_NAMES[options["feed"]]
        return [connect_price_feed(actor, name, feed=options["feed"], wish=wish)]
    books = PriceBook.objects.filter(organisation_id=actor.organisation_id).exclude(feed="")
    if options["book"]:
        books = books.filter(name=options["book"])
    if not books:
        raise CommandError(
            "No price feed fills such a book. Connect one: "
            "manage.py refresh_prices --book NAME --feed aws|gcp --region REGION"
        )
    return list(books)


def _in_words(done: Refreshed) -> str:
    lines = [
        f"{done.book}: {done.added} new, {done.unchanged} unchanged, {done.withdrawn} withdrawn, "
        f"{done.gone} no longer listed; {done.seen} entries of the list seen"
    ]
    lines += [f"  {count:>7} {words}" for words, count in ignored_in_words(done.ignored)]
    if done.unknown_names:
        lines.append(f"  not in the catalogue: {', '.join(done.unknown_names)}")
    return "\n".join(lines)

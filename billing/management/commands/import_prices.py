"""manage.py import_prices: a price list as CSV into a price book of the organisation's own."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from billing.price_documents import imported_document
from billing.price_records import OWN_BOOK, PricesRefusedError
from billing.services import import_prices
from projects.access import system_actor
from projects.chosen_organisation import chosen_organisation
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Import a price list (CSV): all of it or nothing; again adds nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", metavar="FILE", type=Path)
        parser.add_argument("--book", default=OWN_BOOK, metavar="NAME", help="made when unknown")

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        actor = system_actor(organisation.pk, "manage.py import_prices")
        path: Path = options["file"]
        try:
            imported = import_prices(actor, path.read_bytes(), file=path.name, book=options["book"])
        except OSError as error:
            raise CommandError(f"{path}: cannot be read ({error.strerror})") from error
        except PricesRefusedError as error:
            raise CommandError(f"Nothing imported. {error.sentence}") from error
        words = f"{imported.book}: {imported.added} new, {imported.unchanged} known already"
        self.emit({"file": path.name, **imported_document(imported)}, words)

"""manage.py import_exchange_rates: dated exchange rates as CSV, or the ECB's history."""

from datetime import date
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from billing.price_documents import imported_document
from billing.price_records import PricesRefusedError
from billing.services import import_exchange_rates
from projects.access import system_actor
from projects.chosen_organisation import chosen_organisation
from ui.console import JsonCommand


class Command(JsonCommand):
    help = (
        "Import exchange rates (CSV with date,base,quote,rate, or the ECB's eurofxref-hist.csv): "
        "all or nothing; again adds nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", metavar="FILE", type=Path)
        parser.add_argument("--source", default="", metavar="TEXT", help="default: the file's name")
        parser.add_argument(
            "--since", type=date.fromisoformat, metavar="D", help="leave older rates out"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        actor = system_actor(organisation.pk, "manage.py import_exchange_rates")
        path: Path = options["file"]
        try:
            imported = import_exchange_rates(
                actor,
                path.read_bytes(),
                file=path.name,
                source=options["source"],
                since=options["since"],
            )
        except OSError as error:
            raise CommandError(f"{path}: cannot be read ({error.strerror})") from error
        except PricesRefusedError as error:
            raise CommandError(f"Nothing imported. {error.sentence}") from error
        words = f"{imported.added} new rates, {imported.unchanged} known already"
        self.emit({"file": path.name, **imported_document(imported)}, words)

"""manage.py fit_priors: fit the estimator's priors again from the published runs of the project."""

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser

from planning.prior_fit import priors_document
from planning.prior_rows import DATA
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Fit the priors of the estimator from planning/data/*.csv and write priors.json."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--check", action="store_true", help="write nothing; exit 1 when a fit differs"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        document = priors_document()
        path = DATA / "priors.json"
        text = json.dumps(document, indent=1) + "\n"
        is_same = path.exists() and path.read_text(encoding="utf-8") == text
        if options["check"] and not is_same:
            raise CommandError("planning/data/priors.json is not what its rows give: fit_priors")
        if not options["check"]:
            path.write_text(text, encoding="utf-8")
        runs = len(document["efficiency"]["runs"])
        self.emit(document, f"{runs} runs, {'unchanged' if is_same else 'priors.json written'}")

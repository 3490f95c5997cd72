"""`manage.py dump`: the configuration as one YAML document, as `apply` reads it."""

from typing import Any

from costwatch.configuration import document_text, dump_document
from projects.chosen_organisation import chosen_organisation
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Print the configuration as one YAML document (or as JSON)."

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        document = dump_document(organisation.pk)
        self.emit(document, document_text(document).rstrip("\n"))

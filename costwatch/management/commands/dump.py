"""`manage.py dump`: the configuration as one YAML document, as `apply` reads it."""

from typing import Any

from costwatch.configuration import document_text, dump_document
from projects.selectors import organisation_by_slug, the_organisation
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Print the configuration as one YAML document (or as JSON)."

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["organisation"]
        organisation = organisation_by_slug(slug) if slug else the_organisation()
        document = dump_document(organisation.pk)
        self.emit(document, document_text(document).rstrip("\n"))

"""`manage.py apply`: bring the configuration to what a YAML document says."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from costwatch.configuration import ConfigurationError, apply_document, read_document
from projects.access import system_actor
from projects.chosen_organisation import chosen_organisation
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Apply a configuration document: all of it or, on any problem, nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", metavar="FILE.yaml", help="the document; - reads stdin")
        parser.add_argument("--dry-run", action="store_true", help="say what would change, only")

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        actor = system_actor(organisation.pk, "manage.py apply")
        try:
            document = read_document(_read(options["file"]))
            changes = apply_document(actor, document, dry_run=options["dry_run"])
        except ConfigurationError as error:
            raise CommandError(f"{options['file']}: {error}. Nothing was changed.") from error
        summary = "Nothing to change."
        if changes:
            verb = "would change" if options["dry_run"] else "changed"
            summary = "\n".join([*changes, f"{len(changes)} {verb}."])
        self.emit({"dry_run": options["dry_run"], "changes": changes}, summary)


def _read(name: str) -> str:
    """The text of the file, or of standard input."""
    if name == "-":
        return sys.stdin.read()
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name} cannot be read: {error}") from error

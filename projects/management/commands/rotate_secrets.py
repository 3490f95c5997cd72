"""manage.py rotate_secrets: seal every stored credential by the first key."""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import transaction
from django.utils.module_loading import import_string

from projects.sealing import SealingError, add_key_to_file, first_key_id
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Seal every stored credential by the first key of COSTWATCH_SECRETS_KEY."

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_json_argument(parser)
        parser.add_argument(
            "--new-key",
            action="store_true",
            help="first put a new key before those of the key file in the data folder",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["new_key"]:
                add_key_to_file()
            count, newest = _rotate_all(), first_key_id()
        except SealingError as error:
            raise CommandError(str(error)) from error
        self.emit(
            {"sealed_anew": count, "key_id": newest},
            f"{count} credentials sealed anew by key {newest}.",
        )


def _rotate_all() -> int:
    """Let every room that stores credentials seal its own anew, all of them or none."""
    with transaction.atomic():
        return sum(import_string(path.replace(":", "."))() for path in settings.SECRET_STORES)

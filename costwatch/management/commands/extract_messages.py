"""`manage.py extract_messages`: bring the .po files up to date with the texts the app shows."""

from pathlib import Path
from typing import Any

from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.core.management.base import BaseCommand

from costwatch.messages import shown_texts


class Command(BaseCommand):
    help = "Add new texts to the .po files, drop those that are gone."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        template = shown_texts(settings.BASE_DIR)
        for folder in settings.LOCALE_PATHS:
            for path in sorted(Path(folder).rglob("*.po")):
                with path.open("rb") as file:
                    catalog = read_po(file, locale=path.parent.parent.name)
                catalog.update(template, no_fuzzy_matching=True)
                catalog.obsolete.clear()
                with path.open("wb") as file:
                    write_po(file, catalog, sort_output=True, width=96, include_lineno=False)
                missing = sum(1 for message in catalog if message.id and not message.string)
                self.stdout.write(f"{path.relative_to(settings.BASE_DIR)}: {missing} to translate")

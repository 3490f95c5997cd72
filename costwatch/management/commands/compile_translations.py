"""`manage.py compile_translations`: .po to .mo with Babel, so nobody needs gettext's own tools."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from babel.messages.mofile import write_mo
from babel.messages.pofile import PoFileError, read_po
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    help = "Compile the translations that changed."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--force", action="store_true", help="compile unchanged ones too")

    def handle(self, *args: Any, **options: Any) -> None:
        for folder in settings.LOCALE_PATHS:
            for source in sorted(Path(folder).rglob("*.po")):
                target = source.with_suffix(".mo")
                if options["force"] or _is_older(target, source):
                    _compile(source, target)
                    self.stdout.write(f"compiled {source.relative_to(settings.BASE_DIR)}")


def _is_older(target: Path, source: Path) -> bool:
    return not target.exists() or target.stat().st_mtime < source.stat().st_mtime


def _compile(source: Path, target: Path) -> None:
    """Refuse a translation whose placeholders differ: it would fail on a page."""
    try:
        with source.open("rb") as file:
            catalog = read_po(file, abort_invalid=True)
    except PoFileError as error:
        raise CommandError(f"{source}: {error}") from error
    for message, errors in catalog.check():
        if not message.fuzzy:
            raise CommandError(f"{source}, line {message.lineno}: {message.id!r}: {errors[0]}")
    unfinished = target.with_suffix(".mo.unfinished")
    with unfinished.open("wb") as file:
        write_mo(file, catalog)
    unfinished.replace(target)

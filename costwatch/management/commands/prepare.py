"""`manage.py prepare`: everything between installed and ready to serve. Each step skips itself."""

import hashlib
import time
from argparse import ArgumentParser
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.core.management.base import BaseCommand

STAMP = ".collected"


class Command(BaseCommand):
    help = "Migrate the database, compile translations, collect static files, load the demo."
    requires_system_checks = ()  # `make check` runs them; here they would load every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--no-demo", action="store_true", help="leave the demo project out")

    def handle(self, *args: Any, **options: Any) -> None:
        self._step("Database", lambda: call_command("migrate", verbosity=0))
        self._step("Translations", lambda: call_command("compile_translations"))
        self._step("Static files", _collect_static)
        if not options["no_demo"]:
            self._step("Demo project", _load_demo)

    def _step(self, name: str, action: Callable[[], object]) -> None:
        start = time.monotonic()
        action()
        self.stdout.write(f"{name} ready ({time.monotonic() - start:.1f} s)")


def _load_demo() -> None:
    """Load it quietly: who starts the web server says how to sign in."""
    call_command("demo", if_absent=True, stdout=StringIO())


def _collect_static() -> None:
    """Collect when a source file changed since the last time."""
    stamp = Path(settings.STATIC_ROOT) / STAMP
    state = _state_of_sources()
    if stamp.exists() and stamp.read_text() == state:
        return
    call_command("collectstatic", interactive=False, clear=True, verbosity=0)
    stamp.write_text(state)


def _state_of_sources() -> str:
    digest = hashlib.sha256(repr(settings.STORAGES["staticfiles"]).encode())
    for finder in get_finders():
        for name, storage in finder.list([]):
            status = Path(storage.path(name)).stat()
            digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()

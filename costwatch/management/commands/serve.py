"""`manage.py serve`: the web server as in production. Starts no worker."""

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from costwatch.bind import BadBindError, parse_bind, require_free


class Command(BaseCommand):
    help = "Serve the web pages and the API with granian, as in production."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--bind", metavar="HOST:PORT", default=settings.BIND)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            bind = parse_bind(options["bind"])
            require_free(bind)
        except BadBindError as error:
            raise CommandError(str(error)) from error
        command = [sys.executable, "-m", "granian", "--interface", "wsgi"]
        command += ["--host", bind.host, "--port", str(bind.port), "--no-ws"]
        command += ["--workers", str(settings.WEB_WORKERS)]
        command += ["--blocking-threads", str(settings.WEB_THREADS)]
        command += ["--log-level", "warning", "--workers-kill-timeout", "10s"]
        os.chdir(settings.BASE_DIR)
        os.execv(sys.executable, [*command, "costwatch.wsgi:application"])  # noqa: S606 no shell is meant

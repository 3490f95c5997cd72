"""`manage.py serve`: the web server as in production. Starts no worker."""

import os
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from costwatch.bind import BadBindError, parse_bind, require_free
from costwatch.web_command import web_command


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
        command = web_command(bind)
        os.execv(command[0], command)  # noqa: S606 no shell is meant

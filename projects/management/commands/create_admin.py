"""`manage.py create_admin NAME`: an administrator; the password is given or asked for."""

import getpass
import sys
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from projects.access import system_actor
from projects.chosen_organisation import chosen_organisation
from projects.services import create_admin
from ui.console import JsonCommand

PASSWORD_VARIABLE = "COSTWATCH_ADMIN_PASSWORD"  # noqa: S105  # the name of a variable


class Command(JsonCommand):
    help = f"Make an administrator. The password comes from {PASSWORD_VARIABLE} or is asked for."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("username")
        parser.add_argument("--email", default="", help="for the way back from a lost password")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            organisation = chosen_organisation(options["organisation"])
            user = create_admin(
                system_actor(organisation.pk, "manage.py create_admin"),
                organisation=organisation,
                username=options["username"],
                email=options["email"],
                password=self._password(),
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        self.emit(
            {"username": user.get_username(), "organisation": organisation.slug},
            f"{user.get_username()} may sign in as administrator of {organisation.name}.",
        )

    def _password(self) -> str:
        if settings.ADMIN_PASSWORD:
            return str(settings.ADMIN_PASSWORD)
        if not sys.stdin.isatty():
            raise CommandError(f"Set {PASSWORD_VARIABLE}, or run this at a terminal.")
        password = getpass.getpass("Password: ")
        if getpass.getpass("Again: ") != password:
            raise CommandError("The two passwords differ.")
        return password

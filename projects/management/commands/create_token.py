"""`manage.py create_token --scope SCOPE…`: prints the token once, alone on the last line."""

from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.http import Http404

from projects.access import system_actor
from projects.records import Scope, TokenReach
from projects.selectors import NoOrganisationError, organisation_by_slug, the_organisation
from projects.services import create_token
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Make an API token and print it once, alone on the last line."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--scope",
            action="append",
            required=True,
            choices=[scope.value for scope in Scope],
            help="what it may do; give it again for more",
        )
        parser.add_argument("--project", metavar="SLUG", help="limit it to one project")
        parser.add_argument("--site", metavar="ID", type=UUID, help="limit it to one site")
        parser.add_argument("--source", metavar="ID", type=UUID, help="limit it to one bill source")
        parser.add_argument("--days", type=int, default=90, help="days until it expires")
        parser.add_argument("--name", default="command line", help="where it will be used")

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["organisation"]
        try:
            organisation = organisation_by_slug(slug) if slug else the_organisation()
            new_token = create_token(
                system_actor(organisation.pk, "manage.py create_token"),
                name=options["name"],
                scopes=[Scope(scope) for scope in options["scope"]],
                days=options["days"],
                reach=TokenReach(
                    project_slug=options["project"],
                    site_id=options["site"],
                    source_id=options["source"],
                ),
            )
        except NoOrganisationError as error:
            raise CommandError(str(error)) from error
        except Http404 as error:
            raise CommandError(f"There is no project {options['project']!r}.") from error
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        self.say("Keep this token now: it is never shown again.")
        self.emit({"id": new_token.token_id, "token": new_token.secret}, new_token.secret)

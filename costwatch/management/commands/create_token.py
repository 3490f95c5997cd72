"""`manage.py create_token --scope SCOPE…`: prints the token once, alone on the last line."""

from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.http import Http404

from billing.selectors import sources
from projects.access import system_actor
from projects.chosen_organisation import chosen_organisation
from projects.records import Scope, TokenReach
from projects.services import create_token
from runs.selectors import site_by_slug
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
        parser.add_argument("--site", metavar="SLUG", help="limit it to one site")
        parser.add_argument("--source", metavar="NAME", help="limit it to one source of bills")
        parser.add_argument("--days", type=int, default=90, help="days until it expires")
        parser.add_argument("--name", default="command line", help="where it will be used")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            organisation = chosen_organisation(options["organisation"])
            reach = _reach(organisation.pk, options)
            new_token = create_token(
                system_actor(organisation.pk, "manage.py create_token"),
                name=options["name"],
                scopes=[Scope(scope) for scope in options["scope"]],
                days=options["days"],
                reach=reach,
            )
        except Http404 as error:
            raise CommandError(f"There is no project {options['project']!r}.") from error
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        self.say("Keep this token now: it is never shown again.")
        self.emit({"id": new_token.token_id, "token": new_token.secret}, new_token.secret)


def _reach(organisation_id: UUID, options: dict[str, Any]) -> TokenReach:
    """What the token is limited to; the rooms above `projects` know their own names."""
    site_id = source_id = None
    if options["site"]:
        site = site_by_slug(organisation_id, options["site"])
        if site is None:
            raise CommandError(f"There is no site {options['site']!r}.")
        site_id = site.site_id
    if options["source"]:
        source = sources(organisation_id).filter(name=options["source"]).first()
        if source is None:
            raise CommandError(f"There is no source of bills {options['source']!r}.")
        source_id = source.pk
    return TokenReach(project_slug=options["project"], site_id=site_id, source_id=source_id)

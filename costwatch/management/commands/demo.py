"""`manage.py demo`: load the synthetic demo project through the doors of real data."""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from costwatch.demo import story
from costwatch.demo.load import DemoError, Wish, demo_project, load_demo
from projects.chosen_organisation import chosen_organisation
from ui.console import JsonCommand

SIGN_IN = """Sign in as {user} with the password {password} (published: for this machine only),
then click "{project}" to see its burn-down.
To see what others see: {others}, same password."""
NO_ACCOUNTS = """This installation is not for one machine only: no account with a published password
was made. Sign in as an administrator of your own, then click "{project}"."""


class Command(JsonCommand):
    help = "Load the synthetic demo project; loading it again changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--if-absent", action="store_true", help="do nothing where the project exists"
        )
        parser.add_argument(
            "--seed", type=int, default=story.DEFAULT_SEED, help="another one restates the bills"
        )
        parser.add_argument(
            "--one-process", action="store_true", help="load bills and power one after the other"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        path = f"/projects/{story.PROJECT_SLUG}/"
        if options["if_absent"] and demo_project(organisation) is not None:
            self.emit({"project": story.PROJECT_SLUG, "path": path, "stages": {}}, _there(path))
            return
        wish = Wish(
            seed=options["seed"],
            with_accounts=bool(settings.INSECURE_HTTP),
            one_process=options["one_process"],
            say=self.say,
        )
        try:
            stages = load_demo(organisation, wish)
        except DemoError as error:
            raise CommandError(str(error)) from error
        self.emit(
            {"project": story.PROJECT_SLUG, "path": path, "stages": stages},
            "\n".join([_timing(stages), _there(path), _how_to_sign_in(wish)]),
        )


def _there(path: str) -> str:
    return f"The demo project is at {path}. Every figure in it is invented."


def _timing(stages: dict[str, float]) -> str:
    parts = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in stages.items())
    return f"Loaded: {parts}."


def _how_to_sign_in(wish: Wish) -> str:
    if not wish.with_accounts:
        return NO_ACCOUNTS.format(project=story.PROJECT_NAME)
    first, *others = story.DEMO_USERS
    return SIGN_IN.format(
        user=first.username,
        password=story.DEMO_PASSWORD,
        project=story.PROJECT_NAME,
        others=", ".join(person.username for person in others),
    )

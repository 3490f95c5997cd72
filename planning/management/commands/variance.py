"""manage.py variance: why actuals of a project differ from its plan, by cause."""

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.http import Http404

from carbon.instants import settled
from formulae.periods import parse_utc
from planning.selectors import BASES
from planning.variance import variance_of
from planning.variance_documents import variance_document
from planning.variance_records import Variance
from projects.access import project_for, system_actor
from projects.chosen_organisation import chosen_organisation
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Show why a project costs, draws and emits more or less than planned, by cause."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument("--basis", choices=BASES, default="effective")
        parser.add_argument("--as-of", metavar="T", help="what was known at T (ISO 8601, UTC)")

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        try:
            asked = parse_utc(options["as_of"]) if options["as_of"] else datetime.now(UTC)
            as_of = settled(asked)
            project = project_for(
                system_actor(organisation.pk, "manage.py variance"), options["project"]
            )
        except (Http404, ValueError) as error:
            raise CommandError(str(error)) from error
        found = variance_of(project, as_of=as_of, basis=options["basis"])
        self.emit(variance_document(found), _in_words(project.name, found))


def _in_words(name: str, found: Variance | None) -> str:
    """The causes for a person at a terminal."""
    if found is None:
        return f"{name} has no approved plan, or nothing is known of it yet"
    rows = [("planned for the same work", found.cost.planned), ("actual", found.cost.actual)]
    rows += [(one.cause.value.replace("_", " "), one.cost) for one in found.causes if one.cost != 0]
    rows.append(("difference", found.cost.difference))
    lines = [f"{name}, through {found.through}, against {found.against.value.replace('_', ' ')}"]
    lines += [
        f"  {label:<26} {'n/a' if cost is None else f'{cost:,.2f} {found.currency}'}"
        for label, cost in rows
    ]
    return "\n".join(lines)

"""manage.py burndown: plan against actuals of one project."""

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.http import Http404

from carbon.instants import settled
from formulae.periods import parse_utc
from planning.documents import burndown_document
from planning.records import Burndown
from planning.selectors import BASES, burndown_of
from projects.access import project_for, system_actor
from projects.chosen_organisation import chosen_organisation
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Show what was planned, what was spent, and the energy and carbon of a project."

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
                system_actor(organisation.pk, "manage.py burndown"), options["project"]
            )
        except (Http404, ValueError) as error:
            raise CommandError(str(error)) from error
        burndown = burndown_of(project, as_of=as_of, basis=options["basis"])
        self.emit(burndown_document(burndown), _in_words(project.name, burndown))


def _in_words(name: str, burndown: Burndown) -> str:
    """The totals for a person at a terminal."""
    rows = [
        ("planned value", burndown.planned_value, burndown.currency),
        ("actual cost", burndown.actual_cost, burndown.currency),
        ("programme multiple", burndown.programme_multiple, "x of the main run"),
        ("all-in multiple", burndown.all_in_multiple, "x of the main run"),
        ("facility energy", burndown.energy_and_emissions.facility_energy_kwh, "kWh"),
        ("carbon", burndown.energy_and_emissions.scope_2_location_kgco2e, "kgCO2e, location-based"),
    ]
    lines = [f"{name}, billed through {burndown.billed_through or 'not yet'}"]
    lines += [
        f"  {label:<20} {'n/a' if value is None else f'{value:,.2f} {unit}'}"
        for label, value, unit in rows
    ]
    return "\n".join(lines)

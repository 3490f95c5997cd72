"""`manage.py energy`: energy and emissions of a project or a site, by time, owner or device."""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.http import Http404
from django.utils.translation import gettext as _

from carbon.energy_answers import bounded, energy_table
from carbon.energy_documents import table_document
from carbon.energy_questions import GROUPS, QuestionError, question_in
from carbon.energy_records import EnergyRow, EnergyTable
from projects.access import system_actor
from projects.chosen_organisation import chosen_organisation
from ui.console import JsonCommand

_ASKED = ("project", "run", "site", "from", "to", "as_of")


class Command(JsonCommand):
    help = "Energy and emissions by hour, day, month, project, run, site, node or device."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--project", metavar="SLUG", default="")
        parser.add_argument("--run", metavar="SLUG", default="", help="a run of the project")
        parser.add_argument("--site", metavar="SLUG", default="")
        parser.add_argument("--group-by", choices=GROUPS, default="day")
        parser.add_argument("--from", metavar="D", default="", help="first day, or hour")
        parser.add_argument("--to", metavar="D", default="", help="first day that is out")
        parser.add_argument("--as-of", metavar="T", default="", help="as known at that instant")

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        actor = system_actor(organisation.pk, "manage.py energy")
        asked = {name: options[name] for name in _ASKED} | {"by": options["group_by"]}
        try:
            question = bounded(question_in(asked, actor))
        except (QuestionError, Http404) as error:
            raise CommandError(str(error)) from error
        table = energy_table(question)
        self.emit(table_document(table, question), _words(table))


def _words(table: EnergyTable) -> str:
    """The rows and their total as lines for a person."""
    lines = [_line(row.name, row) for row in table.rows]
    return "\n".join([*lines, _line(_("total"), table.total)])


def _line(name: str, row: EnergyRow) -> str:
    unknown = _("unknown")
    facility, emitted = row.facility_energy_kwh, row.scope_2_location_kgco2e
    return "  ".join(
        (
            f"{name}:",
            f"{row.accelerator_energy_kwh:,.3f} kWh ({_('accelerators')}),",
            f"{unknown if facility is None else f'{facility:,.3f}'} kWh ({_('facility')}),",
            f"{unknown if emitted is None else f'{emitted:,.3f}'} kgCO2e",
        )
    )

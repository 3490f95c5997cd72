"""`manage.py import_power`: files of power samples or energy intervals into a site's books."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _

from carbon.records import PowerReport
from carbon.services import PowerFileError, import_power
from projects.access import system_actor
from projects.chosen_organisation import chosen_organisation
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Import power samples or energy intervals (CSV, plain or gzipped) of one site."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--site", required=True, metavar="NAME", help="created when unknown")
        parser.add_argument("files", nargs="+", metavar="FILE", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        actor = system_actor(organisation.pk, "manage.py import_power")
        try:
            report = import_power(actor, site_name=options["site"], paths=options["files"])
        except PowerFileError as error:
            raise CommandError(str(error)) from error
        self.emit(report.as_json(), _words(report))


def _words(report: PowerReport) -> str:
    """The report as lines for a person."""
    energy = report.accelerator_energy_kwh
    lines = [
        _(
            "%(rows)d rows of %(devices)d devices at site %(site)s: %(new)d new, %(duplicates)d "
            "already known, %(rejected)d set aside."
        )
        % {
            "rows": report.rows,
            "devices": report.devices,
            "site": report.site,
            "new": report.rows - report.duplicates - report.rejected,
            "duplicates": report.duplicates,
            "rejected": report.rejected,
        }
    ]
    lines += [f"  {reason}: {count}" for reason, count in report.reasons.items()]
    if report.unknown_columns:
        lines.append(_("Columns not read: %s.") % ", ".join(report.unknown_columns))
    lines += report.notes
    lines.append(
        _("Accelerator energy of these devices in the hours touched: %s kWh.") % f"{energy:,.3f}"
        if energy is not None
        else _("No energy: it takes two samples of a device, or one interval.")
    )
    return "\n".join(lines)

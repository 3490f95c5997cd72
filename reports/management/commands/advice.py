"""manage.py advice: wasted energy, other grids and hours, and power caps of one project."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.http import Http404

from projects.access import project_for, system_actor
from projects.chosen_organisation import chosen_organisation
from reports.advice import AdvicePage, advice_of, metered_through
from ui.console import JsonCommand

DAYS = 30


class Command(JsonCommand):
    help = "Say what energy of a project bought little, and what other grids and hours would emit."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument("--from", dest="start_on", type=date.fromisoformat, metavar="D")
        parser.add_argument(
            "--to", dest="end_on", type=date.fromisoformat, metavar="D", help="first day out"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        try:
            project = project_for(
                system_actor(organisation.pk, "manage.py advice"), options["project"]
            )
        except Http404 as error:
            raise CommandError(str(error)) from error
        last = metered_through(project) or datetime.now(UTC).date()
        end_on = options["end_on"] or last + timedelta(days=1)
        start_on = options["start_on"] or end_on - timedelta(days=DAYS)
        if start_on >= end_on:
            raise CommandError("--from must lie before --to")
        page = advice_of(project, start_on=start_on, end_on=end_on)
        self.emit(page.as_json(), _in_words(project.name, page))


def _in_words(name: str, page: AdvicePage) -> str:
    """The advice for a person at a terminal."""
    lines = [f"{name}, {page.start_on} to {page.end_on}"]
    for row in page.waste:
        price = "not priced" if row.cost is None else f"{row.cost:.2f} {page.currency}"
        kgco2e = "n/a" if row.spent.kgco2e is None else f"{row.spent.kgco2e:,.1f} kgCO2e"
        lines.append(
            f"  {row.run or 'no run'}, {row.kind}: {row.spent.device_h:,.1f} device-hours, "
            f"{row.spent.accelerator_energy_kwh:,.1f} kWh at the accelerator, {kgco2e}, {price}"
        )
    lines += [
        f"  elsewhere, {one.name}: {one.kgco2e:,.1f} kgCO2e at {one.g_per_kwh:g} g/kWh"
        for one in page.regions
    ]
    lines += [
        f"  begun {one.best.shift_h} h later in {one.zone} ({one.signal}): "
        f"{one.best.kgco2e:,.1f} instead of {one.as_it_was_kgco2e:,.1f} kgCO2e"
        for one in page.shifts
    ]
    return "\n".join(lines if len(lines) > 1 else [*lines, "  nothing to advise on"])

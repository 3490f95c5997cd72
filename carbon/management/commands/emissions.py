"""`manage.py emissions`: energy and emissions of a project or a site, with every factor in them."""

from datetime import date
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.http import Http404
from django.utils.translation import gettext as _

from carbon.records import EmissionSummary
from carbon.selectors import emissions_summary
from projects.access import project_for, system_actor
from projects.chosen_organisation import chosen_organisation
from runs.selectors import site_by_slug
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Sum energy and emissions of a project or a site; names every factor."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--project", metavar="SLUG")
        parser.add_argument("--site", metavar="SLUG")
        parser.add_argument("--from", dest="start_on", type=_day, metavar="D", help="first day")
        parser.add_argument(
            "--to", dest="end_on", type=_day, metavar="D", help="first day that is out"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["project"] and not options["site"]:
            raise CommandError(_("Name a project (--project SLUG) or a site (--site SLUG)."))
        organisation = chosen_organisation(options["organisation"])
        actor = system_actor(organisation.pk, "manage.py emissions")
        project_id = site_id = None
        if options["project"]:
            try:
                project_id = project_for(actor, options["project"]).pk
            except Http404 as error:
                raise CommandError(_("No project %s.") % options["project"]) from error
        if options["site"]:
            site = site_by_slug(organisation.pk, options["site"])
            if site is None:
                raise CommandError(_("No site %s.") % options["site"])
            site_id = site.site_id
        summary = emissions_summary(
            organisation.pk,
            project_id,
            site_id=site_id,
            start_on=options["start_on"],
            end_on=options["end_on"],
        )
        self.emit(summary.as_json(), _words(summary))


def _day(text: str) -> date:
    return date.fromisoformat(text)


def _words(summary: EmissionSummary) -> str:
    """The sums as lines for a person; what is unknown says so."""
    rows = [
        (_("accelerator energy"), summary.accelerator_energy_kwh, "kWh"),
        (_("IT energy"), summary.it_energy_kwh, "kWh"),
        (_("facility energy"), summary.facility_energy_kwh, "kWh"),
        (_("scope 2, location-based"), summary.scope_2_location_kgco2e, "kgCO2e"),
        (_("scope 2, market-based"), summary.scope_2_market_kgco2e, "kgCO2e"),
        (
            _("scope 2, market-based by the hour"),
            summary.scope_2_market_hourly_kgco2e,
            "kgCO2e",
        ),
        (_("energy under contracts"), summary.contracted_kwh, "kWh"),
        (_("upstream of the grid"), summary.upstream_kgco2e, "kgCO2e"),
        (_("hardware, its share by use"), summary.embodied_kgco2e, "kgCO2e"),
        (_("water on site"), summary.water_on_site_l, "L"),
        (_("water of power plants"), summary.water_source_l, "L"),
        (_("coverage"), summary.coverage_fraction, ""),
        (_("measured share"), summary.measured_fraction, ""),
    ]
    unknown = _("unknown")
    lines = [
        f"{name}: {value:,.3f} {unit}".rstrip() if value is not None else f"{name}: {unknown}"
        for name, value, unit in rows
    ]
    lines += [
        f"  {one.kind} {one.value:g} {one.unit} ({one.level}; {one.source or one.factor_id})"
        for one in summary.factors
    ]
    return "\n".join(lines)

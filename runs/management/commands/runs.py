"""`manage.py runs`: a project's runs and where they stand, or one run day by day."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.http import Http404
from django.utils.translation import gettext as _

from projects.access import project_for, system_actor
from projects.chosen_organisation import chosen_organisation
from runs.progress_answers import progress_document, run_document
from runs.progress_selectors import latest_of, mfu_basis
from runs.selectors import run_by_slug
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "A project's runs and where they stand; with --run, one of them day by day."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--project", metavar="SLUG", required=True)
        parser.add_argument("--run", metavar="SLUG", default="", help="this run, day by day")

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        actor = system_actor(organisation.pk, "manage.py runs")
        try:
            project = project_for(actor, options["project"])
        except Http404 as error:
            raise CommandError(_("There is no such project.")) from error
        if options["run"]:
            run = run_by_slug(project.pk, options["run"])
            if run is None:
                raise CommandError(_("There is no such run."))
            document = progress_document(run)
            self.emit(document, "\n".join(_day_line(day) for day in document["days"]))
            return
        runs = []
        for now in latest_of(project.pk):
            basis = mfu_basis(now.run)
            runs.append({**run_document(now), "mfu_basis": basis and asdict(basis)})
        self.emit({"runs": runs}, "\n".join(_run_line(run) for run in runs))


def _shown(value: Any, form: str = "") -> str:
    return str(_("n/a")) if value is None else format(value, form)


def _run_line(run: dict[str, Any]) -> str:
    parts = (
        f"{run['slug']}:",
        _("step {step},").format(step=_shown(run["step"], ",")),
        _("{tokens} tokens,").format(tokens=_shown(run["tokens_total"], ",")),
        _("loss {loss},").format(loss=_shown(run["loss"])),
        f"MFU {_shown(run['mfu_fraction'], '.1%')},",
        _("as of {instant}").format(instant=_shown(run["at"])),
    )
    return "  ".join(parts) + (f"  {_('(silent)')}" if run["is_silent"] else "")


def _day_line(day: dict[str, Any]) -> str:
    parts = (
        f"{day['day']}:",
        _("{tokens} tokens,").format(tokens=_shown(day["tokens"], ",")),
        f"MFU {_shown(day['mfu_fraction'], '.1%')},",
        _("step P50 {p50} s, P99 {p99} s,").format(
            p50=_shown(day["step_time_p50_s"], ".2f"), p99=_shown(day["step_time_p99_s"], ".2f")
        ),
        _("loss {loss}").format(loss=_shown(day["loss"])),
    )
    return "  ".join(parts)

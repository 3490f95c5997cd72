"""manage.py export: charges as a FOCUS file; energy or emissions as the entries of the books."""

from datetime import date
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.http import Http404

from billing.cost_questions import Scope, make_question
from billing.exporting import FORMATS, export_charges
from billing.focus_columns import VERSION
from billing.records import Basis
from carbon.energy_questions import question_in
from carbon.exporting import EMISSIONS, ENERGY, export_entries
from projects.access import project_for, system_actor
from projects.chosen_organisation import chosen_organisation
from projects.records import Actor
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Write charges, energy or emissions to a file; --from is the first day, --to is out."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("what", choices=["charges", ENERGY, EMISSIONS])
        parser.add_argument("--format", choices=FORMATS, default="csv")
        parser.add_argument("--out", required=True, type=Path, metavar="FILE")
        parser.add_argument("--focus-version", choices=[VERSION], default=VERSION)
        parser.add_argument(
            "--where",
            action="append",
            default=[],
            metavar="COL=VALUE",
            help="only charges with this value, as in `costs`; repeatable",
        )
        parser.add_argument(
            "--basis",
            choices=[basis.value for basis in Basis],
            default="billed",
            help="where a month has a billed and an amortised book, the one that this cost is in",
        )
        parser.add_argument("--from", dest="start_on", type=date.fromisoformat, metavar="D")
        parser.add_argument("--to", dest="end_on", type=date.fromisoformat, metavar="D")
        parser.add_argument("--project", metavar="SLUG")
        parser.add_argument("--site", metavar="SLUG", help="only energy or emissions of this site")
        parser.add_argument("--as-of", default="", metavar="T", help="energy as known then")

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        actor = system_actor(organisation.pk, "manage.py export")
        path: Path = options["out"]
        try:
            if options["what"] == "charges":
                document, words = _charges(actor, path, options)
            else:
                document, words = _entries(actor, path, options)
        except (ValueError, Http404) as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"{path}: cannot be written ({error.strerror})") from error
        self.emit(document, words)


def _charges(actor: Actor, path: Path, options: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Write charges as a FOCUS file."""
    project = project_for(actor, options["project"]) if options["project"] else None
    question = make_question(
        group_by=(),
        basis=options["basis"],
        days=(options["start_on"], options["end_on"]),
        filters=options["where"],
        scope=Scope(project_id=project.pk if project else None),
    )
    rows = export_charges(actor.organisation_id, question, kind=options["format"], target=path)
    document = {
        "file": str(path),
        "format": options["format"],
        "focus_version": options["focus_version"],
        "rows": rows,
    }
    return document, f"{rows} charges as FOCUS {VERSION} in {path}"


def _entries(actor: Actor, path: Path, options: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Write the entries of the books, one an hour and owner."""
    asked = {
        "project": options["project"] or "",
        "site": options["site"] or "",
        "from": str(options["start_on"] or ""),
        "to": str(options["end_on"] or ""),
        "as_of": options["as_of"],
    }
    question = question_in(asked, actor)
    what, kind = options["what"], options["format"]
    rows = export_entries(question, what=what, kind=kind, target=path)
    document = {"file": str(path), "format": kind, "what": what, "rows": rows}
    return document, f"{rows} entries of {what} in {path}"

"""manage.py export: charges as a FOCUS file that other tools read."""

from datetime import date
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.http import Http404

from billing.cost_questions import Scope, make_question
from billing.exporting import FORMATS, export_charges
from billing.focus_columns import VERSION
from billing.records import Basis
from projects.access import project_for, system_actor
from projects.chosen_organisation import chosen_organisation
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Write charges as a FOCUS file; --from is the first day, --to the first that is out."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("what", choices=["charges"])
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

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        actor = system_actor(organisation.pk, "manage.py export")
        path: Path = options["out"]
        try:
            project = project_for(actor, options["project"]) if options["project"] else None
            question = make_question(
                group_by=(),
                basis=options["basis"],
                days=(options["start_on"], options["end_on"]),
                filters=options["where"],
                scope=Scope(project_id=project.pk if project else None),
            )
            rows = export_charges(organisation.pk, question, kind=options["format"], target=path)
        except (ValueError, Http404) as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"{path}: cannot be written ({error.strerror})") from error
        document = {
            "file": str(path),
            "format": options["format"],
            "focus_version": options["focus_version"],
            "rows": rows,
        }
        self.emit(document, f"{rows} charges as FOCUS {VERSION} in {path}")

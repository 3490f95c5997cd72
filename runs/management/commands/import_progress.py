"""`manage.py import_progress`: a run's progress from a file of JSON lines."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from django.http import Http404
from django.utils.text import slugify
from django.utils.translation import gettext as _

from projects.access import project_for, system_actor
from projects.chosen_organisation import chosen_organisation
from runs.progress import ensure_run
from runs.progress_intake import record_read
from runs.progress_lines import read_lines
from runs.progress_records import Refused
from runs.progress_summing import sum_stale_days
from ui.console import JsonCommand

SHOWN: Final = 20


class Command(JsonCommand):
    help = "Import points and events of a run from a file of JSON lines; the same again is safe."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--project", metavar="SLUG", required=True)
        parser.add_argument("--run", metavar="SLUG", required=True, help="made if it is new")
        parser.add_argument(
            "--source", metavar="NAME", default="", help="who says it; default: the file's name"
        )
        parser.add_argument("file", metavar="FILE", help="JSON lines; - for standard input")

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        actor = system_actor(organisation.pk, "manage.py import_progress")
        slug, path = options["run"], Path(options["file"])
        if slugify(slug, allow_unicode=False) != slug.lower() or len(slug) > 80:
            raise CommandError(_("A run's slug has letters, digits, hyphens and underscores."))
        try:
            project = project_for(actor, options["project"])
            is_piped = options["file"] == "-"
            opened = (
                nullcontext(sys.stdin)
                if is_piped
                else path.open(encoding="utf-8", errors="replace")
            )
        except Http404 as error:
            raise CommandError(_("There is no such project.")) from error
        except OSError as error:
            raise CommandError(f"{path.name}: {error.strerror}") from error
        run = ensure_run(actor, project, slug)
        totals = {"points_new": 0, "points_known": 0, "events_new": 0, "events_known": 0}
        refused: list[Refused] = []
        passed = 0
        source = options["source"] or ("stdin" if is_piped else path.name)
        with opened as lines:
            for piece in read_lines(lines, source):
                recorded = record_read(actor, run, piece.read, default=source)
                totals = {name: totals[name] + getattr(recorded, name) for name in totals}
                refused += recorded.refused
                passed += piece.passed
        sum_stale_days(run.run_id)
        document = {"run": run.slug, **totals, "lines_passed": passed, "refused": refused}
        self.emit(document, _words(document, refused))


def _words(totals: dict[str, Any], refused: list[Refused]) -> str:
    """The outcome for a person, the first refusals by line."""
    lines = [
        _("{points} new points, {known} known already, {events} new events.").format(
            points=totals["points_new"], known=totals["points_known"], events=totals["events_new"]
        )
    ]
    if totals["lines_passed"]:
        lines.append(
            _("{count} lines tell of no step and were passed over.").format(
                count=totals["lines_passed"]
            )
        )
    lines += [
        _("Line {line}, {field}: {reason}").format(
            line=one.index, field=one.field or "-", reason=one.reason
        )
        for one in refused[:SHOWN]
    ]
    if len(refused) > SHOWN:
        lines.append(_("{count} more lines were refused.").format(count=len(refused) - SHOWN))
    return "\n".join(lines)

"""`manage.py repost`: hours and entries of sites recomputed; what changed is posted and logged."""

from datetime import UTC, date, datetime, time
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _

from carbon.models import Restatement
from carbon.restating import repost_site
from projects.chosen_organisation import chosen_organisation
from runs.selectors import sites
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Recompute posted hours of a site, or of all; what changed is posted anew and logged."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--site", metavar="SLUG")
        parser.add_argument(
            "--from", dest="start_on", type=_midnight, metavar="D", help="first day"
        )
        parser.add_argument(
            "--to", dest="end_on", type=_midnight, metavar="D", help="first day that is out"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        wanted = [one for one in sites(organisation.pk) if options["site"] in (None, one.slug)]
        if not wanted and options["site"]:
            raise CommandError(_("No site %s.") % options["site"])
        posted = [
            {
                "site": site.slug,
                "entries": repost_site(
                    site,
                    now=None,
                    start=options["start_on"],
                    end=options["end_on"],
                ),
            }
            for site in wanted
        ]
        held = Restatement.objects.filter(
            organisation_id=organisation.pk, state=Restatement.State.HELD
        ).count()
        lines = [f"{one['site']}: {one['entries']} entries" for one in posted]
        if held:
            lines.append(_("%(held)d changes wait in locked periods.") % {"held": held})
        self.emit({"sites": posted, "held": held}, "\n".join(lines))


def _midnight(text: str) -> datetime:
    return datetime.combine(date.fromisoformat(text), time(), UTC)

"""`manage.py pull_intensity`: ask the sources of grid intensity now."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from django.utils.translation import gettext as _

from carbon.intensity import sources_of
from carbon.intensity_feeds import Pulled, Watch, pull_source
from carbon.intensity_sources import CSV, SourceError, source_named
from carbon.models import IntensitySource
from projects.chosen_organisation import chosen_organisation
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Ask the sources of grid intensity for what is new, or for the hours of some days."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--source", metavar="NAME", help="default: every one that is not paused"
        )
        parser.add_argument("--from", dest="first", metavar="DAY", help="first UTC day, 2025-10-01")
        parser.add_argument("--to", dest="last", metavar="DAY", help="last UTC day, itself in")

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        now = timezone.now()
        span = _span(options["first"], options["last"], now)
        try:
            if options["source"]:
                wanted = [source_named(organisation.pk, options["source"])]
            else:
                wanted = _asked(sources_of(organisation.pk))
        except SourceError as error:
            raise CommandError(str(error)) from error
        watch = Watch(report=lambda done, words: self.say(f"{words} ({done})"))
        done = [pull_source(one, now=now, span=span, watch=watch) for one in wanted]
        self.emit({"sources": [one.document() for one in done]}, "\n".join(map(_words, done)))
        if any(one.errors for one in done):
            raise CommandError("; ".join(why for one in done for why in one.errors.values()))


def _asked(sources: list[IntensitySource]) -> list[IntensitySource]:
    found = [one for one in sources if one.enabled and one.provider != CSV]
    if not found:
        raise SourceError(_("No service is connected; connect one on the page Intensity."))
    return found


def _span(first: str | None, last: str | None, now: datetime) -> tuple[datetime, datetime] | None:
    """The hours from the first day to the end of the last one; None without days."""
    if not first and not last:
        return None
    if not first:
        raise CommandError("--to needs --from")
    start = _day(first, "--from")
    end = _day(last, "--to") + timedelta(days=1) if last else now
    if end <= start:
        raise CommandError("--to lies before --from")
    return start, min(end, now)


def _day(text: str, option: str) -> datetime:
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise CommandError(f"{option} {text!r} is no day; write it as 2025-10-01") from error
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _words(pulled: Pulled) -> str:
    stored = pulled.stored
    lines = [
        f"{pulled.source}: {stored.new} new hours, {stored.revised} revised, "
        f"{stored.unchanged} unchanged, {stored.older} older words left out"
    ]
    lines += [f"  {note}" for note in dict.fromkeys(pulled.notes)]
    lines += [f"  {zone}: {why}" for zone, why in pulled.errors.items()]
    return "\n".join(lines)

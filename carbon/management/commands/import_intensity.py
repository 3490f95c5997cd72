"""`manage.py import_intensity`: hours of grid intensity from a CSV."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from carbon.adapters.intensity_csv import MAX_BYTES, CsvReading, IntensityFileError
from carbon.intensity_feeds import import_intensity
from carbon.intensity_sources import CSV, SourceError, SourceWish, save_source, source_named
from carbon.models import IntensitySource
from projects.access import system_actor
from projects.chosen_organisation import chosen_organisation
from projects.records import Actor
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Import hours of grid intensity (CSV: zone, hour, g_per_kwh and maybe basis)."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--source", required=True, metavar="NAME", help="made when unknown")
        parser.add_argument(
            "--accept-low",
            action="store_true",
            help="the values really are that low: none reaches 2 g/kWh",
        )
        parser.add_argument("file", metavar="FILE", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        actor = system_actor(organisation.pk, "manage.py import_intensity")
        path: Path = options["file"]
        now = timezone.now()
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
            source = _source(actor, options["source"], now)
            how = CsvReading(
                file=path.name, basis=source.basis, accept_low=options["accept_low"], now=now
            )
            stored = import_intensity(actor, source, data, how)
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}") from error
        except (IntensityFileError, SourceError) as error:
            raise CommandError(str(error)) from error
        self.emit(
            {"source": source.name, "file": path.name, **stored.document()},
            f"{source.name}: {stored.new} new hours, {stored.revised} revised, "
            f"{stored.unchanged} unchanged.",
        )


def _source(actor: Actor, name: str, now: Any) -> IntensitySource:
    """The source of this name, made bare when there is none; its sites get zones on its page."""
    known = IntensitySource.objects.filter(organisation_id=actor.organisation_id, name=name)
    if known.exists():
        return source_named(actor.organisation_id, name)
    return save_source(actor, SourceWish(provider=CSV, name=name, position=9), now=now)

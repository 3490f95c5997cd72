"""manage.py sweep_lake: remove what killed jobs left in the lake."""

from typing import Any

from django.core.management.base import CommandParser

from billing.services import sweep_lake
from lake.places import GRACE_S
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Remove files of the lake that nothing refers to and nobody touched lately."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--grace-s", type=float, default=GRACE_S, metavar="SECONDS")

    def handle(self, *args: Any, **options: Any) -> None:
        removed = sweep_lake(grace_s=options["grace_s"])
        words = ", ".join(f"{count} {what}" for what, count in removed.items())
        self.emit({"removed": removed}, f"Removed {words}.")

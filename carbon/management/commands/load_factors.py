"""`manage.py load_factors`: the shipped grid factors into the table; again adds nothing."""

from typing import Any

from carbon.services import load_shipped_factors
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Load the shipped grid factors; rows that are there stay as they are."

    def handle(self, *args: Any, **options: Any) -> None:
        added = load_shipped_factors()
        self.emit({"added": added}, f"{added} factors added.")

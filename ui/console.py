"""Commands that print either one JSON document or words for a person, never both."""

import dataclasses
import datetime as dt
import json
from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandParser


def json_ready(value: Any) -> Any:
    """Money as exact strings, times in ISO 8601, records as objects.

    Raises:
        TypeError: the value has no agreed JSON form.
    """
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime | dt.date):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, set | frozenset):
        return sorted(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} has no JSON form here: convert it first")


class JsonCommand(BaseCommand):
    """A command with `--json` and `--organisation`.

    Subclasses extend `add_arguments` (calling super) and end `handle` with `self.emit(...)`.
    """

    as_json = False

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_json_argument(parser)
        self.add_organisation_argument(parser)

    def add_json_argument(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--json", action="store_true", help="print one JSON document on standard output"
        )

    def add_organisation_argument(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--organisation", metavar="SLUG", default=None, help="default: the only organisation"
        )

    def execute(self, *args: Any, **options: Any) -> str | None:
        self.as_json = bool(options.get("json"))
        return super().execute(*args, **options)

    def emit(self, document: Mapping[str, Any], human: str) -> None:
        """Print `document` under `--json`, else `human`."""
        if self.as_json:
            text = json.dumps(document, default=json_ready, ensure_ascii=False, indent=2)
            self.stdout.write(text)
        else:
            self.stdout.write(human)

    def say(self, line: str) -> None:
        """A line on the way: standard error under `--json`, so that stdout stays one document."""
        (self.stderr if self.as_json else self.stdout).write(line)

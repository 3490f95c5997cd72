"""manage.py estimate: answer a kickoff question from a file, standard input or a preset."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from planning.estimating import Answer, answer_request
from planning.presets import PRESETS
from planning.spec import SpecError, parse_request
from projects.chosen_organisation import chosen_organisation
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Answer a kickoff question: compute, time, money, energy, carbon of a main run."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--file", metavar="SPEC.json", help="the question; - reads from stdin")
        which.add_argument("--preset", choices=sorted(PRESETS))
        parser.add_argument("--draws", type=int, help="draws of the interval")
        parser.add_argument("--seed", type=int, help="seed of the interval")

    def handle(self, *args: Any, **options: Any) -> None:
        document = dict(PRESETS[options["preset"]]) if options["preset"] else _read(options["file"])
        document |= {k: options[k] for k in ("draws", "seed") if options[k] is not None}
        organisation = chosen_organisation(options["organisation"])
        try:
            request = parse_request(document)
            answer = answer_request(organisation.pk, request, as_of=datetime.now(UTC))
        except SpecError as error:
            raise CommandError(str(error)) from error
        self.emit({"name": request.name, **answer.document()}, _in_words(request.name, answer))


def _read(name: str) -> dict[str, Any]:
    """The JSON object in a file or on standard input."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        document = json.loads(text)
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from error
    except ValueError as error:
        raise CommandError(f"{name} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise CommandError(f"{name} must hold one JSON object")
    return document


def _in_words(name: str, answer: Answer) -> str:
    """The answer for a person at a terminal."""
    lines = [
        name,
        f"  compute       {answer.flop:.3g} FLOP",
        f"  time          {answer.accelerator_h:,.0f} accelerator-hours, {answer.days:,.2f} days",
    ]
    if answer.cost is not None:
        lines.append(f"  cost (1.0x)   {answer.cost.amount:,.2f} {answer.cost.currency}")
    for label, value, unit in (
        ("accelerators", answer.accelerator_energy_kwh, "kWh"),
        ("facility", answer.facility_energy_kwh, "kWh"),
        ("carbon", answer.scope_2_location_kgco2e, "kgCO2e, location-based"),
    ):
        lines.append(f"  {label:<13} {'not known' if value is None else f'{value:,.0f} {unit}'}")
    return "\n".join(lines)

"""manage.py estimate: answer a kickoff question from a file, standard input or a preset."""

import json
import re
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from formulae.money import Money, MoneyError
from planning.answer_words import answer_in_words
from planning.estimating import LEVELS, Answer, answer_request
from planning.presets import PRESETS
from planning.spec import SpecError, parse_request
from projects.chosen_organisation import chosen_organisation
from ui.console import JsonCommand

_OVER: Final = 3
# Commas only where they part thousands: 1,5 would be read as 15.
_AMOUNT: Final = re.compile(r"([0-9]+|[0-9]{1,3}(,[0-9]{3})+)(\.[0-9]+)?([eE][0-9]{1,2})?")


class Command(JsonCommand):
    help = "Answer a kickoff question: compute, time, money, energy, carbon, with an interval."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--file", metavar="SPEC.json", help="the question; - reads from stdin")
        which.add_argument("--preset", choices=sorted(PRESETS))
        parser.add_argument("--draws", type=int, help="draws of the interval")
        parser.add_argument("--seed", type=int, help="seed of the interval")
        parser.add_argument(
            "--fail-over",
            metavar="'AMOUNT CUR'",
            help='exit 3 when the cost is above it, such as "5000000 USD"',
        )
        parser.add_argument("--at", choices=LEVELS, default="p80", help="the percentile to compare")
        parser.add_argument(
            "--of",
            choices=("cost", "programme"),
            default="cost",
            help="what to compare: the main run, or the programme before contingency",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        document = dict(PRESETS[options["preset"]]) if options["preset"] else _read(options["file"])
        document |= {k: options[k] for k in ("draws", "seed") if options[k] is not None}
        limit = None if options["fail_over"] is None else _amount(options["fail_over"])
        organisation = chosen_organisation(options["organisation"])
        try:
            request = parse_request(document)
            answer = answer_request(organisation.pk, request, as_of=datetime.now(UTC))
        except SpecError as error:
            raise CommandError(str(error)) from error
        self.emit(answer.document, answer_in_words(answer))
        if limit is not None:
            self._compare(answer, limit, options)

    def _compare(self, answer: Answer, limit: Money, options: dict[str, Any]) -> None:
        """Exit 3 when the cost at the percentile is above the limit."""
        level = options["at"]
        cost = answer.cost(level) if options["of"] == "cost" else answer.programme_cost(level)
        if cost is None:
            raise CommandError("--fail-over: the estimate has no price")
        if cost.currency != limit.currency:
            raise CommandError(
                f"--fail-over is in {limit.currency}, the estimate in {cost.currency}"
            )
        if cost.amount > limit.amount:
            self.stderr.write(
                f"{options['of']} at {level} is {cost.amount:,.2f} {cost.currency}, "
                f"above {limit.amount:,.2f}"
            )
            sys.exit(_OVER)


def _amount(text: str) -> Money:
    """An amount and its currency, such as 5000000 USD."""
    amount, _space, currency = text.strip().partition(" ")
    try:
        if not _AMOUNT.fullmatch(amount):
            raise MoneyError(amount)
        return Money.of(Decimal(amount.replace(",", "")), currency.strip())
    except (MoneyError, ArithmeticError) as error:
        raise CommandError(f"--fail-over {text!r}: write an amount and its currency") from error


def _read(name: str) -> dict[str, Any]:
    """The JSON object in a file or on standard input."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8-sig")
        document = json.loads(text)
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{name} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise CommandError(f"{name} must hold one JSON object")
    return document

"""The lines of a draft, from an answer: fractions, amounts, the bill around. No tables."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from planning.estimating import Answer
from planning.records import LineBase


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftedLine:
    """A line before its dates: a fraction of its base, or an amount; None is not known."""

    key: str
    name: str
    base: LineBase
    fraction: Decimal | None
    amount: Decimal | None
    in_programme: bool


def drafted_lines(answer: Answer, *, contingency: str) -> list[DraftedLine]:
    """The programme's lines as estimated, then the bill's lines, which are outside the programme.

    Args:
        answer: an estimate with a price.
        contingency: flat as the lines say, or p80 for P80 less P50 of the programme.
    """
    cost, programme, bill = (answer.document.get(key) for key in ("cost", "programme", "bill"))
    lines = [_programme_line(line) for line in cost["lines"]] if cost else []
    if contingency == "p80" and programme is not None:
        lines = [line for line in lines if line.key != "contingency"]
        lines.append(
            DraftedLine(
                key="contingency",
                name="contingency",
                base=LineBase.AMOUNT,
                fraction=None,
                amount=Decimal(programme["contingency_p80_less_p50"]),
                in_programme=True,
            )
        )
    return lines + [_bill_line(line) for line in (bill["lines"] if bill else [])]


def _programme_line(line: dict[str, Any]) -> DraftedLine:
    fraction = line["fraction"]
    return DraftedLine(
        key=line["key"],
        name=line["name"] or line["key"],
        base=LineBase(line["base"]),
        fraction=None if fraction is None else Decimal(fraction),
        amount=Decimal(line["amount"]),
        in_programme=line["in_programme"],
    )


def _bill_line(line: dict[str, Any]) -> DraftedLine:
    amount = line["amount"]
    return DraftedLine(
        key=line["key"].replace(".", "-"),
        name=line["name"],
        base=LineBase.AMOUNT,
        fraction=None,
        amount=None if amount is None else Decimal(amount),
        in_programme=False,
    )

"""The lines of a draft, from an answer: fractions, amounts, the bill around. No tables."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from formulae.plan_lines import PLAN_LINES
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
    cost, bill = answer.document.get("cost"), answer.document.get("bill")
    lines = [_programme_line(line) for line in cost["lines"]] if cost else []
    reserve = contingency_amount(answer)
    if contingency == "p80" and reserve is not None:
        lines = [line for line in lines if line.key != "contingency"]
        lines.append(
            DraftedLine(
                key="contingency",
                name="contingency",
                base=LineBase.AMOUNT,
                fraction=None,
                amount=reserve,
                in_programme=True,
            )
        )
    return lines + [_bill_line(line) for line in (bill["lines"] if bill else [])]


def contingency_amount(answer: Answer) -> Decimal | None:
    """The reserve that the spread of the programme asks for, P80 less P50; None without a price."""
    programme = answer.document.get("programme")
    return None if programme is None else Decimal(programme["contingency_p80_less_p50"])


def contingency_fraction(answer: Answer) -> Decimal:
    """The flat reserve: as the estimate's lines have it, else the chapter's."""
    lines = (answer.document.get("cost") or {"lines": []})["lines"]
    for line in lines:
        if line["key"] == "contingency" and line["base"] == LineBase.SUBTOTAL:
            return Decimal(line["fraction"])
    return next(rule.fraction for rule in PLAN_LINES if rule.key == "contingency")


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

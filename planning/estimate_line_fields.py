"""The plan's own lines, between the form's fields and SPEC."""

from decimal import Decimal
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from formulae.plan_lines import PLAN_LINES, PlanLineBase
from planning.estimate_fields import exact

OWN: Final = "own"
ROWS: Final = 8
_BLANK_ROWS: Final = 3
_HUNDRED: Final = Decimal(100)


def line_fields() -> dict[str, forms.Field]:
    """Every field of the table of lines."""
    found: dict[str, forms.Field] = {}
    for row in range(ROWS):
        words = {"n": row + 1}
        found |= {
            f"line{row}_key": forms.SlugField(
                required=False, max_length=40, widget=forms.HiddenInput()
            ),
            f"line{row}_name": forms.CharField(
                label=_("Line %(n)s: name") % words, required=False, max_length=120
            ),
            f"line{row}_percent": exact(_("Line %(n)s: percent") % words),
            f"line{row}_base": forms.ChoiceField(
                label=_("Line %(n)s: of what") % words,
                required=False,
                choices=[
                    (PlanLineBase.MAIN_RUN.value, _("of the main run")),
                    (PlanLineBase.SUBTOTAL.value, _("of all lines above")),
                ],
            ),
            f"line{row}_amount": exact(_("Line %(n)s: amount") % words),
            f"line{row}_in_programme": forms.BooleanField(
                label=_("Line %(n)s: counts in the programme") % words,
                required=False,
                initial=True,
            ),
        }
    return found


def lines_document(cleaned: dict[str, Any], *, currency: str) -> list[dict[str, Any]]:
    """The rows that hold a percent or an amount, as SPEC's lines."""
    lines = []
    for row in range(ROWS):
        value = {
            part: cleaned.get(f"line{row}_{part}")
            for part in ("key", "name", "percent", "base", "amount", "in_programme")
        }
        if value["percent"] is None and value["amount"] is None:
            continue
        line: dict[str, Any] = {"key": value["key"] or f"own-{row}"}
        if value["name"]:
            line["name"] = value["name"]
        if value["percent"] is not None:
            line["fraction"] = format(value["percent"] / _HUNDRED, "f")
            line["base"] = value["base"] or PlanLineBase.MAIN_RUN.value
        if value["amount"] is not None:
            line["amount"] = {"amount": format(value["amount"], "f"), "currency": currency}
        if not value["in_programme"]:
            line["in_programme"] = False
        lines.append(line)
    return lines


def chapter_lines() -> dict[str, Any]:
    """The chapter's lines as first values, with empty rows before its contingency."""
    rules = [rule for rule in PLAN_LINES if rule.key != "main_run"]
    rows: list[dict[str, Any]] = [
        {"key": rule.key, "fraction": rule.fraction, "base": rule.base.value} for rule in rules
    ]
    return _rows([*rows[:-1], *({} for _blank in range(_BLANK_ROWS)), rows[-1]])


def lines_initial(document: dict[str, Any], *, currency: str) -> dict[str, Any]:
    """SPEC's lines as first values; lines that do not fit the table stay in `document`."""
    lines = document.get("lines")
    if lines is None or isinstance(lines, str):
        return chapter_lines() | {"lines": document.pop("lines", "")}
    around = [line for line in lines if line["key"] != "main_run"]
    amounts = [line["amount"] for line in around if "amount" in line]
    if len(around) > ROWS or any(amount["currency"] != currency for amount in amounts):
        return chapter_lines()
    del document["lines"]
    return _rows(around) | {"lines": OWN}


def _rows(lines: list[dict[str, Any]]) -> dict[str, Any]:
    initial: dict[str, Any] = {}
    for row, line in enumerate(lines):
        fraction, amount = line.get("fraction"), line.get("amount")
        initial |= {
            f"line{row}_key": line.get("key", ""),
            f"line{row}_name": line.get("name", ""),
            f"line{row}_percent": None if fraction is None else _percent(Decimal(fraction)),
            f"line{row}_base": line.get("base", PlanLineBase.MAIN_RUN.value),
            f"line{row}_amount": None if amount is None else amount["amount"],
            f"line{row}_in_programme": line.get("in_programme", True),
        }
    return initial


def _percent(fraction: Decimal) -> str:
    """A fraction in percent, without trailing zeros or an exponent.

    >>> _percent(Decimal("0.200000000")), _percent(Decimal("4.618"))
    ('20', '461.8')
    """
    return format((fraction * _HUNDRED).normalize(), "f")

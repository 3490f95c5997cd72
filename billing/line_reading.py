"""Reads the texts of one file's lines as exact numbers and times, or names the one that is none."""

from decimal import Decimal
from typing import Any, Final

import ibis
from django.utils.translation import gettext as _

from billing.adapters.layout import PLACES, Layout
from billing.expressions import (
    INSTANT_WORDS,
    Repairs,
    is_exact,
    is_irregular,
    is_readable_instant,
    number_text,
)
from billing.records import MONEY_TYPE, ChargesRefusedError
from formulae.units import NumberTextError, strict_decimal
from lake.engine import Engine

MAX_IRREGULAR: Final = 5_000_000
SHOWN_BAD: Final = 200


class RowRefusedError(ChargesRefusedError):
    """A refusal that names the row, and remembers the text it is about."""

    text: str = ""

    @classmethod
    def of(
        cls, text: str | None, reason: str, *, file: str, row: int, column: str
    ) -> "RowRefusedError":
        """A refusal of one cell."""
        said = reason if text is None else f"{text[:60]!r} {reason}"
        refusal = cls("unreadable", said, file=file, row=row, column=column)
        refusal.text = text or ""
        return refusal


class LineReading:
    """The lines of one file, and what their number and time texts say."""

    def __init__(self, engine: Engine, name: str, lines: ibis.Table, layout: Layout) -> None:
        self.engine, self.name, self.lines, self.layout = engine, name, lines, layout
        self.rounded: list[dict[str, Any]] = []

    def repairs(self) -> Repairs:
        """Check every number and time; read exactly, in Python, what is no plain number.

        Raises:
            ChargesRefusedError: a text that is no number, or no time.
        """
        counts = self._counts()
        for name, style in self.layout.instants.items():
            if counts.get(f"unreadable_{name}"):
                readable = is_readable_instant(self.lines[name], style)
                raise self._refusal(name, ~readable, INSTANT_WORDS[style])
        irregular = [name for name in self.layout.numbers if counts.get(f"irregular_{name}")]
        values: dict[str, Decimal] = {}
        for name in irregular:
            values |= self._irregular(name)
        if not values:
            return Repairs()
        table = self.engine.small_table(
            [{"number_text": text, "number": value} for text, value in values.items()],
            {"number_text": "string", "number": MONEY_TYPE},
        )
        return Repairs(numbers=table, irregular_columns=frozenset(irregular))

    def _counts(self) -> dict[str, int]:
        """How many texts are no plain numbers; and of the different times, how many are none."""
        numbers = {
            f"irregular_{name}": is_irregular(self.lines[name]).sum()
            for name in self.layout.numbers
            if not is_exact(self.lines[name])
        }
        times = self.lines.select(*self.layout.instants).distinct()  # few: bills repeat them
        instants = {
            f"unreadable_{name}": (~is_readable_instant(times[name], style)).sum()
            for name, style in self.layout.instants.items()
        }
        found: dict[str, Any] = {}
        for table, asked in ((self.lines, numbers), (times, instants)):
            if asked:
                found |= self.engine.rows(table.aggregate(**asked))[0]
        return {name: int(value or 0) for name, value in found.items()}

    def _irregular(self, name: str) -> dict[str, Decimal]:
        """The values of a column's texts that are no plain numbers."""
        texts = self.lines.filter(is_irregular(self.lines[name]))
        found = self.engine.rows(
            texts.group_by(number_text=number_text(texts[name]))
            .agg(rows=texts.count())
            .limit(MAX_IRREGULAR + 1)
        )
        if len(found) > MAX_IRREGULAR:
            raise ChargesRefusedError(
                "too_large",
                _("more than {limit} different amounts need exact rounding; split it").format(
                    limit=MAX_IRREGULAR
                ),
                column=name,
            )
        values: dict[str, Decimal] = {}
        rounded = 0
        for item in found:
            try:
                parsed = strict_decimal(item["number_text"])
            except NumberTextError:
                raise self._first_bad_number(name, found) from None
            values[item["number_text"]] = parsed.value
            rounded += item["rows"] if parsed.digits_lost else 0
        if rounded:
            column = next((o for o, t in self.layout.columns.items() if t == name), name)
            self.rounded.append({"column": column, "rows": rounded})
        return values

    def _first_bad_number(self, name: str, found: list[dict[str, Any]]) -> ChargesRefusedError:
        """The refusal of the first row, in the file's order, whose text is no number."""
        texts = (item["number_text"] for item in found)
        bad = {text: reason for text in texts if (reason := _number_fault(text)) is not None}
        is_bad = number_text(self.lines[name]).isin(list(bad)[:SHOWN_BAD])
        refusal = self._refusal(name, is_bad, "")
        return ChargesRefusedError(
            refusal.code, bad[refusal.text], file=self.name, row=refusal.row, column=name
        )

    def _refusal(self, name: str, bad: Any, reason: str) -> RowRefusedError:
        """Name the first row for which `bad` holds."""
        rows = self.lines.filter(bad)
        rows = rows.select(*PLACES, text=number_text(rows[name]))
        first = self.engine.rows(rows.order_by("x_source_row").limit(1))[0]
        return RowRefusedError.of(
            first["text"], reason, file=self.name, row=first["x_source_row"], column=name
        )


def _number_fault(text: str) -> str | None:
    """Why the text is no number of money; None when it is one."""
    try:
        strict_decimal(text)
    except NumberTextError as error:
        return str(error)
    return None

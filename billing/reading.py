"""Reads a delivery's texts into classified charges: refuses what it must, notes what was odd."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any, Final

import ibis
from babel.numbers import list_currencies
from django.utils.translation import gettext as _

from billing.adapters.layout import Layout
from billing.classification import classify
from billing.columns import BY_NAME, CHARGE_COLUMNS
from billing.expressions import (
    INSTANT,
    INSTANTS,
    NUMBERS,
    PLAIN_NUMBER,
    Repairs,
    charge_texts,
    is_total_line,
    typed_charges,
)
from billing.records import ChargesRefusedError, Kind
from formulae.units import NumberTextError, strict_decimal
from lake.engine import Engine
from lake.text_files import TextTable

MAX_IRREGULAR: Final = 5_000_000
EARLIEST: Final = "1970"  # texts in this form sort as their times do
LATEST: Final = "9000"
MAX_SPELLINGS: Final = 200
ENUMS: Final = tuple(column.name for column in CHARGE_COLUMNS if column.kind is Kind.ENUM)
PLACING: Final = (*INSTANTS, "billing_currency")  # without these a charge has no place in the books


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """One parsed file of a delivery and where its columns are."""

    name: str
    table: TextTable
    layout: Layout

    def their_name(self, column: str) -> str:
        """The file's own name of a charge column."""
        return self.layout.columns.get(column, column)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Typed and classified charges, and what was odd about their texts."""

    charges: ibis.Table
    notes: dict[str, Any] = field(default_factory=dict)


def read_charges(engine: Engine, files: Sequence[ReadFile]) -> Reading:
    """Read all files of a delivery as one table of charges.

    Raises:
        ChargesRefusedError: a money, time or currency text cannot be read; names file, row, column.
    """
    texts = _Texts(engine, files)
    counts = texts.counts()
    texts.refuse_unreadable_instants(counts)
    texts.refuse_unknown_currencies()
    numbers, lost = texts.irregular_numbers(counts)
    spellings, normalised, odd = texts.spellings()
    repairs = Repairs(
        numbers=numbers,
        irregular_columns=frozenset(name for name in NUMBERS if counts[f"irregular_{name}"]),
        spellings=spellings,
    )
    charges = classify(engine, typed_charges(texts.all, repairs))
    return Reading(
        charges=charges,
        notes={
            "saw": sorted({file.layout.saw for file in files}),
            "unknown_columns": _merged(file.layout.unknown_columns for file in files),
            "missing_columns": _merged(file.layout.missing_columns for file in files),
            "normalised": normalised,
            "odd_values": odd,
            "rounded": lost,
            "nulls": _nulls(counts),
            "unreadable_tags": sum(sum(file.table.bad_json.values()) for file in files),
            "set_aside": texts.set_aside(),
        },
    )


class _Texts:
    """The texts of all files as one table, and the questions that reading asks of them."""

    def __init__(self, engine: Engine, files: Sequence[ReadFile]) -> None:
        self.engine, self.files = engine, files
        parts = [
            charge_texts(
                engine.text_table(file.table.path),
                file.layout,
                map_columns=file.table.map_columns,
                source_file=file.name,
            )
            for file in files
        ]
        self.all = ibis.union(*parts) if len(parts) > 1 else parts[0]
        self.charges = self.all.filter(~is_total_line(self.all))

    def counts(self) -> dict[str, int]:
        """Everything that one pass over the texts can count."""
        texts, asked = self.charges, {}
        for name in NUMBERS:
            asked[f"irregular_{name}"] = (~texts[name].re_search(PLAIN_NUMBER)).sum()
        for name in INSTANTS:
            asked[f"unreadable_{name}"] = (~_readable_instant(texts[name])).sum()
        for column in CHARGE_COLUMNS:
            if not column.nullable:
                asked[f"null_{column.name}"] = texts[column.name].isnull().sum()
        asked["rows"] = texts.count()
        found = self.engine.rows(texts.aggregate(**asked))[0]
        return {name: int(value or 0) for name, value in found.items()}

    def refuse_unreadable_instants(self, counts: dict[str, int]) -> None:
        """Refuse a time that cannot be read, and a charge without one or without a currency."""
        for name in PLACING:
            if counts[f"null_{name}"]:
                raise self._refusal(name, self.charges[name].isnull(), "it is empty")
        for name in INSTANTS:
            if counts[f"unreadable_{name}"]:
                raise self._refusal(
                    name,
                    ~_readable_instant(self.charges[name]),
                    "is not a time in UTC such as 2026-05-01T00:00:00Z or 2026-05-01 00:00:00",
                )

    def refuse_unknown_currencies(self) -> None:
        """Refuse a currency that ISO 4217 does not know."""
        for value in self._distinct("billing_currency"):
            if value not in _currencies():
                raise self._refusal(
                    "billing_currency",
                    self.charges.billing_currency == value,
                    "is not a currency of ISO 4217 such as USD",
                )

    def irregular_numbers(
        self, counts: dict[str, int]
    ) -> tuple[ibis.Table | None, list[dict[str, Any]]]:
        """Read what is no plain number exactly, in Python; refuse what is no number at all."""
        rows: dict[str, Decimal] = {}
        lost: list[dict[str, Any]] = []
        for name in NUMBERS:
            if not counts[f"irregular_{name}"]:
                continue
            irregular = self.charges.filter(~self.charges[name].re_search(PLAIN_NUMBER))
            found = self.engine.rows(
                irregular.group_by(number_text=irregular[name])
                .agg(rows=irregular.count())
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
            read = [
                (item["number_text"], *self._number(name, item["number_text"]), item["rows"])
                for item in found
            ]
            rows.update({text: value for text, value, _, _ in read})
            rounded = sum(count for _, _, digits_lost, count in read if digits_lost)
            if rounded:
                lost.append({"column": name, "rows": rounded})
        if not rows:
            return None, lost
        table = self.engine.small_table(
            [{"number_text": text, "number": value} for text, value in rows.items()],
            {"number_text": "string", "number": "decimal(38, 18)"},
        )
        return table, lost

    def _number(self, name: str, text: str) -> tuple[Decimal, bool]:
        try:
            parsed = strict_decimal(text)
        except NumberTextError:
            raise self._first_bad_number(name) from None
        return parsed.value, parsed.digits_lost

    def _first_bad_number(self, name: str) -> ChargesRefusedError:
        """The refusal of the first row, in the file's order, whose text is no number."""
        column = self.charges[name]
        irregular = self.charges.filter(~column.re_search(PLAIN_NUMBER))
        texts = irregular.select(text=irregular[name]).distinct().limit(MAX_IRREGULAR)
        bad = {
            row["text"]: reason
            for row in self.engine.rows(texts)
            if (reason := _number_fault(row["text"])) is not None
        }
        refusal = self._refusal(name, column.isin(list(bad)[:MAX_SPELLINGS]), "")
        return ChargesRefusedError(
            refusal.code,
            bad[refusal.text],
            file=refusal.file,
            row=refusal.row,
            column=refusal.column,
        )

    def spellings(
        self,
    ) -> tuple[dict[str, dict[str, str]], list[dict[str, Any]], list[dict[str, Any]]]:
        """Odd spellings of known words with the usual ones; and the words that nobody knows."""
        spellings: dict[str, dict[str, str]] = {}
        normalised: list[dict[str, Any]] = []
        odd: list[dict[str, Any]] = []
        for name in ENUMS:
            usual = {word.lower(): word for word in BY_NAME[name].values}
            for value, rows in self._distinct(name).items():
                word = usual.get(value.strip().lower())
                if word is None:
                    odd.append({"column": name, "value": value[:200], "rows": rows})
                elif word != value:
                    spellings.setdefault(name, {})[value] = word
                    normalised.append({"column": name, "from": value, "to": word, "rows": rows})
        return spellings, normalised, odd

    def set_aside(self) -> list[dict[str, Any]]:
        """The lines that sum up others: shown, not counted."""
        lines = self.all.filter(is_total_line(self.all)).limit(50)
        found = self.engine.rows(lines.select("x_source_file", "x_source_row", "billed_cost"))
        return [
            {
                "file": row["x_source_file"],
                "row": row["x_source_row"],
                "billed_cost": row["billed_cost"],
            }
            for row in found
        ]

    def _distinct(self, name: str) -> dict[str, int]:
        grouped = self.charges.group_by(value=self.charges[name]).agg(rows=self.charges.count())
        found = self.engine.rows(grouped.filter(grouped.value.notnull()).limit(MAX_SPELLINGS))
        return {row["value"]: row["rows"] for row in found}

    def _refusal(self, name: str, bad: Any, reason: str) -> "_RowRefusedError":
        """Name the first row for which `bad` holds."""
        rows = self.charges.filter(bad)
        rows = rows.select("x_source_file", "x_source_row", text=rows[name])
        first = self.engine.rows(rows.order_by("x_source_file", "x_source_row").limit(1))[0]
        file = next(file for file in self.files if file.name == first["x_source_file"])
        text = first["text"]
        refusal = _RowRefusedError(
            "unreadable",
            reason if text is None else f"{text[:60]!r} {reason}",
            file=file.name,
            row=first["x_source_row"],
            column=file.their_name(name),
        )
        refusal.text = text or ""
        return refusal


class _RowRefusedError(ChargesRefusedError):
    """A refusal that remembers the text it is about."""

    text: str = ""


def _readable_instant(column: Any) -> Any:
    is_read = column.re_search(INSTANT) & column.try_cast("timestamp").notnull()
    return is_read & (column >= EARLIEST) & (column < LATEST)


def _number_fault(text: str) -> str | None:
    """Why the text is no number of money; None when it is one."""
    try:
        strict_decimal(text)
    except NumberTextError as error:
        return str(error)
    return None


def _nulls(counts: dict[str, int]) -> list[dict[str, Any]]:
    """Where a value is missing that FOCUS wants in every row."""
    return [
        {"column": name.removeprefix("null_"), "rows": count}
        for name, count in counts.items()
        if name.startswith("null_") and count
    ]


def _merged(lists: Iterable[Sequence[str]]) -> list[str]:
    """The names of all lists, each once, in their order."""
    return list(dict.fromkeys(name for names in lists for name in names))


@cache
def _currencies() -> frozenset[str]:
    return frozenset(list_currencies(locale="en"))

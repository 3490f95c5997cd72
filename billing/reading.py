"""Reads a delivery's texts into classified charges: refuses what it must, notes what was odd."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import ibis
from babel.numbers import list_currencies

from billing.adapters.layout import PLACES, BillAdapter, Layout, UnfoldsLines
from billing.classification import classify
from billing.columns import BY_NAME, CHARGE_COLUMNS
from billing.expressions import (
    INSTANTS,
    is_total_line,
    null_columns,
    spelled,
    typed_lines,
    with_billing_period,
)
from billing.line_reading import LineReading, RowRefusedError
from billing.pricing_usage import without_costs
from billing.records import Kind
from lake.engine import Engine
from lake.text_files import TextTable
from lake.text_tables import open_text_table

MAX_SPELLINGS: Final = 10_000
ENUMS: Final = tuple(column.name for column in CHARGE_COLUMNS if column.kind is Kind.ENUM)
PLACING: Final = (*INSTANTS, "billing_currency")  # without these a charge has no place in the books
DISTINCT: Final = (*ENUMS, "billing_currency")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """One parsed file of a delivery, its format, and where its columns are."""

    name: str
    table: TextTable
    adapter: BillAdapter
    layout: Layout

    def their_name(self, column: str) -> str:
        """The file's own name of a charge column."""
        return self.layout.columns.get(column, column)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Typed and classified charges, and what was odd about their texts."""

    charges: ibis.Table
    empty_columns: frozenset[str] = frozenset()  # null in every row, by the formats
    rows_without_costs: int = 0  # usage that came without any cost
    notes: dict[str, Any] = field(default_factory=dict)


def read_charges(engine: Engine, files: Sequence[ReadFile]) -> Reading:
    """Read all files of a delivery as one table of charges.

    Raises:
        ChargesRefusedError: a money, time or currency text cannot be read; names file, row, column.
    """
    parts, lost = [], []
    for file in files:
        texts = lines_of(engine, file)
        if isinstance(file.adapter, UnfoldsLines):
            texts = file.adapter.unfolded(texts)
        lines = LineReading(engine, file.name, texts, file.layout)
        repairs = lines.repairs()
        lost += lines.rounded
        typed = typed_lines(lines.lines, file.layout, repairs)
        parts.append(file.adapter.charges(typed, file.layout))
    found = _Charges(engine, files, ibis.union(*parts) if len(parts) > 1 else parts[0])
    counts, distinct = found.counts_and_words()
    found.refuse_misplaced(counts)
    spellings, normalised, odd = found.settled_words(distinct)
    charges = with_billing_period(spelled(found.charges, spellings))
    return Reading(
        charges=classify(engine, charges),
        empty_columns=frozenset.intersection(*map(null_columns, parts)),
        rows_without_costs=counts["without_costs"],
        notes={
            "saw": sorted({file.layout.saw for file in files}),
            "unknown_columns": _merged(file.layout.unknown_columns for file in files),
            "missing_columns": _merged(file.layout.missing_columns for file in files),
            "normalised": normalised,
            "odd_values": odd,
            "rounded": lost,
            "nulls": _nulls(counts),
            "unreadable_tags": sum(_bad_tags(file) for file in files),
            "set_aside": found.set_aside(counts["total_lines"]),
        },
    )


def lines_of(engine: Engine, file: ReadFile) -> ibis.Table:
    """A file's lines with their places; the header is row 1."""
    table = open_text_table(engine, file.table)
    return table.mutate(
        x_source_file=ibis.literal(file.name),
        x_source_row=(table.file_row_number + 2).cast("int64"),
    ).drop("file_row_number")


class _Charges:
    """The charges of all files as one table, and the questions that reading asks of them."""

    def __init__(self, engine: Engine, files: Sequence[ReadFile], charges: ibis.Table) -> None:
        self.engine, self.files, self.all = engine, files, charges
        self.charges = charges.filter(~is_total_line(charges))

    def counts_and_words(self) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
        """What lines lack or sum up; every word of the columns that hold few, with its rows."""
        asked = self._asked()
        groups = self.all.group_by(*DISTINCT, is_total=is_total_line(self.all)).agg(**asked)
        found = self.engine.rows(groups.limit(MAX_SPELLINGS + 1))
        if len(found) > MAX_SPELLINGS:  # then these are not all
            (counts,) = self.engine.rows(self.all.aggregate(**asked))
        else:
            counts = {name: sum(group[name] or 0 for group in found) for name in asked}
        words = _words(group for group in found if not group["is_total"])
        return {name: int(count or 0) for name, count in counts.items()}, words

    def _asked(self) -> dict[str, Any]:
        """Where a value is missing that every charge should have; what has no costs or is a sum."""
        total_line = is_total_line(self.all)
        asked = {
            f"null_{column.name}": (self.all[column.name].isnull() & ~total_line).sum()
            for column in CHARGE_COLUMNS
            if not column.nullable
        }
        asked["total_lines"] = total_line.sum()
        asked["without_costs"] = without_costs(self.all).sum()
        asked["rows"] = self.all.count()
        return asked

    def refuse_misplaced(self, counts: dict[str, int]) -> None:
        """Refuse a charge without a time or a currency."""
        for name in PLACING:
            if counts[f"null_{name}"]:
                raise self._refusal(name, self.charges[name].isnull(), "it is empty")

    def settled_words(
        self, distinct: Mapping[str, Mapping[str, int]]
    ) -> tuple[dict[str, dict[str, str]], list[dict[str, Any]], list[dict[str, Any]]]:
        """Odd spellings of known words with the usual ones; and the words that nobody knows.

        Raises:
            ChargesRefusedError: a currency that ISO 4217 does not know.
        """
        for value in distinct["billing_currency"]:
            if value not in _currencies():
                raise self._refusal(
                    "billing_currency",
                    self.charges.billing_currency == value,
                    "is not a currency of ISO 4217 such as USD",
                )
        spellings: dict[str, dict[str, str]] = {}
        normalised: list[dict[str, Any]] = []
        odd: list[dict[str, Any]] = []
        for name in ENUMS:
            usual = {word.lower(): word for word in BY_NAME[name].values}
            for value, rows in distinct[name].items():
                word = usual.get(value.strip().lower())
                if word is None:
                    odd.append({"column": name, "value": value[:200], "rows": rows})
                elif word != value:
                    spellings.setdefault(name, {})[value] = word
                    normalised.append({"column": name, "from": value, "to": word, "rows": rows})
        return spellings, normalised, odd[:200]

    def set_aside(self, count: int) -> list[dict[str, Any]]:
        """The lines that sum up others: shown, not counted."""
        if not count:
            return []
        lines = self.all.filter(is_total_line(self.all)).limit(50)
        found = self.engine.rows(lines.select(*PLACES, "billed_cost"))
        return [
            {
                "file": row["x_source_file"],
                "row": row["x_source_row"],
                "billed_cost": row["billed_cost"],
            }
            for row in found
        ]

    def _refusal(self, name: str, bad: Any, reason: str) -> RowRefusedError:
        """Name the first row for which `bad` holds."""
        rows = self.charges.filter(bad)
        rows = rows.select(*PLACES, text=rows[name].cast("string"))
        first = self.engine.rows(rows.order_by(*PLACES).limit(1))[0]
        file = next(file for file in self.files if file.name == first["x_source_file"])
        return RowRefusedError.of(
            first["text"],
            reason,
            file=file.name,
            row=first["x_source_row"],
            column=file.their_name(name),
        )


def _words(groups: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """The different words of each column, with their rows."""
    found: dict[str, dict[str, int]] = {name: {} for name in DISTINCT}
    for group in groups:
        for name, words in found.items():
            if group[name] is not None:
                words[group[name]] = words.get(group[name], 0) + group["rows"]
    return {name: dict(sorted(words.items())) for name, words in found.items()}


def _nulls(counts: dict[str, int]) -> list[dict[str, Any]]:
    """Where a value is missing that FOCUS wants in every row."""
    return [
        {"column": name.removeprefix("null_"), "rows": count}
        for name, count in counts.items()
        if name.startswith("null_") and count
    ]


def _bad_tags(file: ReadFile) -> int:
    """The texts that should have been objects or lists; other formats' columns do not count."""
    mine = (*file.adapter.json_columns, *file.adapter.list_columns)
    return sum(count for name, count in file.table.bad_json.items() if name in mine)


def _merged(lists: Iterable[Sequence[str]]) -> list[str]:
    """The names of all lists, each once, in their order."""
    return list(dict.fromkeys(name for names in lists for name in names))


@cache
def _currencies() -> frozenset[str]:
    return frozenset(list_currencies(locale="en"))

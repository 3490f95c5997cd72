"""A file's columns under the names that a format gives them; knows no format and no engine."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import ibis

from billing.records import MONEY_TYPE

UNREADABLE: Final = "x_unreadable"  # the parser's key for a text that was no JSON object
_ODD: Final = re.compile(r"[^a-z0-9]")


def spelling(name: str) -> str:
    """A column's name without case and marks: exports of one provider differ only in these.

    >>> spelling("savingsPlan/SavingsPlanARN") == spelling("savings_plan_savings_plan_a_r_n")
    True
    """
    return _ODD.sub("", name.lower())


def found_columns(columns: Sequence[str], names: Iterable[str]) -> dict[str, str]:
    """The file's column for each of the format's names, where it has one."""
    present: dict[str, str] = {}
    for column in columns:
        present.setdefault(spelling(column), column)
    return {name: present[spelling(name)] for name in names if spelling(name) in present}


@dataclass(frozen=True, slots=True)
class Cells:
    """The lines of a file, read by the format's names; null where the file lacks a column."""

    lines: ibis.Table
    found: Mapping[str, str]

    def text(self, *names: str) -> Any:
        """The first of these columns that holds a text."""
        return self._first(names, "string")

    def number(self, *names: str) -> Any:
        """The first of these columns that holds a number."""
        return self._first(names, MONEY_TYPE)

    def instant(self, *names: str) -> Any:
        """The first of these columns that holds a time."""
        return self._first(names, "timestamp(6)")

    def _first(self, names: Sequence[str], kind: str) -> Any:
        found = [self._cell(self.found[name], kind) for name in names if name in self.found]
        return ibis.coalesce(*found) if found else ibis.null(kind)

    def _cell(self, column: str, kind: str) -> Any:
        cell = self.lines[column]
        if cell.type().is_map():  # parsed for another format that has objects under this name
            cell = cell[UNREADABLE]
        return cell.cast(kind)


def translated(column: Any, words: Mapping[str, str], otherwise: str | None = None) -> Any:
    """The column's words in ours; `otherwise` for those that the table lacks."""
    rest = ibis.null("string") if otherwise is None else ibis.literal(otherwise)
    return ibis.cases(*((column == theirs, ours) for theirs, ours in words.items()), else_=rest)


def first_match(column: Any, patterns: Sequence[tuple[str, str]], otherwise: str | None) -> Any:
    """The word of the first pattern (RE2, any case) that the column matches."""
    text = column.fill_null("")
    rest = ibis.null("string") if otherwise is None else ibis.literal(otherwise)
    return ibis.cases(
        *((text.re_search(f"(?i){pattern}"), word) for pattern, word in patterns), else_=rest
    )


def tag_map(pairs: Mapping[str, Any]) -> Any:
    """A map of the texts that are there; null where none is."""
    if not pairs:
        return ibis.null("map<string, string>")
    values = list(pairs.values())
    nothing = ibis.null("string")
    keys = [ibis.ifelse(value.notnull(), name, nothing) for name, value in pairs.items()]
    filled = ibis.map(
        ibis.array(keys).filter(lambda key: key.notnull()),
        ibis.array(values).filter(lambda value: value.notnull()),
    )
    return ibis.ifelse(ibis.coalesce(*values).notnull(), filled, ibis.null("map<string, string>"))

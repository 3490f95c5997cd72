"""Tables of pages as files: CSV with every digit as text, .xlsx with numbers that have a format.

Nothing in a cell is run by a spreadsheet: text of a bill that looks like a formula stays text.
"""

import csv
import io
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import xlsxwriter
from babel.numbers import get_currency_precision
from django.utils.translation import gettext as _

from reports.sheets import Column, Kind, Line, Sheet, Value
from ui.formatting import plain_digits

CSV_TYPE: Final = "text/csv; charset=utf-8"
XLSX_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
EXACT_DIGITS: Final = 15  # what a spreadsheet keeps of a number
_RUN: Final = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_NO_SHEET_NAME: Final = re.compile(r"[\[\]:*?/\\']")
_FORMATS: Final = {
    Kind.NUMBER: "#,##0.######",
    Kind.COUNT: "#,##0",
    Kind.BYTES: "#,##0",
    Kind.FRACTION: "0.0%",
    Kind.PRICE: "#,##0.00####",
}


def as_csv(sheet: Sheet) -> str:
    """The table with its totals, every digit of every number."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([harmless(column.title) for column in sheet.columns])
    for line in sheet.all_lines:
        writer.writerow([_csv_text(cell.value) for cell in line.cells])
    return out.getvalue()


def harmless(text: str) -> str:
    """A text cell that no spreadsheet takes for a formula when it opens a CSV."""
    return f"'{text}" if _RUN.match(text) else text


def _csv_text(value: Value) -> str:
    if value is None:
        return ""
    return harmless(value) if isinstance(value, str) else plain_digits(Decimal(value))


def as_xlsx(sheets: Sequence[Sheet]) -> bytes:
    """A workbook with a sheet for each table, and what was asked on the last one."""
    out = io.BytesIO()
    options = {
        "in_memory": True,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
    }
    with xlsxwriter.Workbook(out, options) as book:
        formats = _Formats(book)
        names: set[str] = set()
        for sheet in sheets:
            _write(book.add_worksheet(_sheet_name(sheet.title, names)), sheet, formats)
        facts = list(dict.fromkeys(fact for sheet in sheets for fact in sheet.facts))
        if facts:
            page = book.add_worksheet(_sheet_name(_("Question"), names))
            page.set_column(0, 1, 40)
            for row, (name, text) in enumerate(facts):
                _write_text(page, (row, 0), name, formats)
                _write_text(page, (row, 1), text, formats)
    return out.getvalue()


class _Formats:
    """The formats of a workbook, each made once."""

    def __init__(self, book: Any) -> None:
        self._book = book
        self._made: dict[tuple[str, bool], Any] = {}
        self.head = book.add_format({"bold": True, "text_wrap": True, "bottom": 1})
        self.quoted = book.add_format({"quote_prefix": True})

    def of(self, column: Column, currency: str, *, is_total: bool) -> Any:
        """The format of a number."""
        pattern = _FORMATS.get(column.kind) or _money_pattern(currency)
        key = (pattern, is_total)
        if key not in self._made:
            wish = {"num_format": pattern, "bold": is_total}
            self._made[key] = self._book.add_format(wish)
        return self._made[key]


def _money_pattern(currency: str) -> str:
    places = get_currency_precision(currency) if currency else 2
    return "#,##0" + ("." + "0" * places if places else "")


def _write(page: Any, sheet: Sheet, formats: _Formats) -> None:
    """Header, lines and totals; an exact text beside each column that a number cannot hold."""
    exact = _inexact_columns(sheet)
    places, at = [], 0
    for index, column in enumerate(sheet.columns):
        places.append(at)
        _write_text(page, (0, at), column.title, formats, head=True)
        at += 1
        if index in exact:
            _write_text(page, (0, at), _exact_title(column), formats, head=True)
            at += 1
    for row, line in enumerate(sheet.all_lines, start=1):
        is_total = row > len(sheet.lines)
        for index, cell in enumerate(line.cells):
            place = (row, places[index])
            if cell.value is None:
                continue
            if isinstance(cell.value, str):
                _write_text(page, place, cell.value, formats)
                continue
            form = formats.of(sheet.columns[index], line.currency, is_total=is_total)
            page.write_number(*place, cell.value, form)
            if index in exact:
                digits = plain_digits(Decimal(cell.value))
                page.write_string(row, places[index] + 1, digits)
    page.freeze_panes(1, 0)
    page.set_column(0, max(at - 1, 0), 18)


def _exact_title(column: Column) -> str:
    return _("{title}, every digit").format(title=column.title)


def _inexact_columns(sheet: Sheet) -> frozenset[int]:
    """The columns with a number of more digits than a spreadsheet keeps."""
    return frozenset(
        index
        for index, column in enumerate(sheet.columns)
        if column.is_number and any(_is_inexact(line, index) for line in sheet.all_lines)
    )


def _is_inexact(line: Line, index: int) -> bool:
    value = line.cells[index].value
    if value is None or isinstance(value, str):
        return False
    digits = plain_digits(abs(Decimal(value))).replace(".", "").strip("0")
    return len(digits) > EXACT_DIGITS


def _write_text(
    page: Any, place: tuple[int, int], text: str, formats: _Formats, *, head: bool = False
) -> None:
    """A text cell; one that looks like a formula is marked as quoted, so it stays text."""
    clean = _CONTROLS.sub(" ", text)
    if clean.startswith("<r>"):  # the writer would take it for markup of its own
        clean = f" {clean}"
    quoted = formats.quoted if _RUN.match(clean) else None
    page.write_string(*place, clean, formats.head if head else quoted)


def _sheet_name(title: str, taken: set[str]) -> str:
    """A name that a workbook allows, once."""
    stem = _NO_SHEET_NAME.sub(" ", title).strip()[:28] or "1"
    name, turn = stem, 1
    while name.lower() in taken:
        turn += 1
        name = f"{stem} {turn}"
    taken.add(name.lower())
    return name

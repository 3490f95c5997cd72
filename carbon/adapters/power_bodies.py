"""Power readings from posted bodies: JSON documents and small CSV texts, by the rules of files."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from carbon.adapters.power_texts import (
    ABOUT_FIELDS,
    INTERVAL_FIELDS,
    SAMPLE_FIELDS,
    PowerTextError,
    Readings,
    read_texts,
)

MAX_ROWS: Final = 100_000
_FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "samples": SAMPLE_FIELDS,
    "intervals": INTERVAL_FIELDS,
}
_NUMBERS: Final = ("power_w", "energy_millijoule")


def read_document(document: Any) -> list[Readings]:
    """The readings of `{"samples": [{at, device_uuid, power_w}], "intervals": […]}`.

    Raises:
        PowerTextError: another shape, an unknown field, or an unreadable value; names the place.
    """
    if not isinstance(document, dict) or not set(document) <= set(_FORMS) or not document:
        raise PowerTextError('send {"samples": [...]} or {"intervals": [...]}, or both')
    found = []
    for form, rows in document.items():
        if not isinstance(rows, list):
            raise PowerTextError(f"{form} is not a list")
        if rows:
            found.append(_read_rows(form, rows))
    return found


def _read_rows(form: str, rows: Sequence[Any]) -> Readings:
    """One list of objects as readings; rows count from 0, as in `samples[0]`."""
    if len(rows) > MAX_ROWS:
        raise PowerTextError(f"{len(rows)} rows; send at most {MAX_ROWS} in one batch")
    wanted = _FORMS[form]
    allowed = {*wanted, *ABOUT_FIELDS}
    columns: dict[str, list[str | None]] = {name: [] for name in (*wanted, *ABOUT_FIELDS)}
    for position, row in enumerate(rows):
        if not isinstance(row, dict) or not set(wanted) <= set(row) <= allowed:
            raise PowerTextError(
                f"{form}[{position}] must have {', '.join(wanted)} "
                f"and may have {', '.join(ABOUT_FIELDS)}"
            )
        for name, texts in columns.items():
            texts.append(_text(name, row.get(name), where=f"{form}[{position}]"))
    table = pa.table({name: pa.array(texts, pa.string()) for name, texts in columns.items()})
    try:
        return read_texts(table, first_row=0)
    except PowerTextError as error:
        raise PowerTextError(
            f"{form}[{error.row}].{error.field}: {error.problem}", field=""
        ) from error


def _text(name: str, value: Any, *, where: str) -> str | None:
    """A JSON value as the text that a file would hold."""
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if name in _NUMBERS and is_number:
        return format(value, "d") if isinstance(value, int) else repr(value)
    if name not in _NUMBERS and isinstance(value, str):
        return value
    raise PowerTextError(f"{where}.{name} is not a {'number' if name in _NUMBERS else 'text'}")


def read_csv_text(text: str) -> list[Readings]:
    """The readings of a CSV text with a header, as in a file.

    Raises:
        PowerTextError: it is no such CSV; names row and field.
    """
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(rows, [])
        body = list(rows)
    except csv.Error as error:
        raise PowerTextError(f"this is no CSV: {error}", row=rows.line_num) from error
    if len(body) > MAX_ROWS:
        raise PowerTextError(f"{len(body)} rows; send at most {MAX_ROWS} in one batch")
    if len(set(header)) < len(header):
        raise PowerTextError("a column is named twice; keep one of them", row=1)
    for number, row in enumerate(body, start=2):
        if len(row) != len(header):
            raise PowerTextError(
                f"{len(row)} fields where the header has {len(header)}", row=number
            )
    columns = list(zip(*body, strict=True)) or [()] * len(header)
    table = pa.table(
        {
            name: pa.array(list(texts), pa.string())
            for name, texts in zip(header, columns, strict=True)
        }
    )
    readings = read_texts(table)
    return [readings] if len(readings) else []

"""Rows of BigQuery as lines of CSV: nested columns by their dotted names, numbers exact."""

import base64
import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final, Protocol

_RECORDS: Final = frozenset({"RECORD", "STRUCT"})
_TRUTH: Final = {True: "true", False: "false"}


class SchemaField(Protocol):
    """What is asked of google.cloud.bigquery.SchemaField."""

    @property
    def name(self) -> str:
        """The field's own name."""

    @property
    def field_type(self) -> str:
        """Its type, such as STRING, FLOAT, RECORD."""

    @property
    def mode(self) -> str:
        """NULLABLE, REQUIRED or REPEATED."""

    @property
    def fields(self) -> Sequence["SchemaField"]:
        """The fields of a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of the CSV: `service.id` is found by its path in a row."""

    name: str
    path: tuple[str, ...]


def columns_of(schema: Iterable[SchemaField]) -> tuple[Column, ...]:
    """The columns in Google's order: records flattened, lists kept as one column of JSON."""
    return tuple(_flat(schema, ()))


def _flat(schema: Iterable[SchemaField], before: tuple[str, ...]) -> Iterator[Column]:
    for field in schema:
        path = (*before, field.name)
        if field.mode != "REPEATED" and field.field_type.upper() in _RECORDS:
            yield from _flat(field.fields, path)
        else:
            yield Column(name=".".join(path), path=path)


def csv_chunks(
    columns: Sequence[Column], pages: Iterable[Iterable[Mapping[str, Any]]]
) -> Iterator[bytes]:
    """The header, then each page as one piece of CSV."""
    yield _lines([[column.name for column in columns]])
    for page in pages:
        yield _lines([[text_of(_found(row, column.path)) for column in columns] for row in page])


def _lines(rows: Iterable[Sequence[str]]) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


def _found(row: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """The value at the path; None below a record that is null."""
    value: Any = row[path[0]]
    for name in path[1:]:
        if value is None:
            return None
        value = value[name]
    return value


def text_of(value: Any) -> str:
    """A value as text that loses nothing; null is empty.

    >>> text_of(1e-05), text_of(Decimal("12.340")), text_of([{"amount": -0.1}])
    ('0.00001', '12.340', '[{"amount": -0.1}]')
    """
    if value is None:
        return ""
    if isinstance(value, list | dict):
        return json.dumps(_plain(value), ensure_ascii=False)
    return str(_scalar(value))


def _plain(value: Any) -> Any:
    """The same in JSON's own types; floats stay numbers, other exact numbers become text."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return _TRUTH[value]
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f")  # the shortest text of this very number
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return instant_text(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


def instant_text(value: datetime) -> str:
    """As BigQuery prints it: `2026-05-01 00:00:00 UTC`; a DATETIME has no zone."""
    zone = ""
    if value.tzinfo is not None:
        value, zone = value.astimezone(UTC).replace(tzinfo=None), " UTC"
    return f"{value.isoformat(sep=' ')}{zone}"

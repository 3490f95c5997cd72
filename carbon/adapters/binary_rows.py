"""PostgreSQL's forms of values from and to numpy columns; opens no connection."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt

_HEADER: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER: Final = b"\xff\xff"
_ROWS_AT_ONCE: Final = 32_768  # the server takes in some while the next are made
# PostgreSQL counts microseconds from 2000-01-01, we count them from 1970-01-01.
_EPOCH_SHIFT_MICROSECOND: Final = 946_684_800_000_000
_WIDTHS: Final = {
    "int2": ">i2",
    "int4": ">i4",
    "int8": ">i8",
    "float8": ">f8",
    "timestamptz": ">i8",
    "uuid": "V16",
}

_SENDERS: Final = {
    "int2": "int2send",
    "int4": "int4send",
    "int8": "int8send",
    "float8": "float8send",
    "timestamptz": "timestamptz_send",
}

Column = npt.NDArray[Any]


def _width(kind: str, values: object) -> str:
    """The bytes of a value; a text is the same in every row."""
    return f"V{len(values.encode())}" if isinstance(values, str) else _WIDTHS[kind]


def listed(values: Iterable[int]) -> str:
    """An array as its text, for `%s::bigint[]`: a list would be quoted one by one."""
    return "{" + ",".join(map(str, values)) + "}"


def _shift(kind: str) -> int:
    """What is taken off a value of ours, constant or not, to be PostgreSQL's."""
    return _EPOCH_SHIFT_MICROSECOND if kind == "timestamptz" else 0


def _pieces(
    columns: Sequence[tuple[str, Column | UUID | int | str]], *, rows: int
) -> Iterator[bytes]:
    """Rows for COPY FROM STDIN (FORMAT BINARY): (kind, values) by column, constants allowed.

    One row: the count of fields, then length and value of each.
    """
    fields: list[tuple[str, str]] = [("fields", ">i2")]
    for position, (kind, values) in enumerate(columns):
        fields += [(f"length{position}", ">i4"), (f"value{position}", _width(kind, values))]
    table = np.zeros(min(rows, _ROWS_AT_ONCE), dtype=np.dtype(fields))
    table["fields"] = len(columns)
    for position, (kind, values) in enumerate(columns):
        table[f"length{position}"] = table.dtype[f"value{position}"].itemsize
        if isinstance(values, UUID | str):
            constant = values.bytes if isinstance(values, UUID) else values.encode()
            table[f"value{position}"] = np.void(constant)
        elif isinstance(values, int):
            table[f"value{position}"] = values - _shift(kind)
    yield _HEADER
    for first in range(0, rows, _ROWS_AT_ONCE):
        piece = table[: rows - first]
        for position, (kind, values) in enumerate(columns):
            if isinstance(values, np.ndarray):
                shift = _shift(kind)
                part = values[first : first + len(piece)]
                piece[f"value{position}"] = part - shift if shift else part
        yield piece.tobytes()
    yield _TRAILER


def write(
    cursor: Any,
    target: str,
    columns: Mapping[str, tuple[str, Column | UUID | int | str]],
    *,
    rows: int,
) -> None:
    """COPY columns into `target` (our own table name)."""
    names = ", ".join(f'"{name}"' for name in columns)
    with cursor.copy(f"COPY {target} ({names}) FROM STDIN (FORMAT BINARY)") as copy:
        for piece in _pieces(list(columns.values()), rows=rows):
            copy.write(piece)


def read(
    cursor: Any,
    kinds: Mapping[str, str],
    source: str,
    params: Sequence[object],
    *,
    by: str = "device_id",
) -> dict[str, Column]:
    """The columns `kinds` of `source` (our own FROM and WHERE), in no order; none may hold NULL.

    The server packs the rows of each `by` into one value: COPY TO would cost a message a row.
    """
    packed = " || ".join(f'{_SENDERS[kind]}("{name}")' for name, kind in kinds.items())
    cursor.execute(
        f"SELECT string_agg({packed}, ''::bytea) {source} GROUP BY {by}",
        list(params),
    )
    body = b"".join(bytes(row[0]) for row in cursor.fetchall())
    table = np.frombuffer(body, dtype=[(name, _WIDTHS[kind]) for name, kind in kinds.items()])
    columns: dict[str, Column] = {}
    for name, kind in kinds.items():
        values = table[name].astype(np.dtype(_WIDTHS[kind]).newbyteorder("="))
        columns[name] = values + _EPOCH_SHIFT_MICROSECOND if kind == "timestamptz" else values
    return columns

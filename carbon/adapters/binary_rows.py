"""PostgreSQL's binary COPY format from and to numpy columns; opens no connection."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt

_HEADER: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER: Final = b"\xff\xff"
# PostgreSQL counts microseconds from 2000-01-01, we count them from 1970-01-01.
_EPOCH_SHIFT_MICROSECOND: Final = 946_684_800_000_000
_WIDTHS: Final = {
    "int2": ">i2",
    "int8": ">i8",
    "float8": ">f8",
    "timestamptz": ">i8",
    "uuid": "V16",
}

Column = npt.NDArray[Any]


def _row_type(kinds: Sequence[str]) -> np.dtype[Any]:
    """One row: the count of fields, then length and value of each."""
    fields: list[tuple[str, str]] = [("fields", ">i2")]
    for position, kind in enumerate(kinds):
        fields += [(f"length{position}", ">i4"), (f"value{position}", _WIDTHS[kind])]
    return np.dtype(fields)


def encode(columns: Sequence[tuple[str, Column | UUID | int]], *, rows: int) -> bytes:
    """Rows for COPY FROM STDIN (FORMAT BINARY): (kind, values) by column, constants allowed."""
    kinds = [kind for kind, _values in columns]
    table = np.zeros(rows, dtype=_row_type(kinds))
    table["fields"] = len(columns)
    for position, (kind, values) in enumerate(columns):
        table[f"length{position}"] = np.dtype(_WIDTHS[kind]).itemsize
        if isinstance(values, UUID):
            table[f"value{position}"] = np.void(values.bytes)
        elif kind == "timestamptz":
            table[f"value{position}"] = values - _EPOCH_SHIFT_MICROSECOND
        else:
            table[f"value{position}"] = values
    return _HEADER + table.tobytes() + _TRAILER


def decode(blocks: Iterable[bytes | memoryview], kinds: Mapping[str, str]) -> dict[str, Column]:
    """The columns of COPY TO STDOUT (FORMAT BINARY); no column may hold NULL."""
    body = b"".join(bytes(block) for block in blocks)[len(_HEADER) : -len(_TRAILER)]
    table = np.frombuffer(body, dtype=_row_type(list(kinds.values())))
    columns: dict[str, Column] = {}
    for position, (name, kind) in enumerate(kinds.items()):
        native = np.dtype(_WIDTHS[kind]).newbyteorder("=")
        values = table[f"value{position}"].astype(native)
        columns[name] = values + _EPOCH_SHIFT_MICROSECOND if kind == "timestamptz" else values
    return columns


def write(
    cursor: Any, target: str, columns: Mapping[str, tuple[str, Column | UUID | int]], *, rows: int
) -> None:
    """COPY columns into `target` (our own table name)."""
    names = ", ".join(f'"{name}"' for name in columns)
    with cursor.copy(f"COPY {target} ({names}) FROM STDIN (FORMAT BINARY)") as copy:
        copy.write(encode(list(columns.values()), rows=rows))


def read(
    cursor: Any, query: str, params: Sequence[object], kinds: Mapping[str, str]
) -> dict[str, Column]:
    """The columns of a query of our own, in the order of `kinds`."""
    with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT BINARY)", params) as copy:
        return decode(copy, kinds)

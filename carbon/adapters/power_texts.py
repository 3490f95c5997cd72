"""Power readings from columns of text: samples or intervals; names what it cannot read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from formulae.periods import InstantError, parse_utc_lenient

SAMPLE_FIELDS: Final = ("at", "device_uuid", "power_w")
INTERVAL_FIELDS: Final = ("start", "end", "device_uuid", "energy_millijoule")
ABOUT_FIELDS: Final = ("node", "model", "run")
UNITS: Final = {
    "at": "ISO 8601, UTC",
    "start": "ISO 8601, UTC",
    "end": "ISO 8601, UTC",
    "device_uuid": "text",
    "power_w": "W",
    "energy_millijoule": "mJ, whole number",
}
_NUMBER: Final = r"^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?$"
_WHOLE: Final = r"^-?[0-9]{1,18}(\.0{1,6})?$"
_NOT_A_NUMBER: Final = r"^\s*$|^(?i:[+-]?nan|[+-]?inf(inity)?|null|none|n/a)$"
HEADER_ROWS: Final = 2  # the header is row 1, so the first data row is row 2


class PowerTextError(ValueError):
    """A delivery that cannot be read; nothing of it may be stored."""

    def __init__(self, problem: str, *, row: int | None = None, field: str = "") -> None:
        self.problem, self.row, self.field = problem, row, field
        places = [f"row {row}" if row else "", f"field {field}" if field else ""]
        unit = f" ({UNITS[field]})" if field in UNITS else ""
        where = ", ".join(place for place in places if place)
        super().__init__(f"{where}{unit}: {problem}" if where else problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Readings by column. `device` indexes `uuids`; instants are microseconds since 1970, UTC.

    `values` are W (samples) or millijoules (intervals); samples have end = start.
    """

    is_samples: bool
    uuids: tuple[str, ...]
    device: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64] | npt.NDArray[np.int64]
    unreadable: npt.NDArray[np.bool_]
    about: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.device)


def is_samples(columns: Sequence[str]) -> bool:
    """Whether the header names samples (else intervals).

    Raises:
        PowerTextError: it names neither, or both.
    """
    samples = all(name in columns for name in SAMPLE_FIELDS)
    intervals = all(name in columns for name in INTERVAL_FIELDS)
    if samples == intervals:
        raise PowerTextError(
            f"the header is {', '.join(columns) or 'empty'}; it must name either "
            f"{','.join(SAMPLE_FIELDS)} or {','.join(INTERVAL_FIELDS)} "
            f"(and may name {','.join(ABOUT_FIELDS)})",
            row=1,
        )
    return samples


def unknown_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Columns that are not read."""
    known = {*SAMPLE_FIELDS, *INTERVAL_FIELDS, *ABOUT_FIELDS}
    return tuple(name for name in columns if name not in known)


def read_texts(table: pa.Table, *, first_row: int = HEADER_ROWS) -> Readings:
    """The readings of a table of texts; `first_row` is the number of its first row in the file.

    Raises:
        PowerTextError: a time or number that is none, or a device without a name.
    """
    samples = is_samples(table.column_names)
    uuids, device = _devices(table, first_row)
    values: npt.NDArray[np.float64] | npt.NDArray[np.int64]
    if samples:
        start = _instants(table, "at", first_row)
        values, unreadable = _powers(table, first_row)
        end = start
    else:
        start, end = (_instants(table, name, first_row) for name in ("start", "end"))
        values, unreadable = _energies(table, first_row)
    return Readings(
        is_samples=samples,
        uuids=uuids,
        device=device,
        start=start,
        end=end,
        values=values,
        unreadable=unreadable,
        about=_about(table, uuids, device),
    )


def _texts(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string())
    return pc.fill_null(pc.cast(column, pa.string()), "")


def _encoded(table: pa.Table, name: str) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The distinct texts of a column, and the index of each row's text."""
    encoded = _texts(table, name).dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)


def _devices(table: pa.Table, first_row: int) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    texts, index = _encoded(table, "device_uuid")
    for position, text in enumerate(texts):
        if not text.strip() or len(text) > 120 or not text.isprintable():
            row = first_row + int(np.argmax(index == position))
            raise PowerTextError(
                "the device has no readable name of 1 to 120 characters; give its UUID",
                row=row,
                field="device_uuid",
            )
    return tuple(texts), index


def _instants(table: pa.Table, name: str, first_row: int) -> npt.NDArray[np.int64]:
    texts, index = _encoded(table, name)
    instants = np.empty(len(texts), dtype="datetime64[us]")
    for position, text in enumerate(texts):
        try:
            instants[position] = parse_utc_lenient(text).replace(tzinfo=None)
        except InstantError as error:
            row = first_row + int(np.argmax(index == position))
            raise PowerTextError(
                f"{error}; write it as 2026-10-01T00:00:00Z", row=row, field=name
            ) from error
    return instants.astype(np.int64)[index]


def _checked(
    table: pa.Table, name: str, pattern: str, first_row: int
) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """The column's texts with what says "no number" replaced by 0, and which those are."""
    texts = _texts(table, name)
    nothing = pc.match_substring_regex(texts, _NOT_A_NUMBER)
    readable = pc.or_(nothing, pc.match_substring_regex(texts, pattern))
    if not pc.all(readable, min_count=0).as_py():
        row = pc.index(readable, False).as_py()
        raise PowerTextError(
            f"{texts[row].as_py()[:60]!r} is not a plain number of that unit; "
            "write digits with a point, without separators",
            row=first_row + row,
            field=name,
        )
    return pc.if_else(nothing, "0", texts), nothing.to_numpy(zero_copy_only=False)


def _powers(
    table: pa.Table, first_row: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    texts, nothing = _checked(table, "power_w", _NUMBER, first_row)
    return pc.cast(texts, pa.float64()).to_numpy(zero_copy_only=False), nothing


def _energies(
    table: pa.Table, first_row: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    texts, nothing = _checked(table, "energy_millijoule", _WHOLE, first_row)
    whole = pc.replace_substring_regex(texts, r"\.0+$", "")
    return pc.cast(whole, pa.int64()).to_numpy(zero_copy_only=False), nothing


def _about(
    table: pa.Table, uuids: Sequence[str], device: npt.NDArray[np.int64]
) -> dict[str, tuple[str, str]]:
    """Node and model of each device, as its first row says."""
    _, first = np.unique(device, return_index=True)
    columns = {
        name: _texts(table, name) if name in table.column_names else None
        for name in ("node", "model")
    }

    def text(name: str, row: Any) -> str:
        column = columns[name]
        return column[int(row)].as_py().strip()[:120] if column is not None else ""

    return {uuids[int(device[row])]: (text("node", row), text("model", row)) for row in first}

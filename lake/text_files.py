"""Files from outside, read by a confined child into tables of the lake; no meaning of columns."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from lake.child_process import MAX_FIELD_BYTES, ask_child, confined_child
from lake.file_kinds import EVERY, TEXTS, TextFileRefusedError, compression_of

__all__ = [
    "EVERY",
    "TEXTS",
    "ArchiveMember",
    "CsvRequest",
    "Header",
    "ParseRequest",
    "TextFileRefusedError",
    "TextTable",
    "archive_members",
    "compression_of",
    "original_line",
    "read_csv",
    "read_file",
    "read_header",
    "read_parquet_file",
]
ZIP_MEMBER: Final = "zip:"
Wanted = Callable[[Sequence[str]], tuple[str, ...] | None]  # of these columns; None means all


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseRequest:
    """What to parse, where to, and within which bounds.

    `compression` is what `compression_of` says, or `zip:N` for the N-th member of an archive.
    `wanted_columns` are those that are written; None means all. `number_rows` adds x_source_row,
    the row in the file, for engines that cannot count rows themselves.
    """

    source: Path
    folder: Path
    compression: str
    max_unpacked_bytes: int
    json_columns: tuple[str, ...] = ()
    list_columns: tuple[str, ...] = ()
    wanted_columns: tuple[str, ...] | None = None
    number_rows: bool = False
    threads: int = 0
    max_field_bytes: int = MAX_FIELD_BYTES

    def asking(self, task: str, **more: Any) -> dict[str, Any]:
        """The request as the child reads it."""
        return {
            "task": task,
            "source": str(self.source),
            "folder": str(self.folder),
            "compression": self.compression,
            "max_unpacked_bytes": self.max_unpacked_bytes,
            "max_field_bytes": self.max_field_bytes,
            "json_columns": list(self.json_columns),
            "list_columns": list(self.list_columns),
            "wanted_columns": None if self.wanted_columns is None else list(self.wanted_columns),
            "number_rows": self.number_rows,
            "threads": self.threads,
            **more,
        }


CsvRequest = ParseRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """A read file: a Parquet file in the file's order, and what its columns are.

    Open it by `lake.text_tables.open_text_table`, which puts in the structures of `lookups`:
    `map_columns` are MAP(text, text) then, `list_columns` lists of them. `types` are the engine's
    names of the other columns' types: all VARCHAR unless `is_typed`; a DOUBLE is only as exact as
    its shortest text.
    """

    path: Path
    columns: tuple[str, ...]
    rows: int
    unpacked_bytes: int
    unpacked_sha256: str
    map_columns: tuple[str, ...] = ()
    list_columns: tuple[str, ...] = ()
    lookups: Mapping[str, Path] = field(default_factory=dict)
    bad_json: Mapping[str, int] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    is_typed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The columns of a file; `types` only where the file has types."""

    columns: tuple[str, ...]
    types: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveMember:
    """A file in a zip archive; `compression` is how to ask for it."""

    name: str
    size_bytes: int
    head: bytes
    compression: str


def read_file(
    request: ParseRequest,
    *,
    wanted: Wanted | None = None,
    on_bytes: Callable[[int], None] | None = None,
    timeout_s: float = 3600.0,
) -> TextTable:
    """Read a CSV or Parquet file, packed or in an archive, in a child process.

    Args:
        request: what, where, and within which bounds.
        wanted: chooses `wanted_columns` among the file's, once its header is read.
        on_bytes: hears now and then how many bytes are unpacked.
        timeout_s: after so long the file is refused.

    Raises:
        TextFileRefusedError: the file cannot be read whole and safely.
    """
    with confined_child(timeout_s=timeout_s) as ask:
        if wanted is not None:
            columns = ask(request.asking("header"))["columns"]
            request = replace(request, wanted_columns=wanted(columns))
        answer = ask(request.asking("parse"), on_bytes=on_bytes)
    folder = request.folder
    types: Mapping[str, str] = answer["types"]
    shapes = {name: name in request.list_columns for name in answer["lookups"]}
    shapes |= {name: kind.endswith("[]") for name, kind in types.items() if kind.startswith("MAP(")}
    return TextTable(
        path=_path(request, answer.get("path", "text.parquet")),
        columns=tuple(answer["columns"]),
        rows=answer["rows"],
        unpacked_bytes=answer["unpacked_bytes"],
        unpacked_sha256=answer["unpacked_sha256"],
        map_columns=tuple(name for name, is_list in shapes.items() if not is_list),
        list_columns=tuple(name for name, is_list in shapes.items() if is_list),
        lookups={name: folder / file for name, file in answer["lookups"].items()},
        bad_json=answer["bad_json"],
        types=types,
        is_typed=answer["is_typed"],
    )


def read_csv(
    request: ParseRequest,
    *,
    on_bytes: Callable[[int], None] | None = None,
    timeout_s: float = 3600.0,
) -> TextTable:
    """Read a CSV file; all its columns are text."""
    return read_file(request, on_bytes=on_bytes, timeout_s=timeout_s)


def read_parquet_file(
    request: ParseRequest,
    *,
    on_bytes: Callable[[int], None] | None = None,
    timeout_s: float = 3600.0,
) -> TextTable:
    """Read a Parquet file: decoded once in the child, copied only where it is nested."""
    return read_file(request, on_bytes=on_bytes, timeout_s=timeout_s)


def read_header(request: ParseRequest) -> Header:
    """The columns of a file, from its first bytes or its footer."""
    answer = ask_child(request.asking("header"), timeout_s=60.0)
    return Header(columns=tuple(answer["columns"]), types=answer["types"])


def original_line(
    request: ParseRequest, *, row: int, timeout_s: float = 120.0
) -> Mapping[str, str | None]:
    """The line behind a charge, as the file has it; the header is row 1.

    Raises:
        TextFileRefusedError: there is no such row, or it takes longer than `timeout_s`.
    """
    answer = ask_child(request.asking("line", row=row), timeout_s=timeout_s)
    line: Mapping[str, str | None] = answer["line"]
    return line


def archive_members(source: Path, *, folder: Path, max_unpacked_bytes: int) -> list[ArchiveMember]:
    """The files in a zip archive; nothing is unpacked but their first bytes.

    Raises:
        TextFileRefusedError: it is damaged, encrypted, too large or means to trick.
    """
    request = ParseRequest(
        source=source, folder=folder, compression="zip", max_unpacked_bytes=max_unpacked_bytes
    )
    answer = ask_child(request.asking("members"), timeout_s=60.0)
    return [
        ArchiveMember(
            name=member["name"],
            size_bytes=member["size_bytes"],
            head=bytes.fromhex(member["head"]),
            compression=f"{ZIP_MEMBER}{member['index']}",
        )
        for member in answer["members"]
    ]


def _path(request: ParseRequest, name: str) -> Path:
    """The table's own file, or the delivered one under a name that engines take."""
    if name:
        return request.folder / name
    link = request.folder / "source.parquet"
    if not link.exists():
        os.link(request.source, link)
    return link

"""Text files from outside, parsed by a child process into Parquet; no meaning of columns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lake.places import LakeError

PROJECT_ROOT = Path(__file__).resolve().parent.parent
MEBIBYTE = 2**20
MAX_FIELD_BYTES = 128 * 1024
CHILD_MEMORY_BYTES = (
    6 * 1024 * MEBIBYTE
)  # address space: threads and maps count, not only what is used
ENGINE_MEMORY_BYTES = 512 * MEBIBYTE
BYTES_PER_CPU_S = 2 * MEBIBYTE  # far below what was measured (60 MiB/s), so only a hang meets it

_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"PAR1", "parquet"),
    (b"PK\x03\x04", "zip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ", "xz"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_CSV_SUFFIXES = (".csv", ".txt", ".tsv", "")


class TextFileRefusedError(LakeError):
    """The file cannot be read; `row` counts the header as row 1."""

    def __init__(
        self, code: str, message: str, *, row: int | None = None, column: str = ""
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.row, self.column = code, message, row, column


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """A parsed file: every column text, but the asked-for JSON objects MAP(text, text)."""

    path: Path
    columns: tuple[str, ...]
    rows: int
    unpacked_bytes: int
    unpacked_sha256: str
    map_columns: tuple[str, ...]
    bad_json: Mapping[str, int] = field(default_factory=dict)


def compression_of(name: str, head: bytes) -> str:
    """`gzip` or `none`, by the bytes, when the name does not say otherwise.

    Raises:
        TextFileRefusedError: the bytes are something else than the name says, or than we read.
    """
    kind = next((kind for magic, kind in _MAGIC if head.startswith(magic)), "none")
    suffix = Path(name.lower()).suffix[:8]
    if kind == "utf-16":
        raise TextFileRefusedError("encoding", "the file is UTF-16; save it as UTF-8", row=1)
    if kind not in ("gzip", "none"):
        raise TextFileRefusedError(
            "file_type", f"the file is {kind}; send CSV, plain or gzipped (.csv.gz)"
        )
    if kind == "gzip" and suffix in (".csv", ".txt", ".tsv"):
        raise TextFileRefusedError(
            "file_type", f"the name ends in {suffix} but the bytes are gzip; name it {suffix}.gz"
        )
    if kind == "none" and suffix == ".gz":
        raise TextFileRefusedError("file_type", "the name ends in .gz but the bytes are not gzip")
    if kind == "none" and suffix in (".parquet", ".xlsx", ".xls", ".zip", ".zst", ".json", ".html"):
        raise TextFileRefusedError(
            "file_type", f"the name ends in {suffix}; send CSV, plain or gzipped (.csv.gz)"
        )
    return kind


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvRequest:
    """What to parse, where to, and within which bounds."""

    source: Path
    folder: Path
    compression: str
    max_unpacked_bytes: int
    json_columns: tuple[str, ...] = ()
    threads: int = 0
    max_field_bytes: int = MAX_FIELD_BYTES

    def as_json(self) -> str:
        """The request as the child reads it."""
        source_bytes = self.source.stat().st_size
        likely_bytes = max(source_bytes * (20 if self.compression == "gzip" else 1), 64 * MEBIBYTE)
        return json.dumps(
            {
                "source": str(self.source),
                "folder": str(self.folder),
                "compression": self.compression,
                "max_unpacked_bytes": self.max_unpacked_bytes,
                "max_field_bytes": self.max_field_bytes,
                "json_columns": list(self.json_columns),
                "threads": self.threads,
                "memory_bytes": CHILD_MEMORY_BYTES,
                "engine_memory_bytes": ENGINE_MEMORY_BYTES,
                "cpu_s": 60 + likely_bytes // BYTES_PER_CPU_S,
                "file_bytes": self.max_unpacked_bytes + 64 * MEBIBYTE,
            }
        )


def read_csv(
    request: CsvRequest, *, on_bytes: Callable[[int], None] | None = None, timeout_s: float = 3600.0
) -> TextTable:
    """Parse a CSV file in a child process and return the table of texts.

    Raises:
        TextFileRefusedError: the file is no CSV that can be read whole and safely.
    """
    child = subprocess.Popen(
        [sys.executable, "-E", "-s", "-m", "lake.parse_child"],
        cwd=PROJECT_ROOT,
        env={"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )
    alarm = threading.Timer(timeout_s, child.kill)
    alarm.start()
    try:
        answer = _converse(child, request.as_json(), on_bytes)
    finally:
        alarm.cancel()
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
    return _table(request, answer)


def _converse(
    child: subprocess.Popen[str], request: str, on_bytes: Callable[[int], None] | None
) -> Mapping[str, Any]:
    """Hand the request over, pass progress on, return the child's last line."""
    if child.stdin is None or child.stdout is None:
        raise LakeError("the parsing process has no pipes")
    try:
        child.stdin.write(request)
        child.stdin.close()
    except BrokenPipeError:
        pass  # it died at once; its missing answer says so below
    for line in child.stdout:
        answer: Mapping[str, Any] = json.loads(line)
        if "progress_bytes" not in answer:
            return answer
        if on_bytes is not None:
            on_bytes(answer["progress_bytes"])
    return {
        "refused": "limits",
        "message": "the file needed more memory or time than one file may use; "
        "split it, or check that it is a CSV of ordinary rows",
    }


def _table(request: CsvRequest, answer: Mapping[str, Any]) -> TextTable:
    if "refused" in answer:
        raise TextFileRefusedError(
            answer["refused"],
            answer["message"],
            row=answer.get("row"),
            column=answer.get("column") or "",
        )
    return TextTable(
        path=request.folder / "text.parquet",
        columns=tuple(answer["columns"]),
        rows=answer["rows"],
        unpacked_bytes=answer["unpacked_bytes"],
        unpacked_sha256=answer["unpacked_sha256"],
        map_columns=tuple(answer["map_columns"]),
        bad_json=answer["bad_json"],
    )

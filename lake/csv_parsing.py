"""How the child process reads a CSV: unpacked on the fly, parsed, what is wrong named by row."""

import csv
import fcntl
import hashlib
import io
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final

import duckdb

from lake.refusing import (
    CHUNK_BYTES,
    MAX_COLUMNS,
    RefusedError,
    Say,
    sql_name,
    sql_text,
    unique_names,
)
from lake.structures import write_lookup
from lake.unpacking import chunks_of

HEADER_BYTES: Final = 2**20
PROGRESS_BYTES: Final = 32 * 2**20
READ_ON_BYTES: Final = 64 * 2**20  # after the engine gave up: is the file cut short, or a bomb?
GROUP_CELLS: Final = 300_000  # so few that a group fits the processor's cache
NULL_WORDS: Final = ("", "NULL")
ROW_COLUMN: Final = "x_source_row"


def parse(request: dict[str, Any], say: Say) -> dict[str, Any]:
    """Parse the file into `text.parquet` in the request's folder; return what it is.

    Raises:
        RefusedError: with the row, where one is to blame.
    """
    head, rest = read_head(request)
    columns = header_of(head)
    is_piped = request["compression"] != "none"
    feed = _Feed(chain([head], rest), _Lines(request), is_piped=is_piped, say=say)
    made = _Made(request, columns, Path(request["folder"]) / "text.parquet")
    with settled_engine(request) as engine:
        error = _overlapped(feed, lambda: made.write(engine, feed.name or request["source"]))
        if feed.refusal is not None:
            raise feed.refusal
        if feed.lines.is_too_long:
            raise _located(request) or RefusedError("field", "a line is longer than 2 MiB")
        if error is not None:
            raise _reason(error, request) from error
        if feed.has_nul:
            raise _located(request) or RefusedError("nul", "a NUL byte stands in the file")
        if made.rows == 0:
            raise RefusedError("empty", "the file has a header but no rows")
        made.check_fields(engine)
        made.read_structures(engine)
    return {
        "columns": made.names,
        "rows": made.rows,
        "unpacked_bytes": feed.size_bytes,
        "unpacked_sha256": feed.sha256,
        "lookups": made.lookups,
        "bad_json": made.bad_json,
        "types": dict.fromkeys(made.written, "VARCHAR"),
        "is_typed": False,
    }


def read_header(request: dict[str, Any]) -> dict[str, Any]:
    """The column names alone; only the beginning of the file is read."""
    head, _ = read_head(request)
    return {"columns": unique_names(header_of(head)), "types": {}}


def read_head(request: dict[str, Any]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes, enough for a header, and the rest."""
    chunks = chunks_of(
        Path(request["source"]), request["compression"], limit_bytes=request["max_unpacked_bytes"]
    )
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= HEADER_BYTES:
            break
    return head, chunks


class _Lines:
    """Notices a line that is longer than a row may be: at its end the engine would drop it."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.limit_bytes = longest_row(request)
        self.open_bytes, self.is_too_long = 0, False

    def see(self, chunk: bytes) -> None:
        """Look at the next bytes."""
        mark = b"\n" if b"\n" in chunk else b"\r"
        first = chunk.find(mark)
        until = self.open_bytes + (len(chunk) if first < 0 else first)
        self.is_too_long = self.is_too_long or until > self.limit_bytes
        self.open_bytes = until if first < 0 else len(chunk) - 1 - chunk.rfind(mark)


def longest_row(request: dict[str, Any]) -> int:
    """How many bytes a row may have."""
    return 16 * int(request["max_field_bytes"])


class _Feed(threading.Thread):
    """Reads every byte once: its hash, whether a NUL is there; packed bytes go to a pipe."""

    def __init__(self, chunks: Iterator[bytes], lines: _Lines, *, is_piped: bool, say: Say) -> None:
        super().__init__(daemon=True)
        self.chunks, self.lines, self.say = chunks, lines, say
        self.size_bytes, self.sha256, self.has_nul = 0, "", False
        self.refusal: RefusedError | None = None
        self.ends = _wide_pipe() if is_piped else None

    @property
    def name(self) -> str:  # type: ignore[override]  # what the engine reads
        return f"/dev/fd/{self.ends[0]}" if self.ends else ""

    def run(self) -> None:
        try:
            self._read()
        except RefusedError as refusal:
            self.refusal = refusal
        finally:
            if self.ends:
                os.close(self.ends[1])

    def _read(self) -> None:
        digest, told = hashlib.sha256(), 0
        last_bytes: int | None = None
        for chunk in self.chunks:
            self.size_bytes += len(chunk)
            digest.update(chunk)
            self.has_nul = self.has_nul or b"\0" in chunk
            self.lines.see(chunk)
            is_over = last_bytes is None and self.ends and not _write(self.ends[1], chunk)
            if last_bytes is None and (is_over or self.lines.is_too_long):
                last_bytes = self.size_bytes + READ_ON_BYTES
            if last_bytes is not None and self.size_bytes > last_bytes:
                return
            if self.size_bytes - told >= PROGRESS_BYTES:
                told = self.size_bytes
                self.say({"progress_bytes": told})
        self.sha256 = digest.hexdigest()

    def close_reading(self) -> None:
        """Tell the feeding thread that nobody reads any more."""
        if self.ends:
            os.close(self.ends[0])


def _wide_pipe() -> tuple[int, int]:
    """A pipe that takes a chunk at once, where the system gives one: fewer turns to wait for."""
    ends = os.pipe()
    with suppress(OSError):
        fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, CHUNK_BYTES)
    return ends


def _write(descriptor: int, chunk: bytes) -> bool:
    """Write it all; False when nobody reads any more."""
    view = memoryview(chunk)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except BrokenPipeError:
        return False
    return True


def _overlapped(feed: _Feed, work: Any) -> duckdb.Error | None:
    """Let the engine work while the bytes are read; return its error."""
    feed.start()
    try:
        work()
    except duckdb.Error as error:
        return error
    finally:
        feed.close_reading()
        feed.join()
    return None


def header_of(head: bytes) -> list[str]:
    """The column names.

    Raises:
        RefusedError: no readable, complete header with each name once.
    """
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise RefusedError("encoding", "the file is UTF-16; save it as UTF-8", row=1)
    text = head.decode("utf-8-sig", errors="replace")
    try:
        columns = next(csv.reader(io.StringIO(text, newline=""), strict=True), [])
    except csv.Error as error:
        raise RefusedError("csv", f"the header cannot be read: {error}", row=1) from error
    if not columns:
        raise RefusedError("header", "the first line holds no column names", row=1)
    if len(columns) > MAX_COLUMNS:
        raise RefusedError("header", f"{len(columns)} columns are more than {MAX_COLUMNS}", row=1)
    seen: set[str] = set()
    for position, name in enumerate(columns, start=1):
        if not name.strip() or "\ufffd" in name or "\0" in name:
            raise RefusedError(
                "header", f"the name of column {position} is empty or unreadable", row=1
            )
        if name in seen:
            raise RefusedError(
                "header", f"two columns are named {name[:100]!r}", row=1, column=name[:100]
            )
        seen.add(name)
    return columns


def settled_engine(request: dict[str, Any]) -> Any:
    """A session of the engine within the request's bounds."""
    engine = duckdb.connect()
    memory = request["engine_memory_bytes"] // 2**20
    spill = sql_text(str(Path(request["folder"]) / "spill"))
    engine.execute(
        f"SET memory_limit = '{memory}MiB'; SET enable_progress_bar = false; "
        f"SET temp_directory = {spill}; SET TimeZone = 'UTC'; "
        "SET autoinstall_known_extensions = false; SET autoload_known_extensions = false"
    )
    if request["threads"]:
        engine.execute(f"SET threads = {int(request['threads'])}")
    return engine


def csv_source(request: dict[str, Any], path: str, width: int) -> str:
    """The file as the engine's table function, its columns named c0, c1, …"""
    names = ", ".join(f"'c{position}': 'VARCHAR'" for position in range(width))
    nulls = ", ".join(sql_text(word) for word in NULL_WORDS)
    return (
        f"read_csv({sql_text(path)}, header = true, auto_detect = false, delim = ',', "
        "quote = '\"', escape = '\"', strict_mode = true, null_padding = false, "
        f"ignore_errors = false, max_line_size = {longest_row(request)}, "
        f"compression = 'none', nullstr = [{nulls}], columns = {{{names}}})"
    )


class _Made:
    """One run of the engine over the plain bytes."""

    def __init__(self, request: dict[str, Any], columns: list[str], target: Path) -> None:
        self.request, self.columns, self.target = request, columns, target
        self.names = unique_names(columns)
        wanted = request["wanted_columns"]
        self.written = [name for name in self.names if wanted is None or name in wanted]
        self.lookups: dict[str, str] = {}
        self.bad_json: dict[str, int] = {}
        self.rows = 0

    def write(self, engine: Any, path: str) -> None:
        """Write the Parquet file; small row groups, or a wide file spills to disk on the way."""
        width = max(len(self.written), 1)
        group = min(max(GROUP_CELLS // width // 2048, 3), 60) * 2048
        selected = [
            f"c{position} AS {sql_name(name)}"
            for position, name in enumerate(self.names)
            if name in self.written
        ]
        if self.request["number_rows"]:
            selected.append(f"row_number() OVER () + 1 AS {ROW_COLUMN}")
        written = engine.execute(
            f"COPY (SELECT {', '.join(selected) or 'c0'} "  # noqa: S608  # our own texts, quoted
            f"FROM {csv_source(self.request, path, len(self.columns))}) "
            f"TO {sql_text(str(self.target))} "
            f"(FORMAT parquet, COMPRESSION lz4, ROW_GROUP_SIZE {group})"
        ).fetchall()
        self.rows = int(written[0][0])

    @property
    def table(self) -> str:
        return f"read_parquet({sql_text(str(self.target))})"

    def check_fields(self, engine: Any) -> None:
        """Refuse giant fields."""
        if not self.written:
            return
        longest = ", ".join(f"max(strlen({sql_name(name)}))" for name in self.written)
        found = engine.execute(f"SELECT {longest} FROM {self.table}").fetchall()[0]  # noqa: S608  # our own texts, quoted
        for name, length in zip(self.written, found, strict=True):
            if (length or 0) > self.request["max_field_bytes"]:
                raise _located(self.request) or RefusedError(
                    "field", "a field is longer than 128 KiB", column=name
                )

    def read_structures(self, engine: Any) -> None:
        """Write beside the table what the texts of its JSON columns mean."""
        kinds = dict.fromkeys(self.request["json_columns"], False)
        kinds |= dict.fromkeys(self.request["list_columns"], True)
        for number, name in enumerate(name for name in self.written if name in kinds):
            target = self.target.parent / f"lookup-{number}.parquet"
            bad = write_lookup(engine, self.table, name, is_list=kinds[name], target=target)
            self.lookups[name] = target.name
            if bad:
                self.bad_json[name] = bad


def _reason(error: duckdb.Error, request: dict[str, Any]) -> RefusedError:
    """The row to blame, found by a slow and careful second reading."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return RefusedError("limits", "the file needed more memory than one file may use")
    if "No space left" in str(error):
        return RefusedError("disk_full", "the disk is full; free some space and send it again")
    return _located(request) or RefusedError(
        "csv", "the file cannot be read as comma-separated UTF-8 text with a header"
    )


def _located(request: dict[str, Any]) -> RefusedError | None:
    """Read row by row in plain Python and return what is wrong with the first bad row."""
    csv.field_size_limit(request["max_field_bytes"])
    width, row = 0, 0
    reader = csv.reader(_lines(request), strict=True)
    try:
        for row, fields in enumerate(reader, start=1):
            if not fields:
                continue
            width = width or len(fields)
            refusal = _wrong_row(fields, row, width)
            if refusal:
                return refusal
    except UnicodeDecodeError:
        return RefusedError(
            "encoding", "the text is not UTF-8; save the file as UTF-8", row=row + 1
        )
    except csv.Error as error:
        return RefusedError("csv", _csv_words(str(error)), row=row + 1)
    return None


def _wrong_row(fields: list[str], row: int, width: int) -> RefusedError | None:
    if len(fields) != width:
        return RefusedError(
            "ragged", f"the row has {len(fields)} fields, the header {width}", row=row
        )
    for position, text in enumerate(fields, start=1):
        if "\0" in text:
            return RefusedError("nul", f"a NUL byte stands in field {position}", row=row)
        if len(text.encode()) > csv.field_size_limit():
            return RefusedError("field", f"field {position} is longer than 128 KiB", row=row)
    return None


def _lines(request: dict[str, Any]) -> Iterator[str]:
    """The file's lines as text, none longer than a row may be."""
    chunks = chunks_of(
        Path(request["source"]), request["compression"], limit_bytes=request["max_unpacked_bytes"]
    )
    waiting, coding = b"", "utf-8-sig"
    for chunk in chunks:
        *whole, waiting = (waiting + chunk).split(b"\n")
        for line in whole:
            yield line.decode(coding) + "\n"
            coding = "utf-8"
        if len(waiting) > longest_row(request):
            raise csv.Error("field larger than field limit")
    if waiting:
        yield waiting.decode(coding)


def _csv_words(error: str) -> str:
    if "unexpected end of data" in error:
        return "a quotation mark opens in this row and never closes"
    if "field larger" in error:
        return "a field is longer than 128 KiB, or a quotation mark never closes"
    return f"the quotation marks do not match: {error}"

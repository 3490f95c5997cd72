"""How the child process reads a CSV: unpack within bounds, parse, name what is wrong."""

import csv
import hashlib
import io
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import duckdb

CHUNK_BYTES = 2**20
HEADER_BYTES = 2**20
PROGRESS_BYTES = 32 * 2**20
NULL_WORDS = ("", "NULL")
Say = Callable[[dict[str, Any]], None]


class RefusedError(Exception):
    """Why the file is not taken, as the answer to the parent."""

    def __init__(
        self, code: str, message: str, *, row: int | None = None, column: str = ""
    ) -> None:
        super().__init__(message)
        self.answer = {"refused": code, "message": message, "row": row, "column": column}


def parse(request: dict[str, Any], say: Say) -> dict[str, Any]:
    """Parse the file into `text.parquet` in the request's folder; return what it is.

    Raises:
        RefusedError: with the row, where one is to blame.
    """
    source, folder = Path(request["source"]), Path(request["folder"])
    gzipped = request["compression"] == "gzip"
    plain = folder / "unpacked.csv" if gzipped else source
    size_bytes, sha256, has_nul = _unpack(request, plain if gzipped else None, say)
    try:
        columns = _header(plain)
        if has_nul:
            raise _located(plain, request) or RefusedError("nul", "a NUL byte stands in the file")
        made = _Made(request, plain, columns, folder / "text.parquet")
        rows = made.write()
    finally:
        if gzipped:
            plain.unlink(missing_ok=True)
    if rows == 0:
        raise RefusedError("empty", "the file has a header but no rows")
    return {
        "columns": columns,
        "rows": rows,
        "unpacked_bytes": size_bytes,
        "unpacked_sha256": sha256,
        "map_columns": made.map_columns,
        "bad_json": made.bad_json,
    }


def _unpack(request: dict[str, Any], target: Path | None, say: Say) -> tuple[int, str, bool]:
    """Read all bytes, unpacked into `target` if packed: size, SHA-256, whether a NUL is there."""
    digest, size_bytes, has_nul, told = hashlib.sha256(), 0, False, 0
    limit_bytes = request["max_unpacked_bytes"]
    with Path(request["source"]).open("rb") as source:
        chunks = _gunzip(source, limit_bytes) if target else _pieces(source)
        out = target.open("wb") if target else None
        try:
            for chunk in chunks:
                if size_bytes == 0 and chunk.startswith(b"\x1f\x8b"):
                    raise RefusedError("file_type", "the file is packed twice; send it packed once")
                size_bytes += len(chunk)
                if size_bytes > limit_bytes:
                    raise _too_large(limit_bytes)
                digest.update(chunk)
                has_nul = has_nul or b"\0" in chunk
                if out is not None:
                    out.write(chunk)
                if size_bytes - told >= PROGRESS_BYTES:
                    told = size_bytes
                    say({"progress_bytes": size_bytes})
        finally:
            if out is not None:
                out.close()
    if size_bytes == 0:
        raise RefusedError("empty", "the file is empty")
    return size_bytes, digest.hexdigest(), has_nul


def _too_large(limit_bytes: int) -> RefusedError:
    return RefusedError(
        "too_large", f"the file unpacks to more than {limit_bytes // 2**20} MiB; split it by month"
    )


def _pieces(source: BinaryIO) -> Iterator[bytes]:
    while chunk := source.read(CHUNK_BYTES):
        yield chunk


def _gunzip(source: BinaryIO, limit_bytes: int) -> Iterator[bytes]:
    """Unpack one or more gzip members, never more than a chunk ahead of the consumer."""
    waiting, members = source.read(CHUNK_BYTES), 0
    while waiting:
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            if not waiting and not (waiting := source.read(CHUNK_BYTES)):
                raise RefusedError("truncated", "the gzip file ends in the middle; send it again")
            try:
                unpacked = member.decompress(waiting, CHUNK_BYTES)
            except zlib.error as error:
                raise RefusedError("damaged", _damage(error, members)) from error
            waiting = member.unconsumed_tail or member.unused_data
            if unpacked:
                yield unpacked
        members += 1
        if len(waiting) < 2:  # the next member's first bytes may lie in the next piece
            waiting += source.read(CHUNK_BYTES)


def _damage(error: zlib.error, members: int) -> str:
    if "incorrect header" in str(error) and members:
        return "bytes that are not gzip follow the end of the gzip data; send the file again"
    if "incorrect data check" in str(error) or "length check" in str(error):
        return "the checksum of the gzip file is wrong; send it again"
    return "the gzip file is damaged; send it again"


def _header(path: Path) -> list[str]:
    """The column names.

    Raises:
        RefusedError: no readable, complete header with each name once.
    """
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise RefusedError("encoding", "the file is UTF-16; save it as UTF-8", row=1)
    text = head.decode("utf-8-sig", errors="replace")
    try:
        columns = next(csv.reader(io.StringIO(text, newline=""), strict=True), [])
    except csv.Error as error:
        raise RefusedError("csv", f"the header cannot be read: {error}", row=1) from error
    for position, name in enumerate(columns, start=1):
        if not name.strip() or "\ufffd" in name or "\0" in name:
            raise RefusedError(
                "header", f"the name of column {position} is empty or unreadable", row=1
            )
        if columns.index(name) != position - 1:
            raise RefusedError(
                "header", f"two columns are named {name[:100]!r}", row=1, column=name[:100]
            )
    if not columns:
        raise RefusedError("header", "the first line holds no column names", row=1)
    if len(columns) > 2000:
        raise RefusedError("header", f"{len(columns)} columns are more than 2000", row=1)
    return columns


class _Made:
    """One run of the engine over the plain file."""

    def __init__(
        self, request: dict[str, Any], plain: Path, columns: list[str], target: Path
    ) -> None:
        self.request, self.plain, self.columns, self.target = request, plain, columns, target
        self.map_columns = [name for name in request["json_columns"] if name in columns]
        self.bad_json: dict[str, int] = {}

    def write(self) -> int:
        """Write the Parquet file; return its rows."""
        with duckdb.connect() as engine:
            self._settle(engine)
            try:
                written = engine.execute(self._copy()).fetchall()
            except duckdb.Error as error:
                raise self._reason(error) from error
            self._check_fields(engine)
        return int(written[0][0])

    def _settle(self, engine: Any) -> None:
        memory = self.request["engine_memory_bytes"] // 2**20
        engine.execute(f"SET memory_limit = '{memory}MiB'; SET enable_progress_bar = false")
        engine.execute(f"SET temp_directory = {_text(str(self.target.parent / 'spill'))}")
        engine.execute(
            f"SET threads = {int(self.request['threads'])}"
            if self.request["threads"]
            else "SELECT 1"
        )
        engine.execute(
            "SET autoinstall_known_extensions = false; SET autoload_known_extensions = false"
        )

    def _copy(self) -> str:
        names = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in self.columns)
        nulls = ", ".join(_text(word) for word in NULL_WORDS)
        source = (
            f"read_csv({_text(str(self.plain))}, header = true, auto_detect = false, delim = ',', "
            "quote = '\"', escape = '\"', strict_mode = true, null_padding = false, "
            f"ignore_errors = false, max_line_size = {16 * self.request['max_field_bytes']}, "
            f"nullstr = [{nulls}], columns = {{{names}}})"
        )
        selected = ", ".join(self._column(name) for name in self.columns)
        return (
            f"COPY (SELECT {selected} FROM {source}) TO {_text(str(self.target))} "  # noqa: S608  # our own texts, quoted
            "(FORMAT parquet, COMPRESSION lz4)"
        )

    def _column(self, name: str) -> str:
        quoted = '"' + name.replace('"', '""') + '"'
        if name not in self.map_columns:
            return quoted
        parsed = f"TRY_CAST(TRY_CAST({quoted} AS JSON) AS MAP(VARCHAR, VARCHAR))"
        kept = f"MAP {{'{BAD_JSON_KEY}': {quoted}}}"
        return (
            f"CASE WHEN {quoted} IS NULL THEN NULL ELSE COALESCE({parsed}, {kept}) END AS {quoted}"
        )

    def _check_fields(self, engine: Any) -> None:
        """Refuse giant fields; count the texts that were no JSON objects."""
        checks = [
            f"map_contains({_name(name)}, '{BAD_JSON_KEY}')"
            if name in self.map_columns
            else f"strlen({_name(name)}) > {int(self.request['max_field_bytes'])}"
            for name in self.columns
        ]
        counts = ", ".join(f"count(*) FILTER ({check})" for check in checks)
        found = engine.execute(
            f"SELECT {counts} FROM read_parquet({_text(str(self.target))})"  # noqa: S608  # our own texts, quoted
        ).fetchall()[0]
        for name, count in zip(self.columns, found, strict=True):
            if count and name in self.map_columns:
                self.bad_json[name] = count
            elif count:
                raise _located(self.plain, self.request) or RefusedError(
                    "field", "a field is longer than 128 KiB", column=name
                )

    def _reason(self, error: duckdb.Error) -> RefusedError:
        """The row to blame, found by a slow and careful second reading."""
        if isinstance(error, duckdb.OutOfMemoryException):
            return RefusedError("limits", "the file needed more memory than one file may use")
        return _located(self.plain, self.request) or RefusedError(
            "csv", "the file cannot be read as comma-separated UTF-8 text with a header"
        )


BAD_JSON_KEY = "x_unreadable"


def _located(path: Path, request: dict[str, Any]) -> RefusedError | None:
    """Read row by row in plain Python and return what is wrong with the first bad row."""
    csv.field_size_limit(request["max_field_bytes"])
    width, row = 0, 0
    with path.open("rb") as file:
        reader = csv.reader(_lines(file), strict=True)
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


def _lines(file: BinaryIO) -> Iterator[str]:
    for number, line in enumerate(file):
        yield line.decode("utf-8-sig" if number == 0 else "utf-8")


def _csv_words(error: str) -> str:
    if "unexpected end of data" in error:
        return "a quotation mark opens in this row and never closes"
    if "field larger" in error:
        return "a field is longer than 128 KiB, or a quotation mark never closes"
    return f"the quotation marks do not match: {error}"


def _text(text: str) -> str:
    """An SQL text literal."""
    return "'" + text.replace("'", "''") + "'"


def _name(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'

"""How the child process reads Parquet: every value decoded once, nested columns made flat."""

import base64
import hashlib
import re
import threading
from pathlib import Path
from typing import Any, Final

import duckdb

from lake.csv_parsing import settled_engine
from lake.refusing import CHUNK_BYTES, MAX_COLUMNS, RefusedError, Say, sql_name, sql_text
from lake.structures import PAIR_FIELDS, UNREADABLE, write_lookup
from lake.unpacking import chunks_of

MAGIC: Final = b"PAR1"
ENCRYPTED: Final = b"PARE"
MAX_FOOTER_BYTES: Final = 64 * 2**20
MAX_DEPTH: Final = 4
TEXT: Final = "VARCHAR"
MAP: Final = "MAP(VARCHAR, VARCHAR)"
LIST: Final = "MAP(VARCHAR, VARCHAR)[]"
_FLAT: Final = re.compile(
    r"VARCHAR|BOOLEAN|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DATE"
    r"|DECIMAL\(\d+,\s?\d+\)|TIMESTAMP(_S|_MS|_NS)?|TIMESTAMP WITH TIME ZONE"
)
_AS_TEXT: Final = ("UUID", "TIME", "TIME WITH TIME ZONE", "INTERVAL", "JSON")
_BYTES_OF: Final = {"BOOLEAN": 1, "TINYINT": 1, "UTINYINT": 1, "SMALLINT": 2, "USMALLINT": 2}


def parse(request: dict[str, Any], say: Say) -> dict[str, Any]:
    """Decode the file within bounds; write `text.parquet` only where it is not flat already.

    Raises:
        RefusedError: it is damaged, encrypted, too large, or holds what no bill holds.
    """
    source = unpacked_file(request, say)
    _check_ends(source)
    digest = _Digest(source)
    digest.start()
    try:
        with settled_engine(request) as engine:
            made = _Read(request, engine, source)
            answer = made.answer()
    except duckdb.Error as error:
        raise _reason(error) from error
    finally:
        digest.join()
    return {**answer, "unpacked_bytes": source.stat().st_size, "unpacked_sha256": digest.sha256}


def read_header(request: dict[str, Any]) -> dict[str, Any]:
    """The names and types of the columns; no value is decoded."""
    source = unpacked_file(request, lambda _: None)
    _check_ends(source)
    try:
        with settled_engine(request) as engine:
            made = _Read(request, engine, source)
            return {"columns": made.names, "types": made.types}
    except duckdb.Error as error:
        raise _reason(error) from error


class _Digest(threading.Thread):
    """The file's hash, taken beside the decoding."""

    def __init__(self, source: Path) -> None:
        super().__init__(daemon=True)
        self.source, self.sha256 = source, ""

    def run(self) -> None:
        with self.source.open("rb") as file:
            self.sha256 = hashlib.file_digest(file, "sha256").hexdigest()


def unpacked_file(request: dict[str, Any], say: Say) -> Path:
    """The file itself: a member of an archive is written out, for it is read at many places."""
    source, folder = Path(request["source"]), Path(request["folder"])
    if request["compression"] == "parquet":
        return source
    target, told, size_bytes = folder / "member.parquet", 0, 0
    with target.open("wb") as file:
        for chunk in chunks_of(
            source, request["compression"], limit_bytes=request["max_unpacked_bytes"]
        ):
            file.write(chunk)
            size_bytes += len(chunk)
            if size_bytes - told >= 32 * CHUNK_BYTES:
                told = size_bytes
                say({"progress_bytes": told})
    return target


def _check_ends(source: Path) -> None:
    """Look at the first and last bytes before any engine does."""
    size_bytes = source.stat().st_size
    with source.open("rb") as file:
        head = file.read(4)
        file.seek(max(0, size_bytes - 8))
        tail = file.read()
    if head == ENCRYPTED or tail[-4:] == ENCRYPTED:
        raise RefusedError("encrypted", "the Parquet file is encrypted; send it in plain")
    if head != MAGIC or tail[-4:] != MAGIC or size_bytes < 12:
        raise RefusedError("truncated", "the Parquet file is cut short; send it again")
    footer_bytes = int.from_bytes(tail[:4], "little")
    if footer_bytes > size_bytes - 12:
        raise RefusedError("damaged", "the Parquet file is damaged; send it again")
    if footer_bytes > MAX_FOOTER_BYTES:
        raise RefusedError("limits", "the description in the Parquet file is larger than 64 MiB")


class _Read:
    """One Parquet file, looked at by the engine."""

    def __init__(self, request: dict[str, Any], engine: Any, source: Path) -> None:
        self.request, self.engine = request, engine
        self.table = f"read_parquet({sql_text(str(source))}, hive_partitioning = false)"
        self.plain = sql_text(str(source))
        self._check_description()
        described = self._rows(f"DESCRIBE SELECT * FROM {self.table}")  # noqa: S608  # our own texts, quoted
        self.columns = {row[0]: row[1] for row in described}
        wanted = request["wanted_columns"]
        leaves = [
            leaf
            for name, kind in self.columns.items()
            for leaf in _leaves(name, kind, sql_name(name), 0)
        ]
        self.names = [name for name, _, _ in leaves]
        self.leaves = [leaf for leaf in leaves if wanted is None or leaf[0] in wanted]
        self.types = {name: kind for name, kind, _ in self.leaves}
        if len(leaves) > MAX_COLUMNS:
            raise RefusedError("header", f"more than {MAX_COLUMNS} columns", row=1)
        if len({name.lower() for name in self.names}) < len(leaves):
            raise RefusedError("header", "two columns have the same name", row=1)
        self.is_flat = all(sql_name(name) == sql for name, _, sql in self.leaves)

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self.engine.execute(sql).fetchall()
        return found

    def _check_description(self) -> None:
        """Bound rows and columns by what the footer says, before a value is decoded."""
        schema = self._rows(
            f"SELECT name, num_children FROM parquet_schema({self.plain})"  # noqa: S608  # our own texts, quoted
        )
        if len(schema) > 4 * MAX_COLUMNS or (schema and (schema[0][1] or 0) > MAX_COLUMNS):
            raise RefusedError("header", f"more than {MAX_COLUMNS} columns", row=1)
        tops = _tops(schema)
        # not parquet_file_metadata, which stumbles over a footer that speaks of encryption
        found = self._rows(f"SELECT count(*) FROM {self.table}")  # noqa: S608  # our own texts, quoted
        self.rows = int(found[0][0])
        if len({row[0].lower() for row in tops}) < len(tops):
            raise RefusedError("header", "two columns have the same name", row=1)
        if self.rows <= 0:
            raise RefusedError("empty", "the file has columns but no rows")
        if self.rows * max(len(schema) - 1, 1) > self.request["max_unpacked_bytes"]:
            raise _decoded_too_large(self.request)
        for key, value in self._rows(
            f"SELECT key, value FROM parquet_kv_metadata({self.plain})"  # noqa: S608  # our own texts, quoted
        ):
            if key == b"ARROW:schema" and b"ARROW:extension:name" in _decoded(value):
                raise RefusedError(
                    "file_type", "a column has an extension type; write it as plain text or numbers"
                )

    def answer(self) -> dict[str, Any]:
        """Decode everything once and say what it is."""
        self._decode()
        folder = Path(self.request["folder"])
        path = "" if self.is_flat and not self.request["number_rows"] else "text.parquet"
        if path:
            self._write(folder / path)
        table = f"read_parquet({sql_text(str(folder / path))})" if path else self.table
        lookups, bad_json = self._structures(table, folder)
        return {
            "columns": self.names,
            "rows": self.rows,
            "lookups": lookups,
            "bad_json": bad_json,
            "types": self.types,
            "is_typed": True,
            "path": path or ("member.parquet" if self.request["compression"] != "parquet" else ""),
        }

    def _decode(self) -> None:
        """One pass over all values: their number, their length, no NUL."""
        fixed = [name for name, kind in self.columns.items() if kind != TEXT and _is_flat(kind)]
        others = [name for name in self.columns if name not in fixed]
        asked = ["count(*)", *(f"max(hash({sql_name(name)}))" for name in fixed)]
        for name in others:
            text = sql_name(name) if self.columns[name] == TEXT else f"{sql_name(name)}::VARCHAR"
            asked += [f"max(strlen({text}))", f"sum(strlen({text}))"]
            asked.append(f"max(contains({text}, chr(0)))")
        found = self._rows(f"SELECT {', '.join(asked)} FROM {self.table}")[0]  # noqa: S608  # our own texts, quoted
        if found[0] != self.rows:
            raise RefusedError("damaged", "the Parquet file holds other rows than it says")
        measures = found[1 + len(fixed) :]
        total_bytes = self.rows * sum(_BYTES_OF.get(self.columns[name], 8) for name in fixed)
        for position, name in enumerate(others):
            longest, decoded_bytes, has_nul = measures[3 * position : 3 * position + 3]
            total_bytes += int(decoded_bytes or 0)
            self._check_texts(name, longest_bytes=int(longest or 0), has_nul=bool(has_nul))
        if total_bytes > self.request["max_unpacked_bytes"]:
            raise _decoded_too_large(self.request)

    def _check_texts(self, name: str, *, longest_bytes: int, has_nul: bool) -> None:
        is_nested = self.columns[name] != TEXT
        if longest_bytes > self.request["max_field_bytes"] * (16 if is_nested else 1):
            raise RefusedError("field", "a field is longer than 128 KiB", column=name)
        if has_nul:
            raise RefusedError("nul", "a NUL byte stands in a text", column=name)

    def _write(self, target: Path) -> None:
        selected = [f"{sql} AS {sql_name(name)}" for name, _, sql in self.leaves]
        if self.request["number_rows"]:
            selected.append("file_row_number + 2 AS x_source_row")
        group = min(max(2_000_000 // max(len(selected), 1) // 2048, 5), 60) * 2048
        table = self.table.replace("hive_", "file_row_number = true, hive_")
        self.engine.execute(
            f"COPY (SELECT {', '.join(selected)} FROM {table}) TO {sql_text(str(target))} "  # noqa: S608  # our own texts, quoted
            f"(FORMAT parquet, COMPRESSION lz4, ROW_GROUP_SIZE {group})"
        )

    def _structures(self, table: str, folder: Path) -> tuple[dict[str, str], dict[str, int]]:
        kinds = dict.fromkeys(self.request["json_columns"], False)
        kinds |= dict.fromkeys(self.request["list_columns"], True)
        lookups: dict[str, str] = {}
        bad_json: dict[str, int] = {}
        for number, name in enumerate(
            name for name, kind in self.types.items() if name in kinds and kind == TEXT
        ):
            target = folder / f"lookup-{number}.parquet"
            bad = write_lookup(self.engine, table, name, is_list=kinds[name], target=target)
            lookups[name] = target.name
            if bad:
                bad_json[name] = bad
        return lookups, bad_json


def _tops(schema: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The columns themselves, without what is nested in them, as the footer lists them."""
    tops, nested = [], 0
    for entry in schema[1:]:
        if nested == 0:
            tops.append(entry)
        else:
            nested -= 1
        nested += entry[1] or 0
    return tops


def _is_flat(kind: str) -> bool:
    return _FLAT.fullmatch(kind) is not None


def _leaves(name: str, kind: str, sql: str, depth: int) -> list[tuple[str, str, str]]:
    """The flat columns that a column becomes: name, type, and the engine's words for it."""
    if _is_flat(kind) or kind == MAP:
        return [(name, kind, sql)]
    if kind in _AS_TEXT or kind.startswith("ENUM"):
        return [(name, TEXT, f"CAST({sql} AS VARCHAR)")]
    if kind == "BLOB":
        return [(name, TEXT, f"decode({sql})")]
    fields = _fields_of(kind)
    if kind.startswith("STRUCT(") and kind.endswith(")") and fields and depth < MAX_DEPTH:
        return [
            leaf
            for field, field_kind in fields
            for leaf in _leaves(
                f"{name}.{field}",
                field_kind,
                f"struct_extract({sql}, {sql_text(field)})",
                depth + 1,
            )
        ]
    if kind.endswith("[]"):
        return [_list_leaf(name, kind[:-2], sql)]
    if kind.startswith("MAP("):
        return [(name, MAP, f"CAST({sql} AS {MAP})")]
    raise RefusedError(
        "file_type",
        f"columns of the type {kind[:60]} are not read; write plain columns",
        column=name,
    )


def _list_leaf(name: str, kind: str, sql: str) -> tuple[str, str, str]:
    """A list of keys and values is a map, of other objects a list of maps, the rest JSON."""
    if kind == MAP:
        return (name, LIST, sql)
    fields = _fields_of(kind) if kind.startswith("STRUCT(") and kind.endswith(")") else []
    if not fields:
        return (name, TEXT, f"CAST(to_json({sql}) AS VARCHAR)")
    own = {field for field, _ in fields}
    if {"key", "value"} <= own <= PAIR_FIELDS | {"key"}:
        key, value = _key(sql, own), "CAST(one.value AS VARCHAR)"
        made = (
            f"TRY(map_from_entries(list_transform({sql}, lambda one: "
            f"struct_pack(k := {key}, v := {value}))))"
        )
        kept = f"MAP {{{sql_text(UNREADABLE)}: CAST({sql} AS VARCHAR)}}"  # a key stands twice
        whole = f"CAST(COALESCE({made}, {kept}) AS {MAP})"
        return (name, MAP, f"CASE WHEN {sql} IS NOT NULL THEN {whole} END")
    names = ", ".join(sql_text(field) for field, _ in fields)
    values = ", ".join(_field_text(f"one[{sql_text(field)}]", kind) for field, kind in fields)
    return (name, LIST, f"list_transform({sql}, lambda one: map([{names}], [{values}]))")


def _key(sql: str, fields: set[str]) -> str:
    """A pair's key; with its namespace before it where the list has the key more than once."""
    key = "CAST(one.key AS VARCHAR)"
    if "namespace" not in fields:
        return key
    times = f"len(list_filter({sql}, lambda other: other.key = one.key))"
    long = f"CAST(one.namespace AS VARCHAR) || '/' || {key}"
    return f"CASE WHEN {times} > 1 AND one.namespace <> '' THEN {long} ELSE {key} END"


def _field_text(sql: str, kind: str) -> str:
    is_nested = "(" in kind and not kind.startswith("DECIMAL")
    return f"CAST({f'to_json({sql})' if is_nested else sql} AS VARCHAR)"


def _fields_of(kind: str) -> list[tuple[str, str]]:
    """The fields of `STRUCT(a VARCHAR, "b c" STRUCT(…))`, in order."""
    inner, fields, depth, start, quoted = kind.partition("(")[2][:-1], [], 0, 0, False
    for at, letter in enumerate(inner + ","):
        if letter == '"':
            quoted = not quoted
        elif not quoted:
            depth += (letter == "(") - (letter == ")")
            if letter == "," and depth == 0:
                fields.append(inner[start:at].strip())
                start = at + 1
    return [_field(text) for text in fields if text]


def _field(text: str) -> tuple[str, str]:
    if text.startswith('"'):
        found = re.match(r'"((?:[^"]|"")*)"\s+(.*)', text, re.DOTALL)
        if found:
            return found[1].replace('""', '"'), found[2]
    name, _, kind = text.partition(" ")
    return name, kind


def _decoded(value: bytes) -> bytes:
    try:
        return base64.b64decode(value, validate=False)
    except ValueError:
        return b""


def _decoded_too_large(request: dict[str, Any]) -> RefusedError:
    limit = request["max_unpacked_bytes"] // 2**20
    return RefusedError(
        "too_large", f"the values of the file take more than {limit} MiB; split it by month"
    )


def _reason(error: duckdb.Error) -> RefusedError:
    said = str(error)
    if isinstance(error, duckdb.OutOfMemoryException):
        return RefusedError("limits", "the file needed more memory than one file may use")
    if "No space left" in said:
        return RefusedError("disk_full", "the disk is full; free some space and send it again")
    if "encrypt" in said.lower():
        return RefusedError("encrypted", "the Parquet file is encrypted; send it in plain")
    if "utf8" in said.lower() or "utf-8" in said.lower():
        return RefusedError("encoding", "a text of the Parquet file is not UTF-8")
    return RefusedError("damaged", "the Parquet file is damaged; send it again")

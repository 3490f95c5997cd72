"""Opens the analytics engine, DuckDB locked to the lake's folder; its users write expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import duckdb
import ibis
import pyarrow as pa
from django.conf import settings

from lake import files, store
from lake.places import LakeError, root, scratch

DUCKDB: Final = "duckdb"
ZSTD_LEVEL: Final = 1  # of 1 to 22: 7 % larger files than 3, a twentieth less time
SPARK_PREFIXES: Final = ("spark://", "local[")


class TooLargeError(LakeError):
    """A sum or product that the exact type of money cannot hold."""


class Engine(Protocol):
    """One engine session: tables in, rows or a Parquet file out; the same on every engine."""

    @property
    def connection(self) -> Any:
        """The Ibis backend."""

    def table(self, paths: Sequence[str]) -> ibis.Table:
        """A table over stored files, by their internal paths; it has every column that one has."""

    def text_table(self, path: Path) -> ibis.Table:
        """A table over a scratch file; `file_row_number` counts its rows from 0."""

    def numbered_table(self, paths: Sequence[str]) -> ibis.Table:
        """A table over stored files, as `table` gives it, that knows where each row lies.

        `file_number` is the file's place among the paths, `file_row_number` the row's in its file;
        both count from 0.
        """

    def small_table(
        self, rows: Sequence[Mapping[str, Any]], schema: Mapping[str, str]
    ) -> ibis.Table:
        """A lookup table from Python rows; `schema` maps each column to its Ibis type."""

    def rows(self, expression: ibis.Table) -> list[dict[str, Any]]:
        """The rows of a small result, decimals exact."""

    def arrow(self, expression: ibis.Table) -> pa.Table:
        """A result as an Arrow table."""

    def write(self, expression: ibis.Table, path: Path) -> None:
        """Write a result as one compressed Parquet file."""


def open_engine() -> AbstractContextManager[Engine]:
    """A session of the engine that LAKE_ENGINE names, for jobs; pages take `open_duckdb`.

    Raises:
        LakeError: LAKE_ENGINE names an engine that is not known, or that cannot start.
    """
    wanted: str = settings.LAKE_ENGINE
    if wanted == DUCKDB:
        return open_duckdb()
    if wanted.startswith(SPARK_PREFIXES):
        from lake.spark import open_spark  # an optional extra, and seconds to import

        return open_spark(wanted)
    raise LakeError(
        f"LAKE_ENGINE is {wanted!r}: unset it, or set it to {DUCKDB}, to a Spark master "
        "such as spark://host:7077, or to local[2]"
    )


@contextmanager
def open_duckdb() -> Iterator[Engine]:
    """A session in this process, with bounded memory, that reaches nothing outside the lake."""
    with scratch() as folder:
        connection = ibis.duckdb.connect(
            memory_limit=f"{settings.LAKE_MEMORY_LIMIT_MB}MB", temp_directory=str(folder / "spill")
        )
        try:
            connection.raw_sql("".join(_settings()))
            yield _Duckdb(connection, folder)
        finally:
            connection.disconnect()


def scratch_file(path: Path) -> Path:
    """The path, absolute.

    Raises:
        LakeError: it is no Parquet file of the lake.
    """
    inside = path.resolve()
    if not inside.is_relative_to(root()) or inside.suffix != ".parquet":
        raise LakeError("not a file of the lake")
    return inside


def arrow_of(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, str]) -> pa.Table:
    """Python rows as an Arrow table of these Ibis types."""
    columns = {name: [row[name] for row in rows] for name in schema}
    return pa.table(columns, schema=ibis.schema(dict(schema)).to_pyarrow())


@dataclass(frozen=True, slots=True)
class _Duckdb:
    """The default: DuckDB in this process; `folder` is scratch."""

    connection: Any
    folder: Path

    def table(self, paths: Sequence[str]) -> ibis.Table:
        names = files.held([store.checked(path) for path in paths], folder=self.folder)
        return self.connection.read_parquet(
            [str(name) for name in names], union_by_name=True, hive_partitioning=False
        )

    def text_table(self, path: Path) -> ibis.Table:
        return self.connection.read_parquet(
            str(scratch_file(path)), file_row_number=True, hive_partitioning=False
        )

    def numbered_table(self, paths: Sequence[str]) -> ibis.Table:
        held = files.held([store.checked(path) for path in paths], folder=self.folder)
        names = [str(name) for name in held]
        rows = self.connection.read_parquet(
            names, union_by_name=True, hive_partitioning=False, file_row_number=True, filename=True
        )
        places = ibis.literal(names, "array<string>")
        return rows.mutate(file_number=places.index(rows.filename)).drop("filename")

    def small_table(
        self, rows: Sequence[Mapping[str, Any]], schema: Mapping[str, str]
    ) -> ibis.Table:
        return ibis.memtable(arrow_of(rows, schema))

    def rows(self, expression: ibis.Table) -> list[dict[str, Any]]:
        return list(self.arrow(expression).to_pylist())

    def arrow(self, expression: ibis.Table) -> pa.Table:
        with _duckdb_words():
            return self.connection.to_pyarrow(expression)

    def write(self, expression: ibis.Table, path: Path) -> None:
        with _duckdb_words():
            self.connection.to_parquet(
                expression,
                str(path),
                compression="zstd",
                compression_level=ZSTD_LEVEL,
                preserve_order=False,  # of row groups: each core writes its own as it is full
            )


@contextmanager
def _duckdb_words() -> Iterator[None]:
    """Turn the engine's overflow into ours."""
    try:
        yield
    except duckdb.OutOfRangeException as error:
        raise TooLargeError("an amount or a sum of amounts reaches 1e20") from error


def _settings() -> Iterator[str]:
    yield "SET enable_progress_bar = false; SET TimeZone = 'UTC';"
    if settings.LAKE_THREADS:
        yield f"SET threads = {int(settings.LAKE_THREADS)};"
    folder = str(root()).replace("'", "''")
    yield f"SET allowed_directories = ['{folder}/'];"
    yield "SET enable_external_access = false; SET lock_configuration = true;"

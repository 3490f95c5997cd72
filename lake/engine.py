"""Opens the analytics engine, locked to the lake's folder; its users write the expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa
from django.conf import settings

from lake import store
from lake.places import LakeError, root, scratch

ENGINES = ("duckdb",)


class TooLargeError(LakeError):
    """A sum or product that the exact type of money cannot hold."""


@contextmanager
def _engine_words() -> Iterator[None]:
    """Turn the engine's overflow into ours."""
    try:
        yield
    except duckdb.OutOfRangeException as error:
        raise TooLargeError("an amount or a sum of amounts reaches 1e20") from error


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine session: tables in, rows or a Parquet file out."""

    connection: Any

    def table(self, paths: Sequence[str]) -> ibis.Table:
        """A table over stored files, by their internal paths."""
        files = [str(store.resolve(path)) for path in paths]
        return self.connection.read_parquet(files, hive_partitioning=False)

    def text_table(self, path: Path) -> ibis.Table:
        """A table over a scratch file; `file_row_number` counts its rows from 0."""
        inside = path.resolve()
        if not inside.is_relative_to(root()) or inside.suffix != ".parquet":
            raise LakeError("not a file of the lake")
        return self.connection.read_parquet(
            str(inside), file_row_number=True, hive_partitioning=False
        )

    def small_table(
        self, rows: Sequence[Mapping[str, Any]], schema: Mapping[str, str]
    ) -> ibis.Table:
        """A lookup table from Python rows; `schema` maps each column to its Ibis type."""
        types = ibis.schema(dict(schema))
        columns = {name: [row[name] for row in rows] for name in schema}
        return ibis.memtable(pa.table(columns, schema=types.to_pyarrow()))

    def rows(self, expression: ibis.Table) -> list[dict[str, Any]]:
        """The rows of a small result, decimals exact."""
        return list(self.arrow(expression).to_pylist())

    def arrow(self, expression: ibis.Table) -> pa.Table:
        """A result as an Arrow table."""
        with _engine_words():
            return self.connection.to_pyarrow(expression)

    def write(self, expression: ibis.Table, path: Path) -> None:
        """Write a result as one compressed Parquet file."""
        with _engine_words():
            self.connection.to_parquet(expression, str(path), compression="zstd")


@contextmanager
def open_engine() -> Iterator[Engine]:
    """An engine session with bounded memory that can read and write nothing outside the lake.

    Raises:
        LakeError: LAKE_ENGINE names an engine that this version does not run.
    """
    if settings.LAKE_ENGINE not in ENGINES:
        raise LakeError(
            f"LAKE_ENGINE is {settings.LAKE_ENGINE!r}, but this version runs only "
            f"{', '.join(ENGINES)}: unset it or set it to duckdb"
        )
    with scratch() as spill:
        connection = ibis.duckdb.connect(
            memory_limit=f"{settings.LAKE_MEMORY_LIMIT_MB}MB", temp_directory=str(spill)
        )
        try:
            connection.raw_sql("".join(_settings()))
            yield Engine(connection)
        finally:
            connection.disconnect()


def _settings() -> Iterator[str]:
    yield "SET enable_progress_bar = false; SET TimeZone = 'UTC';"
    if settings.LAKE_THREADS:
        yield f"SET threads = {int(settings.LAKE_THREADS)};"
    folder = str(root()).replace("'", "''")
    yield f"SET allowed_directories = ['{folder}/'];"
    yield "SET enable_external_access = false; SET lock_configuration = true;"

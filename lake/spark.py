"""The engine for bills that outgrow one machine: the same interface over a Spark cluster.

Workers read and write the lake's folder by the same path as this process: it must be shared.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, reduce
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import ibis
import pyarrow as pa
from django.conf import settings
from ibis.expr.operations import (
    InMemoryTable,
    Literal,
    Node,
    RegexExtract,
    RegexReplace,
    RegexSearch,
)

from lake import files, store
from lake.engine import Engine, TooLargeError, arrow_of, scratch_file
from lake.java import ADVICE, java_home
from lake.java_patterns import java_pattern, java_replacement
from lake.places import LakeError, scratch

OVERFLOWS: Final = ("ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE")


@contextmanager
def open_spark(master: str) -> Iterator[Engine]:
    """A session of the cluster's; the connection stays for the next one of this process.

    Raises:
        LakeError: Spark or Java is not installed, or the master does not answer.
    """
    application = _application(master, os.getpid())
    if application.sparkContext._jsc.sc().isStopped():
        _application.cache_clear()
        application.stop()
        application = _application(master, os.getpid())
    session = application.newSession()
    with scratch() as folder:
        yield _Spark(ibis.pyspark.connect(session), session, folder)


@cache
def _application(master: str, _process_id: int) -> Any:
    """This process's connection to the master; executors come and go with the work."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise LakeError(f"LAKE_ENGINE is {master!r}, but pyspark is missing: {ADVICE}") from error
    logging.getLogger("py4j").setLevel(logging.WARNING)
    os.environ["JAVA_HOME"] = java_home()
    os.environ["SPARK_LOCAL_IP"] = settings.LAKE_SPARK_DRIVER_HOST
    builder = SparkSession.builder.appName("Costwatch").master(master)
    for name, value in _settings().items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except (PySparkException, OSError, *_java_errors()) as error:
        raise LakeError(f"Spark at {master} cannot be used: {_first_line(error)}") from error
    if session.sparkContext.master != master:
        raise LakeError(f"this process runs Spark at {session.sparkContext.master}, not {master}")
    session.sparkContext.setLogLevel("OFF")
    return session


def _settings() -> dict[str, str]:
    """Spark's settings: exact, in UTC, quiet, and holding no cores while there is no work."""
    memory = f"{max(settings.LAKE_MEMORY_LIMIT_MB, 1024)}m"
    given = {
        name.strip(): value.strip()
        for name, _, value in (entry.partition("=") for entry in settings.LAKE_SPARK_CONF)
    }
    return {
        "spark.driver.host": settings.LAKE_SPARK_DRIVER_HOST,
        "spark.driver.bindAddress": settings.LAKE_SPARK_DRIVER_HOST,
        "spark.driver.memory": memory,
        "spark.executor.memory": memory,
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.executorIdleTimeout": "30s",
        "spark.log.level": "OFF",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        **given,
    }


@dataclass(frozen=True, slots=True)
class _Spark:
    """One session: temporary views of its own; `folder` is scratch that the workers share."""

    connection: Any
    session: Any
    folder: Path

    def table(self, paths: Sequence[str]) -> ibis.Table:
        names = files.held([store.checked(path) for path in paths], folder=self.folder)
        reader = self.session.read.option("mergeSchema", "true")
        return self._view(reader.parquet(*(_uri(name) for name in names)))

    def text_table(self, path: Path) -> ibis.Table:
        from pyspark.sql.functions import col

        frame = self.session.read.parquet(_uri(scratch_file(path)))
        number = col("_metadata.row_index").alias("file_row_number")
        return self._view(frame.select("*", number))

    def numbered_table(self, paths: Sequence[str]) -> ibis.Table:
        from pyspark.sql.functions import col, lit

        row = col("_metadata.row_index").alias("file_row_number")
        names = files.held([store.checked(path) for path in paths], folder=self.folder)
        frames = [
            self.session.read.parquet(_uri(name)).select("*", row, lit(place).alias("file_number"))
            for place, name in enumerate(names)
        ]
        whole = reduce(lambda left, right: left.unionByName(right, True), frames)
        return self._view(whole)

    def small_table(
        self, rows: Sequence[Mapping[str, Any]], schema: Mapping[str, str]
    ) -> ibis.Table:
        return ibis.memtable(arrow_of(rows, schema))

    def rows(self, expression: ibis.Table) -> list[dict[str, Any]]:
        return list(self.arrow(expression).to_pylist())

    def arrow(self, expression: ibis.Table) -> pa.Table:
        with _spark_words():
            found = self._frame(expression).toArrow()
        wanted = expression.schema().to_pyarrow()
        return pa.table(
            {field.name: found[field.name].cast(field.type) for field in wanted}, schema=wanted
        )

    def write(self, expression: ibis.Table, path: Path) -> None:
        """Compute on all workers; one of them writes the file."""
        parts = self.folder / f"{uuid4()}.parts"
        with _spark_words():
            self._frame(expression).repartition(1).write.parquet(_uri(parts))
        (part,) = parts.glob("part-*.parquet")
        part.replace(path)
        shutil.rmtree(parts)

    def _view(self, frame: Any) -> ibis.Table:
        name = f"costwatch_{uuid4().hex}"
        frame.createOrReplaceTempView(name)
        return self.connection.table(name)

    def _frame(self, expression: ibis.Table) -> Any:
        node = expression.op().replace(_with_java_patterns)
        for held in node.find(InMemoryTable):
            found = held.data.to_pyarrow(held.schema)
            self.session.createDataFrame(found).createOrReplaceTempView(held.name)
        return self.session.sql(self.connection.compile(node.to_expr()))


def _with_java_patterns(node: Node, changed: dict[str, Any] | None) -> Node:
    """The node, its RE2 pattern written as Java wants it."""
    values = dict(zip(node.__argnames__, node.__args__, strict=True)) | (changed or {})
    if isinstance(node, RegexSearch | RegexExtract | RegexReplace):
        values["pattern"] = Literal(java_pattern(values["pattern"].value), "string")
        if isinstance(node, RegexReplace):
            values["replacement"] = Literal(java_replacement(values["replacement"].value), "string")
        return node.__recreate__(values)
    return node if changed is None else node.__recreate__(values)


def _uri(path: Path) -> str:
    """A local path as Spark takes it: not percent-encoded, and no pattern."""
    return "file://" + re.sub(r"([\\{}\[\]*?])", r"\\\1", str(path))


@contextmanager
def _spark_words() -> Iterator[None]:
    """Turn the engine's overflow into ours."""
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, *_java_errors()) as error:
        if any(word in str(error) for word in OVERFLOWS):
            raise TooLargeError("an amount or a sum of amounts reaches 1e20") from error
        raise LakeError(f"Spark failed: {_first_line(error)}") from error


def _java_errors() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkRuntimeError

    return Py4JError, PySparkRuntimeError


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by")]
    return (causes or lines or [type(error).__name__])[-1 if causes else 0][:300]

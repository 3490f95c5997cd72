"""How the child process finds one line of a file again, as it was delivered; keeps nothing."""

import os
import threading
from pathlib import Path
from typing import Any

import duckdb

from lake.csv_parsing import csv_source, header_of, read_head, settled_engine
from lake.parquet_parsing import unpacked_file
from lake.refusing import RefusedError, Say, sql_name, sql_text, unique_names

FIRST_ROW = 2  # the header is row 1


def find(request: dict[str, Any], _say: Say) -> dict[str, Any]:
    """The texts of one row by the file's own column names.

    Raises:
        RefusedError: there is no such row, or the file cannot be read up to it.
    """
    row = int(request["row"])
    if row < FIRST_ROW:
        raise RefusedError("row", f"rows are counted from {FIRST_ROW} on")
    try:
        with settled_engine(request) as engine:
            if request["kind"] == "parquet":
                names, values = _of_parquet(request, engine, row)
            else:
                names, values = _of_csv(request, engine, row)
    except duckdb.Error as error:
        raise RefusedError("damaged", "the file cannot be read up to this row") from error
    if values is None:
        raise RefusedError("row", f"the file has no row {row}", row=row)
    return {"line": dict(zip(names, values, strict=True))}


def _of_parquet(
    request: dict[str, Any], engine: Any, row: int
) -> tuple[list[str], tuple[Any, ...] | None]:
    source = unpacked_file(request, lambda _: None)
    table = f"read_parquet({sql_text(str(source))}, hive_partitioning = false"
    described = engine.execute(f"DESCRIBE SELECT * FROM {table})").fetchall()  # noqa: S608  # our own texts, quoted
    names = [column[0] for column in described]
    texts = ", ".join(f"CAST({sql_name(name)} AS VARCHAR)" for name in names)
    found = engine.execute(
        f"SELECT {texts} FROM {table}, file_row_number = true) "  # noqa: S608  # our own texts, quoted
        f"WHERE file_row_number = {row - FIRST_ROW}"
    ).fetchall()
    return names, found[0] if found else None


def _of_csv(
    request: dict[str, Any], engine: Any, row: int
) -> tuple[list[str], tuple[Any, ...] | None]:
    """The engine skips rows as it counted them at the import; packed bytes come by a pipe."""
    head, rest = read_head(request)
    names = unique_names(header_of(head))
    reading, writing = os.pipe()

    def pour() -> None:
        with os.fdopen(writing, "wb", buffering=0) as out:
            try:
                out.write(head)
                for chunk in rest:
                    out.write(chunk)
            except (BrokenPipeError, RefusedError):
                return  # found before the end, or no row so far

    packed = request["compression"] != "none"
    pourer = threading.Thread(target=pour, daemon=True)
    path = f"/dev/fd/{reading}" if packed else str(Path(request["source"]))
    if packed:
        pourer.start()
    try:
        found = engine.execute(
            f"SELECT * FROM {csv_source(request, path, len(names))} "  # noqa: S608  # our own texts, quoted
            f"LIMIT 1 OFFSET {row - FIRST_ROW}"
        ).fetchall()
    finally:
        os.close(reading)
        if packed:
            pourer.join()
        else:
            os.close(writing)
    return names, found[0] if found else None

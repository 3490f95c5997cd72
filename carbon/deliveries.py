"""Opens delivered power files: bytes kept once, parsed in a child process, read in batches."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from django.conf import settings
from django.utils.translation import gettext as _

from carbon.adapters.codecarbon import as_intervals, is_codecarbon
from carbon.adapters.power_texts import (
    HEADER_ROWS,
    PowerTextError,
    Readings,
    is_samples,
    read_texts,
    unknown_columns,
)
from lake import blobs, engine, places, text_files

ROWS_AT_ONCE: Final = 1_000_000
CHUNK_BYTES: Final = 1 << 20
SHELF: Final = "power"  # not that of bills, whose sweep knows nothing of files that wait here
KEPT_S: Final = 7 * 86_400.0


class PowerFileError(ValueError):
    """A file that cannot be read; nothing of the delivery is stored. For people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerFile:
    """A received file."""

    name: str
    sha256: str


def receive_file(path: Path) -> PowerFile:
    """Keep the bytes of a file on this machine.

    Raises:
        PowerFileError: it cannot be opened, or is larger than an upload may be.
    """
    try:
        with path.open("rb") as file:
            return receive_chunks(path.name, iter(lambda: file.read(CHUNK_BYTES), b""))
    except OSError as error:
        raise PowerFileError(f"{path}: {error.strerror}") from error


def receive_chunks(name: str, chunks: Iterator[bytes]) -> PowerFile:
    """Keep bytes that arrive in chunks."""
    try:
        blob = blobs.receive(chunks, max_bytes=settings.MAX_UPLOAD_MB * 2**20, shelf=SHELF)
    except blobs.BlobTooLargeError as error:
        raise PowerFileError(f"{name}: {error}; split the file") from error
    return PowerFile(name=name[:255], sha256=blob.sha256)


def sweep_files() -> int:
    """Remove received files that are older than any job that may still read them; say how many."""
    return blobs.sweep(keep=(), grace_s=KEPT_S, shelf=SHELF)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Readings of a file, its columns that are not read, all its rows, and what else is to say."""

    readings: Readings
    unknown_columns: tuple[str, ...]
    rows: int
    notes: tuple[str, ...] = ()


def readings_of(file: PowerFile, *, time_zone: str = "UTC") -> Iterator[Batch]:
    """The readings of a file in batches; `time_zone` is that of times without one.

    Raises:
        PowerFileError: the file, a time or a number in it is unreadable; names row, field, unit.
    """
    with places.scratch() as folder:
        table = _parsed(file, folder)
        if is_codecarbon(table.columns):
            yield _codecarbon_batch(file, table, time_zone)
            return
        try:
            is_samples(table.columns)
        except PowerTextError as error:
            raise PowerFileError(f"{file.name}: {error}") from error
        extra = unknown_columns(table.columns)
        with engine.open_duckdb() as session:
            for first in range(0, table.rows, ROWS_AT_ONCE):
                batch = _batch(session, table, first)
                try:
                    readings = read_texts(batch, first_row=first + HEADER_ROWS)
                except PowerTextError as error:
                    raise PowerFileError(f"{file.name}: {error}. Nothing was stored.") from error
                yield Batch(readings=readings, unknown_columns=extra, rows=table.rows)


def _codecarbon_batch(file: PowerFile, table: text_files.TextTable, time_zone: str) -> Batch:
    """The runs of a codecarbon file."""
    with engine.open_duckdb() as session:
        texts = _batch(session, table, 0)
    try:
        runs = as_intervals(texts, time_zone=time_zone)
        readings = read_texts(runs.table)
    except PowerTextError as error:
        raise PowerFileError(f"{file.name}: {error}. Nothing was stored.") from error
    return Batch(
        readings=readings,
        unknown_columns=(),
        rows=table.rows,
        notes=(
            _(
                "A file of codecarbon: the GPU energy of each run is booked, at the end time in "
                "{zone}. Its estimate for processors and memory, {energy} kWh, is not: the host "
                "factor stands for them. Do not send the same GPUs' power as well."
            ).format(zone=time_zone, energy=f"{runs.other_kwh:.3f}"),
        ),
    )


def _parsed(file: PowerFile, folder: Path) -> text_files.TextTable:
    source = blobs.held(file.sha256, folder=folder, shelf=SHELF)
    with source.open("rb") as opened:
        head = opened.read(16)
    try:
        return text_files.read_csv(
            text_files.CsvRequest(
                source=source,
                folder=folder,
                compression=text_files.compression_of(file.name, head),
                max_unpacked_bytes=settings.MAX_UNPACKED_MB * 2**20,
            )
        )
    except text_files.TextFileRefusedError as error:
        place = f", row {error.row}" if error.row else ""
        field = f", field {error.column}" if error.column else ""
        raise PowerFileError(f"{file.name}{place}{field}: {error.message}") from error


def _batch(session: engine.Engine, table: text_files.TextTable, first: int) -> pa.Table:
    """Rows from `first` on, in the order of the file."""
    texts = session.text_table(table.path)
    if table.rows > ROWS_AT_ONCE:
        texts = texts.filter(
            texts.file_row_number >= first, texts.file_row_number < first + ROWS_AT_ONCE
        ).order_by("file_row_number")
    return session.arrow(texts.select(*table.columns))

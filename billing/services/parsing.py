"""Has a delivery's files read by confined children, side by side; no meaning of their columns."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from django.conf import settings
from django.utils.translation import gettext as _

from billing.adapters import AUTO, JSON_COLUMNS, LIST_COLUMNS, detect
from billing.models import Delivery, DeliveryFile
from billing.records import ChargesRefusedError
from jobs.records import JobContext
from lake import blobs
from lake.text_files import ParseRequest, TextFileRefusedError, TextTable, read_file

MEBIBYTE: Final = 2**20
REPORT_S: Final = 1.0
WORTH_ASKING_BYTES: Final = 4 * MEBIBYTE  # below, leaving columns out saves less than asking costs


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFiles:
    """The tables by file name, the names of files with the content of others, rows by position."""

    tables: list[tuple[str, TextTable]] = field(default_factory=list)
    same_content: list[str] = field(default_factory=list)
    rows_by_file: dict[int, int] = field(default_factory=dict)


def parse_files(context: JobContext, delivery: Delivery, folder: Path) -> ParsedFiles:
    """Every file as a table of texts; one with the content of another is named, not read.

    Raises:
        ChargesRefusedError: a file cannot be read whole and safely; names file, row, column.
    """
    parsed = ParsedFiles()
    seen: set[object] = set()
    different: list[DeliveryFile] = []
    for file in delivery.files.all():
        address = (file.sha256, file.compression)
        if address in seen:
            parsed.same_content.append(file.name)
        else:
            different.append(file)
        seen.add(address)
    requests = [_request(file, folder, len(different)) for file in different]
    tables = _read_all(context, delivery, different, requests)
    for file, table in zip(different, tables, strict=True):
        if table.unpacked_sha256 in seen:
            parsed.same_content.append(file.name)
            continue
        seen.add(table.unpacked_sha256)
        parsed.tables.append((file.name, table))
        parsed.rows_by_file[file.position] = table.rows
    return parsed


def _request(file: DeliveryFile, folder: Path, count: int) -> ParseRequest:
    own = folder / str(file.position)
    own.mkdir()
    cores = settings.LAKE_THREADS or os.cpu_count() or 1
    return ParseRequest(
        source=blobs.held(file.sha256, folder=own),
        folder=own,
        compression=file.compression,
        max_unpacked_bytes=settings.MAX_UNPACKED_MB * MEBIBYTE,
        json_columns=JSON_COLUMNS,
        list_columns=LIST_COLUMNS,
        threads=max(1, cores // min(count, cores)),
    )


def _read_all(
    context: JobContext,
    delivery: Delivery,
    files: Sequence[DeliveryFile],
    requests: Sequence[ParseRequest],
) -> list[TextTable]:
    """As many files at once as there are cores, or one after another; the first refusal counts."""
    cores = settings.LAKE_THREADS or os.cpu_count() or 1
    done_bytes: dict[str, int] = {}
    bill_format = delivery.bill_format or AUTO
    with ThreadPoolExecutor(max_workers=max(1, min(cores, len(files)))) as pool:
        waiting = [
            pool.submit(_read_one, file, request, bill_format, done_bytes)
            for file, request in zip(files, requests, strict=True)
        ]
        try:
            _watch(context, waiting, done_bytes)
        finally:
            for future in waiting:
                future.cancel()
    return [future.result() for future in waiting if not future.cancelled()]


def _watch(
    context: JobContext, waiting: Sequence[Future[TextTable]], done_bytes: Mapping[str, int]
) -> None:
    """Tell how far it is until all are read or one is refused."""
    open_ones = set(waiting)
    told: dict[str, int] = {}
    while open_ones:
        done, open_ones = wait(open_ones, timeout=REPORT_S)
        for future in done:
            future.result()
        if told != done_bytes:
            told = dict(done_bytes)
            name, size_bytes = max(told.items(), key=lambda item: item[1])
            said = _("Unpacking {name}: {size} MiB")
            context.report(0, None, said.format(name=name, size=size_bytes // MEBIBYTE))


def _read_one(
    file: DeliveryFile, request: ParseRequest, bill_format: str, done_bytes: dict[str, int]
) -> TextTable:
    is_worth_asking = file.size_bytes >= WORTH_ASKING_BYTES
    try:
        return read_file(
            request,
            wanted=partial(_wanted, bill_format=bill_format) if is_worth_asking else None,
            on_bytes=lambda size_bytes: done_bytes.update({file.name: size_bytes}),
        )
    except TextFileRefusedError as refusal:
        raise ChargesRefusedError(
            refusal.code, refusal.message, file=file.name, row=refusal.row, column=refusal.column
        ) from refusal


def _wanted(columns: Sequence[str], *, bill_format: str) -> tuple[str, ...] | None:
    """The columns that the file's format reads; None, all of them, where no format is sure."""
    try:
        layout = detect(columns, wanted=bill_format).layout(columns)
    except ChargesRefusedError:
        return None
    structures = (*JSON_COLUMNS, *LIST_COLUMNS)
    return tuple(name for name in columns if name in layout.wanted_columns or name in structures)

"""Reads a sample of a bill as an import would; stores nothing of it but its bytes, for an hour."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.utils.translation import gettext as _

from billing.adapters.layout import BillAdapter
from billing.amounts import plain, totals_document
from billing.expressions import totals_by_currency, whole_sum
from billing.reading import ReadFile, read_charges
from billing.records import ChargesRefusedError
from billing.services.receiving import shown_name
from lake import blobs
from lake.engine import TooLargeError, open_duckdb
from lake.places import scratch
from lake.text_files import (
    ParseRequest,
    TextFileRefusedError,
    TextTable,
    compression_of,
    read_file,
)
from lake.text_tables import open_text_table

SHELF: Final = "samples"
MEBIBYTE: Final = 2**20
MAX_SAMPLE_MB: Final = 64
SHOWN_ROWS: Final = 12
SHOWN_COLUMNS: Final = (
    "charge_period_start",
    "service_name",
    "charge_description",
    "consumed_quantity",
    "consumed_unit",
    "billed_cost",
    "billing_currency",
    "x_cost_class",
    "x_accelerator",
    "x_accelerator_h",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A kept sample: its address and its name."""

    sha256: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What an import of the sample would give."""

    rows: int
    totals: list[dict[str, Any]]
    classes: list[dict[str, Any]]
    months: list[str]
    first: list[dict[str, Any]]
    notes: Mapping[str, Any] = field(default_factory=dict)


def keep_sample(name: str, chunks: Iterable[bytes]) -> Sample:
    """Keep a sample's bytes for the next steps; they are swept after an hour.

    Raises:
        ChargesRefusedError: it is too large, or no CSV.
    """
    shown = shown_name(name)
    try:
        blob = blobs.receive(chunks, max_bytes=MAX_SAMPLE_MB * MEBIBYTE, shelf=SHELF)
    except blobs.BlobTooLargeError as error:
        raise ChargesRefusedError(
            "too_large",
            _("a sample has at most {limit} MiB; cut the file after some thousand rows").format(
                limit=MAX_SAMPLE_MB
            ),
            file=shown,
        ) from error
    return Sample(sha256=blob.sha256, name=shown)


def head_of(sample: Sample, *, rows: int = 5) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """The sample's columns and its first rows as texts.

    Raises:
        ChargesRefusedError: it cannot be read as a table of texts.
    """
    with scratch() as folder, open_duckdb() as engine:
        table = _parsed(sample, folder)
        lines = engine.rows(open_text_table(engine, table).drop("file_row_number").limit(rows))
    return table.columns, list(islice(lines, rows))


def dry_run(sample: Sample, adapter: BillAdapter) -> DryRun:
    """Read and classify the sample by a format or a mapping.

    Raises:
        ChargesRefusedError: an import would refuse it, for this reason.
    """
    with scratch() as folder, open_duckdb() as engine:
        table = _parsed(sample, folder)
        file = ReadFile(
            name=sample.name, table=table, adapter=adapter, layout=adapter.layout(table.columns)
        )
        try:
            reading = read_charges(engine, [file])
            typed = folder / "charges.parquet"
            engine.write(reading.charges, typed)
            charges = engine.text_table(typed).drop("file_row_number")
            totals = totals_document(engine.rows(totals_by_currency(charges)))
            classes = charges.group_by("x_cost_class", "billing_currency").agg(
                billed_cost=whole_sum(charges, "billed_cost"), rows=charges.count()
            )
            months = charges.select("x_billing_period").distinct().order_by("x_billing_period")
            first = charges.order_by("x_source_row").limit(SHOWN_ROWS)
            return DryRun(
                rows=sum(entry["rows"] for entry in totals),
                totals=totals,
                classes=plain(engine.rows(classes.order_by("x_cost_class", "billing_currency"))),
                months=[row["x_billing_period"] for row in engine.rows(months)],
                first=plain(engine.rows(first.select(*SHOWN_COLUMNS))),
                notes=plain(reading.notes),
            )
        except TooLargeError as error:
            raise ChargesRefusedError("too_large", str(error)) from error


def _parsed(sample: Sample, folder: Path) -> TextTable:
    source = blobs.held(sample.sha256, folder=folder, shelf=SHELF)
    with source.open("rb") as file:
        head = file.read(4096)
    inside = folder / "text"
    inside.mkdir(exist_ok=True)
    try:
        request = ParseRequest(
            source=source,
            folder=inside,
            compression=compression_of(sample.name, head),
            max_unpacked_bytes=16 * MAX_SAMPLE_MB * MEBIBYTE,
            threads=settings.LAKE_THREADS,
        )
        return read_file(request)
    except TextFileRefusedError as refusal:
        raise ChargesRefusedError(
            refusal.code, refusal.message, file=sample.name, row=refusal.row, column=refusal.column
        ) from refusal

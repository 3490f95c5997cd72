"""The shape that every bill adapter answers in, and how it puts charges together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import ibis

from billing.columns import CHARGE_COLUMNS, UNKNOWN
from billing.records import ChargesRefusedError, Dataset

PLACES = ("x_source_file", "x_source_row")


class InstantStyle(StrEnum):
    """How a file writes its times, always in UTC."""

    ISO = "iso"  # 2026-05-01T00:00:00Z, 2026-05-01 00:00:00, 2026-05-01 00:00:00 UTC
    ISO_DAY = "iso_day"  # 2026-05-01, with or without a time of day
    US_DATE = "us_date"  # 05/31/2026
    DAY_FIRST = "day_first"  # 31/05/2026, 31.05.2026
    SLASHED = "slashed"  # 2026/05/31
    MONTH = "month"  # 202605


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where each charge column is found in a file, and what else the file holds."""

    columns: Mapping[str, str]  # charge column -> the file's column that tells it
    numbers: tuple[str, ...]  # the file's columns that are read as exact numbers
    instants: Mapping[str, InstantStyle]  # the file's columns that are read as times
    read_columns: tuple[str, ...] = ()  # further columns that the adapter reads
    extra_columns: tuple[str, ...] = ()  # kept beside the charge columns as texts
    unknown_columns: tuple[str, ...] = ()  # the format does not know them
    missing_columns: tuple[str, ...] = ()  # the format wants them; we can do without
    saw: str = ""  # what detection saw, in words
    dataset: Dataset = Dataset.BILLED
    facts: Mapping[str, Any] = field(default_factory=dict)  # the adapter's own notes to itself

    @cached_property
    def wanted_columns(self) -> frozenset[str]:
        """The file's columns that reading needs."""
        return frozenset(
            (
                *self.columns.values(),
                *self.numbers,
                *self.instants,
                *self.read_columns,
                *self.extra_columns,
            )
        )


class BillAdapter(Protocol):
    """One outside format: a table of its columns, nothing about engines or databases."""

    @property
    def name(self) -> str:
        """The word for it on the command line."""

    @property
    def json_columns(self) -> tuple[str, ...]:
        """The columns that hold JSON objects, or lists of keys and values, read as maps."""

    @property
    def list_columns(self) -> tuple[str, ...]:
        """The columns that hold JSON lists of objects, read as lists of maps."""

    def recognises(self, columns: Sequence[str]) -> int:
        """How many of the columns only this format has; 0 means that it is another format."""

    def layout(self, columns: Sequence[str]) -> Layout:
        """Say where the charge columns are in a file with these columns.

        Raises:
            ChargesRefusedError: a column is missing without which no charge can be read.
        """

    def charges(self, lines: ibis.Table, layout: Layout) -> ibis.Table:
        """Charges from the file's lines.

        `lines` has the file's own columns: `layout.numbers` are decimal(38, 18), `layout.instants`
        timestamps in UTC, JSON objects map<string, string>, lists array<map<string, string>>, the
        rest text; and PLACES, where each line stands. The answer is what `assembled` makes.
        """


@runtime_checkable
class UnfoldsLines(Protocol):
    """An adapter of a format in which one line can state several charges."""

    def unfolded(self, lines: ibis.Table) -> ibis.Table:
        """One line for each charge, before anything is typed; all keep their line's PLACES."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFile:
    """One file of a delivery, and what an adapter's question about its content counted."""

    name: str
    layout: Layout
    counts: Mapping[str, int]


@runtime_checkable
class AsksContent(Protocol):
    """An adapter whose columns alone do not tell everything about a file."""

    def question(self, lines: ibis.Table, layout: Layout) -> Mapping[str, Any]:
        """Counts over the file's texts, by name."""

    def settled(self, seen: Sequence[SeenFile]) -> tuple["BillAdapter", tuple[Layout, ...]]:
        """The adapter and the layouts that the content of all files of a delivery calls for.

        Raises:
            ChargesRefusedError: the content contradicts itself, or what was asked for.
        """


def assembled(lines: ibis.Table, layout: Layout, values: Mapping[str, Any]) -> ibis.Table:
    """A table of every charge column: `values` by name, else null; and the extras."""
    unknown = sorted(set(values) - {column.name for column in CHARGE_COLUMNS})
    if unknown:
        raise ValueError(f"not charge columns: {', '.join(unknown)}")
    selected: dict[str, Any] = {}
    for column in CHARGE_COLUMNS:
        value = values.get(column.name)
        if value is None:
            value = ibis.null(column.stored_type)
        selected[column.name] = value.cast(column.stored_type)
    extra = layout.extra_columns
    selected[UNKNOWN] = (
        ibis.map(
            ibis.array([ibis.literal(name) for name in extra]),
            ibis.array([lines[name].cast("string") for name in extra]),
        )
        if extra
        else ibis.null("map<string, string>")
    )
    return lines.select(**selected, **{name: lines[name] for name in PLACES})


def plain_values(lines: ibis.Table, layout: Layout) -> dict[str, Any]:
    """The charge columns that the file states as they are."""
    return {ours: lines[theirs] for ours, theirs in layout.columns.items()}


def require_columns(
    columns: Sequence[str],
    wanted: Sequence[str],
    *,
    of: str,
    other_names: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Refuse a file that lacks a column on which figures hang.

    Raises:
        ChargesRefusedError: names the first missing one, and the other names that it goes by.
    """
    for name in wanted:
        if name not in columns:
            called = " or ".join((name, *(other_names or {}).get(name, ())))
            raise ChargesRefusedError(
                "missing_column",
                f"the column {called} of {of} is missing; export the bill again with it",
                row=1,
                column=name,
            )

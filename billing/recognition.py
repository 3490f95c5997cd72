"""Tells which format and which of a provider's books the files of a delivery are."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _

from billing.adapters import detect
from billing.adapters.layout import AsksContent, BillAdapter, SeenFile
from billing.adapters.mapped import NAME as MAPPED
from billing.adapters.mapped import ColumnMapping, Mapped
from billing.reading import ReadFile, lines_of
from billing.records import ChargesRefusedError, Dataset
from lake.engine import Engine
from lake.text_files import TextTable


def recognised(
    tables: Iterable[tuple[str, TextTable]],
    *,
    wanted: str,
    mapping: Mapping[str, Any] | None = None,
) -> list[ReadFile]:
    """The files with their formats, by their columns; by the source's mapping where it has one.

    Raises:
        ChargesRefusedError: a file is of no known format, of another than was asked for, or the
            files are of several.
    """
    files = [_recognised(name, table, wanted, mapping) for name, table in tables]
    by_format: dict[str, str] = {}
    for file in files:
        by_format.setdefault(file.adapter.name, file.name)
    if len(by_format) > 1:
        said = ", ".join(f"{name} ({found})" for found, name in by_format.items())
        raise ChargesRefusedError(
            "format",
            _("the files are of different formats: {said}; hand in each format by itself").format(
                said=said
            ),
        )
    return files


def _recognised(
    name: str, table: TextTable, wanted: str, mapping: Mapping[str, Any] | None
) -> ReadFile:
    try:
        adapter: BillAdapter = (
            Mapped(ColumnMapping.of(mapping))
            if wanted == MAPPED and mapping
            else detect(table.columns, wanted=wanted)
        )
        layout = adapter.layout(table.columns)
    except ChargesRefusedError as refusal:
        raise ChargesRefusedError(
            refusal.code, refusal.reason, file=name, row=refusal.row, column=refusal.column
        ) from refusal
    return ReadFile(name=name, table=table, adapter=adapter, layout=layout)


def settled(engine: Engine, files: Sequence[ReadFile]) -> list[ReadFile]:
    """The files, where their format needs it, with what their content tells.

    Raises:
        ChargesRefusedError: the content contradicts itself, or what was asked for.
    """
    adapter = files[0].adapter
    if not isinstance(adapter, AsksContent):
        return list(files)
    seen = []
    for file in files:
        lines = lines_of(engine, file)
        asked = adapter.question(lines, file.layout)
        (counts,) = engine.rows(lines.aggregate(**asked))
        seen.append(
            SeenFile(
                name=file.name,
                layout=file.layout,
                counts={name: int(count or 0) for name, count in counts.items()},
            )
        )
    chosen, layouts = adapter.settled(seen)
    return [
        replace(file, adapter=chosen, layout=layout)
        for file, layout in zip(files, layouts, strict=True)
    ]


def dataset_of(files: Sequence[ReadFile]) -> Dataset:
    """The book that the files of a delivery belong to."""
    return files[0].layout.dataset

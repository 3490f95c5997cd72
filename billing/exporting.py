"""Writes charges as a FOCUS file, row by row through the lake; what a row says is focus_export."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final
from uuid import UUID

import ibis
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from billing.allocation_shares import RunningShares, Shares
from billing.cost_questions import CostQuestion
from billing.cost_records import MEASURES
from billing.cost_selectors import shelf_of
from billing.expressions import DAILY_KEYS, allocated
from billing.focus_columns import EXPORT_COLUMNS
from billing.focus_export import as_texts, focus_rows
from billing.lake_costs import Pool, Shelf, asked_charges, given_to, is_wanted, pools
from billing.records import COST_COLUMNS
from lake.engine import Engine, open_duckdb
from lake.places import scratch

CSV: Final = "csv"
PARQUET: Final = "parquet"
FORMATS: Final = (CSV, PARQUET)
CONTENT_TYPES: Final = {
    CSV: "text/csv; charset=utf-8",
    PARQUET: "application/vnd.apache.parquet",
}
_BATCH_ROWS: Final = 20_000
# What a project gets its share of, when a rule gives a charge to several.
_SHARED: Final = (*COST_COLUMNS, "pricing_quantity", "consumed_quantity", *MEASURES.values())
_GIVEN: Final = {
    "x_project": "project",
    "x_run_key": "run_key",
    "x_team": "team",
    "x_plan_line_key": "plan_line_key",
}


def export_charges(
    organisation_id: UUID, question: CostQuestion, *, kind: str, target: Path
) -> int:
    """Write the charges of a question as FOCUS 1.2; return the rows.

    The sum of the basis' column is the question's total. A charge that a rule shares among several
    stands whole, or with its share where the question is only about some of them.
    """
    shelf = shelf_of(organisation_id, question)
    with scratch() as folder, open_duckdb() as engine:
        parts = [
            part
            for index, pool in enumerate(pools(shelf, allocating=True))
            if pool.book.for_cost
            for part in _Parts(engine, shelf, question, folder / str(index)).write(pool, kind)
        ]
        return _join(parts, kind=kind, target=target)


def export_file(organisation_id: UUID, question: CostQuestion, *, kind: str) -> BinaryIO:
    """The same as an open file without a name: it is gone when it is closed."""
    with scratch() as folder:
        target = folder / f"export.{kind}"
        export_charges(organisation_id, question, kind=kind, target=target)
        return target.open("rb")


class _Parts:
    """The rows of one pool as files of FOCUS rows: whole charges, then shares."""

    def __init__(self, engine: Engine, shelf: Shelf, question: CostQuestion, folder: Path) -> None:
        self.engine, self.shelf, self.question, self.folder = engine, shelf, question, folder

    def write(self, pool: Pool, kind: str) -> Iterator[Path]:
        """Write the files and name them."""
        self.folder.mkdir()
        charges = allocated(asked_charges(self.engine, pool, self.question), pool.rules)
        shares = Shares(pool.rules)
        whole, shared = self._positions(shares, [rule.position for rule in pool.rules])
        wanted = charges.rule_position.isin([one for one in whole if one is not None])
        wanted = wanted.fill_null(False)
        if None in whole:
            wanted = wanted | charges.rule_position.isnull()
        given = _with_given(charges.filter(wanted), whole)
        yield self._file(given, "whole", kind)
        if shared:
            parts = charges.filter(charges.rule_position.isin(list(shared)).fill_null(False))
            table = self._shares(parts, shares, shared)
            yield self._file(table, "shares", kind)

    def _file(self, charges: ibis.Table, name: str, kind: str) -> Path:
        rows = focus_rows(charges)
        path = self.folder / f"{name}.parquet"
        self.engine.write(as_texts(rows) if kind == CSV else rows, path)
        return path

    def _positions(
        self, shares: Shares, positions: Iterable[int]
    ) -> tuple[dict[int | None, dict[str, str | None]], dict[int, list[int]]]:
        """Rules whose charges go out whole, with whose they are; and those that go by shares."""
        whole: dict[int | None, dict[str, str | None]] = {}
        shared: dict[int, list[int]] = {}
        for position in (None, *positions):
            given = [
                given_to({**one, "rule_position": position}, self.shelf.slugs)
                for one in shares.targets(position)
            ]
            wanted = [index for index, one in enumerate(given) if is_wanted(one, self.question)]
            if len(wanted) == len(given):
                whole[position] = _together(given)
            elif wanted and position is not None:
                shared[position] = wanted
        return whole, shared

    def _shares(
        self, charges: ibis.Table, shares: Shares, wanted: Mapping[int, list[int]]
    ) -> ibis.Table:
        """The shares of those who are asked about, by the running sums of the roll-up's groups."""
        ordered, target = self.folder / "ordered.parquet", self.folder / "given.parquet"
        self.engine.write(charges.order_by([*DAILY_KEYS, "x_source_file", "x_source_row"]), ordered)
        with pq.ParquetFile(ordered) as file:
            schema = file.schema_arrow
            for name in _GIVEN:
                schema = schema.append(pa.field(name, pa.string()))
            with pq.ParquetWriter(target, schema, compression="zstd") as writer:
                rows = _shared(file, shares, wanted)
                for some in _batches(rows, self.shelf.slugs):
                    writer.write_table(pa.Table.from_pylist(some, schema=schema))
        return self.engine.text_table(target).drop("file_row_number")


def _shared(
    file: pq.ParquetFile, shares: Shares, wanted: Mapping[int, list[int]]
) -> Iterator[dict[str, Any]]:
    """Each charge once for each target that is asked about, its amounts split."""
    running: RunningShares | None = None
    before: tuple[Any, ...] | None = None
    for batch in file.iter_batches(batch_size=_BATCH_ROWS):
        for row in batch.to_pylist():
            position, key = row["rule_position"], tuple(row[name] for name in DAILY_KEYS)
            if running is None or key != before:
                running, before = RunningShares(shares, position), key
            parts = {name: running.part(name, row[name]) for name in _SHARED}
            for index in wanted[position]:
                own = {name: amounts[index] for name, amounts in parts.items()}
                yield {**row, **own, "target": shares.targets(position)[index]}


def _batches(
    rows: Iterable[dict[str, Any]], slugs: Mapping[str, str]
) -> Iterator[list[dict[str, Any]]]:
    some: list[dict[str, Any]] = []
    for row in rows:
        given = given_to(row.pop("target"), slugs)
        some.append({**row, **{ours: given[name] for ours, name in _GIVEN.items()}})
        if len(some) == _BATCH_ROWS:
            yield some
            some = []
    if some:
        yield some


def _together(given: Iterable[Mapping[str, str | None]]) -> dict[str, str | None]:
    """Whose a charge is, in one text a key, where it belongs to several."""
    found: dict[str, str | None] = {}
    shares = list(given)
    for ours, name in _GIVEN.items():
        values = [one[name] or "" for one in shares]
        found[ours] = "; ".join(dict.fromkeys(filter(None, values))) or None
    return found


def _with_given(
    charges: ibis.Table, whole: Mapping[int | None, Mapping[str, str | None]]
) -> ibis.Table:
    """Add whose each charge is."""
    added: dict[str, Any] = {}
    for name in _GIVEN:
        cases = [
            (charges.rule_position == position, ibis.literal(given[name]))
            for position, given in whole.items()
            if position is not None and given[name] is not None
        ]
        nobody = ibis.null("string")
        added[name] = ibis.cases(*cases, else_=nobody) if cases else nobody
    return charges.mutate(**added)


def _join(parts: list[Path], *, kind: str, target: Path) -> int:
    """All parts as one file; the rows."""
    rows = 0
    schema = pq.read_schema(parts[0]) if parts else _no_rows()
    with target.open("wb") as sink:
        writer = (
            pacsv.CSVWriter(sink, schema)
            if kind == CSV
            else pq.ParquetWriter(sink, schema, compression="zstd")
        )
        with writer:
            for part in parts:
                with pq.ParquetFile(part) as file:
                    for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                        writer.write_batch(batch.cast(schema))
                        rows += batch.num_rows
                part.unlink()
    return rows


def _no_rows() -> pa.Schema:
    return pa.schema([pa.field(name, pa.string()) for name in EXPORT_COLUMNS])

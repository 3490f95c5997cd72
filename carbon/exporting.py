"""Files of energy and emissions: tables of a page, and the entries of the books; CSV or Parquet."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from carbon.energy_questions import EnergyQuestion, hour_text
from carbon.energy_records import EnergyTable
from carbon.energy_selectors import asked_entries
from carbon.models import EmissionEntry
from formulae.units import MICROSECOND_PER_S, kwh_from_millijoule

CSV: Final = "csv"
PARQUET: Final = "parquet"
FORMATS: Final = (CSV, PARQUET)
CONTENT_TYPES: Final = {
    CSV: "text/csv; charset=utf-8",
    PARQUET: "application/vnd.apache.parquet",
}
ENERGY: Final = "energy"
EMISSIONS: Final = "emissions"
_BATCH_ROWS: Final = 20_000
_FORMULA: Final = re.compile(r"[=+\-@\t\r]")  # what a spreadsheet would compute
_TEXT, _NUMBER, _COUNT = pa.string(), pa.float64(), pa.int64()

_OWNER: Final = {
    "hour": pa.timestamp("us", tz="UTC"),
    "site": _TEXT,
    "project": _TEXT,
    "run": _TEXT,
}
_ENERGY_COLUMNS: Final = {
    "accelerator_energy_kwh": _NUMBER,
    "it_energy_kwh": _NUMBER,
    "facility_energy_kwh": _NUMBER,
    "measured_fraction": _NUMBER,
    "spread_fraction": _NUMBER,
    "estimated_fraction": _NUMBER,
    "coverage_fraction": _NUMBER,
    "device_time_expected_s": _NUMBER,
    "device_time_covered_s": _NUMBER,
}
_FACTOR_KINDS: Final = ("host_factor", "pue", "grid_intensity")
_EMISSION_COLUMNS: Final = {
    "scope_2_location_kgco2e": _NUMBER,
    "scope_2_market_before_contracts_kgco2e": _NUMBER,
    "market_basis": _TEXT,
    "market_zone": _TEXT,
    "scope_category": _TEXT,
    "upstream_kgco2e": _NUMBER,
    "embodied_kgco2e": _NUMBER,
    "water_on_site_l": _NUMBER,
    "water_source_l": _NUMBER,
    "host_factor": _NUMBER,
    "host_factor_id": _TEXT,
    "pue": _NUMBER,
    "pue_id": _TEXT,
    "grid_intensity_g_per_kwh": _NUMBER,
    "grid_intensity_id": _TEXT,
    "factor_set": _TEXT,
    "entry": _COUNT,
    "posted_at": pa.timestamp("us", tz="UTC"),
}


def columns_of(what: str) -> dict[str, Any]:
    """The columns of a file of energy or of emissions, each with its unit in its name."""
    more = _EMISSION_COLUMNS if what == EMISSIONS else {}
    return {**_OWNER, **_ENERGY_COLUMNS, **more}


def neutral(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _entry_row(row: EmissionEntry) -> dict[str, Any]:
    """An entry of the books as a line of a file; what is unknown is empty."""
    energy = row.accelerator_energy_millijoule
    factors = {one["kind"]: one for one in row.factor_set.factors}
    named = {kind: factors.get(kind, {}) for kind in _FACTOR_KINDS}
    covered = _share(row.covered_microsecond, row.expected_microsecond)
    return {
        "hour": row.hour,
        "site": row.site.slug,
        "project": row.project.slug if row.project else None,
        "run": row.run.slug if row.run else None,
        "accelerator_energy_kwh": kwh_from_millijoule(energy),
        "measured_fraction": _share(row.measured_millijoule, energy),
        "spread_fraction": _share(row.spread_millijoule, energy),
        "estimated_fraction": _share(row.estimated_millijoule, energy),
        "coverage_fraction": None if covered is None else min(1.0, covered),
        "device_time_expected_s": row.expected_microsecond / MICROSECOND_PER_S,
        "device_time_covered_s": row.covered_microsecond / MICROSECOND_PER_S,
        "scope_2_market_before_contracts_kgco2e": row.scope_2_market_kgco2e,
        "host_factor": named["host_factor"].get("value"),
        "host_factor_id": named["host_factor"].get("id"),
        "pue": named["pue"].get("value"),
        "pue_id": named["pue"].get("id"),
        "grid_intensity_g_per_kwh": named["grid_intensity"].get("value"),
        "grid_intensity_id": named["grid_intensity"].get("id"),
        "factor_set": row.factor_set.digest,
        "entry": row.pk,
        **{name: getattr(row, name) for name in _AS_STORED},
    }


_AS_STORED: Final = (
    "it_energy_kwh",
    "facility_energy_kwh",
    "scope_2_location_kgco2e",
    "market_basis",
    "market_zone",
    "scope_category",
    "upstream_kgco2e",
    "embodied_kgco2e",
    "water_on_site_l",
    "water_source_l",
    "posted_at",
)


def _batches(question: EnergyQuestion, names: Iterable[str]) -> Iterator[list[dict[str, Any]]]:
    wanted = list(names)
    entries = asked_entries(question).select_related("site", "project", "run", "factor_set")
    some: list[dict[str, Any]] = []
    for row in entries.order_by("hour", "site_id", "pk").iterator(chunk_size=_BATCH_ROWS):
        line = _entry_row(row)
        some.append({name: line[name] for name in wanted})
        if len(some) == _BATCH_ROWS:
            yield some
            some = []
    if some:
        yield some


def export_entries(question: EnergyQuestion, *, what: str, kind: str, target: Path) -> int:
    """Write the entries of a question, one a line; return the lines."""
    columns = columns_of(what)
    with target.open("wb") as sink:
        return _written(_batches(question, columns), columns, kind=kind, sink=sink)


def _written(
    batches: Iterable[Sequence[Mapping[str, Any]]],
    columns: Mapping[str, Any],
    *,
    kind: str,
    sink: BinaryIO,
) -> int:
    rows = 0
    if kind == PARQUET:
        schema = pa.schema(list(columns.items()))
        with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
            for some in batches:
                writer.write_table(pa.Table.from_pylist(list(some), schema=schema))
                rows += len(some)
        return rows
    text = io.TextIOWrapper(sink, encoding="utf-8", newline="", write_through=True)
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(columns)
    for some in batches:
        lines.writerows([_cell(row[name]) for name in columns] for row in some)
        rows += len(some)
    text.flush()
    text.detach()
    return rows


def _cell(value: Any) -> str:
    """A value as a CSV holds it: plain digits, ISO times, nothing that a spreadsheet would run."""
    if value is None:
        return ""
    if isinstance(value, str):
        return neutral(value)
    if isinstance(value, int | float):
        return repr(value)
    return str(value.isoformat().replace("+00:00", "Z"))


def table_file(table: EnergyTable, question: EnergyQuestion, *, kind: str) -> bytes:
    """The table of a page as a file; its lines sum to the page's total."""
    columns: dict[str, Any] = {
        question.by: _TEXT,
        **{"name": _TEXT},
        **_ENERGY_COLUMNS,
        "scope_2_location_kgco2e": _NUMBER,
        "scope_2_market_kgco2e": _NUMBER,
        "rows": _COUNT,
    }
    lines = [
        {
            question.by: hour_text(row.start) if question.by == "hour" and row.start else row.key,
            "name": row.name,
            "accelerator_energy_kwh": row.accelerator_energy_kwh,
            "it_energy_kwh": row.it_energy_kwh,
            "facility_energy_kwh": row.facility_energy_kwh,
            "measured_fraction": row.measured_fraction,
            "spread_fraction": row.spread_fraction,
            "estimated_fraction": row.estimated_fraction,
            "coverage_fraction": row.coverage_fraction,
            "device_time_expected_s": None
            if row.expected_microsecond is None
            else row.expected_microsecond / MICROSECOND_PER_S,
            "device_time_covered_s": row.covered_microsecond / MICROSECOND_PER_S,
            "scope_2_location_kgco2e": row.scope_2_location_kgco2e,
            "scope_2_market_kgco2e": row.scope_2_market_kgco2e,
            "rows": row.entries,
        }
        for row in table.rows
    ]
    sink = io.BytesIO()
    _written([lines], columns, kind=kind, sink=sink)
    return sink.getvalue()

"""codecarbon's emissions.csv: its GPU energy by run, as metered intervals. Its factors stay there.

A row is a whole run: `duration` seconds before `timestamp`, which is local time without a zone.
Of a run that wrote several rows (it appends its sums so far) the longest counts.
Processor and memory energy are codecarbon's own estimates; they are named in the notes, not booked.
Source: codecarbon documentation, "Output", columns of emissions.csv.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Final
from zoneinfo import ZoneInfo

import pyarrow as pa

from carbon.adapters.power_texts import HEADER_ROWS, PowerTextError
from formulae.allocation import split_integer
from formulae.units import MILLIJOULE_PER_KWH

COLUMNS: Final = ("timestamp", "run_id", "duration", "gpu_energy", "energy_consumed", "emissions")
MOST_DEVICES: Final = 1_024

Row = dict[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecarbonRuns:
    """The rows as intervals, in the columns of our own files, and the energy that stays out."""

    table: pa.Table
    other_kwh: float


def is_codecarbon(columns: Sequence[str]) -> bool:
    """Whether a header is that of codecarbon's emissions.csv."""
    return set(COLUMNS) <= set(columns)


def as_intervals(
    table: pa.Table, *, time_zone: str, first_row: int = HEADER_ROWS
) -> CodecarbonRuns:
    """The runs of a file as intervals of devices `codecarbon:RUN/0`, `codecarbon:RUN/1`, ….

    Raises:
        PowerTextError: a time, duration or energy that is none; names row, field and unit.
    """
    zone = ZoneInfo(time_zone)
    columns: dict[str, list[str]] = {
        name: [] for name in ("start", "end", "device_uuid", "energy_millijoule", "node", "model")
    }
    other = Decimal(0)
    for number, row in _whole_runs(table, first_row):
        end = _instant(row, number, zone)
        start = end - timedelta(seconds=float(_amount(row, "duration", number, unit="s")))
        gpu_kwh = _amount(row, "gpu_energy", number, unit="kWh")
        other += _amount(row, "energy_consumed", number, unit="kWh") - gpu_kwh
        devices = _devices(row, number)
        if not devices and not gpu_kwh:
            continue  # a run without GPUs
        energy_millijoule = int((gpu_kwh * MILLIJOULE_PER_KWH).to_integral_value())
        shares = split_integer(energy_millijoule, [1] * max(1, devices))
        for device, share in enumerate(shares):
            columns["start"].append(start.isoformat())
            columns["end"].append(end.isoformat())
            columns["device_uuid"].append(f"codecarbon:{_run(row, number)}/{device}")
            columns["energy_millijoule"].append(str(share))
            columns["node"].append("")
            columns["model"].append((row.get("gpu_model") or "").rpartition(" x ")[2][:120])
    texts = {name: pa.array(values, pa.string()) for name, values in columns.items()}
    return CodecarbonRuns(table=pa.table(texts), other_kwh=float(other))


def _whole_runs(table: pa.Table, first_row: int) -> list[tuple[int, Row]]:
    """The longest row of each run, with its number in the file."""
    longest: dict[str, tuple[Decimal, int, Row]] = {}
    for position, row in enumerate(table.to_pylist()):
        number = first_row + position
        duration = _amount(row, "duration", number, unit="s")
        run = _run(row, number)
        if run not in longest or duration > longest[run][0]:
            longest[run] = (duration, number, row)
    return [(number, row) for _duration, number, row in longest.values()]


def _run(row: Row, number: int) -> str:
    run = (row.get("run_id") or "").strip()
    if not run:
        raise PowerTextError("the run has no id", row=number, field="run_id")
    return run[:80]


def _instant(row: Row, number: int, zone: ZoneInfo) -> datetime:
    text = (row.get("timestamp") or "").strip()
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise PowerTextError(
            f"{text[:60]!r} is no time such as 2026-10-01T12:00:00", row=number, field="timestamp"
        ) from error
    return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC)


def _amount(row: Row, name: str, number: int, *, unit: str) -> Decimal:
    text = (row.get(name) or "").strip()
    try:
        value = Decimal(text)
    except InvalidOperation as error:
        raise PowerTextError(
            f"{text[:60]!r} is no number ({unit})", row=number, field=name
        ) from error
    if not value.is_finite() or value < 0:
        raise PowerTextError(f"{text[:60]!r} is below zero or no number", row=number, field=name)
    return value


def _devices(row: Row, number: int) -> int:
    text = (row.get("gpu_count") or "").strip()
    if not text:
        return 0
    try:
        count = int(float(text))
    except ValueError as error:
        raise PowerTextError(
            f"{text[:60]!r} is no count of GPUs", row=number, field="gpu_count"
        ) from error
    if not 0 <= count <= MOST_DEVICES:
        raise PowerTextError(f"{count} GPUs in one run", row=number, field="gpu_count")
    return count

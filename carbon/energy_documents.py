"""Energy tables as JSON documents, for the command line and the API alike."""

from typing import Any

from carbon.energy_questions import EnergyQuestion
from carbon.energy_records import KNOWABLE, EnergyRow, EnergyTable, row_value


def row_document(row: EnergyRow) -> dict[str, Any]:
    """A row or a sum; what is unknown is null."""
    return {
        "accelerator_energy_kwh": row.accelerator_energy_kwh,
        **{name: row_value(row, name) for name in KNOWABLE},
        "measured_fraction": row.measured_fraction,
        "spread_fraction": row.spread_fraction,
        "estimated_fraction": row.estimated_fraction,
        "coverage_fraction": row.coverage_fraction,
    }


def table_document(table: EnergyTable, question: EnergyQuestion) -> dict[str, Any]:
    """A table: its rows, their total, and whether the one sums to the other."""
    return {
        "by": question.by,
        "from": _instant(question.start),
        "to": _instant(question.end),
        "as_of": _instant(question.as_of),
        "project": question.project or None,
        "run": question.run or None,
        "site": question.site or None,
        "rows": [{"key": row.key, "name": row.name, **row_document(row)} for row in table.rows],
        "total": row_document(table.total),
        "adds_up": table.adds_up,
    }


def _instant(at: Any) -> str | None:
    return at.isoformat().replace("+00:00", "Z") if at else None

"""The JSON that commands and the REST API print of charges: one shape for both."""

from typing import Any

from billing.amounts import plain
from billing.cost_records import MEASURES, CostTable
from billing.models import Delivery
from billing.records import COST_COLUMNS


def import_document(delivery: Delivery, *, already_imported: bool) -> dict[str, Any]:
    """A delivery as `import_charges --json` prints it; money is text."""
    return {
        "id": str(delivery.pk),
        "source": delivery.source.name,
        "format": delivery.bill_format,
        "state": delivery.state,
        "job": str(delivery.job_id) if delivery.job_id else None,
        "already_imported": already_imported,
        "in_force": is_in_force(delivery),
        "batches": [
            {
                "file": file.name,
                "sha256": file.sha256,
                "already_imported": already_imported or file.already_imported,
                "rows": file.rows,
            }
            for file in delivery.files.all()
        ],
        "ignored_files": delivery.origin.get("ignored_files", []),
        "rows": delivery.rows,
        "unknown_columns": delivery.report.get("unknown_columns", []),
        "totals": [
            {"currency": entry["currency"], **{name: entry[name] for name in COST_COLUMNS}}
            for entry in delivery.totals
        ],
        "periods": [entry["period"] for entry in delivery.report.get("periods", [])],
        "report": delivery.report,
        "refusal": delivery.refusal,
    }


def is_in_force(delivery: Delivery) -> bool | None:
    """Whether all of a published delivery is what readers see; None while it is not published."""
    if delivery.state != Delivery.State.PUBLISHED:
        return None
    live = delivery.slices.filter(versions__published_period__isnull=False).distinct()
    return live.count() == delivery.slices.count()


def cost_document(table: CostTable) -> dict[str, Any]:
    """A cost table as `costs --json` prints it; money is text, a group without a value is null."""
    return {
        "basis": table.basis.value,
        "from": table.start_on.isoformat() if table.start_on else None,
        "to": table.end_on.isoformat() if table.end_on else None,
        "rows": [
            {
                **dict(zip(table.group_by, row.group, strict=True)),
                "currency": row.currency,
                "cost": plain(row.cost),
                **{name: plain(getattr(row, name)) for name in MEASURES},
                "rows": row.rows,
            }
            for row in table.rows
        ],
        "total": [{"currency": entry.currency, "cost": plain(entry.cost)} for entry in table.total],
    }

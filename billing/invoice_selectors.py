"""Reads of reconciliation: stated totals beside charges, and every view beside one total."""

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import ibis
from django.db.models import Count, Sum

from billing.cost_records import whole_sum as both
from billing.expressions import whole_sum
from billing.invoice_records import Reconciliation, Tie, ViewTotal
from billing.lake_tables import stored_charges
from billing.models import BillingPeriod, DailyCost, InvoiceTotal
from billing.records import Dataset
from lake.engine import open_duckdb

VIEWS: Final = (
    "project_id",
    "x_cost_class",
    "service_name",
    "region_id",
    "sub_account_id",
    "day",
)


def reconciliations(
    organisation_id: UUID, *, source_id: UUID | None = None
) -> list[Reconciliation]:
    """Every stated total beside the billed charges, and published months without one."""
    stated = InvoiceTotal.objects.filter(
        organisation_id=organisation_id, withdrawn_at=None
    ).select_related("source")
    periods = _published(organisation_id)
    if source_id is not None:
        stated, periods = stated.filter(source_id=source_id), periods.filter(source_id=source_id)
    books = {(one.source_id, one.start): one for one in periods}
    found = [_reconciled(total, books) for total in stated]
    told = {(one.source_id, one.month_on, one.currency) for one in found if not one.invoice_id}
    found += [
        Reconciliation(
            source_id=period.source_id,
            source=period.source.name,
            month_on=period.start,
            invoice_id="",
            currency=entry["currency"],
            expected=None,
            found=_amount(entry),
            tolerance=Decimal(0),
            tie=Tie.NOT_STATED,
            period_id=period.pk,
        )
        for period in books.values()
        for entry in _totals(period)
        if (period.source_id, period.start, entry["currency"]) not in told
    ]
    return sorted(found, key=lambda one: (-one.month_on.toordinal(), one.source, one.invoice_id))


def view_totals(organisation_id: UUID, period: BillingPeriod) -> list[ViewTotal]:
    """The billed total of one published month as each view sums it, the version's own first."""
    version = period.published_version
    if version is None or version.organisation_id != organisation_id:
        return []
    stated = {entry["currency"]: (_amount(entry), entry["rows"]) for entry in version.totals}
    found = [
        ViewTotal(view="version", currency=currency, cost=cost, rows=rows, agrees=True)
        for currency, (cost, rows) in sorted(stated.items())
    ]
    for view, sums in (*_roll_up_views(version.pk), ("lake", _lake_sums(version))):
        found += [
            ViewTotal(
                view=view,
                currency=currency,
                cost=cost,
                rows=rows,
                agrees=stated.get(currency, (None, 0))[0] == cost,
            )
            for currency, (cost, rows) in sorted(sums.items())
        ]
    return found


def _published(organisation_id: UUID) -> Any:
    return BillingPeriod.objects.filter(
        organisation_id=organisation_id,
        dataset=Dataset.BILLED,
        published_version__isnull=False,
    ).select_related("source", "published_version")


def _totals(period: BillingPeriod) -> Iterable[dict[str, Any]]:
    return period.published_version.totals if period.published_version else ()


def _amount(entry: dict[str, Any]) -> Decimal | None:
    return None if entry["billed_cost"] is None else Decimal(entry["billed_cost"])


def _reconciled(
    total: InvoiceTotal, books: dict[tuple[UUID, date], BillingPeriod]
) -> Reconciliation:
    period = books.get((total.source_id, total.start))
    sums: dict[str, Decimal | None] = {}
    if period is not None:
        sums = _invoice_sums(period, total.invoice_id) if total.invoice_id else _month_sums(period)
    found = sums.get(total.currency)
    if found is None:
        tie = Tie.UNKNOWN if total.currency in sums else Tie.NO_CHARGES
    else:
        tie = Tie.TIES if abs(found - total.amount) <= total.tolerance else Tie.DIFFERS
    return Reconciliation(
        source_id=total.source_id,
        source=total.source.name,
        month_on=total.start,
        invoice_id=total.invoice_id,
        currency=total.currency,
        expected=total.amount,
        found=found,
        tolerance=total.tolerance,
        tie=tie,
        origin=total.get_origin_display(),
        note=total.note,
        total_id=total.pk,
        period_id=period.pk if period is not None else None,
    )


def _month_sums(period: BillingPeriod) -> dict[str, Decimal | None]:
    return {entry["currency"]: _amount(entry) for entry in _totals(period)}


def _invoice_sums(period: BillingPeriod, invoice_id: str) -> dict[str, Decimal | None]:
    """What the charges of one invoice come to, from the lake."""
    paths = _paths(period.published_version)
    if not paths:
        return {}
    with open_duckdb() as engine:
        charges = stored_charges(engine, paths)
        charges = charges.filter(charges.invoice_id == ibis.literal(invoice_id))
        rows = engine.rows(
            charges.group_by("billing_currency").agg(cost=whole_sum(charges, "billed_cost"))
        )
    return {row["billing_currency"]: row["cost"] for row in rows}


def _paths(version: Any) -> list[str]:
    return list(version.slices.order_by("path").values_list("path", flat=True))


Sums = dict[str, tuple[Decimal | None, int]]


def _roll_up_views(version_id: UUID) -> list[tuple[str, Sums]]:
    """The roll-up summed by each dimension, and those sums added up."""
    costs = DailyCost.objects.filter(version_id=version_id)
    found: list[tuple[str, Sums]] = []
    for view in VIEWS:
        groups = costs.values(view, "billing_currency").annotate(
            cost=Sum("billed_cost"),
            known=Count("billed_cost"),
            lines=Count("pk"),
            count=Sum("rows"),
        )
        sums: Sums = {}
        for row in groups:
            cost, rows = sums.get(row["billing_currency"], (Decimal(0), 0))
            own = row["cost"] if row["known"] == row["lines"] else None
            sums[row["billing_currency"]] = (both(cost, own), rows + row["count"])
        found.append((view, sums))
    return found


def _lake_sums(version: Any) -> Sums:
    paths = _paths(version)
    if not paths:
        return {}
    with open_duckdb() as engine:
        charges = stored_charges(engine, paths)
        rows = engine.rows(
            charges.group_by("billing_currency").agg(
                cost=whole_sum(charges, "billed_cost"), count=charges.count()
            )
        )
    return {row["billing_currency"]: (row["cost"], row["count"]) for row in rows}

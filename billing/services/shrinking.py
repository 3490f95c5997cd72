"""What published months would lose by a delivery: rows, or days that it does not hold."""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from billing.lake_tables import stored_charges
from billing.models import BillingPeriod, ChargeSlice, DailyCost, Delivery
from lake.engine import open_duckdb

Planned = Iterable[tuple[BillingPeriod, Sequence[ChargeSlice]]]


def live_slices(period: BillingPeriod) -> list[ChargeSlice]:
    """The slices that readers of the period see now."""
    if period.published_version is None:
        return []
    return list(period.published_version.slices.select_related("delivery"))


def losses(delivery: Delivery, planned: Planned) -> list[dict[str, Any]]:
    """The published months that would hold fewer rows than before, or lack days that they hold.

    A month that the delivery declares is its provider's whole word: only its rows are compared.
    """
    found: list[dict[str, Any]] = []
    for period, slices in planned:
        live = live_slices(period)
        before, after = (sum(one.rows for one in some) for some in (live, slices))
        is_declared = str(period) in delivery.declared_periods
        lost = [] if is_declared else _lost_days(period, live, slices)
        if after < before or lost:
            entry: dict[str, Any] = {
                "period": str(period),
                "rows_before": before,
                "rows": after,
            }
            if lost:
                entry["days_lost"] = [day.isoformat() for day in lost]
            found.append(entry)
    return found


def _lost_days(
    period: BillingPeriod, live: Sequence[ChargeSlice], slices: Sequence[ChargeSlice]
) -> list[date]:
    """The days with charges now on which there would be none."""
    kept = {one.pk for one in slices}
    if period.published_version is None or all(one.pk in kept for one in live):
        return []
    days = DailyCost.objects.filter(version=period.published_version).values_list("day", flat=True)
    return sorted(set(days.distinct()) - _days_of(slices))


def _days_of(slices: Sequence[ChargeSlice]) -> set[date]:
    paths = sorted(one.path for one in slices)
    if not paths:
        return set()
    with open_duckdb() as engine:
        charges = stored_charges(engine, paths)
        days = charges.select(day=charges.charge_period_start.date()).distinct()
        return {row["day"] for row in engine.rows(days)}

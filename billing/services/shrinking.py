"""What published months would lose by a delivery: rows, or days that it does not hold."""

from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from billing.amounts import exact_text
from billing.lake_tables import stored_charges
from billing.models import BillingPeriod, ChargeSlice, DailyCost, Delivery
from formulae.units import EXACT
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
            entry["totals"] = _billed_of(live, slices)
            if lost:
                entry["days_lost"] = [day.isoformat() for day in lost]
            found.append(entry)
    return found


def _billed_of(live: Sequence[ChargeSlice], slices: Sequence[ChargeSlice]) -> list[dict[str, Any]]:
    """The billed cost now and then, one entry a currency; missing where a charge lacks it."""
    before, after = (_sums_of(some) for some in (live, slices))
    return [
        {
            "currency": currency,
            "billed_before": _text_of(before, currency),
            "billed": _text_of(after, currency),
        }
        for currency in sorted({*before, *after})
    ]


def _sums_of(slices: Sequence[ChargeSlice]) -> dict[str, Decimal | None]:
    sums: dict[str, Decimal | None] = {}
    for entry in (entry for one in slices for entry in one.totals):
        sofar = sums.get(entry["currency"], Decimal(0))
        cost = entry["billed_cost"]
        is_known = sofar is not None and cost is not None
        sums[entry["currency"]] = EXACT.add(sofar or 0, Decimal(cost)) if is_known else None
    return sums


def _text_of(sums: dict[str, Decimal | None], currency: str) -> str | None:
    """The sum as text; no charge at all of a currency is a sum of zero."""
    cost = sums.get(currency, Decimal(0))
    return None if cost is None else exact_text(cost)


def _lost_days(
    period: BillingPeriod, live: Sequence[ChargeSlice], slices: Sequence[ChargeSlice]
) -> list[date]:
    """The days with charges now on which there would be none."""
    kept = {one.pk for one in slices}
    if period.published_version is None or all(one.pk in kept for one in live):
        return []
    days = DailyCost.objects.filter(version=period.published_version).values_list("day", flat=True)
    held = set(days.distinct())
    return sorted(held - _days_of(slices)) if held else []


def _days_of(slices: Sequence[ChargeSlice]) -> set[date]:
    paths = sorted(one.path for one in slices)
    if not paths:
        return set()
    with open_duckdb() as engine:
        charges = stored_charges(engine, paths)
        days = charges.select(day=charges.charge_period_start.date()).distinct()
        return {row["day"] for row in engine.rows(days)}

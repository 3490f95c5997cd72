"""Writes a delivery's charges once read: prices what came without costs, and reports on all."""

from pathlib import Path
from typing import Any, Final
from uuid import UUID

import ibis

from billing.amounts import plain
from billing.cost_classes import OTHERWISE, UNMAPPED
from billing.lake_tables import with_every_column
from billing.pricing_usage import (
    PRICE_SCHEMA,
    estimated_costs,
    price_lookup,
    prices_used,
    unpriced,
)
from billing.reading import Reading
from billing.records import COST_COLUMNS
from lake.engine import Engine

SHOWN: Final = 200
PRICE_LABEL: Final = "x_price_label"
READ_FROM_WORDS: Final = frozenset({"x_instance_type"})
ESTIMATED: Final = frozenset({*COST_COLUMNS, PRICE_LABEL})
SHOWN_UNCLASSIFIED: Final = 50


def written_charges(
    engine: Engine, reading: Reading, folder: Path, organisation_id: UUID
) -> tuple[Path, ibis.Table]:
    """The charges as one Parquet file of the folder, and a table over it.

    Usage that came without costs gets them from the price books, marked as estimated.
    """
    typed = folder / "charges.parquet"
    unwritten = (reading.empty_columns - READ_FROM_WORDS) | {PRICE_LABEL}
    engine.write(reading.charges.drop(*unwritten), typed)
    charges = with_every_column(engine.text_table(typed).drop("file_row_number"))
    if not reading.rows_without_costs:
        return typed, charges
    prices = engine.small_table(price_lookup(organisation_id), PRICE_SCHEMA)
    priced = folder / "priced.parquet"
    engine.write(estimated_costs(charges, prices).drop(*unwritten - ESTIMATED), priced)
    return priced, with_every_column(engine.text_table(priced).drop("file_row_number"))


def report_of(engine: Engine, reading: Reading, charges: ibis.Table) -> dict[str, Any]:
    """What the import report shows of the delivery as a whole."""
    classes = charges.group_by("x_cost_class", "billing_currency").agg(
        billed_cost=charges.billed_cost.sum(),
        effective_cost=charges.effective_cost.sum(),
        rows=charges.count(),
    )
    by_class = engine.rows(classes.order_by("x_cost_class", "billing_currency"))
    there = {row["x_cost_class"] for row in by_class}
    found = reading.notes | {
        "cost_classes": by_class,
        "unmapped_accelerators": _unmapped(engine, charges) if "accelerator" in there else [],
        "unclassified": _unclassified(engine, charges) if OTHERWISE in there else [],
        "has_estimated": bool(reading.rows_without_costs),
    }
    if reading.rows_without_costs:
        found["unpriced"] = engine.rows(unpriced(charges).order_by("sku").limit(SHOWN))
        found["prices_used"] = engine.rows(prices_used(charges).order_by("price").limit(SHOWN))
    document: dict[str, Any] = plain(found)
    return document


def _unmapped(engine: Engine, charges: ibis.Table) -> list[dict[str, Any]]:
    """Accelerators that the catalogue does not know: their hours are missing."""
    some = charges.filter(charges.x_accelerator == UNMAPPED)
    grouped = some.group_by(name=ibis.coalesce(some.x_instance_type, some.service_name)).agg(
        rows=some.count(), effective_cost=some.effective_cost.sum()
    )
    return engine.rows(grouped.order_by("name").limit(SHOWN))


def _unclassified(engine: Engine, charges: ibis.Table) -> list[dict[str, Any]]:
    """Usage that no rule of classes knows, the dearest first: kept, shown, counted as other."""
    some = charges.filter(
        (charges.x_cost_class == OTHERWISE) & (charges.charge_category == "Usage")
    )
    grouped = some.group_by(
        service=some.service_name,
        sku=ibis.coalesce(some.x_usage_type, some.sku_meter, some.sku_id, some.charge_description),
        currency=some.billing_currency,
    ).agg(rows=some.count(), effective_cost=some.effective_cost.sum())
    ordered = grouped.order_by(ibis.desc("effective_cost"), "service", "sku")
    return engine.rows(ordered.limit(SHOWN_UNCLASSIFIED))

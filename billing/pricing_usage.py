"""Prices usage that came without costs: candidate prices as rows, and one pure Ibis expression.

The four costs of a priced row are quantity times unit price, rounded once, half-even, to 18
decimals (`billing/adapters/exact.py`).
"""

from collections.abc import Iterable, Mapping
from datetime import date
from functools import reduce
from typing import Any, Final
from uuid import UUID

import ibis

from billing.adapters.exact import FACTOR, exactly, product
from billing.amounts import exact_text
from billing.cost_classes import PROVIDERS
from billing.price_records import PriceRecord
from billing.price_selectors import all_prices
from billing.records import COST_COLUMNS, MONEY_TYPE
from lake.engine import Engine

# What each unit of a price counts, and how many of the measure's units it holds (a power of ten).
MEASURES: Final[Mapping[str, tuple[str, int]]] = {
    "accelerator_h": ("x_accelerator_h", 0),
    "tb_month": ("x_storage_tb_month", 0),
    "1000_requests": ("x_requests", 3),
    "gb": ("x_transfer_bytes", 9),
}
MOST_PRICE: Final = 10**8  # a unit
SPOT_CATEGORY: Final = "Dynamic"
STANDARD_PURCHASES: Final = ("contract", "on_demand")  # the former beats the latter
MOST_UNPRICED: Final = 200
LATEST: Final = date(9999, 12, 31)
PRICE_SCHEMA: Final[Mapping[str, str]] = {
    "p_class": "string",
    "p_provider": "string",
    "p_region": "string",
    "p_accelerator": "string",
    "p_instance": "string",
    "p_unit": "string",
    "p_currency": "string",
    "p_is_spot": "boolean",
    "p_from": "date",
    "p_to": "date",
    "p_price": FACTOR,
    "p_book": "int64",
    "p_rank": "int64",
    "p_label": "string",
}
_KEY: Final = (
    "k_class",
    "k_provider",
    "k_region",
    "k_accelerator",
    "k_instance",
    "k_currency",
    "k_is_spot",
    "k_day",
)
PRICED_COLUMNS: Final = ("x_estimated", "x_price_label")


def price_lookup(organisation_id: UUID, *, on: date | None = None) -> list[dict[str, Any]]:
    """Every price that usage may be priced with, as rows of PRICE_SCHEMA.

    The organisation's own books come first, then its price feeds, then the shipped list; a
    contract's price before one on demand. With `on`, only prices that begin by that day.
    """
    records = [
        record
        for record in all_prices(organisation_id)
        if record.unit in MEASURES
        and record.purchase in (*STANDARD_PURCHASES, "spot")
        and (on is None or record.valid_from <= on)
        and record.price.amount < MOST_PRICE
    ]
    return price_rows(records)


def price_rows(records: Iterable[PriceRecord]) -> list[dict[str, Any]]:
    """Prices as rows of PRICE_SCHEMA, the preferred first by `p_rank`."""
    ordered = sorted(records, key=_preference)
    return [_row(record, rank) for rank, record in enumerate(ordered)]


def _preference(record: PriceRecord) -> tuple[Any, ...]:
    """What decides between prices that fit a charge's place alike: the first wins."""
    return (
        -record.valid_from.toordinal(),
        record.price.amount,
        record.book,
        record.key,
        record.source,
    )


def _row(record: PriceRecord, rank: int) -> dict[str, Any]:
    priced = f"{exact_text(record.price.amount)} {record.price.currency} / {record.unit}"
    return {
        "p_class": record.cost_class,
        "p_provider": record.provider,
        "p_region": record.region,
        "p_accelerator": record.accelerator_key,
        "p_instance": record.instance_type.lower(),
        "p_unit": record.unit,
        "p_currency": record.price.currency,
        "p_is_spot": record.purchase == "spot",
        "p_from": record.valid_from,
        "p_to": record.valid_to or LATEST,
        "p_price": record.price.amount,
        "p_book": _book_rank(record),
        "p_rank": rank,
        "p_label": f"{record.book}: {priced} from {record.valid_from}, {record.source}",
    }


def _book_rank(record: PriceRecord) -> int:
    """Own before feed before shipped; a contract before a price on demand in each."""
    book = 2 if record.is_shipped else 1 if record.feed else 0
    return 2 * book + (record.purchase != "contract")


def without_costs(charges: ibis.Table) -> Any:
    """Whether a charge is usage whose four costs are all missing."""
    missing = [charges[name].isnull() for name in COST_COLUMNS]
    usage = charges.charge_category.fill_null("Usage") == "Usage"
    return reduce(lambda left, right: left & right, missing) & usage


def estimated_costs(charges: ibis.Table, prices: ibis.Table) -> ibis.Table:
    """The charges, with costs from the prices where usage came without any.

    Adds x_estimated (our price made the costs) and x_price_label (which price). A row that has no
    price, no measure, or a currency that no price is in keeps its nulls.
    """
    keyed = charges.mutate(**_keys(charges))
    chosen = _chosen(keyed, prices)
    joined = keyed.left_join(chosen, [keyed[name] == chosen[f"c_{name}"] for name in _KEY])
    joined = joined.mutate(x_quantity=_quantity(joined))
    joined = joined.mutate(x_product=product(joined.x_quantity, joined.p_price))
    priced = joined.x_product.notnull()
    columns: dict[str, Any] = {name: joined[name] for name in charges.columns}
    columns |= {
        name: ibis.ifelse(priced, joined.x_product, joined[name]).cast(MONEY_TYPE)
        for name in COST_COLUMNS
    }
    columns["x_estimated"] = priced
    columns["x_price_label"] = ibis.ifelse(priced, joined.p_label, ibis.null("string"))
    return joined.select(**columns)


def _keys(charges: ibis.Table) -> dict[str, Any]:
    """What a price is looked up by; no class for rows that need no price, so that none fits."""
    return {
        "k_class": ibis.ifelse(without_costs(charges), charges.x_cost_class, "").fill_null(""),
        "k_provider": _provider(charges.provider_name),
        "k_region": charges.region_id.fill_null("").lower(),
        "k_accelerator": charges.x_accelerator.fill_null(""),
        "k_instance": charges.x_instance_type.fill_null("").lower(),
        "k_currency": charges.billing_currency.fill_null(""),
        "k_is_spot": (charges.pricing_category == SPOT_CATEGORY).fill_null(False),
        "k_day": charges.charge_period_start.date(),
    }


def _provider(name: Any) -> Any:
    """The key of a cloud that we know by name, else the provider's name in small letters."""
    text = name.fill_null("")
    cases = [(text.re_search(f"(?i){pattern}"), key) for key, pattern in PROVIDERS]
    return ibis.cases(*cases, else_=text.lower())


def _chosen(keyed: ibis.Table, prices: ibis.Table) -> ibis.Table:
    """One price for each way in which the charges ask."""
    asked = keyed.filter(keyed.k_class != "").select(*_KEY).distinct()
    fits = [
        asked.k_class == prices.p_class,
        asked.k_currency == prices.p_currency,
        asked.k_is_spot == prices.p_is_spot,
    ]
    fitting = asked.inner_join(prices, fits)
    fitting = fitting.filter(
        (fitting.p_region == "") | (fitting.p_region == fitting.k_region),
        (fitting.p_provider == "") | fitting.k_provider.contains(fitting.p_provider),
        (fitting.p_accelerator == fitting.k_accelerator) | (fitting.p_class != "accelerator"),
        fitting.p_from <= fitting.k_day,
        fitting.k_day < fitting.p_to,
    )
    order = [
        fitting.p_book,
        (fitting.p_region == "").cast("int8"),
        (fitting.p_provider == "").cast("int8"),
        (fitting.p_instance != fitting.k_instance).cast("int8"),
        fitting.p_rank,
    ]
    ranked = fitting.mutate(
        place=ibis.row_number().over(group_by=[fitting[name] for name in _KEY], order_by=order)
    )
    best = ranked.filter(ranked.place == 0)
    return best.select(
        **{f"c_{name}": best[name] for name in _KEY},
        p_unit=best.p_unit,
        p_price=best.p_price,
        p_label=best.p_label,
    )


def _quantity(joined: ibis.Table) -> Any:
    """How many units of the price; null where there is no price or no measure."""
    return ibis.cases(
        *(
            (joined.p_unit == unit, _scaled(joined[measure], shift))
            for unit, (measure, shift) in MEASURES.items()
        ),
        else_=ibis.null(FACTOR),
    )


def _scaled(measure: Any, shift: int) -> Any:
    """A measure over a power of ten, exactly: requests to 15 decimals, bytes to nine."""
    if not shift:
        return measure.try_cast(FACTOR)
    narrow = measure.try_cast(f"decimal(27, {18 - shift})")
    tenth = exactly(f"0.{'1':0>{shift}}", f"decimal({shift}, {shift})")
    return (narrow * tenth).try_cast(FACTOR)


def unpriced(charges: ibis.Table) -> ibis.Table:
    """What came without costs and has no price, by SKU: for the report of an import."""
    rows = charges.filter(without_costs(charges))
    return rows.group_by(
        sku=ibis.coalesce(rows.sku_id, rows.sku_meter, rows.charge_description, rows.service_name),
        x_cost_class=rows.x_cost_class,
        x_accelerator=rows.x_accelerator,
        unit=ibis.coalesce(rows.consumed_unit, rows.pricing_unit),
        currency=rows.billing_currency,
    ).agg(rows=rows.count(), quantity=rows.consumed_quantity.sum())


def prices_used(charges: ibis.Table) -> ibis.Table:
    """Which prices made costs, with the rows and the sum of each; of a table with x_price_label."""
    rows = charges.filter(charges.x_estimated)
    return rows.group_by(price=rows.x_price_label, currency=rows.billing_currency).agg(
        rows=rows.count(), billed_cost=rows.billed_cost.sum()
    )


def pricing_report(engine: Engine, charges: ibis.Table) -> dict[str, Any]:
    """What an import's report says of priced and unpriced rows of a table with x_price_label.

    `has_estimated` marks deliveries that new prices stage again: with rows priced by us, or with
    rows that still lack a price.
    """
    used = engine.rows(prices_used(charges).order_by("price", "currency"))
    missing = engine.rows(
        unpriced(charges).order_by(ibis.desc("rows"), "sku", "unit").limit(MOST_UNPRICED)
    )
    if not used and not missing:
        return {}
    return {"has_estimated": True, "prices_used": used, "unpriced": missing}

"""Usage without costs is priced from the books: exactly, by the preferred price, or not at all."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

import ibis
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from billing.adapters.exact import product
from billing.models import PriceBook
from billing.price_records import PriceRecord
from billing.pricing_usage import (
    PRICE_SCHEMA,
    estimated_costs,
    price_lookup,
    price_rows,
    prices_used,
    pricing_report,
    unpriced,
)
from billing.services import add_price
from formulae.money import Money, multiply
from lake.engine import open_engine
from tests import builders
from tests.billing.builders import operator
from tests.billing.price_builders import price_wish

ENGINE = ibis.duckdb.connect()
COSTS = ("billed_cost", "effective_cost", "list_cost", "contracted_cost")
CHARGE_SCHEMA = {
    "number": "int64",
    "provider_name": "string",
    "region_id": "string",
    "charge_category": "string",
    "pricing_category": "string",
    "charge_period_start": "timestamp",
    "billing_currency": "string",
    "service_name": "string",
    "charge_description": "string",
    "sku_id": "string",
    "sku_meter": "string",
    "consumed_quantity": "decimal(38, 18)",
    "consumed_unit": "string",
    "pricing_unit": "string",
    **dict.fromkeys(COSTS, "decimal(38, 18)"),
    "x_cost_class": "string",
    "x_accelerator": "string",
    "x_instance_type": "string",
    "x_accelerator_h": "decimal(38, 18)",
    "x_storage_tb_month": "decimal(38, 18)",
    "x_requests": "decimal(38, 18)",
    "x_transfer_bytes": "decimal(38, 18)",
}


def usage(**columns: Any) -> dict[str, Any]:
    """Eight H100-hours of CoreWeave without costs, with some columns changed."""
    return {
        **dict.fromkeys(CHARGE_SCHEMA),
        "provider_name": "CoreWeave",
        "region_id": "us-east-04",
        "charge_category": "Usage",
        "charge_period_start": datetime(2026, 5, 4),
        "billing_currency": "USD",
        "service_name": "GPU Compute",
        "sku_id": "gd-8xh100",
        "consumed_quantity": Decimal(8),
        "consumed_unit": "GPU-Hours",
        "x_cost_class": "accelerator",
        "x_accelerator": "h100-sxm-80gb",
        "x_accelerator_h": Decimal(8),
        **columns,
    }


def table(rows: list[dict[str, Any]], schema: dict[str, str]) -> ibis.Table:
    types = ibis.schema(schema).to_pyarrow()
    columns = {name: [row[name] for row in rows] for name in schema}
    return ibis.memtable(pa.table(columns, schema=types))


def charged(*rows: dict[str, Any], prices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    numbered = [{**row, "number": number} for number, row in enumerate(rows)]
    found = estimated_costs(table(numbered, CHARGE_SCHEMA), table(prices, dict(PRICE_SCHEMA)))
    return ENGINE.to_pyarrow(found.order_by("number")).to_pylist()


def record(amount: str, **parts: Any) -> PriceRecord:
    """A price of an H100-hour in the organisation's own book."""
    return PriceRecord(
        **{
            "price_id": uuid4(),
            "book": "Rate card",
            "cost_class": "accelerator",
            "provider": "",
            "region": "",
            "accelerator_key": "h100-sxm-80gb",
            "instance_type": "",
            "purchase": "on_demand",
            "unit": "accelerator_h",
            "price": Money.of(amount, "USD"),
            "valid_from": date(2026, 1, 1),
            "valid_to": None,
            "source": "Contract 12",
            "source_date": "",
            **parts,
        }
    )


def cost(row: dict[str, Any], *records: PriceRecord) -> Decimal | None:
    (found,) = charged(row, prices=price_rows(records))
    assert len({found[name] for name in COSTS}) == 1
    assert found["x_estimated"] is (found["billed_cost"] is not None)
    return found["billed_cost"]


def test_hours_are_priced_into_all_four_costs_and_marked():
    (row,) = charged(usage(), prices=price_rows([record("2.5")]))
    assert {row[name] for name in COSTS} == {Decimal(20)}
    assert row["x_estimated"] is True
    assert row["x_price_label"].startswith("Rate card: 2.5 USD / accelerator_h from 2026-01-01")


def test_every_measure_has_its_unit():
    storage = record("21.42", cost_class="storage_object", unit="tb_month", accelerator_key="")
    requests = record("0.005", cost_class="request_put", unit="1000_requests", accelerator_key="")
    egress = record("0.09", cost_class="egress", unit="gb", accelerator_key="")
    rows = [
        usage(x_cost_class="storage_object", x_accelerator=None, x_accelerator_h=None,
              x_storage_tb_month=Decimal("1.5")),
        usage(x_cost_class="request_put", x_accelerator=None, x_accelerator_h=None,
              x_requests=Decimal(123456)),
        usage(x_cost_class="egress", x_accelerator=None, x_accelerator_h=None,
              x_transfer_bytes=Decimal(12_345_678_901)),
    ]  # fmt: skip
    found = charged(*rows, prices=price_rows([storage, requests, egress]))
    assert [row["billed_cost"] for row in found] == [
        Decimal("32.13"),
        Decimal("0.61728"),
        Decimal("1.11111110109"),
    ]


def test_rows_with_costs_stay_as_they_are():
    rows = [
        usage(billed_cost=Decimal("1.1"), effective_cost=Decimal("1.0")),
        usage(charge_category="Tax"),
    ]
    paid, tax = charged(*rows, prices=price_rows([record("2.5")]))
    assert [paid[name] for name in COSTS] == [Decimal("1.1"), Decimal("1.0"), None, None]
    assert not paid["x_estimated"]
    assert tax["billed_cost"] is None
    assert not tax["x_estimated"]


def test_what_has_no_price_keeps_its_nulls_and_is_counted_by_sku():
    rows = [
        usage(x_accelerator="unmapped"),
        usage(x_accelerator="unmapped"),
        usage(x_accelerator_h=None, sku_id="other"),
        usage(billing_currency="CNY", sku_id="yuan"),
        usage(sku_id="priced"),
    ]
    numbered = [{**row, "number": number} for number, row in enumerate(rows)]
    found = estimated_costs(
        table(numbered, CHARGE_SCHEMA),
        table(price_rows([record("2.5")]), dict(PRICE_SCHEMA)),
    )
    missing = ENGINE.to_pyarrow(unpriced(found)).to_pylist()
    assert {row["sku"]: row["rows"] for row in missing} == {"gd-8xh100": 2, "other": 1, "yuan": 1}
    (used,) = ENGINE.to_pyarrow(prices_used(found)).to_pylist()
    assert (used["rows"], used["billed_cost"], used["currency"]) == (1, Decimal(20), "USD")


def test_the_report_names_prices_used_and_what_lacks_one():
    with open_engine() as engine:
        rows = [{**usage(sku_id=sku), "number": 0} for sku in ("priced", "free")]
        rows[1]["x_accelerator"] = "unmapped"
        priced = estimated_costs(
            engine.small_table(rows, CHARGE_SCHEMA),
            engine.small_table(price_rows([record("2.5")]), PRICE_SCHEMA),
        )
        report = pricing_report(engine, priced)
        assert report["has_estimated"] is True
        assert [row["sku"] for row in report["unpriced"]] == ["free"]
        assert report["prices_used"][0]["billed_cost"] == Decimal(20)
        paid = [{**row, **dict.fromkeys(COSTS, Decimal(1))} for row in rows]
        nothing = estimated_costs(
            engine.small_table(paid, CHARGE_SCHEMA),
            engine.small_table(price_rows([record("2.5")]), PRICE_SCHEMA),
        )
        assert pricing_report(engine, nothing) == {}


def test_a_price_counts_on_its_days_only():
    dated = record("2.5", valid_from=date(2026, 5, 4), valid_to=date(2026, 5, 5))
    assert cost(usage(), dated) == 20
    assert cost(usage(charge_period_start=datetime(2026, 5, 3, 23)), dated) is None
    assert cost(usage(charge_period_start=datetime(2026, 5, 5)), dated) is None


def test_the_same_region_and_provider_beat_any_and_others_do_not_answer():
    anywhere = record("5")
    here = record("3", provider="coreweave", region="us-east-04")
    there = record("1", provider="coreweave", region="us-west-01")
    another = record("1", provider="lambda")
    assert cost(usage(), anywhere, here, there, another) == 24
    assert cost(usage(region_id=None), anywhere, here, there, another) == 40
    assert cost(usage(), there, another) is None


def test_own_books_beat_feeds_and_these_the_shipped_list():
    own = record("5")
    fed = record("3", feed="aws", region="us-east-04")
    shipped = record("1", price_id=None, region="us-east-04")
    assert cost(usage(), own, fed, shipped) == 40
    assert cost(usage(), fed, shipped) == 24
    assert cost(usage(), shipped) == 8


def test_a_contract_beats_the_price_on_demand_and_spot_usage_takes_spot_prices_only():
    contract, on_demand = record("3", purchase="contract"), record("2")
    spot = record("1", purchase="spot")
    assert cost(usage(), contract, on_demand, spot) == 24
    assert cost(usage(pricing_category="Dynamic"), contract, on_demand, spot) == 8
    assert cost(usage(pricing_category="Dynamic"), contract, on_demand) is None


def test_the_price_of_the_charges_own_instance_type_comes_first():
    cheap, fitting = record("2", instance_type="b"), record("3", instance_type="gd-8xH100")
    assert cost(usage(x_instance_type="gd-8xh100"), cheap, fitting) == 24


def test_no_prices_at_all_leave_everything_unpriced():
    assert cost(usage()) is None


def test_a_row_never_becomes_two():
    same = [record("3", source="a"), record("3", source="b"), record("3", book="c")]
    assert len(charged(usage(), usage(), prices=price_rows(same))) == 2


@dataclass(frozen=True)
class Factors:
    quantity: Decimal
    price: Decimal


def decimals(whole_digits: int, *, least: str) -> st.SearchStrategy[Decimal]:
    top = Decimal(10) ** whole_digits - Decimal("0.1")
    exact = st.decimals(min_value=Decimal(least), max_value=top, places=18)
    small = st.decimals(min_value=Decimal(least), max_value=top, places=2)
    return st.one_of(exact, small)


EDGES = [
    Factors(Decimal("0.5"), Decimal("1e-18")),  # half a unit of the last place: to even
    Factors(Decimal("1.5"), Decimal("1e-18")),
    Factors(Decimal("-0.5"), Decimal("1e-18")),
    Factors(Decimal("-1.5"), Decimal("3e-18")),
    Factors(Decimal("999999999.899999999999999999"), Decimal("99999999.899999999999999999")),
    Factors(Decimal("0.0000000005"), Decimal("0.000000001")),
]
FACTORS = st.builds(Factors, quantity=decimals(9, least="-1000000"), price=decimals(8, least="0"))


@settings(max_examples=40, deadline=None)
@given(st.lists(FACTORS, min_size=1, max_size=60))
@example(EDGES)
def test_the_engines_products_equal_pythons_to_the_last_digit(pairs):
    factors = ibis.memtable(
        pa.table(
            {
                "number": pa.array(range(len(pairs))),
                "quantity": pa.array([pair.quantity for pair in pairs], pa.decimal128(27, 18)),
                "price": pa.array([pair.price for pair in pairs], pa.decimal128(27, 18)),
            }
        )
    )
    products = factors.mutate(x_product=product(factors.quantity, factors.price))
    found = ENGINE.to_pyarrow(products.order_by("number")).to_pylist()
    expected = [multiply(pair.quantity, pair.price) for pair in pairs]
    assert [row["x_product"] for row in found] == expected


def test_the_whole_way_from_row_to_cost_keeps_every_digit():
    rows, records = [], []
    for number, pair in enumerate(EDGES):
        rows.append(usage(x_accelerator_h=pair.quantity, region_id=f"r{number}"))
        price = Money(amount=pair.price, currency="USD")
        records.append(record("0", price=price, region=f"r{number}"))
    found = charged(*rows, prices=price_rows(records))
    expected = [multiply(pair.quantity, pair.price) for pair in EDGES]
    assert [row["billed_cost"] for row in found] == expected


def test_a_quantity_too_large_for_the_exact_product_is_unpriced_not_wrong():
    assert cost(usage(x_accelerator_h=Decimal(10) ** 9), record("1")) is None


@pytest.mark.django_db
def test_the_books_of_the_organisation_are_looked_up_with_the_shipped_list():
    add_price(operator(), price_wish("2.50", provider="coreweave"), book="Contract 12")
    fed = PriceBook.objects.create(organisation=builders.organisation(), name="fed")
    add_price(operator(), price_wish("9", provider="coreweave"), book="fed")
    PriceBook.objects.filter(pk=fed.pk).update(feed="gcp")

    rows = price_lookup(builders.organisation().pk)

    labels = {row["p_book"]: row["p_label"] for row in rows if row["p_provider"] == "coreweave"}
    assert labels[1].startswith("Contract 12")
    assert labels[3].startswith("fed")
    assert labels[5].startswith("Shipped list")
    assert {row["p_unit"] for row in rows} <= {"accelerator_h", "tb_month", "1000_requests", "gb"}
    (row,) = charged(usage(), prices=rows)
    assert row["billed_cost"] == 20


@pytest.mark.django_db
def test_only_prices_that_have_begun_are_looked_up():
    rows = price_lookup(builders.organisation().pk, on=date(2020, 1, 1))
    assert rows
    assert all(row["p_from"] <= date(2020, 1, 1) for row in rows)

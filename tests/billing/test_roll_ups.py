"""Roll-ups equal plain Decimal arithmetic to the last digit, whatever the lines and rules."""

from collections import defaultdict
from datetime import date
from decimal import Decimal, localcontext
from uuid import UUID, uuid5

import ibis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing.checks import verify
from billing.documents import cost_document
from billing.expressions import allocated, daily_costs, totals_by_currency
from billing.records import RuleRecord
from billing.selectors import cost_by_day, costs_grouped
from lake.engine import open_engine
from tests.billing.builders import (
    by,
    charge,
    costing,
    focus_csv,
    imported,
    in_month,
    organisation,
    total,
)

PROJECTS = [uuid5(UUID(int=0), name) for name in "abc"]
amounts = st.one_of(
    st.decimals(min_value=Decimal("-1e15"), max_value=Decimal("1e15"), places=18),
    st.sampled_from(
        [
            Decimal("1e-18"),
            Decimal("-1e-18"),
            Decimal(0),
            Decimal("99999999999999999.999999999999999999"),
            Decimal("-99999999999999999.999999999999999999"),
        ]
    ),
)
lines = st.fixed_dictionaries(
    {
        "amount": st.none() | amounts,
        "account": st.sampled_from(["a", "b", "c", None]),
        "tag": st.sampled_from([None, "x", "y"]),
        "resource": st.sampled_from(["r1", "r2", None]),
        "currency": st.sampled_from(["USD", "EUR"]),
        "day": st.integers(1, 3),
    }
)
rules = st.lists(
    st.tuples(
        st.sampled_from([("sub_account", ""), ("tag", "team"), ("resource", "")]),
        st.sampled_from(["a", "b", "x", "y", "r1", "*"]),
        st.sampled_from(PROJECTS),
    ),
    max_size=4,
)


def charges(engine, rows):
    """Typed charges in the engine, as staging leaves them."""
    texts = [
        "provider_name",
        "service_name",
        "service_category",
        "region_id",
        "charge_category",
        "x_cost_class",
        "x_accelerator",
    ]
    table = [
        {
            **dict.fromkeys(texts, "same"),
            "charge_period_start": f"2026-05-0{row['day']} 00:00:00",
            "billing_currency": row["currency"],
            "sub_account_id": row["account"],
            "resource_id": row["resource"],
            "tag": row["tag"],
            **dict.fromkeys(
                ["billed_cost", "effective_cost", "list_cost", "contracted_cost"], row["amount"]
            ),
            "x_accelerator_h": row["amount"],
        }
        for row in rows
    ]
    schema = {
        name: "decimal(38, 18)" if name.endswith("_cost") or name.endswith("_h") else "string"
        for name in table[0]
    }
    made = engine.small_table(table, schema)
    return made.mutate(
        charge_period_start=made.charge_period_start.cast("timestamp"),
        tags=ibis.ifelse(
            made.tag.isnull(),
            ibis.null("map<string, string>"),
            ibis.map(ibis.array([ibis.literal("team")]), ibis.array([made.tag])),
        ),
    ).drop("tag")


def project_of(row, wanted):
    """The oracle's own reading of the rules."""
    for (match, _key), value, project in wanted:
        has = {"sub_account": row["account"], "tag": row["tag"], "resource": row["resource"]}[match]
        if has is not None and value in ("*", has):
            return str(project)
    return None


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(lines, min_size=1, max_size=60), wanted=rules)
def test_daily_costs_are_the_exact_sum_of_their_lines(settings, rows, wanted):
    expected = defaultdict(list)
    for row in rows:
        key = (row["day"], project_of(row, wanted), row["account"], row["currency"])
        expected[key].append(row["amount"])
    records = tuple(
        RuleRecord(position=index, match=match, key=key, value=value, project_id=project)
        for index, ((match, key), value, project) in enumerate(wanted)
    )

    with open_engine() as engine:
        found = engine.rows(daily_costs(allocated(charges(engine, rows), records)))

    with localcontext(prec=100):
        sums = {
            key: None if None in parts else sum(parts, Decimal(0))
            for key, parts in expected.items()
        }
    assert {
        (row["day"].day, row["project_id"], row["sub_account_id"], row["billing_currency"]): row[
            "billed_cost"
        ]
        for row in found
    } == sums
    assert sum(row["rows"] for row in found) == len(rows)
    whole = [row for row in found if row["billed_cost"] is not None]
    assert all(row["billed_cost"] == row["accelerator_h"] for row in whole)


def test_totals_by_currency_are_exact():
    rows = [
        {
            "amount": Decimal(text),
            "account": "a",
            "tag": None,
            "resource": None,
            "currency": "USD",
            "day": 1,
        }
        for text in ["98765432109.99", "-98765432109.99", *["0.000000000001"] * 1000]
    ]

    with open_engine() as engine:
        (found,) = engine.rows(totals_by_currency(charges(engine, rows)))

    assert found["billed_cost"] == Decimal("0.000000001")


@pytest.mark.django_db(transaction=True)
def test_amounts_of_every_size_survive_the_whole_way():
    texts = [
        "0.000000000000000001",
        "-0.000000000000000001",
        "0",
        "-0.00",
        "98765432109.99",
        "-98765432109.99",
        "49999999999999999999.5",
        "-49999999999999999999.4",
        "1e-18",
        "12E2",
    ]

    imported(focus_csv([in_month("2026-05", BilledCost=text) for text in texts]))

    with localcontext(prec=100):
        assert total("billed") == sum((Decimal(text) for text in texts), Decimal(0))
    assert verify(organisation().pk) == []


@pytest.mark.django_db(transaction=True)
def test_a_cost_that_one_row_lacks_is_unknown_not_a_smaller_sum():
    lacking = charge(EffectiveCost="", ChargePeriodStart="2026-05-05T00:00:00Z")
    imported(focus_csv([costing("1"), lacking, costing("2", Tags="{}", RegionId="eu-west-1")]))
    may = {"start_on": date(2026, 5, 1), "end_on": date(2026, 6, 1)}
    pk = organisation().pk

    for group_by, costs in (
        (["day"], [Decimal(3), None]),
        (["month"], [None]),
        (["tag:x"], [None]),
        (["region_id"], [Decimal(2), None]),
    ):
        table = costs_grouped(pk, group_by=group_by, basis="effective", include_unallocated=True)
        assert [row.cost for row in table.rows] == costs
        assert [entry.cost for entry in table.total] == [None]
        assert cost_document(table)["total"] == [{"currency": "USD", "cost": None}]
    days = cost_by_day(pk, None, basis="effective", **may)
    assert [row.cost for row in days] == [Decimal(3), None]
    assert total("billed") == Decimal("4.10")
    assert verify(pk) == []


@pytest.mark.django_db(transaction=True)
def test_a_cost_that_is_missing_beside_others_of_its_day_is_unknown():
    imported(focus_csv([costing("1"), charge(ListCost="NULL")]))

    assert by("day", "list") == {"2026-05-04": None}
    assert by("day", "billed") == {"2026-05-04": Decimal("2.10")}
    assert verify(organisation().pk) == []

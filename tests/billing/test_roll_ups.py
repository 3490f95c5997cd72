"""Roll-ups equal plain Decimal arithmetic to the last digit, whatever the lines and rules."""

from collections import defaultdict
from decimal import Decimal, localcontext
from uuid import UUID, uuid5

import ibis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing.checks import verify
from billing.expressions import allocated, daily_costs, totals_by_currency
from billing.records import RuleRecord
from lake.engine import open_engine
from tests.billing.builders import focus_csv, imported, in_month, organisation, total

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
            key: sum((one for one in parts if one is not None), Decimal(0))
            if any(one is not None for one in parts)
            else None
            for key, parts in expected.items()
        }
    assert {
        (row["day"].day, row["project_id"], row["sub_account_id"], row["billing_currency"]): row[
            "billed_cost"
        ]
        for row in found
    } == sums
    assert sum(row["rows"] for row in found) == len(rows)
    assert all(row["billed_cost"] == row["accelerator_h"] for row in found)


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

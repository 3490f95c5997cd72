"""Roll-ups equal plain Decimal arithmetic to the last digit, whatever the lines and rules."""

from collections import defaultdict
from datetime import date
from decimal import Decimal, localcontext
from uuid import UUID, uuid5

import ibis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing.allocation_matching import position_of
from billing.allocation_shares import Shares
from billing.checks import largest_remainder, verify
from billing.columns import STORED_TYPES
from billing.documents import cost_document
from billing.expressions import DAILY_MEASURES, allocated, daily_costs, totals_by_currency
from billing.models import DailyCost
from billing.records import COST_COLUMNS, RuleCondition, RuleRecord, RuleTarget
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
conditions = st.builds(
    lambda where, what: RuleCondition(field=where[0], key=where[1], op=what[0], value=what[1]),
    st.sampled_from([("sub_account", ""), ("tag", "team"), ("resource", "")]),
    st.sampled_from(
        [
            ("is", "a"),
            ("is", "x"),
            ("is", "r1"),
            ("any", ""),
            ("absent", ""),
            ("one_of", "a\nx\nr2"),
            ("starts_with", "r"),
            ("matches", "^[abxr]"),
        ]
    ),
)
targets = st.lists(
    st.builds(
        RuleTarget,
        weight=st.decimals(min_value="0.000001", max_value=1000, places=6),
        project_id=st.none() | st.sampled_from(PROJECTS),
        team=st.sampled_from(["", "red", "blue"]),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda one: (one.project_id, one.team),
)
rules = st.lists(st.tuples(st.lists(conditions, min_size=1, max_size=2), targets), max_size=4).map(
    lambda found: tuple(
        RuleRecord(position=position, conditions=tuple(some), targets=tuple(whose))
        for position, (some, whose) in enumerate(found, start=1)
    )
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
    missing = {
        name: ibis.null(kind)
        for name, kind in STORED_TYPES.items()
        if name not in (*schema, "tags", "charge_period_start")
    }
    return made.mutate(
        **missing,
        charge_period_start=made.charge_period_start.cast("timestamp"),
        tags=ibis.ifelse(
            made.tag.isnull(),
            ibis.null("map<string, string>"),
            ibis.map(ibis.array([ibis.literal("team")]), ibis.array([made.tag])),
        ),
    ).drop("tag")


def as_stored(row):
    """The row as rules look at it, without an engine."""
    return {
        "sub_account_id": row["account"],
        "resource_id": row["resource"],
        "tags": None if row["tag"] is None else [("team", row["tag"])],
    }


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(lines, min_size=1, max_size=60), wanted=rules)
def test_daily_costs_are_the_exact_shares_of_the_sum_of_their_lines(settings, rows, wanted):
    expected = defaultdict(list)
    for row in rows:
        position = position_of(as_stored(row), wanted)
        key = (row["day"], position, row["account"], row["tag"] is not None, row["currency"])
        expected[key].append(row["amount"])
    shares = Shares(wanted)

    with open_engine() as engine:
        found = engine.rows(daily_costs(allocated(charges(engine, rows), wanted)))

    measures = (*COST_COLUMNS, *DAILY_MEASURES)
    parts = [
        part
        for row in found
        for part in shares.shared(row, measures, position=row["rule_position"])
    ]
    with localcontext(prec=100):
        sums = {
            key: None if None in some else sum(some, Decimal(0)) for key, some in expected.items()
        }
        assert {_key(row): row["billed_cost"] for row in found} == sums
        by_group = defaultdict(list)
        for part in parts:
            by_group[_key(part)].append(part["billed_cost"])
        for key, amounts in by_group.items():
            targets = wanted[key[1] - 1].targets if key[1] else (RuleTarget(),)
            assert len(amounts) == len(targets)
            assert (sums[key] is None) is (None in amounts)
            if sums[key] is not None:
                assert sum(amounts, Decimal(0)) == sums[key]
            assert amounts == largest_remainder(sums[key], [one.weight for one in targets])
    assert sum(row["rows"] for row in parts) == len(rows)
    whole = [row for row in parts if row["billed_cost"] is not None]
    assert all(row["billed_cost"] == row["accelerator_h"] for row in whole)


def _key(row):
    return (
        row["day"].day,
        row["rule_position"],
        row["sub_account_id"],
        row["has_tags"],
        row["billing_currency"],
    )


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


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(lines, min_size=1, max_size=60), wanted=rules)
def test_tables_of_shares_hold_what_each_row_is_shared_into(settings, rows, wanted):
    shares, measures = Shares(wanted), (*COST_COLUMNS, *DAILY_MEASURES)

    with open_engine() as engine:
        summed = engine.arrow(daily_costs(allocated(charges(engine, rows), wanted)))

    by_table = [
        row for table in shares.shared_tables(summed, measures) for row in table.to_pylist()
    ]
    by_row = [
        {**part, "project_id": part["project_id"] and str(part["project_id"])}
        for row in summed.to_pylist()
        for part in shares.shared(row, measures, position=row["rule_position"])
    ]
    assert sorted(by_table, key=repr) == sorted(by_row, key=repr)


@pytest.mark.django_db(transaction=True)
def test_words_of_any_kind_reach_the_roll_up_as_they_are():
    words = ['a "quoted", word', "two\nlines", "\\N", "\\.", "a\tb", "NULL ", "é日本", "'", "\\"]

    imported(focus_csv([in_month("2026-05", ServiceName=word) for word in words]))

    stored = set(DailyCost.objects.values_list("service_name", flat=True))
    assert stored == set(words)
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

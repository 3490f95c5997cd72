"""Shares add up to what was shared, and every question agrees with the roll-up exactly."""

import random
from collections import defaultdict
from decimal import Decimal, localcontext
from uuid import UUID, uuid5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.allocation_shares import Shares, shared_parts
from billing.allocation_wishes import RuleWish, TargetWish
from billing.checks import largest_remainder, verify
from billing.records import RuleCondition, RuleRecord, RuleTarget
from billing.selectors import costs_grouped
from tests.billing.builders import (
    costing,
    focus_csv,
    imported,
    in_force,
    organisation,
    rule,
)
from tests.builders import project

amounts = st.decimals(min_value=Decimal("-1e15"), max_value=Decimal("1e15"), places=18)
weights = st.lists(
    st.decimals(min_value=Decimal("0.000001"), max_value=Decimal("1e9"), places=6),
    min_size=1,
    max_size=6,
)


def shares_of(some):
    """The shares of one rule at position 1."""
    targets = tuple(
        RuleTarget(weight=weight, project_id=uuid5(UUID(int=0), str(index)))
        for index, weight in enumerate(some)
    )
    return Shares([RuleRecord(position=1, targets=targets)])


@settings(max_examples=400, deadline=None, derandomize=True)
@given(amount=amounts, some=weights)
def test_shares_sum_to_the_amount_and_are_those_of_the_plain_way(amount, some):
    parts = shares_of(some).split(1, amount)

    with localcontext(prec=100):
        assert sum(parts, Decimal(0)) == amount
        assert parts == largest_remainder(amount, some)
        whole = sum(some, Decimal(0))
        for part, weight in zip(parts, some, strict=True):
            assert abs(part - amount * weight / whole) < Decimal("1e-18")


@settings(max_examples=300, deadline=None, derandomize=True)
@given(parts=st.lists(st.none() | amounts, min_size=1, max_size=12), some=weights)
def test_shares_of_parts_sum_to_the_parts_and_to_the_shares_of_the_whole(parts, some):
    shares = shares_of(some)
    rows = [{"rule_position": 1, "cost": part, "rows": 1, "n": n} for n, part in enumerate(parts)]

    found = list(shared_parts(rows, shares, groups=["rule_position"], measures=["cost"]))

    by_part, by_target = defaultdict(list), defaultdict(list)
    for row in found:
        by_part[row["n"]].append(row["cost"])
        by_target[row["project_id"]].append(row["cost"])
    with localcontext(prec=100):
        for index, part in enumerate(parts):
            assert len(by_part[index]) == len(some)
            if part is None:
                assert set(by_part[index]) == {None}
            else:
                assert sum(by_part[index], Decimal(0)) == part
        known = [part for part in parts if part is not None]
        if known:
            columns = [
                sum((one for one in column if one is not None), Decimal(0))
                for column in by_target.values()
            ]
            assert columns == shares.split(1, sum(known, Decimal(0)))
    assert sum(row["rows"] for row in found) == len(parts)


GROUPINGS = [
    ["tag:team"],
    ["tag:team", "project"],
    ["resource_id", "team"],
    ["tag:env", "day"],
    ["sku_id", "project", "plan_line_key"],
    ["x_source_file", "rule_position"],
]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seed", [1, 2])
def test_every_grouping_of_the_lake_adds_up_to_the_roll_up(seed):
    pick = random.Random(seed)
    for slug in ("moe", "dense", "vision"):
        project(slug)
    bills = [_some_rows(pick, 60) for _bill in range(2)]
    imported(focus_csv(bills[0]), source="aws")
    imported(focus_csv(bills[1]), source="reseller")
    in_force(*_split_rules())
    pk = organisation().pk
    by_project = _costs(pk, ["project"])
    assert len(by_project) == 4

    for group_by in GROUPINGS:
        for slug, cost in by_project.items():
            table = costs_grouped(
                pk,
                group_by=group_by,
                basis="billed",
                include_unallocated=True,
                filters=[f"project={slug or ''}"],
            )
            assert [entry.cost for entry in table.total] == [cost], (group_by, slug)
        table = costs_grouped(pk, group_by=group_by, basis="billed", include_unallocated=True)
        (whole,) = table.total
        assert whole.cost == sum(Decimal(row["BilledCost"]) for rows in bills for row in rows)
        assert whole.rows == 120
    assert _costs(pk, ["project", "tag:team"]) == _costs(pk, ["tag:team", "project"], turned=True)
    assert verify(pk) == []


def _some_rows(pick, count):
    """Rows with awkward amounts, of a few days, tags, resources and regions."""
    return [
        costing(
            str(Decimal(pick.randint(-(10**20), 10**20)).scaleb(-18)),
            SubAccountId=pick.choice(["alpha", "beta", ""]),
            RegionId=pick.choice(["us-west-2", "eu-west-1"]),
            ResourceId=pick.choice(["r-1", "r-2", "r-3", ""]),
            SkuId=pick.choice(["s-1", "s-2"]),
            ChargePeriodStart=f"2026-05-0{pick.randint(1, 3)}T00:00:00Z",
            Tags=pick.choice(["", '{"team": "x"}', '{"team": "y", "env": "prod"}']),
        )
        for _row in range(count)
    ]


def _split_rules():
    return (
        rule(
            "sub_account",
            "alpha",
            "",
            targets=[
                TargetWish(project="moe", weight=Decimal(3), team="pre"),
                TargetWish(project="dense", weight=Decimal("1.7"), plan_line_key="main_run"),
                TargetWish(weight=Decimal("2.3")),
            ],
        ),
        RuleWish(
            conditions=(
                RuleCondition(field="source", value="reseller"),
                RuleCondition(field="tag", key="team", op="any"),
            ),
            targets=(TargetWish(project="vision"), TargetWish(project="moe")),
        ),
        rule("region", "eu", "dense", op="starts_with"),
    )


def _costs(pk, group_by, *, turned=False):
    table = costs_grouped(pk, group_by=group_by, basis="billed", include_unallocated=True)
    groups = {row.group[::-1] if turned else row.group: row.cost for row in table.rows}
    return groups if len(group_by) > 1 else {key[0]: cost for key, cost in groups.items()}

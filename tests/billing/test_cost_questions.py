"""Any question gets one answer: roll-up, lake, rows and export add up to the same total."""

import csv
import io
import random
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pyarrow.parquet as pq
import pytest

from billing.allocation_wishes import TargetWish
from billing.charge_rows import charge_rows
from billing.charge_selectors import stack_of
from billing.cost_questions import (
    ROLL_UP_COLUMNS,
    Filter,
    QuestionError,
    Scope,
    make_question,
    question_in,
    read_filters,
    written,
    written_filters,
)
from billing.cost_records import MEASURES, total_of
from billing.cost_selectors import cost_table, shelf_of
from billing.exporting import export_charges
from billing.lake_costs import costs_from_lake
from billing.records import Basis
from projects.models import Project
from projects.records import Scope as Scopes
from projects.records import TokenReach
from tests import builders
from tests.billing.builders import costing, focus_csv, imported, in_force, organisation, rule

REGIONS = ("us-west-2", "eu-west-1", "")
TEAMS = ("vision", "speech", "=odd,key!", None)
ACCOUNTS = ("a", "b", "c")
COLUMNS = (
    "x_cost_class",
    "region_id",
    "sub_account_id",
    "day",
    "month",
    "project",
    "team",
    "service_name",
    "charge_category",
    "x_estimated",
    "rule_position",
)
LAKE_COLUMNS = ("tag:team", "sku_id", "resource_id", "charge_frequency", "invoice_id")


def bill(dice: random.Random) -> bytes:
    rows = []
    for _number in range(60):
        team = dice.choice(TEAMS)
        day = dice.randint(1, 4)
        rows.append(
            costing(
                dice.choice(["1", "-0.3", "0.000000000000000001", "12345.678901234567890123"]),
                RegionId=dice.choice(REGIONS),
                SubAccountId=dice.choice(ACCOUNTS),
                ServiceName=dice.choice(["AmazonEC2", "AmazonS3"]),
                ChargeCategory=dice.choice(["Usage", "Usage", "Credit", "Tax"]),
                SkuId=dice.choice(["s1", "s2", ""]),
                SkuMeter=dice.choice(["BoxUsage:p5.48xlarge", "", "Requests-Tier2"]),
                ResourceId=dice.choice(["r1", "r2", ""]),
                ChargePeriodStart=f"2026-05-0{day}T00:00:00Z",
                ChargePeriodEnd=f"2026-05-0{day}T01:00:00Z",
                Tags="" if team is None else f'{{"team": "{team}"}}',
            )
        )
    return focus_csv(rows)


@pytest.fixture
def books(transactional_db):
    """A bill and rules that give some to one project, share some, and leave some to nobody."""
    organisation()
    builders.project("moe")
    builders.project("dense")
    imported(bill(random.Random(7)))
    shares = [TargetWish(project="moe", team="a"), TargetWish(project="dense", weight=Decimal(2))]
    in_force(
        rule("sub_account", "a", "moe"),
        rule("sub_account", "b", "", targets=shares),
    )
    return organisation().pk


def questions(dice: random.Random, columns, filters):
    """A question made by chance."""
    found = make_question(
        group_by=dice.sample(columns, dice.randint(0, 3)),
        basis=dice.choice(list(Basis)).value,
        days=dice.choice([(None, None), (date(2026, 5, 2), None), (None, date(2026, 5, 3))]),
        scope=Scope(),
    )
    wanted = tuple(dice.sample(filters, dice.randint(0, 2)))
    return replace(found, filters=wanted)


FILTERS = (
    Filter(column="region_id", values=("us-west-2",)),
    Filter(column="region_id", values=(None,)),
    Filter(column="region_id", values=("us-west-2", None), is_not=True),
    Filter(column="sub_account_id", values=("a", "b")),
    Filter(column="project", values=("moe",)),
    Filter(column="project", values=(None,)),
    Filter(column="project", values=("dense",), is_not=True),
    Filter(column="team", values=("a",)),
    Filter(column="month", values=("2026-05",)),
    Filter(column="day", values=("2026-05-03", "20260503")),
    Filter(column="x_estimated", values=("false",)),
    Filter(column="charge_category", values=("Usage",)),
    Filter(column="rule_position", values=("1", None)),
)
LAKE_FILTERS = (
    Filter(column="tag:team", values=("vision", None)),
    Filter(column="tag:team", values=("=odd,key!",), is_not=True),
    Filter(column="sku_id", values=("s1",)),
    Filter(column="resource_id", values=(None,)),
)


def test_the_roll_up_and_the_lake_give_the_same_answer_to_any_question(books):
    dice = random.Random(11)
    for _number in range(40):
        question = questions(dice, COLUMNS, FILTERS)

        table = cost_table(books, question)

        assert not question.needs_lake
        assert list(table.rows) == costs_from_lake(shelf_of(books, question), question), question
        assert table.total == total_of(table.rows)


def test_groups_rows_and_export_add_up_to_the_total_of_any_question(books, tmp_path):
    dice = random.Random(13)
    for number in range(12):
        question = questions(dice, (*COLUMNS, *LAKE_COLUMNS), (*FILTERS, *LAKE_FILTERS))
        whole = cost_table(books, replace(question, group_by=()))
        amount = whole.total[0].cost if whole.total else Decimal(0)

        table = cost_table(books, question)
        listed = charge_rows(stack_of(books, question), question, limit=100, offset=0)
        target = tmp_path / f"{number}.parquet"
        rows = export_charges(books, question, kind="parquet", target=target)

        shared = any(row["share"] is not None for row in listed.rows)
        exact = not (shared and question.needs_lake)  # parts of a shared sum: see methodology
        assert listed.count == rows, question
        exported = sum(pq.read_table(target)[_name(question)].to_pylist(), Decimal(0))
        assert abs(exported - amount) <= (0 if exact else Decimal("1e-15")), question
        grouped = sum((row.cost for row in table.rows), Decimal(0))
        assert abs(grouped - amount) <= (0 if exact else Decimal("1e-15")), question
        if not shared:
            assert sum((row["cost"] for row in listed.rows), Decimal(0)) == amount, question
        assert sum(row.rows for row in table.rows) == sum(one.rows for one in whole.total)


def _name(question) -> str:
    return {"billed": "BilledCost", "effective": "EffectiveCost", "list": "ListCost"}.get(
        question.basis.value, "ContractedCost"
    )


def test_measures_stand_beside_the_cost_from_roll_up_and_lake_alike(books):
    question = make_question(group_by=["x_cost_class"], basis="billed", scope=Scope())

    table = cost_table(books, question)

    accelerators = next(row for row in table.rows if row.group == ("accelerator",))
    assert accelerators.accelerator_h is not None
    assert accelerators.accelerator_h % 8 == 0
    assert sum(row.rows for row in table.rows) == 60
    for name in MEASURES:
        assert all(getattr(row, name) is None or getattr(row, name) >= 0 for row in table.rows)


def test_a_question_is_written_as_it_is_read():
    filters = ["region_id=us", "region_id=", "tag:a=b%3D1!=x=y", "sub_account_id!=1"]
    texts = ["tag:a%3Db=1=2", "tag:wow%21=x", "tag:x%2Cy%25=", *filters[:2], filters[3]]
    question = make_question(
        group_by=["tag:x%2Cy", "day"], basis="list", filters=texts, scope=Scope()
    )
    parameters: dict[str, list[str]] = {}
    for key, value in written(question):
        parameters.setdefault(key, []).append(value)

    again = question_in(parameters, Scope())

    assert again == question
    assert question.group_by == ("tag:x,y", "day")
    assert question.filters[0] == Filter(column="tag:a=b", values=("1=2",))
    assert question.filters[3] == Filter(column="region_id", values=("us", None))
    assert read_filters(written_filters(question.filters)) == question.filters


@pytest.mark.parametrize(
    ("part", "asked"),
    [
        ("group_by", {"group_by": ["colour"]}),
        ("group_by", {"group_by": ["tag:"]}),
        ("group_by", {"group_by": [",".join(ROLL_UP_COLUMNS[:7])]}),
        ("basis", {"basis": ["blended"]}),
        ("filter", {"filter": ["colour=red"]}),
        ("filter", {"filter": ["no sign"]}),
        ("filter", {"filter": ["region_id=\x00"]}),
        ("filter", {"filter": [f"region_id={number}" for number in range(50)]}),
        ("month", {"month": ["2026-13"]}),
        ("from", {"from": ["2026-06-01"], "to": ["2026-05-01"]}),
        ("to", {"to": ["31/02/2026"]}),
    ],
)
def test_what_cannot_be_asked_names_the_part_that_is_wrong(part, asked):
    with pytest.raises(QuestionError) as refused:
        question_in(asked, Scope())

    assert refused.value.field == part


def test_the_api_asks_the_same_questions_and_sends_the_same_file(books):
    client = builders.with_token(builders.token(Scopes.READ_COSTS))
    asked = {"group_by": "region_id", "filter": ["sub_account_id=a", "sub_account_id=c"]}
    question = question_in(
        {key: [one] if isinstance(one, str) else one for key, one in asked.items()}, Scope()
    )
    expected = cost_table(books, question)

    answer = client.get("/api/v1/costs", asked).json()
    export = client.get("/api/v1/charges/export", {"filter": asked["filter"], "as": "csv"})
    refused = client.get("/api/v1/costs", {"filter": "colour=red"})

    assert Decimal(answer["total"][0]["cost"]) == expected.total[0].cost
    lines = list(csv.DictReader(io.StringIO(b"".join(export).decode())))
    assert sum(Decimal(line["BilledCost"]) for line in lines) == expected.total[0].cost
    assert refused.status_code == 400
    stranger = builders.with_token(builders.token(Scopes.INGEST_POWER))
    assert stranger.get("/api/v1/charges/export").status_code == 403


def test_a_token_of_a_project_reads_that_projects_costs_only(books):
    moe = Project.objects.get(slug="moe")
    reach = TokenReach(project_slug="moe")
    client = builders.with_token(builders.token(Scopes.READ_COSTS, reach=reach))
    own = make_question(group_by=(), basis="billed", scope=Scope(project_id=moe.pk))

    everything = client.get("/api/v1/costs").json()
    other = client.get("/api/v1/charges/export", {"project": "dense"})

    assert Decimal(everything["total"][0]["cost"]) == cost_table(books, own).total[0].cost
    assert other.status_code == 404

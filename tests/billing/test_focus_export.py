"""What goes out as FOCUS: exact names, order, types and sums; and comes back the same."""

import csv
import io
import json
import re
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command

from billing.columns import BY_NAME
from billing.cost_questions import Scope, make_question
from billing.cost_selectors import cost_table
from billing.exporting import export_charges
from billing.focus_columns import EXPORT_COLUMNS, FOCUS_COLUMNS
from billing.records import COST_COLUMNS, Kind
from tests.billing.builders import charge, costing, focus_csv, imported, organisation, total

pytestmark = pytest.mark.django_db(transaction=True)
SAMPLE = Path(__file__).parent.parent / "samples" / "billing" / "focus_1_0_traps.csv"
COSTS = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")


@pytest.fixture(autouse=True)
def _organisation():
    organisation()


def exported(tmp_path: Path, *filters: str, kind: str = "csv", **asked) -> list[dict[str, str]]:
    """The rows of an export."""
    question = make_question(
        group_by=(), basis="billed", filters=filters, scope=asked.pop("scope", Scope()), **asked
    )
    target = tmp_path / f"export.{kind}"
    rows = export_charges(organisation().pk, question, kind=kind, target=target)
    if kind == "parquet":
        found = pq.read_table(target).to_pylist()
    else:
        found = list(csv.DictReader(io.StringIO(target.read_text("utf-8"))))
    assert rows == len(found)
    return found


def sum_of(rows, column="BilledCost") -> Decimal:
    return sum((Decimal(row[column]) for row in rows), Decimal(0))


def test_the_columns_are_those_of_focus_1_2_in_its_order(tmp_path):
    imported(focus_csv([charge()]))

    (row,) = exported(tmp_path)

    assert len(FOCUS_COLUMNS) == 57
    assert list(row) == list(EXPORT_COLUMNS)
    assert list(FOCUS_COLUMNS) == sorted(FOCUS_COLUMNS)
    assert all(name.startswith("x_") for name in list(row)[57:])


def test_texts_numbers_and_times_are_written_as_focus_wants(tmp_path):
    imported(
        focus_csv(
            [
                costing("1E-18", ChargeFrequency="Usage-based", Tags='{"a": "b\\"c"}'),
                costing("-12345678901234567890.5", PublisherName="", InvoiceIssuerName=""),
                costing("100", Tags="{}", ServiceSubcategory=""),
            ]
        )
    )

    rows = sorted(exported(tmp_path), key=lambda row: Decimal(row["BilledCost"]))

    assert [row["BilledCost"] for row in rows] == [
        "-12345678901234567890.5",
        "0.000000000000000001",
        "100.0",
    ]
    for row in rows:
        for theirs, ours in FOCUS_COLUMNS.items():
            kind, text = BY_NAME[ours].kind, row[theirs]
            if kind in (Kind.MONEY, Kind.QUANTITY) and text:
                assert re.fullmatch(r"-?[0-9]+\.([0-9]*[1-9]|0)", text)
            if kind is Kind.INSTANT:
                assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text)
            if kind is Kind.ENUM and text:
                assert text in BY_NAME[ours].values
        for mandatory in ("PublisherName", "InvoiceIssuerName", "ServiceSubcategory", *COSTS):
            assert row[mandatory]
    assert json.loads(rows[1]["Tags"]) == {"a": 'b"c'}
    assert rows[2]["Tags"] == ""
    assert rows[0]["InvoiceIssuerName"] == rows[0]["ProviderName"] == "AWS"
    assert rows[0]["x_FilledColumns"].split()[:2] == ["PublisherName", "InvoiceIssuerName"]
    assert rows[2]["ServiceSubcategory"] == "Other (Compute)"


def test_what_a_credit_lacks_follows_from_what_is_billed_and_is_named(tmp_path):
    lacking = {"ListCost": "", "ContractedCost": "", "ChargeCategory": "Credit"}
    imported(focus_csv([{**costing("-2"), **lacking}]))

    (row,) = exported(tmp_path)

    assert row["ListCost"] == row["ContractedCost"] == "-2.0"
    assert {"ListCost", "ContractedCost"} <= set(row["x_FilledColumns"].split())


def test_abbreviated_units_are_spelled_as_focus_spells_them(tmp_path):
    imported(focus_csv([charge(PricingUnit="Hrs", ConsumedUnit="GB-Mo")]))

    (row,) = exported(tmp_path)

    assert (row["PricingUnit"], row["ConsumedUnit"]) == ("Hours", "GB-Months")


def test_an_issuer_of_the_providers_own_group_is_the_provider(tmp_path):
    imported(
        focus_csv(
            [
                charge(InvoiceIssuerName="Amazon Web Services EMEA SARL"),
                charge(InvoiceIssuerName="A reseller"),
            ]
        )
    )

    found = {(row["InvoiceIssuerName"], row["x_InvoiceIssuerName"]) for row in exported(tmp_path)}

    assert found == {("AWS", "Amazon Web Services EMEA SARL"), ("A reseller", "A reseller")}


def test_a_text_that_a_spreadsheet_would_run_is_made_harmless_and_numbers_stay(tmp_path):
    imported(focus_csv([costing("-3", ResourceId="=cmd|' /C calc'!A0", SkuMeter="@x")]))

    (row,) = exported(tmp_path)

    assert row["ResourceId"] == "'=cmd|' /C calc'!A0"
    assert row["SkuMeter"] == "'@x"
    assert row["BilledCost"] == "-3.0"
    (plain,) = exported(tmp_path, kind="parquet")
    assert plain["ResourceId"] == "=cmd|' /C calc'!A0"
    assert plain["BilledCost"] == Decimal(-3)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_importing_our_own_export_gives_the_same_totals(tmp_path, kind):
    imported(SAMPLE.read_bytes())
    target = tmp_path / f"out.{kind}"
    before = {basis: total(basis) for basis in ("billed", "effective", "list")}
    classes = costs_by_class()
    question = make_question(group_by=(), basis="billed", scope=Scope())
    export_charges(organisation().pk, question, kind=kind, target=target)

    delivery = imported((target.name, target.read_bytes()))

    assert delivery.state == "published", delivery.refusal
    assert {basis: total(basis) for basis in before} == before
    assert costs_by_class() == classes


def costs_by_class():
    question = make_question(group_by=["x_cost_class", "day"], basis="billed", scope=Scope())
    return [(row.group, row.cost, row.rows) for row in cost_table(organisation().pk, question).rows]


def test_credits_and_refunds_keep_their_sign(tmp_path):
    rows = [
        costing("-5.25", ChargeCategory="Credit"),
        costing("-1.10", ChargeCategory="Adjustment", ChargeDescription="Refund"),
    ]
    imported(focus_csv(rows))

    found = exported(tmp_path)
    imported(("again.csv", (tmp_path / "export.csv").read_bytes()))

    assert sum_of(found) == total() == Decimal("-6.35")


def test_an_export_holds_the_filtered_charges_and_no_others(tmp_path):
    imported(
        focus_csv(
            [
                costing("1", Tags='{"team": "a"}'),
                costing("2", Tags='{"team": "b"}', RegionId="eu-west-1"),
                costing("4", ChargePeriodStart="2026-05-09T00:00:00Z"),
            ]
        )
    )

    assert sum_of(exported(tmp_path, "tag:team=a", "tag:team=b")) == 3
    assert sum_of(exported(tmp_path, "tag:team=")) == 4
    assert sum_of(exported(tmp_path, "tag:team!=a")) == 6
    assert sum_of(exported(tmp_path, "region_id=us-west-2")) == 5
    assert sum_of(exported(tmp_path, days=(date(2026, 5, 9), None))) == 4
    assert exported(tmp_path, "region_id=nowhere") == []


def test_the_command_writes_the_file_and_says_how_many(tmp_path, capsys):
    imported(focus_csv([charge(), charge()]))
    target = tmp_path / "out.csv"

    call_command("export", "charges", "--out", str(target), "--json")

    document = json.loads(capsys.readouterr().out)
    assert document["rows"] == 2
    assert len(target.read_text().splitlines()) == 3
    with pytest.raises(CommandError, match="filtered by"):
        call_command("export", "charges", "--out", str(target), "--where", "colour=red")


def test_every_cost_column_reconciles(tmp_path):
    imported(focus_csv([costing("0.1"), charge(BilledCost="0", EffectiveCost="7.5")]))

    rows = exported(tmp_path)

    for theirs, ours in zip(COSTS, COST_COLUMNS, strict=True):
        assert sum_of(rows, theirs) == total(ours.removesuffix("_cost"))

"""What each provider's lines mean: categories, the four costs, quantities, commitments."""

import io
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from billing.models import BillingPeriod, Delivery
from billing.records import COST_COLUMNS
from tests.billing.builders import by, costing, imported, total
from tests.billing.format_samples import BY_FILE, csv_of, published_charges

pytestmark = pytest.mark.django_db(transaction=True)


def lines_of(file: str, content: bytes | None = None) -> dict[int, list[dict[str, Any]]]:
    """The charges that a file becomes, by the line that states them, from 1."""
    delivery = imported(("bill.csv", content or BY_FILE[file].content))
    assert delivery.state == Delivery.State.PUBLISHED, delivery.refusal
    found: dict[int, list[dict[str, Any]]] = {}
    _schema, charges = published_charges()
    for row in charges:
        row["tags"] = dict(row["tags"] or ())
        found.setdefault(row["x_source_row"] - 1, []).append(row)
    return found


def costs(row: dict[str, Any]) -> tuple[Decimal | None, ...]:
    """Billed, effective, list, contracted."""
    return tuple(row[name] for name in COST_COLUMNS)


def exact(*texts: str | None) -> tuple[Decimal | None, ...]:
    return tuple(None if text is None else Decimal(text) for text in texts)


AWS = {  # line -> category, costs, class, accelerator hours
    1: ("Usage", ("110.08", "110.08", "110.08", "110.08"), "accelerator", "16"),
    2: ("Usage", ("550.40", "330.20", "550.40", "550.40"), "accelerator", "80"),
    3: ("Usage", ("-550.40", "0", "0", "0"), "accelerator", None),
    4: ("Purchase", ("350", "19.80", "350", "350"), "commitment", None),
    5: ("Purchase", ("1000", "0", "1000", "1000"), "commitment", None),
    6: ("Usage", ("0", "10.2096", "17.016", None), "accelerator", "12"),
    7: ("Purchase", ("2200", "10.25", "2200", "2200"), "commitment", None),
    8: ("Purchase", ("500", "0", "500", "500"), "commitment", None),
    9: ("Purchase", ("15000",) * 4, "support", None),
    10: ("Tax", ("11.01",) * 4, "tax", None),
    11: ("Credit", ("-100.000000000000000001",) * 4, "credit", None),
    12: ("Adjustment", ("-5.5",) * 4, "refund", None),
    13: ("Adjustment", ("-6.6",) * 4, "discount", None),
    14: ("Adjustment", ("-0.25",) * 4, "discount", None),
    15: ("Usage", ("275.20",) * 4, "accelerator", "40"),
    16: ("Usage", ("0.4",) * 4, "request_get", None),
    17: ("Usage", ("23.5635",) * 4, "storage_object", None),
    18: ("Usage", ("0.9449999999999999",) * 4, "egress", None),
    19: ("Usage", ("0.14",) * 4, "transfer_inter_region", None),
    20: ("Usage", ("0.03",) * 4, "transfer_intra_region", None),
    21: ("Usage", ("8",) * 4, "storage_block", None),
    22: ("Usage", ("2.5",) * 4, "other", None),
}


@pytest.mark.parametrize("file", ["aws_cur_legacy.csv", "aws_cur_2.csv"])
def test_aws_lines_follow_the_amortised_cost_rules_in_both_reports(file):
    lines = lines_of(file)

    for number, (category, stated, cost_class, hours) in AWS.items():
        (row,) = lines[number]
        assert row["charge_category"] == category, number
        assert costs(row) == exact(*stated), number
        assert row["x_cost_class"] == cost_class, number
        assert row["x_accelerator_h"] == (None if hours is None else Decimal(hours)), number
    first, covered, fee, unused = (lines[number][0] for number in (1, 2, 7, 15))
    assert first["tags"] == {"project": "atlas-70b"}
    assert first["service_name"] == "Amazon Elastic Compute Cloud"
    assert (first["region_id"], first["availability_zone"]) == ("us-west-2", "us-west-2a")
    assert (first["billing_account_id"], first["sub_account_id"]) == ("111111111111", "2" * 12)
    assert covered["commitment_discount_status"] == "Used"
    assert covered["commitment_discount_category"] == "Spend"
    assert fee["commitment_discount_quantity"] == 4
    assert fee["x_idle_accelerator_h"] == 16
    assert unused["capacity_reservation_status"] == "Unused"
    assert unused["x_idle_accelerator_h"] == 40


def test_net_columns_of_aws_win_over_the_others():
    rows = BY_FILE["aws_cur_legacy.csv"].rows()[:4]
    rows[0]["lineItem/NetUnblendedCost"] = "99.5"
    rows[1]["savingsPlan/NetSavingsPlanEffectiveCost"] = "300"
    rows[3]["savingsPlan/NetRecurringCommitmentForBillingPeriod"] = "315"
    rows[3]["savingsPlan/UsedCommitment"] = "175"

    lines = lines_of("", csv_of(rows))

    assert costs(lines[1][0])[:2] == exact("110.08", "99.5")
    assert costs(lines[2][0])[:2] == exact("550.40", "300")
    assert costs(lines[4][0])[:2] == exact("350", "157.5")


def test_the_unused_net_part_of_a_savings_plan_is_exact():
    rows = BY_FILE["aws_cur_legacy.csv"].rows()[:4]
    rows[1]["savingsPlan/NetSavingsPlanEffectiveCost"] = "1800000"
    fee = {"RecurringCommitmentForBillingPeriod": "3000000", "UsedCommitment": "2000000"}
    fee |= {"NetRecurringCommitmentForBillingPeriod": "2700000"}
    fee |= {"AmortizedUpfrontCommitmentForBillingPeriod": "0"}
    rows[3] |= {f"savingsPlan/{name}": text for name, text in fee.items()}
    third = {**rows[3], "savingsPlan/UsedCommitment": "2999999"}  # 0.9
    huge = {**rows[3], "savingsPlan/NetRecurringCommitmentForBillingPeriod": "2000000000"}

    lines = lines_of("", csv_of([*rows, third, huge]))

    paid = [lines[number][0]["effective_cost"] for number in (2, 4)]
    assert sum(paid) == Decimal(2_700_000)
    assert lines[5][0]["effective_cost"] == Decimal("0.9")
    assert lines[6][0]["effective_cost"] is None  # unknown rather than the gross amount
    assert lines[4][0]["commitment_discount_status"] == "Unused"


def test_tags_of_aws_with_one_short_key_keep_their_full_keys():
    rows = BY_FILE["aws_cur_2.csv"].rows()[:2]
    rows[0]["resource_tags"] = '{"user_team":"a","team":"b","user_env":"c"}'
    rows[1]["resource_tags"] = '{"user_team":"a","user:team":"b"}'

    lines = lines_of("", csv_of(rows))

    assert lines[1][0]["tags"] == {"user_team": "a", "team": "b", "env": "c"}
    assert lines[2][0]["tags"] == {"user_team": "a", "user:team": "b"}


def test_tag_columns_of_aws_with_one_short_key_keep_their_full_keys():
    rows = BY_FILE["aws_cur_legacy.csv"].rows()[:1]
    rows[0] |= {"resourceTags/user:team": "a", "resourceTags/team": "b", "resourceTags/x": "y"}

    (row,) = lines_of("", csv_of(rows))[1]

    tags = {key: row["tags"][key] for key in ("user:team", "team", "x")}
    assert tags == {"user:team": "a", "team": "b", "x": "y"}


def test_a_report_without_the_commitment_columns_leaves_their_effective_cost_unknown():
    rows = BY_FILE["aws_cur_legacy.csv"].rows()
    columns = [name for name in rows[0] if not name.startswith(("savingsPlan/", "reservation/"))]

    lines = lines_of("", csv_of(rows, columns))

    assert costs(lines[1][0])[1] == Decimal("110.08")
    assert costs(lines[2][0])[1] is None
    assert costs(lines[6][0])[1] is None
    report = Delivery.objects.get().report
    assert "savingsPlan/SavingsPlanEffectiveCost" in report["missing_columns"]


@pytest.mark.parametrize("file", ["gcp_standard.csv", "gcp_detailed.csv"])
def test_google_lines_keep_their_gross_cost_and_each_credit_is_a_line(file):
    lines = lines_of(file)

    usage, discount, trial = lines[1]
    assert costs(usage) == exact("78.4", "78.4", "88", "78.4")
    assert (usage["x_cost_class"], usage["x_accelerator_h"]) == ("accelerator", 8)
    assert usage["x_accelerator"] == "h100-sxm-80gb"
    assert costs(discount) == exact("-3.5", "-3.5", "0", "0")
    assert discount["charge_category"] == "Credit"
    assert discount["x_credit_type"] == "COMMITTED_USAGE_DISCOUNT"
    assert discount["commitment_discount_id"] == "cud-1"
    assert discount["consumed_quantity"] is None
    assert costs(trial)[0] == Decimal("-0.00001")
    assert usage["tags"]["run"] == "a7"
    assert usage["tags"]["env"] == "dev"
    assert usage["tags"]["project/env"] == "prod"
    assert usage["tags"]["system/env"] == "machine"
    assert usage["tags"]["team"] == "pretrain"
    assert lines[6][0]["tags"]["123/env"] == "prod"
    (cores,) = lines[2]
    assert (cores["x_cost_class"], cores["x_accelerator_h"]) == ("accelerator", None)
    found = {number: lines[number][0] for number in lines}
    assert found[3]["charge_category"] == "Purchase"
    assert found[3]["x_cost_class"] == "commitment"
    assert found[4]["x_cost_class"] == "storage_block"
    assert found[5]["x_cost_class"] == "request_get"
    assert found[5]["x_requests"] == 250_000
    assert found[7]["x_cost_class"] == "egress"
    assert found[8]["x_cost_class"] == "transfer_inter_region"
    assert (found[9]["x_cost_class"], found[10]["x_cost_class"]) == ("tax", "rounding")
    assert found[11]["charge_class"] == "Correction"
    assert found[12]["x_cost_class"] == "support"


def test_googles_billing_month_is_that_of_the_invoice():
    lines_of("gcp_standard.csv")

    (period,) = BillingPeriod.objects.all()
    assert str(period.start) == "2026-05-01"  # the correction of April's usage is on May's invoice


def test_a_credit_that_is_no_number_refuses_and_names_its_row():
    rows = BY_FILE["gcp_standard.csv"].rows()
    rows[5]["credits"] = '[{"name": "x", "amount": "a little", "type": "PROMOTION"}]'

    delivery = imported(("bill.csv", csv_of(rows)))

    assert delivery.state == Delivery.State.REFUSED
    assert (delivery.refusal["row"], delivery.refusal["column"]) == (7, "credits.amount")


def test_azures_actual_costs_leave_unknown_what_a_commitment_hides():
    lines = lines_of("azure_actual.csv")

    (vm,) = lines[1]
    assert costs(vm) == exact("196.64", "196.64", "196.64", "196.64")
    assert (vm["x_cost_class"], vm["x_accelerator_h"]) == ("accelerator", 16)
    assert vm["tags"] == {"project": "atlas-70b", "env": "prod"}
    assert vm["region_id"] == "southcentralus"
    assert str(vm["billing_period_end"]) == "2026-06-01 00:00:00"
    (reads,) = lines[2]
    assert (reads["consumed_quantity"], reads["x_requests"]) == (52_500, 52_500)
    assert reads["x_cost_class"] == "request_get"
    assert lines[3][0]["consumed_quantity"] == 1_000
    assert lines[7][0]["consumed_quantity"] == 10
    assert lines[8][0]["x_cost_class"] == "rounding"
    assert lines[9][0]["x_cost_class"] == "tax"
    reserved, planned, bought, refund = (lines[number][0] for number in (10, 11, 12, 13))
    assert costs(reserved)[:2] == exact("0", None)
    assert reserved["x_accelerator_h"] == 192
    assert planned["commitment_discount_category"] == "Spend"
    assert costs(bought)[:2] == exact("1500", None)
    assert bought["x_cost_class"] == "commitment"
    assert (refund["charge_class"], refund["x_cost_class"]) == ("Correction", "refund")


def test_azures_costs_by_nine_decimal_prices_are_exact():
    rows = BY_FILE["azure_actual.csv"].rows()[:1]
    columns = {name.lower(): name for name in rows[0]}
    wanted = {"unitprice": "0.000000149011612", "paygprice": "0.000000149011612"}
    wanted["quantity"] = "12345.678901"
    rows[0] |= {columns[name]: text for name, text in wanted.items()}

    (row,) = lines_of("", csv_of(rows))[1]

    assert costs(row)[2:] == exact("0.001839649514272398", "0.001839649514272398")


def test_azures_two_exports_of_a_month_live_side_by_side():
    imported(("actual.csv", BY_FILE["azure_actual.csv"].content))
    imported(("amortised.csv", BY_FILE["azure_amortised.csv"].content))

    assert sorted(period.dataset for period in BillingPeriod.objects.all()) == [
        "amortised",
        "billed",
    ]
    scale = Decimal(1).scaleb(-18)
    assert total("billed") == BY_FILE["azure_actual.csv"].stated().quantize(scale)
    assert total("effective") == BY_FILE["azure_amortised.csv"].stated().quantize(scale)
    assert by("x_cost_class", "effective")["commitment"] == Decimal("79.1")


def test_prices_in_another_currency_make_no_cost_in_the_billing_currency():
    lines = lines_of("azure_customer_agreement.csv")

    assert costs(lines[1][0]) == exact("196.64", "196.64", None, None)
    assert lines[1][0]["billing_currency"] == "EUR"
    assert lines[1][0]["charge_description"] == "Virtual Machines NDsr H100 v5 Series"


def test_focus_1_4_names_the_provider_in_a_new_column():
    lines = lines_of("focus_1_4.csv")

    assert lines[1][0]["provider_name"] == "AWS"
    assert lines[1][0]["invoice_detail_id"] == "d-0"
    assert lines[1][0]["x_accelerator_h"] == 8
    assert Delivery.objects.get().report["saw"][0].startswith("FOCUS 1.4")


def test_usage_without_costs_has_its_hours():
    lines = lines_of("focus_usage_only.csv")

    assert [lines[number][0]["x_accelerator_h"] for number in (1, 2)] == [64, Decimal("16.5")]
    assert Delivery.objects.get().report["saw"][0].startswith("FOCUS 1.2, usage without costs")


def test_googles_focus_table_gets_its_missing_service_category():
    lines = lines_of("focus_google.csv")

    assert [lines[number][0]["service_category"] for number in (1, 2)] == ["Compute", "Storage"]
    assert lines[1][0]["x_accelerator_h"] == 8
    assert Delivery.objects.get().report["unknown_columns"] == []


def test_an_export_without_list_prices_has_no_list_cost():
    rows = BY_FILE["gcp_standard.csv"].rows()

    lines = lines_of("", csv_of(rows, [name for name in rows[0] if name != "cost_at_list"]))

    assert {row["list_cost"] for found in lines.values() for row in found} == {None}
    assert Delivery.objects.get().totals[0]["list_cost"] is None


def test_stored_byte_seconds_are_months_of_use_and_not_of_the_invoice():
    rows = BY_FILE["gcp_standard.csv"].rows()
    row = next(row for row in rows if row["usage.unit"] == "byte-seconds")
    row |= {"invoice.month": "202609", "usage.amount": str(1000 * 2**30 * 31 * 86_400)}
    row |= {"usage_start_time": "2026-08-01 00:00:00 UTC"}
    row |= {"usage_end_time": "2026-09-01 00:00:00 UTC"}

    (charge,) = lines_of("", csv_of([row]))[1]

    assert charge["x_storage_tb_month"] == Decimal("1.073741824")


def test_googles_tags_with_one_key_in_two_namespaces_keep_both():
    rows = BY_FILE["gcp_standard.csv"].rows()[:1]
    pairs = [("env", "prod", "123"), ("env", "dev", "456"), ("team", "a", "123")]
    rows[0]["tags"] = json.dumps(
        [{"key": key, "value": value, "namespace": name} for key, value, name in pairs]
    )
    rows[0]["labels"] = "[]"
    rows[0]["system_labels"] = rows[0]["project.labels"] = "[]"

    (charge, *_credits) = lines_of("", csv_of(rows))[1]

    assert charge["tags"] == {"123/env": "prod", "456/env": "dev", "team": "a"}


def test_focus_tags_that_parquet_holds_as_a_record_are_read():
    table = pa.Table.from_pylist([costing("2")] * 2).drop(["Tags"])
    kind = pa.struct({"team": pa.string(), "env": pa.string()})
    tags = pa.array([{"team": "a", "env": None}, None], type=kind)
    out = io.BytesIO()
    pq.write_table(table.append_column("Tags", tags), out)

    delivery = imported(("bill.parquet", out.getvalue()))

    assert delivery.state == Delivery.State.PUBLISHED, delivery.refusal
    _schema, charges = published_charges()
    assert [dict(row["tags"] or ()) for row in charges] == [{"team": "a"}, {}]
    assert not any(name.startswith("Tags") for name in delivery.report["unknown_columns"])


def test_a_cost_that_our_export_filled_in_is_unknown_again_when_it_is_imported():
    own = {"x_LineItemType": "Usage", "x_InstanceType": "p5.48xlarge", "x_CreditType": "PROMOTION"}
    row = costing("2", **own, x_FilledColumns="ListCost RegionName")

    (charge,) = lines_of("", csv_of([row]))[1]

    assert costs(charge) == exact("2", "2", None, "2")
    assert charge["x_line_item_type"] == "Usage"
    assert charge["x_instance_type"] == "p5.48xlarge"
    assert charge["x_credit_type"] == "PROMOTION"

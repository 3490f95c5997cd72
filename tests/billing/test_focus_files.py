"""Real-shaped FOCUS files arrive exactly."""

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from billing import reading
from billing.checks import verify
from billing.models import DailyCost, Delivery, PeriodVersion
from billing.selectors import costs_grouped
from tests.billing.builders import (
    by,
    charge,
    focus_csv,
    gzipped,
    hand_in,
    imported,
    organisation,
    roll_up,
    text_sum,
    total,
)

pytestmark = pytest.mark.django_db(transaction=True)
SAMPLE = Path(__file__).parents[1] / "samples" / "billing" / "focus_1_0_traps.csv"
# the tool's totals at seed 1302; the tests also add the files' own text up
GENERATED = {
    "aws": "20686.1027268409075",
    "gcp": "21967.925597512049",
    "azure": "41406.68993094664",
}


@pytest.fixture(scope="session")
def generated(tmp_path_factory) -> dict[str, bytes]:
    """FOCUS 1.2 files that nobody here wrote."""
    tool = Path(sys.executable).with_name("focus-toolkit")
    files = {}
    for provider in GENERATED:
        folder = tmp_path_factory.mktemp(provider)
        command = [tool, "generate", "--provider", provider, "--focus-version", "1.2"]
        command += ["--rows", "1000", "--seed", "1302", "--out", folder]
        subprocess.run(command, check=True, capture_output=True)
        (path,) = folder.glob("*cost_and_usage*.csv")
        files[provider] = path.read_bytes()
    return files


@pytest.mark.parametrize("provider", GENERATED)
def test_totals_equal_the_sum_of_the_files_own_text(generated, provider):
    content = generated[provider]

    delivery = imported(content, source=provider)

    assert delivery.state == Delivery.State.PUBLISHED
    assert delivery.rows == 1000
    for basis in ("billed", "effective", "list", "contracted"):
        assert total(basis) == text_sum(content, f"{basis.title()}Cost")
    assert total("billed") == Decimal(GENERATED[provider])
    assert delivery.totals[0]["billed_cost"] == GENERATED[provider]
    assert verify(organisation().pk) == []


def test_commitment_usage_and_purchases_keep_their_invariant(generated):
    imported(generated["aws"], source="aws")

    assert by("x_cost_class", "billed")["commitment"] == Decimal("6019.008")
    assert by("charge_category", "effective")["Usage"] == Decimal("10731.680959012125")


def test_gzipped_and_plain_files_give_the_same_costs(generated):
    imported(generated["aws"], source="aws")
    plain = roll_up()

    imported(gzipped(generated["aws"]), source="aws")

    assert roll_up() == plain
    assert PeriodVersion.objects.filter(superseded_at=None).count() == 1


def test_the_same_bytes_twice_are_nothing_new(generated):
    first = hand_in(generated["gcp"])
    before = roll_up()

    again = hand_in(("another name.csv", generated["gcp"]))

    assert not first.already_imported
    assert again.already_imported
    assert again.delivery_id == first.delivery_id
    assert Delivery.objects.count() == 1
    assert PeriodVersion.objects.count() == 1
    assert roll_up() == before


def test_the_same_content_plain_and_gzipped_in_one_delivery_counts_once(generated):
    content = generated["azure"]

    delivery = imported(("a.csv", content), ("b.csv.gz", gzipped(content)))

    assert delivery.rows == 1000
    assert delivery.report["same_content"] == ["b.csv.gz"]
    assert total() == text_sum(content, "BilledCost")


def test_the_traps_of_a_real_export_are_handled_and_reported():
    delivery = imported((SAMPLE.name, SAMPLE.read_bytes()))
    report = delivery.report

    assert delivery.state == Delivery.State.PUBLISHED
    assert total("billed") == Decimal("10.64230082")
    assert total("effective") == Decimal("9.99200002")
    assert report["unknown_columns"] == ["RowNumber"]
    assert report["normalised"] == [
        {"column": "charge_frequency", "from": "Usage-based", "to": "Usage-Based", "rows": 1}
    ]
    assert report["nulls"] == [{"column": "contracted_cost", "rows": 2}]
    assert report["unreadable_tags"] == 1
    assert [month["period"] for month in report["periods"]] == ["2026-09", "2026-10"]
    assert "FOCUS 1.0" in report["saw"][0]
    assert verify(organisation().pk) == []


def test_more_wordings_than_are_looked_at_still_count_every_missing_value(monkeypatch):
    monkeypatch.setattr(reading, "MAX_SPELLINGS", 1)

    delivery = imported((SAMPLE.name, SAMPLE.read_bytes()))

    assert delivery.report["nulls"] == [{"column": "contracted_cost", "rows": 2}]


def test_a_cost_that_no_row_states_stays_missing_instead_of_zero():
    imported((SAMPLE.name, SAMPLE.read_bytes()))

    assert by("provider_name", "contracted")["Oracle"] is None
    assert DailyCost.objects.filter(provider_name="Oracle", contracted_cost=None).exists()


def test_tags_are_read_as_keys_and_values():
    imported((SAMPLE.name, SAMPLE.read_bytes()))

    assert by("tag:project")["moe"] == Decimal("12.992")
    assert by("tag:project")[None] == Decimal("-2.34969918")


def test_byte_order_mark_and_windows_line_ends_are_accepted():
    content = b"\xef\xbb\xbf" + focus_csv([charge()], newline="\r\n")

    assert imported(content).state == Delivery.State.PUBLISHED
    assert total() == Decimal("1.10")


def test_two_gzip_members_are_one_file():
    content = focus_csv([charge(), charge(BilledCost="2.20")])
    half = len(content) // 2

    assert imported(gzipped(content[:half]) + gzipped(content[half:])).rows == 2
    assert total() == Decimal("3.30")


def test_a_provider_is_found_under_its_newer_name():
    row = charge()
    row["ServiceProviderName"] = row.pop("ProviderName")

    imported(focus_csv([row]))

    assert by("provider_name") == {"AWS": Decimal("1.10")}


def test_columns_of_newer_versions_are_known():
    delivery = imported(focus_csv([charge(HostProviderName="AWS", InvoiceDetailId="7")]))

    assert delivery.report["unknown_columns"] == []
    assert "FOCUS 1.4" in delivery.report["saw"][0]


def test_a_missing_column_that_no_figure_hangs_on_is_reported():
    row = charge()
    del row["PricingUnit"]

    assert imported(focus_csv([row])).report["missing_columns"] == ["PricingUnit"]


def test_amounts_with_exponents_are_exact_and_excess_decimals_are_counted():
    rows = [
        charge(BilledCost="4.5E-7"),
        charge(BilledCost="0E-10"),
        charge(BilledCost="0.0000000000000000015"),
        charge(BilledCost="1e3"),
    ]

    delivery = imported(focus_csv(rows))

    assert total() == Decimal("1000.000000450000000002")
    assert delivery.report["rounded"] == [{"column": "billed_cost", "rows": 1}]


def test_a_line_of_totals_is_shown_but_not_counted():
    total_line = dict.fromkeys(charge(), "") | {"BilledCost": "1.10"}

    delivery = imported(focus_csv([charge(), total_line]))

    assert delivery.rows == 1
    assert total() == Decimal("1.10")
    assert delivery.report["set_aside"] == [{"file": "bill.csv", "row": 3, "billed_cost": "1.1"}]


def test_currencies_are_never_added():
    imported(focus_csv([charge(), charge(BillingCurrency="EUR", BilledCost="2")]))

    table = costs_grouped(
        organisation().pk, group_by=["provider_name"], basis="billed", include_unallocated=True
    )
    assert [(entry.currency, entry.cost) for entry in table.total] == [
        ("EUR", Decimal(2)),
        ("USD", Decimal("1.10")),
    ]

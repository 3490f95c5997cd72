"""Input that cannot be read exactly is refused whole, by file, row and column; nothing is kept."""

import gzip
from pathlib import Path

import pytest
from django.conf import settings

from billing import line_reading
from billing.models import BillingPeriod, ChargeSlice, DailyCost, Delivery
from billing.records import ChargesRefusedError
from jobs.models import Job
from tests.billing.builders import charge, costing, focus_csv, gzipped, hand_in, imported

pytestmark = pytest.mark.django_db(transaction=True)
GOOD = focus_csv([charge()])
PACKED = gzipped(GOOD)


def kept_files() -> list[Path]:
    """Every file that is in the lake."""
    return [path for path in Path(settings.LAKE_URL).rglob("*") if path.is_file()]


def refused(*files, **options) -> dict:
    """Hand in, expect a refusal and nothing kept; return it."""
    try:
        receipt = hand_in(*files, **options)
    except ChargesRefusedError as refusal:
        found = {"code": refusal.code, "reason": refusal.reason, "row": refusal.row}
    else:
        delivery = Delivery.objects.get(pk=receipt.delivery_id)
        assert delivery.state == Delivery.State.REFUSED
        assert Job.objects.get(pk=receipt.job_id).state == "failed"
        found = delivery.refusal
    assert kept_files() == []
    assert not ChargeSlice.objects.exists()
    assert not DailyCost.objects.exists()
    assert not BillingPeriod.objects.exists()
    assert settings.LAKE_URL not in found["reason"]
    return found


BAD_TEXT = {
    "nothing": (b"", "empty", None),
    "only a header": (focus_csv([charge()]).splitlines()[0] + b"\n", "empty", None),
    "a quote that never closes": (GOOD + b'AWS,"AWS,\n' + GOOD.splitlines()[1], "csv", 3),
    "text after a closing quote": (GOOD.replace(b"a charge", b'"a "charge'), "csv", 2),
    "a short row": (GOOD + b"AWS,AWS\n", "ragged", 3),
    "a long row": (GOOD + GOOD.splitlines()[1] + b",more\n", "ragged", 3),
    "a NUL": (GOOD.replace(b"a charge", b"a \0 charge"), "nul", 2),
    "a giant field": (GOOD.replace(b"a charge", b"x" * 140_000), "csv", 2),
    "Latin-1": (GOOD.replace(b"a charge", "Gebühr".encode("latin-1")), "encoding", 2),
    "UTF-16": (GOOD.decode().encode("utf-16"), "encoding", 1),
    "two columns of one name": (GOOD.replace(b"ListCost", b"BilledCost", 1), "header", 1),
    "a nameless column": (GOOD.replace(b"ListCost", b"", 1), "header", 1),
    "semicolons": (GOOD.replace(b",", b";"), "format", 1),
}


@pytest.mark.parametrize("case", BAD_TEXT)
def test_text_that_is_no_csv_is_refused(case):
    content, code, row = BAD_TEXT[case]

    found = refused(content)

    assert (found["code"], found["row"]) == (code, row)


BAD_AMOUNTS = [
    "1.234,56",
    "1_000",
    "NaN",
    "inf",
    "1e20",
    "123456789012345678901",
    "１２",
    "+1",
    "$5",
]


@pytest.mark.parametrize("text", BAD_AMOUNTS)
def test_an_amount_that_is_no_plain_number_names_its_row_and_column(text):
    found = refused(focus_csv([costing("1"), charge(EffectiveCost=text), charge()]))

    assert (found["file"], found["row"], found["column"]) == ("bill.csv", 3, "EffectiveCost")
    assert text[:10] in found["reason"]


@pytest.mark.parametrize(
    "text",
    ["2026-02-31T00:00:00Z", "03/04/2026", "2026-05-04", "2026-05-04T00:00:00", "24:00", "now"],
)
def test_a_time_that_cannot_be_read_names_its_row_and_column(text):
    found = refused(focus_csv([charge(), charge(ChargePeriodStart=text)]))

    assert (found["row"], found["column"]) == (3, "ChargePeriodStart")
    assert text in found["reason"]


def test_a_charge_without_a_billing_period_is_refused():
    found = refused(focus_csv([charge(BillingPeriodStart="NULL")]))

    assert (found["row"], found["column"]) == (2, "BillingPeriodStart")


@pytest.mark.parametrize("text", ["ZZZ", "usd", "Dollar", ""])
def test_an_unknown_currency_is_refused(text):
    found = refused(focus_csv([charge(), charge(BillingCurrency=text)]))

    assert (found["row"], found["column"]) == (3, "BillingCurrency")


@pytest.mark.parametrize(
    "column",
    ["BilledCost", "EffectiveCost", "BillingCurrency", "ChargePeriodStart", "ProviderName"],
)
def test_a_missing_required_column_is_named(column):
    row = charge()
    del row[column]

    found = refused(focus_csv([row]))

    assert (found["code"], found["column"]) == ("missing_column", column)


BAD_PACKING = {
    "cut short": (PACKED[:-12], "truncated"),
    "cut in the checksum": (PACKED[:-3], "truncated"),
    "a wrong checksum": (PACKED[:-6] + bytes([PACKED[-6] ^ 1]) + PACKED[-5:], "damaged"),
    "junk behind": (PACKED + b"junk and more", "damaged"),
    "packed twice": (gzipped(PACKED), "file_type"),
}


@pytest.mark.parametrize("case", BAD_PACKING)
def test_damaged_packing_is_refused(case):
    content, code = BAD_PACKING[case]

    assert refused(("bill.csv.gz", content))["code"] == code


def test_a_gzip_bomb_stops_at_the_limit(settings):
    settings.MAX_UNPACKED_MB = 4
    bomb = gzip.compress(GOOD + b"0" * (64 * 2**20), 9)

    assert refused(("bill.csv.gz", bomb))["code"] == "too_large"


def test_a_file_larger_than_an_upload_may_be_is_refused(settings):
    settings.MAX_UPLOAD_MB = 1

    assert refused(GOOD + b"x" * (2 * 2**20))["code"] == "too_large"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bill.csv", PACKED),
        ("bill.csv.gz", GOOD),
        ("bill.csv", b"PK\x03\x04 a workbook"),
        ("bill.parquet", GOOD),
        ("bill.xlsx", GOOD),
        ("bill.csv", b"\x28\xb5\x2f\xfd zstandard"),
    ],
)
def test_bytes_that_are_not_what_the_name_says_are_refused(name, content):
    assert refused((name, content))["code"] == "file_type"


def test_one_bad_file_refuses_the_whole_delivery():
    found = refused(("good.csv", GOOD), ("bad.csv", focus_csv([charge(BilledCost="free")])))

    assert (found["file"], found["row"], found["column"]) == ("bad.csv", 2, "BilledCost")


def test_a_declared_month_that_the_files_do_not_hold_is_refused():
    assert "2026-07" in refused(GOOD, periods=["2026-07"])["reason"]


def test_amounts_whose_sum_is_too_large_for_money_are_refused():
    rows = [costing("99999999999999999999") for _ in range(3)]

    assert refused(focus_csv(rows))["code"] == "too_large"


def test_refused_bytes_can_be_handed_in_again():
    bad = focus_csv([charge(BilledCost="free")])
    refused(bad)

    assert refused(bad)["column"] == "BilledCost"


def test_names_of_files_are_shown_without_folders_or_hidden_letters():
    receipt = hand_in(("../../etc/\u202egpj.\nbill.csv", GOOD))

    (file,) = Delivery.objects.get(pk=receipt.delivery_id).files.all()
    assert file.name == "�gpj.�bill.csv"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("month", ["9999-12", "0000-01"])
def test_a_month_out_of_all_time_is_refused_and_named(month):
    delivery = imported(focus_csv([charge(BillingPeriodStart=f"{month}-01T00:00:00Z")]))

    assert delivery.state == Delivery.State.REFUSED
    assert delivery.refusal["column"] == "BillingPeriodStart"


@pytest.mark.django_db(transaction=True)
def test_more_odd_amounts_than_can_be_read_exactly_are_refused_not_guessed(monkeypatch):
    monkeypatch.setattr(line_reading, "MAX_IRREGULAR", 1)

    delivery = imported(focus_csv([charge(BilledCost=text) for text in ("1e-3", "abc", "2e-3")]))

    assert delivery.state == Delivery.State.REFUSED

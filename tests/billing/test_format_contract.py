"""What every adapter promises, on a sample of each format."""

from decimal import Decimal

import ibis
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from billing.adapters import ADAPTERS, JSON_COLUMNS, LIST_COLUMNS, detect
from billing.columns import STORED_TYPES
from billing.models import BillingPeriod, ChargeSlice, Delivery, PeriodVersion
from billing.records import ChargesRefusedError
from tests.billing.builders import gzipped, hand_in, imported, roll_up, total
from tests.billing.format_samples import (
    BY_FILE,
    SAMPLES,
    Sample,
    csv_of,
    published_charges,
    rows_of,
)

SCALE = Decimal(1).scaleb(-18)
MAIN_FORMATS = ("aws_cur_legacy.csv", "gcp_standard.csv", "azure_actual.csv", "azure_amortised.csv")
every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.file)
database = pytest.mark.django_db(transaction=True)


def named(sample: Sample) -> tuple[str, bytes]:
    return "bill.csv", sample.content


def columns_of(sample: Sample) -> list[str]:
    return list(sample.rows()[0])


@database
@every_sample
def test_a_sample_ends_in_every_charge_column_and_adds_up_to_its_own_text(sample):
    delivery = imported(named(sample))

    assert delivery.state == Delivery.State.PUBLISHED, delivery.refusal
    assert delivery.bill_format == sample.format
    assert delivery.rows == sample.charges()
    schema, charges = published_charges()
    for name, kind in STORED_TYPES.items():
        assert schema[name] == ibis.dtype(kind), name
    if sample.cost_column is None:
        for row in charges:
            assert row["x_estimated"] or row["billed_cost"] is None
    else:
        rounded = sample.stated().quantize(SCALE)
        assert total(sample.basis, currency=delivery.totals[0]["currency"]) == rounded


@database
@pytest.mark.parametrize("file", MAIN_FORMATS)
def test_parts_order_packing_and_repeats_change_nothing(file):
    sample = BY_FILE[file]
    rows = sample.rows()
    parts = [csv_of(rows[:5]), csv_of(rows[5:])]
    imported(named(sample))
    whole = roll_up()

    imported(("p2.csv.gz", gzipped(parts[1])), ("p1.csv", parts[0]), confirm_shrink=True)
    assert roll_up() == whole

    packed = [zstandard.compress(part) for part in parts]
    imported(("p1.csv.zst", packed[0]), ("p2.csv.zst", packed[1]), confirm_shrink=True)
    assert roll_up() == whole

    assert hand_in(named(sample)).already_imported
    assert roll_up() == whole
    assert PeriodVersion.objects.filter(superseded_at=None).count() == 1


@database
@every_sample
def test_columns_in_another_order_and_a_new_one_change_no_cost(sample):
    rows = [{"BrandNew": "kept", **row} for row in sample.rows()]

    delivery = imported(("bill.csv", csv_of(rows, ["BrandNew", *reversed(columns_of(sample))])))

    assert "BrandNew" in delivery.report["unknown_columns"]
    if sample.cost_column is not None:
        currency = delivery.totals[0]["currency"]
        assert total(sample.basis, currency=currency) == sample.stated().quantize(SCALE)
    _schema, charges = published_charges()
    assert all(dict(row["x_unknown"])["BrandNew"] == "kept" for row in charges)


@database
@every_sample
def test_a_missing_column_on_which_figures_hang_refuses_and_is_named(sample):
    rows = sample.rows()
    without = [name for name in columns_of(sample) if name != sample.required]

    delivery = imported(("bill.csv", csv_of(rows, without)))

    assert delivery.state == Delivery.State.REFUSED
    assert delivery.refusal["file"] == "bill.csv"
    assert sample.required in delivery.refusal["reason"]
    assert not BillingPeriod.objects.exists()


@database
@every_sample
def test_nothing_is_read_that_the_layout_does_not_name(sample):
    columns = columns_of(sample)
    wanted = detect(columns).layout(columns).wanted_columns
    structures = (*JSON_COLUMNS, *LIST_COLUMNS)
    kept = [name for name in columns if name in wanted or name in structures]
    imported(named(sample))
    whole = roll_up()

    imported(("bill.csv", csv_of(sample.rows(), kept)))

    assert roll_up() == whole


@database
@pytest.mark.parametrize("file", ["aws_cur_2.csv", "gcp_detailed.csv", "azure_actual.csv"])
def test_an_amount_that_is_no_number_refuses_with_file_row_and_column(file):
    sample = BY_FILE[file]
    rows = sample.rows()
    rows[3][sample.cost_column] = "about 5"

    delivery = imported(("bill.csv", csv_of(rows)))

    assert delivery.state == Delivery.State.REFUSED
    assert delivery.refusal["row"] == 5
    assert delivery.refusal["column"] == sample.cost_column
    assert not ChargeSlice.objects.exists()


@given(data=st.data())
def test_every_header_reads_alike_or_is_refused_by_name(data):
    sample = data.draw(st.sampled_from(SAMPLES))
    columns = columns_of(sample)
    shuffled = data.draw(st.permutations(columns))
    dropped = data.draw(st.lists(st.sampled_from(columns), max_size=3, unique=True))
    new = data.draw(st.lists(st.from_regex(r"New[A-Z]{3}[a-z]{3}", fullmatch=True), max_size=2))
    header = [name for name in shuffled if name not in dropped] + new

    try:
        layout = detect(header).layout(header)
    except ChargesRefusedError as error:
        refusal = error
    else:
        refusal = None
    if refusal is not None:
        assert set(dropped) & set(refusal.reason.split())
        return
    whole = detect(columns).layout(columns)
    assert set(new) <= set(layout.unknown_columns)
    assert set(layout.unknown_columns) - set(new) <= set(whole.unknown_columns)
    for ours, theirs in whole.columns.items():
        if theirs not in dropped:
            assert layout.columns[ours] == theirs


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
def test_no_adapter_takes_a_file_of_another(adapter):
    for sample in SAMPLES:
        mine = sample.format.partition("-")[0] == adapter.name.partition("-")[0]
        assert bool(adapter.recognises(columns_of(sample))) == mine


def test_samples_cover_every_format():
    asked = {adapter.name for adapter in ADAPTERS} - {"azure"}
    assert {sample.format for sample in SAMPLES} == asked
    assert all(rows_of(sample.content) for sample in SAMPLES)

"""A file says what it is, and what it is not."""

import pytest

from billing.models import Delivery
from billing.services import IncomingFile, NewDelivery, receive_files
from jobs.services import run_job
from tests.billing.builders import hand_in, operator
from tests.billing.format_samples import BY_FILE, csv_of

pytestmark = pytest.mark.django_db(transaction=True)
AZURE_MARKS = ("Reservation", "SavingsPlan")


def delivered(*files: tuple[str, bytes], bill_format: str = "auto") -> Delivery:
    receipt = receive_files(
        operator(),
        NewDelivery(
            source_name="bills",
            files=[IncomingFile(name=name, chunks=[content]) for name, content in files],
            bill_format=bill_format,
        ),
    )
    run_job(receipt.job_id)
    return Delivery.objects.get(pk=receipt.delivery_id)


def without_commitments(file: str) -> bytes:
    """Only the rows that both of Azure's exports have."""
    rows = BY_FILE[file].rows()
    return csv_of([row for row in rows if row["PricingModel"] not in AZURE_MARKS])


@pytest.mark.parametrize("file", sorted(BY_FILE))
def test_the_report_says_which_format_was_seen(file):
    sample = BY_FILE[file]

    delivery = delivered(("x.csv", sample.content))

    words = {"aws-cur": "AWS", "gcp-export": "Google Cloud", "focus": "FOCUS"}
    (saw,) = delivery.report["saw"]
    assert saw.startswith(words.get(sample.format, "Azure"))
    if file == "aws_cur_2.csv":
        assert "CUR 2.0" in saw


def test_a_wrong_format_asked_for_says_what_the_file_looks_like():
    delivery = delivered(("x.csv", BY_FILE["gcp_standard.csv"].content), bill_format="aws-cur")

    assert delivery.state == Delivery.State.REFUSED
    assert "look like gcp-export" in delivery.refusal["reason"]


def test_files_of_two_formats_are_refused_together():
    delivery = delivered(
        ("a.csv", BY_FILE["gcp_standard.csv"].content),
        ("b.csv", BY_FILE["aws_cur_2.csv"].content),
    )

    assert delivery.state == Delivery.State.REFUSED
    assert "a.csv (gcp-export), b.csv (aws-cur)" in delivery.refusal["reason"]


def test_azures_two_exports_in_one_delivery_are_refused():
    delivery = delivered(
        ("a.csv", BY_FILE["azure_actual.csv"].content),
        ("b.csv", BY_FILE["azure_amortised.csv"].content),
    )

    assert delivery.state == Delivery.State.REFUSED
    assert "azure-actual" in delivery.refusal["reason"]


def test_what_was_said_about_an_azure_export_is_held_against_its_rows():
    wrong = delivered(("a.csv", BY_FILE["azure_amortised.csv"].content), bill_format="azure-actual")

    assert wrong.state == Delivery.State.REFUSED
    assert "looks like the amortised export" in wrong.refusal["reason"]


@pytest.mark.parametrize(
    ("name", "bill_format", "found"),
    [
        ("part.csv", "auto", "azure-actual"),
        ("EA_AmortizedCost.csv", "auto", "azure-amortised"),
        ("part.csv", "azure-amortised", "azure-amortised"),
    ],
)
def test_an_azure_export_without_commitments_is_told_by_name_or_word(name, bill_format, found):
    delivery = delivered((name, without_commitments("azure_actual.csv")), bill_format=bill_format)

    assert delivery.state == Delivery.State.PUBLISHED, delivery.refusal
    assert delivery.bill_format == found


def test_a_table_that_is_no_bill_is_refused_with_its_columns():
    delivery = Delivery.objects.get(pk=hand_in(b"name,age\nAda,36\n").delivery_id)

    assert delivery.state == Delivery.State.REFUSED
    assert "name, age" in delivery.refusal["reason"]
    assert "gcp-export" in delivery.refusal["reason"]

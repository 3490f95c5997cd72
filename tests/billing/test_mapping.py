"""A vendor's own CSV becomes charges by a mapping that a person made, tried and kept."""

from decimal import Decimal

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from billing.adapters.mapped import ColumnMapping, Mapped, guessed, guessed_constants
from billing.models import Delivery, Source
from billing.records import ChargesRefusedError
from billing.services.dry_run import dry_run, keep_sample
from billing.services.mapping import save_mapping
from projects.records import OrganisationRole
from tests.billing.builders import by, imported, operator, total
from tests.builders import person, signed_in

pytestmark = pytest.mark.django_db

BILL = b"""\
Usage Date,Machine,GPU hours,Amount,Team,Remark
2026/05/04,8x H100 SXM,16,39.90,vision,night run
2026/05/05,8x H100 SXM,8.5,21.20,speech,
2026/05/31,storage,,-1.1000000001,vision,credit
"""
MAPPING = {
    "columns": {
        "charge_period_start": "Usage Date",
        "billed_cost": "Amount",
        "sku_meter": "Machine",
        "consumed_quantity": "GPU hours",
    },
    "constants": {
        "provider_name": "Lambda",
        "service_name": "GPU cloud",
        "billing_currency": "USD",
        "service_category": "Compute",
        "consumed_unit": "GPU-Hours",
    },
    "tags": ["Team"],
    "days": "slashed",
}


def test_a_mapped_file_becomes_charges_to_the_last_digit():
    save_mapping(operator(), "lambda", ColumnMapping.of(MAPPING))

    delivery = imported(("lambda.csv", BILL), source="lambda")

    assert delivery.state == Delivery.State.PUBLISHED, delivery.refusal
    assert delivery.bill_format == "mapped"
    assert total() == Decimal("59.9999999999")
    assert total("effective") == total("list") == total()
    assert delivery.report["unknown_columns"] == ["Remark"]
    assert by("tag:Team") == {"vision": Decimal("38.7999999999"), "speech": Decimal("21.20")}
    assert by("month") == {"2026-05": Decimal("59.9999999999")}


def test_accelerators_of_a_mapped_file_are_recognised_with_their_hours():
    save_mapping(operator(), "lambda", ColumnMapping.of(MAPPING))
    delivery = imported(("lambda.csv", BILL), source="lambda")

    classes = {row["x_cost_class"] for row in delivery.report["cost_classes"]}
    assert "accelerator" in classes


def test_a_dry_run_shows_what_would_come_and_stores_nothing():
    sample = keep_sample("lambda.csv", [BILL])

    tried = dry_run(sample, Mapped(ColumnMapping.of(MAPPING)))

    assert tried.rows == 3
    assert tried.totals[0]["billed_cost"] == "59.9999999999"
    assert tried.months == ["2026-05"]
    assert not Delivery.objects.exists()
    assert not Source.objects.exists()


def test_a_text_that_is_no_amount_is_named_by_the_files_own_column():
    sample = keep_sample("x.csv", [BILL.replace(b"21.20", b'"21,20"')])

    with pytest.raises(ChargesRefusedError) as refusal:
        dry_run(sample, Mapped(ColumnMapping.of(MAPPING)))

    assert (refusal.value.row, refusal.value.column) == (3, "Amount")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"columns": {"billed_cost": "Amount"}}, "charge_period_start"),
        ({"constants": {"provider_name": "Lambda"}}, "billing_currency"),
        ({"columns": {**MAPPING["columns"], "nonsense": "Team"}}, "nonsense"),
        ({"constants": {**MAPPING["constants"], "billed_cost": "1"}, "columns": {}}, None),
    ],
)
def test_a_mapping_that_cannot_give_charges_is_refused_by_field(change, named):
    with pytest.raises(ChargesRefusedError) as refusal:
        ColumnMapping.of({**MAPPING, **change})

    assert named is None or refusal.value.column == named


def test_a_column_that_went_missing_refuses_the_file():
    save_mapping(operator(), "lambda", ColumnMapping.of(MAPPING))

    delivery = imported(("lambda.csv", BILL.replace(b"Amount", b"Total")), source="lambda")

    assert delivery.state == Delivery.State.REFUSED
    assert delivery.refusal["column"] == "Amount"


def test_everyday_names_are_guessed_in_both_languages():
    assert guessed(["日期", "金额", "币种"]) == {
        "charge_period_start": "日期",
        "billed_cost": "金额",
        "billing_currency": "币种",
    }
    assert guessed(["ChargePeriodStart", "BilledCost"])["billed_cost"] == "BilledCost"


def test_the_page_maps_tries_and_keeps():
    client = signed_in(person(role=OrganisationRole.ADMIN))
    sent = {"file": SimpleUploadedFile("lambda.csv", BILL), "source": "lambda"}
    edit = client.post(reverse("mapping_new"), sent).headers["Location"]
    page = client.get(edit).content.decode()
    assert "Usage Date" in page

    form = {f"column_{name}": column for name, column in MAPPING["columns"].items()}
    form |= {f"value_{name}": value for name, value in MAPPING["constants"].items()}
    form |= {"days": "slashed", "tags": ["Team"]}
    tried = client.post(edit, {**form, "try": ""}).content.decode()
    assert "60.00" in tried
    assert not Source.objects.exists()

    kept = client.post(edit, {**form, "save": ""})
    assert kept.status_code == 302
    assert Source.objects.get().mapping["columns"]["billed_cost"] == "Amount"


def test_a_made_up_or_foreign_sample_is_not_found():
    client = signed_in(person(role=OrganisationRole.ADMIN))

    assert client.get(reverse("mapping_edit", args=["made-up"])).status_code == 404


def test_a_currency_in_a_columns_name_is_guessed_with_the_cost():
    columns = ["Date", "Machine", "Amount (USD)", "Hours (GPU)"]

    assert guessed(columns)["billed_cost"] == "Amount (USD)"
    assert guessed_constants(columns) == {"billing_currency": "USD"}
    assert guessed_constants(["Amount (USD)", "Currency"]) == {}


def test_every_missing_field_is_named_at_once_by_its_label_and_marked():
    page = _mapping_page({"days": "slashed", "try": ""})

    for label in ("Day or start of the charge", "Billed cost", "Currency", "Provider", "Service"):
        assert label in page
    assert "charge_period_start is" not in page
    assert page.count('aria-invalid="true"') == 5
    first = page.index("autofocus")
    assert first == page.rindex("autofocus")
    assert 'name="column_charge_period_start"' in page[page.rindex("<select", 0, first) : first]


def test_hours_without_a_unit_are_told_what_would_make_them_accelerator_hours():
    form = {f"column_{name}": column for name, column in MAPPING["columns"].items()}
    form |= {f"value_{name}": value for name, value in MAPPING["constants"].items()}
    form |= {"days": "slashed", "try": ""}

    assert "Map the Quantity and give the Unit" not in _mapping_page(form)
    assert "Map the Quantity and give the Unit" in _mapping_page(
        {**form, "value_consumed_unit": ""}
    )


def _mapping_page(form):
    client = signed_in(
        person(f"ada{len(form)}{form.get('value_consumed_unit')}"[:20], role=OrganisationRole.ADMIN)
    )
    sent = {"file": SimpleUploadedFile("lambda.csv", BILL), "source": "lambda"}
    edit = client.post(reverse("mapping_new"), sent).headers["Location"]
    return client.post(edit, form).content.decode()

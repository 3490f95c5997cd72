"""The storage page: tiers beside the plan, implied prices, what shards and endpoints would save."""

import csv
import io
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from planning.models import PlanVersion
from projects.models import Project
from projects.records import OrganisationRole, Role
from reports.storage import StorageQuestion, storage_page
from tests import builders
from tests.billing.builders import costing, focus_csv, imported, in_force, organisation, rule
from tests.planning import builders as plans
from tests.reports.test_explorer import amounts, sheet_rows

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 6, 2, tzinfo=UTC)
S3 = {"ServiceName": "AmazonS3", "ServiceCategory": "Storage"}


@pytest.fixture
def moe() -> Project:
    organisation()
    alice = builders.person("alice")
    return builders.project("moe", members=[(alice, Role.VIEWER)])


@pytest.fixture
def admin() -> Client:
    return builders.signed_in(builders.person("admin", role=OrganisationRole.ADMIN))


def used(meter: str, cost: str, quantity: str, unit: str, **columns: str) -> dict[str, str]:
    """A charge of S3 by its usage type."""
    return costing(
        cost,
        SkuMeter=meter,
        ConsumedQuantity=quantity,
        ConsumedUnit=unit,
        PricingQuantity=quantity,
        PricingUnit=unit,
        **{**S3, **columns},
    )


def stored(moe: Project) -> None:
    """1,000 GB-months warm, 2 million GETs, 1 TB between regions and 1 TB through NAT."""
    in_force(rule("region", "us-west-2", moe.slug))
    imported(
        focus_csv(
            [
                used("TimedStorage-ByteHrs", "23", "1000", "GB-Months"),
                used("Requests-Tier2", "0.8", "2000000", "Requests"),
                used("Requests-Tier1", "5", "1000000", "Requests"),
                used("USW2-USE1-AWS-Out-Bytes", "20", "1000", "GB"),
                used(
                    "NatGateway-Bytes",
                    "45",
                    "1000",
                    "GB",
                    x_UsageType="NatGateway-Bytes",
                    ServiceName="AmazonEC2",
                    ServiceCategory="Networking",
                ),
                used("TimedStorage-ByteHrs", "999", "5000", "GB-Months", RegionId="eu-west-1"),
            ]
        )
    )


def page_of(moe: Project, **asked) -> object:
    return storage_page(moe, StorageQuestion(**asked), as_of=NOW)


def test_tiers_requests_and_bytes_have_the_price_that_the_bill_implies(moe):
    stored(moe)

    page = page_of(moe)

    (warm,) = page.tiers
    assert (warm.tier, warm.cost, warm.planned) == ("storage_warm", 23, None)
    assert warm.price_per_tb_month == Decimal("21.420419216156005859")  # 23 / 1.073741824
    assert {one.x_cost_class: one.unit_price for one in page.requests} == {
        "request_get": Decimal("0.0004"),
        "request_put": Decimal("0.005"),
    }
    moved = {one.x_cost_class: one for one in page.transfers}
    between = moved["transfer_inter_region"]
    assert between.unit_price * between.quantity == pytest.approx(Decimal(20) * 10**12)


def test_shards_save_what_fewer_requests_cost(moe):
    stored(moe)

    (small,) = page_of(moe, shard_megabytes=100, reads_per_month=1).shardings
    (daily,) = page_of(moe, shard_megabytes=1, reads_per_month=31).shardings

    terabytes = page_of(moe).tiers[0].storage_tb_month
    assert small.needed == -(-int(terabytes * 10**12) // 10**8)
    assert small.saving == Decimal("0.8") - small.needed * Decimal("0.0000004")
    assert daily.needed > 2_000_000
    assert daily.saving == 0


def test_an_endpoint_and_one_region_save_what_the_findings_say_of_this_project(moe):
    stored(moe)

    page = page_of(moe)

    assert {one.code: one.saving for one in page.findings} == {
        "nat_bytes": 45,
        "transfer_inter_region": 20,
    }
    other = page_of(builders.project("other"))
    assert (other.is_empty, other.findings) == (True, ())


def test_the_plans_storage_lines_stand_beside_the_days_that_are_billed(moe):
    stored(moe)
    version = plans.make_draft(builders.actor(builders.person("root", role="admin")), moe)
    version.lines.create(
        organisation_id=moe.organisation_id,
        key="storage_warm",
        name="warm",
        position=90,
        base="amount",
        amount=Decimal(310),
        in_programme=False,
        starts_on="2026-05-01",
        ends_on="2026-06-01",
    )
    PlanVersion.objects.filter(pk=version.pk).update(
        state=PlanVersion.State.APPROVED, approved_at=datetime(2026, 4, 1, tzinfo=UTC)
    )

    (warm,) = page_of(moe).tiers

    assert warm.planned == 40  # 4 of 31 days are billed
    assert warm.difference == -17


def test_what_a_bill_does_not_measure_is_not_available(moe, admin):
    in_force(rule("region", "us-west-2", moe.slug))
    imported(focus_csv([used("Requests-Tier2", "0.8", "", "")]))

    (sharding,) = page_of(moe).shardings
    page = admin.get(reverse("project_storage", args=["moe"])).content.decode()

    assert (sharding.needed, sharding.saving) == (None, None)
    assert "n/a" in page


def test_page_csv_and_workbook_say_the_same_digit_by_digit(moe, admin):
    stored(moe)
    asked = {"shard_mb": "100", "reads": "7", "basis": "billed"}

    page = admin.get(reverse("project_storage", args=["moe"]), asked)
    book = admin.get(reverse("project_storage_xlsx", args=["moe"]), asked).content

    html = page.content.decode()
    for number, sheet in enumerate(page.context["sheets"], start=1):
        address = reverse("project_storage_csv", args=["moe", sheet.key])
        text = admin.get(address, asked).content.decode()
        header, *lines = csv.reader(io.StringIO(text))
        numbers = [at for at, column in enumerate(sheet.columns) if column.is_number]
        in_csv = [line[at] for line in lines for at in numbers if line[at] != ""]
        assert amounts(html[html.index(f'id="sheet-{sheet.key}"') :]) == in_csv
        top, *rows = sheet_rows(book, number)
        for row, line in zip(rows, lines, strict=True):
            for at in numbers:
                place = top.index(header[at])
                ours = row[place] if place < len(row) else ""
                if line[at] == "":
                    assert ours == ""
                else:
                    assert Decimal(ours) == pytest.approx(Decimal(line[at]), rel=Decimal("1e-14"))
    assert admin.get(reverse("project_storage_csv", args=["moe", "x"])).status_code == 404


def test_amounts_lead_to_charges_of_the_same_sum(moe, admin):
    stored(moe)

    page = admin.get(reverse("project_storage", args=["moe"]))

    seen = 0
    for sheet in page.context["sheets"][:3]:
        for line in sheet.lines:
            for cell in line.cells:
                if cell.href:
                    behind = admin.get(cell.href)
                    assert behind.context["totals"][0].cost == cell.value
                    seen += 1
    assert seen == 5


def test_an_address_that_cannot_be_read_keeps_the_defaults(moe, admin):
    wrong = {"shard_mb": "x", "reads": "-1", "from": "2026-99-01", "basis": "?", "to": "1"}

    page = admin.get(reverse("project_storage", args=["moe"]), wrong)

    assert page.context["question"] == StorageQuestion()

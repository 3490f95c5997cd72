"""Providers' price lists fill price books: exactly, wholly or not at all, and once."""

import io
import json
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from django.core.exceptions import PermissionDenied
from django.core.management import CommandError, call_command

from audit.models import AuditEntry
from billing.models import Price, PriceBook
from billing.price_feeds.contract import FEED_SERVICES, FeedSettings, PriceFeedError
from billing.price_records import PricesRefusedError
from billing.price_selectors import price_in_force
from billing.services import (
    add_price,
    ask_for_all_refreshes,
    ask_for_refresh,
    connect_price_feed,
    disconnect_price_feed,
    refresh_price_book,
)
from formulae.money import Money
from jobs.selectors import job_progress
from jobs.services import run_job
from tests import builders
from tests.billing.builders import operator
from tests.billing.price_builders import price_wish
from tests.billing.price_servers import (
    aws_price_list,
    aws_product,
    aws_term,
    gcp_catalogue,
    gcp_sku,
    p5,
)

pytestmark = pytest.mark.django_db
GIB_PER_TB = Decimal(10**12) / Decimal(2**30)


@pytest.fixture
def aws(monkeypatch):
    with aws_price_list(p5()) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_PRICING", server.address)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield server


@pytest.fixture
def gcp(settings):
    with gcp_catalogue(
        compute=[gcp_sku("GPU1", "Nvidia L4 GPU running in Iowa", "0.560040001")]
    ) as server:
        settings.CLOUD_BILLING_ENDPOINT = server.address
        settings.CLOUD_BILLING_API_KEY = "a key"
        yield server


def book(feed: str = "aws", *regions: str, kinds: tuple[str, ...] = ("accelerators",)) -> PriceBook:
    usual = {"aws": "us-east-1", "gcp": "us-central1"}
    wish = FeedSettings(regions=regions or (usual[feed],), services=kinds)
    return connect_price_feed(operator(), f"{feed} list", feed=feed, wish=wish)


def refreshed(feed: str = "aws", **options):
    return refresh_price_book(operator(), book(feed, **options))


def stored(**key) -> list[Price]:
    return list(Price.objects.filter(withdrawn_at=None, **key).order_by("valid_from"))


def one(**key) -> Price:
    (price,) = stored(**key)
    return price


def test_an_aws_machine_becomes_a_price_per_accelerator_hour(aws):
    done = refreshed()

    price = one()
    assert (done.added, done.unchanged) == (1, 0)
    assert price.amount == Decimal("6.88")
    assert (price.cost_class, price.unit, price.currency) == ("accelerator", "accelerator_h", "USD")
    assert (price.provider, price.region) == ("aws", "us-east-1")
    assert (price.accelerator_key, price.instance_type) == ("h100-sxm-80gb", "p5.48xlarge")
    assert (price.purchase, price.valid_from) == ("on_demand", date(2026, 4, 1))
    assert "P5SKU" in price.source
    assert "2026-05-01" in price.source
    assert price.note == "p5.48xlarge at 55.04 USD an hour over 8 accelerators"


def test_the_request_names_machine_region_and_plain_linux(aws):
    refreshed()

    asked = next(one for one in aws.asked if {"P5"} and "p5.48xlarge" in json.dumps(one))
    assert asked["target"] == "AWSPriceListService.GetProducts"
    assert asked["ServiceCode"] == "AmazonEC2"
    assert "AKIAEXAMPLE" in asked["auth"]
    wanted = {one["Field"]: one["Value"] for one in asked["Filters"]}
    assert wanted == {
        "instanceType": "p5.48xlarge",
        "regionCode": "us-east-1",
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }


def test_reservations_without_upfront_payment_are_taken_and_others_counted(aws):
    terms = [
        aws_term(("0", "34.0"), LeaseContractLength="1yr", PurchaseOption="No Upfront",
                 OfferingClass="standard"),
        aws_term(("0", "24.0"), LeaseContractLength="3yr", PurchaseOption="No Upfront",
                 OfferingClass="standard"),
        aws_term(("0", "20.0"), LeaseContractLength="3yr", PurchaseOption="All Upfront",
                 OfferingClass="standard"),
        aws_term(("0", "26.0"), LeaseContractLength="3yr", PurchaseOption="No Upfront",
                 OfferingClass="convertible"),
    ]  # fmt: skip
    aws.products = [p5(reserved=terms)]

    done = refreshed()

    assert one(purchase="reserved_1y").amount == Decimal("4.25")
    assert one(purchase="reserved_3y").amount == Decimal("3")
    assert done.ignored == {"other_terms": 2}


def test_a_machine_with_another_count_than_the_catalogue_is_not_priced(aws):
    aws.products[0]["product"]["attributes"]["gpu"] = "4"
    aws.products.append(
        aws_product(
            "T4", "AmazonEC2", "Compute Instance", on_demand=[aws_term(("0", "0.526"))],
            instanceType="g4dn.xlarge", regionCode="us-east-1", operatingSystem="Linux",
            tenancy="Shared", preInstalledSw="NA", capacitystatus="Used", gpu="1",
        )
    )  # fmt: skip

    done = refreshed()

    assert one().accelerator_key == "t4-16gb"
    assert done.ignored == {"count_differs": 1}
    assert done.unknown_names == ["p5.48xlarge: 4"]


def s3(sku: str, usage_type: str, *tiers: tuple[str, str], unit: str, family: str) -> dict:
    return aws_product(
        sku, "AmazonS3", family, on_demand=[aws_term(*tiers, unit=unit)],
        usagetype=usage_type, regionCode="us-west-2",
    )  # fmt: skip


def test_aws_storage_is_priced_by_the_decimal_tb_and_requests_by_the_thousand(aws):
    aws.products = [
        s3("S1", "USW2-TimedStorage-ByteHrs", ("0", "0.0230000000"), ("51200", "0.0220000000"),
           ("512000", "0.0210000000"), unit="GB-Mo", family="Storage"),
        s3("S2", "USW2-TimedStorage-GDA-ByteHrs", ("0", "0.00099"), unit="GB-Mo", family="Storage"),
        s3("R1", "USW2-Requests-Tier1", ("0", "0.0000050000"), unit="Requests",
           family="API Request"),
        s3("R2", "USW2-Requests-Tier2", ("0", "0.0000004000"), unit="Requests",
           family="API Request"),
        s3("X", "USW2-TagStorage-TagHrs", ("0", "0.01"), unit="Tag-Mo", family="Storage"),
    ]  # fmt: skip

    done = refresh_price_book(operator(), book("aws", "us-west-2", kinds=("storage",)))

    hot = one(cost_class="storage_object")
    assert hot.amount == Decimal("21.420419216156005859")  # 0.023 * 1e12 / 2^30, half-even
    assert hot.amount == (Decimal("0.023") * GIB_PER_TB).quantize(Decimal("1e-18"))
    assert hot.instance_type == "S3 Standard"
    assert "first of 3 tiers" in hot.note
    assert "2^30" in hot.note
    assert one(cost_class="storage_archive").instance_type == "S3 Glacier Deep Archive"
    assert one(cost_class="request_put").amount == Decimal("0.005")
    assert one(cost_class="request_get").amount == Decimal("0.0004")
    assert done.ignored == {"later_tiers": 2, "other_products": 1}


def out_of(sku: str, usage_type: str, *tiers: tuple[str, str], **attributes: str) -> dict:
    return aws_product(
        sku, "AWSDataTransfer", "Data Transfer", on_demand=[aws_term(*tiers, unit="GB")],
        usagetype=usage_type, fromRegionCode="us-east-1", **attributes,
    )  # fmt: skip


def test_transfer_takes_the_first_paid_tier_and_the_commonest_destination(aws):
    aws.products = [
        out_of("E", "DataTransfer-Out-Bytes", ("0", "0.0000000000"), ("100", "0.0900000000"),
               ("10240", "0.0850000000"), transferType="AWS Outbound"),
        out_of("I1", "USE1-USE2-AWS-Out-Bytes", ("0", "0.01"), transferType="InterRegion Outbound"),
        out_of("I2", "USE1-USW2-AWS-Out-Bytes", ("0", "0.02"), transferType="InterRegion Outbound"),
        out_of("I3", "USE1-EU-AWS-Out-Bytes", ("0", "0.02"), transferType="InterRegion Outbound"),
        out_of("N", "USE1-USE2-AWS-In-Bytes", ("0", "0"), transferType="InterRegion Inbound"),
    ]  # fmt: skip

    done = refreshed(kinds=("transfer",))

    decimal_gb = Decimal(10**9) / Decimal(2**30)
    quantum = Decimal("1e-18")
    assert one(cost_class="egress").amount == (Decimal("0.09") * decimal_gb).quantize(quantum)
    inter = one(cost_class="transfer_inter_region")
    assert inter.amount == (Decimal("0.02") * decimal_gb).quantize(quantum)
    assert "2 of 3 destinations" in inter.note
    assert done.ignored == {
        "free_tiers": 1,
        "later_tiers": 1,
        "other_destinations": 1,
        "other_products": 1,
    }


def test_refreshing_again_changes_nothing(aws):
    refreshed()
    before = list(Price.objects.values())
    entries = AuditEntry.objects.count()

    again = refreshed()

    assert (again.added, again.unchanged, again.withdrawn) == (0, 1, 0)
    assert list(Price.objects.values()) == before
    assert AuditEntry.objects.count() == entries


def test_a_changed_price_succeeds_the_old_one_from_its_day(aws):
    refreshed()
    aws.products = [p5("44.0000000000", effective="2026-06-01")]

    done = refreshed()

    assert (done.added, done.unchanged) == (1, 0)
    assert [price.amount for price in stored()] == [Decimal("6.88"), Decimal("5.5")]
    assert in_force("2026-05-31") == Decimal("6.88")
    assert in_force("2026-06-01") == Decimal("5.5")


def in_force(on: str) -> Decimal:
    found = price_in_force(
        builders.organisation().pk,
        cost_class="accelerator",
        on=date.fromisoformat(on),
        provider="aws",
        region="us-east-1",
        accelerator_key="h100-sxm-80gb",
    )
    assert found is not None
    return found.price.amount


def test_a_price_that_the_list_corrects_backwards_is_withdrawn(aws):
    refreshed()
    aws.products = [p5("44.0000000000", effective="2026-03-01")]

    done = refreshed()

    assert (done.added, done.withdrawn) == (1, 1)
    assert in_force("2026-05-01") == Decimal("5.5")


def test_a_later_day_of_the_same_price_adds_nothing(aws):
    refreshed()
    aws.products = [p5(effective="2026-07-01")]

    assert refreshed().added == 0
    assert one().valid_from == date(2026, 4, 1)


def test_a_price_that_is_no_longer_listed_stays_and_is_counted(aws):
    refreshed()
    aws.products = [p5(effective="2026-04-01")]
    aws.products[0]["product"]["attributes"]["instanceType"] = "p5e.48xlarge"

    done = refreshed()

    assert (done.added, done.gone) == (1, 1)
    assert len(stored()) == 2


def test_aws_refusing_names_the_missing_permission_and_keeps_the_book(aws):
    refreshed()
    aws.faults = ["AccessDeniedException"]

    with pytest.raises(PriceFeedError, match="pricing:GetProducts") as caught:
        refreshed()

    assert caught.value.is_permanent
    kept = PriceBook.objects.get()
    assert kept.refresh_error["code"] == "denied"
    assert "pricing:GetProducts" in kept.refresh_error["message"]
    assert len(stored()) == 1


def test_missing_aws_credentials_are_said(aws, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))

    with pytest.raises(PriceFeedError, match="No AWS credentials"):
        refreshed()


def test_throttling_is_waited_out(aws):
    aws.faults = ["ThrottlingException", "InternalErrorException"]

    assert refreshed().added == 1
    assert PriceBook.objects.get().refresh_error is None


def test_an_entry_that_cannot_be_read_leaves_nothing_of_the_refresh(aws):
    aws.page_rows = 1
    storage = s3("S1", "TimedStorage-ByteHrs", ("0", "0.023"), unit="GB-Mo", family="Storage")
    storage["product"]["attributes"]["regionCode"] = "us-east-1"
    broken = json.loads(json.dumps(storage))
    broken["terms"]["OnDemand"]["S1.0"]["priceDimensions"]["rate-0"]["pricePerUnit"] = {"USD": "x"}
    aws.products += [storage, broken]

    with pytest.raises(PriceFeedError, match="cannot be read"):
        refreshed(kinds=FEED_SERVICES)

    assert stored() == []
    assert PriceBook.objects.get().refresh_error["code"] == "unreadable"
    assert PriceBook.objects.get().refreshed_at is None


def test_a_region_that_nobody_has_is_said(aws):
    with pytest.raises(PriceFeedError, match="us-east-9"):
        refresh_price_book(operator(), book("aws", "us-east-9"))


def test_google_gpus_are_priced_exactly_by_their_sku(gcp):
    gcp.skus["6F81-5844-456A"] += [
        gcp_sku("S", "Nvidia L4 GPU attached to Spot Preemptible VMs running in Iowa", "0.224",
                usage_type="Preemptible"),
        gcp_sku("C1", "Commitment v1: Nvidia L4 GPU running in Iowa for 1 Year", "0.352831",
                usage_type="Commit1Yr"),
        gcp_sku("C3", "Commitment v1: Nvidia L4 GPU running in Iowa for 3 Years", "0.252019",
                usage_type="Commit3Yr"),
        gcp_sku("D", "Nvidia L4 GPU attached to DWS Defined Duration VMs running in Iowa", "0.3"),
        gcp_sku("E", "Nvidia L4 GPU running in Zurich", "0.7", regions=("europe-west6",)),
        gcp_sku("U", "Nvidia Z9000 GPU running in Iowa", "9"),
        gcp_sku("N", "N2 Instance Core running in Iowa", "0.03", group="CPU"),
    ]  # fmt: skip

    done = refreshed("gcp")

    price = one(purchase="on_demand")
    assert price.amount == Decimal("0.560040001")
    assert (price.accelerator_key, price.region) == ("l4-24gb", "us-central1")
    assert price.instance_type == "Nvidia L4 GPU"
    assert price.valid_from == date(2026, 5, 3)
    assert "GPU1" in price.source
    assert "the GPU alone" in price.note
    assert one(purchase="spot").amount == Decimal("0.224")
    assert one(purchase="reserved_1y").amount == Decimal("0.352831")
    assert one(purchase="reserved_3y").amount == Decimal("0.252019")
    assert done.ignored == {"other_terms": 1, "unknown_accelerator": 1, "other_products": 1}
    assert done.unknown_names == ["Nvidia Z9000 GPU running in Iowa"]
    assert gcp.asked[0]["key"] == "a key"


def test_a_google_gpu_with_cores_and_memory_listed_is_priced_by_its_machine(gcp):
    gcp.skus["6F81-5844-456A"] = [
        gcp_sku("G", "Nvidia H100 80GB GPU running in Iowa", "9.5"),
        gcp_sku("C", "A3 Instance Core running in Iowa", "0.03", group="CPU"),
        gcp_sku("R", "A3 Instance Ram running in Iowa", "0.0025", group="RAM", unit="GiBy.h"),
        gcp_sku("M", "Nvidia H100 80GB Mega GPU running in Iowa", "9.9"),
    ]

    done = refreshed("gcp")

    whole = one(instance_type="a3-highgpu-8g")
    assert whole.amount == Decimal("9.5") + (Decimal("6.24") + Decimal("4.68")) / 8
    assert "208 cores" in whole.note
    assert "G+C+R" in whole.source
    assert "the GPU alone" in one(instance_type="Nvidia H100 80GB Mega GPU").note
    assert done.ignored == {"parts_of_machines": 2}


def test_google_storage_and_transfer_convert_binary_gb_and_skip_free_allowances(gcp):
    gcp.skus["95FF-2EF5-5EA1"] = [
        gcp_sku("ST", "Standard Storage US Regional", "0", "0.02", unit="GiBy.mo", starts=(0, 5),
                family="Storage", group="RegionalStorage", regions=("us-central1", "us-east1")),
        gcp_sku("NL", "Nearline Storage Iowa", "0.01", unit="GiBy.mo", family="Storage"),
        gcp_sku("CL", "Coldline Storage Iowa", "0.004", unit="GiBy.mo", family="Storage"),
        gcp_sku("AR", "Archive Storage Iowa", "0.0012", unit="GiBy.mo", family="Storage"),
        gcp_sku("ED", "Nearline Storage Iowa (Early Delete)", "0.01", unit="GiBy.mo"),
        gcp_sku("CA", "Regional Standard Class A Operations", "0", "0.000005", unit="count",
                starts=(0, 5000)),
        gcp_sku("CB", "Regional Standard Class B Operations", "0.0000004", unit="count"),
        gcp_sku("DW", "Download Worldwide Destinations (excluding Asia & Australia)", "0.12",
                "0.11", unit="GiBy"),
    ]  # fmt: skip
    gcp.skus["6F81-5844-456A"] = [
        gcp_sku("IR", "Network Inter Region Data Transfer Out from Americas to Americas", "0.02",
                unit="GiBy", family="Network"),
    ]  # fmt: skip

    done = refreshed("gcp", kinds=("storage", "transfer"))

    quantum = Decimal("1e-18")
    hot = one(cost_class="storage_object")
    assert hot.amount == (Decimal("0.02") * GIB_PER_TB).quantize(quantum)
    warm = {price.instance_type for price in stored(cost_class="storage_object_infrequent")}
    assert warm == {"Nearline", "Coldline"}
    assert one(cost_class="storage_archive").instance_type == "Archive"
    assert one(cost_class="request_put").amount == Decimal("0.005")
    assert one(cost_class="request_get").amount == Decimal("0.0004")
    assert one(cost_class="egress").amount == (Decimal("0.12") * GIB_PER_TB / 1000).quantize(
        quantum
    )
    assert one(cost_class="transfer_inter_region")
    assert done.ignored == {"free_tiers": 2, "later_tiers": 1, "other_products": 1}


def test_google_pages_are_followed_and_a_broken_one_leaves_nothing(gcp):
    gcp.page_rows = 1
    gcp.skus["6F81-5844-456A"] += [gcp_sku("T", "Nvidia Tesla T4 GPU running in Iowa", "0.35")]
    assert refreshed("gcp").added == 2
    Price.objects.all().delete()
    gcp.broken_page = 2

    with pytest.raises(PriceFeedError, match="could not be read"):
        refreshed("gcp")

    assert stored() == []
    assert PriceBook.objects.get().refresh_error["code"] == "unreadable"


def test_google_refusing_says_which_service_to_enable(gcp):
    gcp.faults = [403]

    with pytest.raises(PriceFeedError, match=r"cloudbilling\.googleapis\.com") as caught:
        refreshed("gcp")

    assert caught.value.is_permanent


def test_google_asking_for_patience_is_asked_again(gcp):
    gcp.faults = [429, 503]

    assert refreshed("gcp").added == 1


def test_an_own_price_beats_a_listed_one_and_that_the_shipped_one(aws):
    refreshed()
    assert in_force("2026-05-01") == Decimal("6.88")

    add_price(operator(), price_wish("7.50", valid_from="2026-01-01", provider="aws"))

    assert in_force("2026-05-01") == Decimal("7.50")


def test_the_job_refreshes_the_book_and_a_refusal_is_its_error(aws):
    job_id = ask_for_refresh(operator(), book())
    run_job(job_id)
    done = job_progress(job_id, builders.organisation().pk)
    assert done.state == "succeeded"
    assert done.result["added"] == 1
    assert PriceBook.objects.get().refreshed_at is not None

    aws.faults = ["AccessDeniedException"]
    job_id = ask_for_refresh(operator(), book())
    run_job(job_id)
    failed = job_progress(job_id, builders.organisation().pk)
    assert failed.state == "failed"
    assert "pricing:GetProducts" in failed.error


def test_the_schedule_asks_for_every_connected_book(aws):
    book()
    assert ask_for_all_refreshes() == 1
    disconnect_price_feed(operator(), PriceBook.objects.get().pk)
    assert ask_for_all_refreshes() == 0


def test_a_book_of_a_feed_takes_no_other_prices_and_the_other_way_round(aws):
    add_price(operator(), price_wish(), book="Contract 12")
    with pytest.raises(PricesRefusedError, match="book of its own"):
        connect_price_feed(
            operator(), "Contract 12", feed="aws", wish=FeedSettings(regions=("us-east-1",))
        )
    book()
    with pytest.raises(PricesRefusedError, match="price feed fills"):
        add_price(operator(), price_wish(), book="aws list")


def test_only_administrators_connect_and_refresh(aws):
    connected = book()
    member = replace(operator(), organisation_role="member")
    with pytest.raises(PermissionDenied):
        connect_price_feed(member, "x", feed="aws", wish=FeedSettings(regions=("us-east-1",)))
    with pytest.raises(PermissionDenied):
        refresh_price_book(member, connected)
    with pytest.raises(PermissionDenied):
        disconnect_price_feed(member, connected.pk)


def test_the_command_connects_refreshes_and_prints_counts(aws):
    out = io.StringIO()
    call_command(
        "refresh_prices", "--book", "List", "--feed", "aws", "--region", "us-east-1",
        "--kind", "accelerators", "--json", stdout=out, stderr=io.StringIO(),
    )  # fmt: skip
    (document,) = json.loads(out.getvalue())["books"]
    assert (document["book"], document["added"], document["seen"]) == ("List", 1, 1)

    aws.faults = ["AccessDeniedException"]
    with pytest.raises(CommandError, match="Nothing stored"):
        call_command("refresh_prices", "--book", "List", stdout=io.StringIO())
    with pytest.raises(CommandError, match="No price feed fills"):
        call_command("refresh_prices", "--book", "another", stdout=io.StringIO())


def test_money_of_the_list_keeps_its_nine_decimals(gcp):
    refreshed("gcp")
    assert Money.of("0.560040001", "USD").amount == one().amount

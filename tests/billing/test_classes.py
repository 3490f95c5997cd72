"""Charges are classified by what their provider says, exactly once."""

from decimal import Decimal

import pytest

from billing.models import DailyCost
from billing.records import COST_CLASSES
from tests.billing.builders import charge, focus_csv, imported

pytestmark = pytest.mark.django_db(transaction=True)


def usage(
    service: str, category: str, words: str, unit: str = "", **columns: str
) -> dict[str, str]:
    """A usage row as a provider describes it."""
    return charge(
        ServiceName=service,
        ServiceCategory=category,
        ServiceSubcategory="",
        ChargeDescription=words,
        PricingUnit=unit,
        ConsumedUnit=unit,
        **columns,
    )


AWS_EC2 = ("Amazon Elastic Compute Cloud", "Compute")
AWS_S3 = ("Amazon Simple Storage Service", "Storage")
GCS = ("Cloud Storage", "Storage")
GCE = ("Compute Engine", "Compute")
BLOB = ("Storage Accounts", "Storage")
GOOGLE = {"ProviderName": "Google Cloud"}
AZURE = {"ProviderName": "Microsoft"}

CASES = [
    ("tax", charge(ChargeCategory="Tax")),
    ("credit", charge(ChargeCategory="Credit")),
    ("refund", charge(ChargeCategory="Credit", ChargeDescription="Refund of May")),
    ("rounding", charge(ChargeCategory="Adjustment", ChargeDescription="Rounding error")),
    ("refund", charge(ChargeCategory="Adjustment", ChargeDescription="Refund")),
    ("discount", charge(ChargeCategory="Adjustment", ChargeDescription="EDP discount")),
    ("other", charge(ChargeCategory="Adjustment")),
    ("commitment", charge(ChargeCategory="Purchase", CommitmentDiscountId="sp-1")),
    ("commitment", charge(ChargeCategory="Purchase", ChargeDescription="Savings Plan fee")),
    ("commitment", charge(CommitmentDiscountId="sp-1", CommitmentDiscountStatus="Unused")),
    ("support", usage("AWS Support (Business)", "Management and Governance", "Dollar")),
    (
        "accelerator",
        usage(*AWS_EC2, "$98.32 per On Demand Linux p5.48xlarge Instance Hour", "Hours"),
    ),
    ("accelerator", usage(*GCE, "Nvidia H100 80GB GPU running in Iowa", "Hours", **GOOGLE)),
    ("accelerator", usage("Virtual Machines", "Compute", "ND96isr H100 v5", "Hours", **AZURE)),
    (
        "other_compute",
        usage(*AWS_EC2, "$0.34 per On Demand Linux c5.2xlarge Instance Hour", "Hours"),
    ),
    ("other_compute", usage(*GCE, "E2 Instance Core running in Iowa", "Hours", **GOOGLE)),
    ("storage_object", usage(*AWS_S3, "TimedStorage-ByteHrs", "GB-Months")),
    ("storage_object_infrequent", usage(*AWS_S3, "USW2-TimedStorage-SIA-ByteHrs", "GB-Months")),
    ("storage_object_infrequent", usage(*AWS_S3, "TimedStorage-GIR-ByteHrs", "GB-Months")),
    ("storage_archive", usage(*AWS_S3, "TimedStorage-GDA-ByteHrs", "GB-Months")),
    ("storage_archive", usage(*AWS_S3, "EUC1-TimedStorage-GlacierByteHrs", "GB-Months")),
    ("request_put", usage(*AWS_S3, "Requests-Tier1", "Requests")),
    ("request_get", usage(*AWS_S3, "USW2-Requests-SIA-Tier2", "Requests")),
    ("request_other", usage(*AWS_S3, "Requests-Tier3", "Requests")),
    ("retrieval", usage(*AWS_S3, "Retrieval-SIA", "GB")),
    ("egress", usage(*AWS_S3, "USW2-DataTransfer-Out-Bytes", "GB")),
    ("egress", usage(*AWS_EC2, "$0.09 per GB - first 10 TB / month data transfer out", "GB")),
    ("transfer_inter_region", usage(*AWS_S3, "USE1-USW2-AWS-Out-Bytes", "GB")),
    ("transfer_intra_region", usage(*AWS_EC2, "$0.010 per GB - regional data transfer", "GB")),
    ("transfer_intra_region", usage("AmazonVPC", "Networking", "NAT gateway data processed", "GB")),
    (
        "storage_block",
        usage("Amazon Elastic Compute Cloud", "Storage", "EBS:VolumeUsage.gp3", "GB-Months"),
    ),
    (
        "storage_block",
        usage(*AWS_EC2[:1], "Storage", "$0.005 per provisioned IOPS-month of gp3", "IOPS-Months"),
    ),
    ("storage_file", usage("Amazon FSx", "Storage", "Storage.Lustre", "GB-Months")),
    (
        "storage_file",
        usage("Amazon Elastic File System", "Storage", "Infrequent Access", "GB-Months"),
    ),
    (
        "logging",
        usage("AmazonCloudWatch", "Management and Governance", "TimedStorage-ByteHrs", "GB-Months"),
    ),
    ("storage_object", usage(*GCS, "Standard Storage US Regional", "GB-Months", **GOOGLE)),
    ("storage_object_infrequent", usage(*GCS, "Nearline Storage US", "GB-Months", **GOOGLE)),
    ("storage_archive", usage(*GCS, "Archive Storage US", "GB-Months", **GOOGLE)),
    ("request_put", usage(*GCS, "Regional Standard Class A Operations", "Requests", **GOOGLE)),
    ("request_get", usage(*GCS, "Regional Standard Class B Operations", "Requests", **GOOGLE)),
    (
        "egress",
        usage(*GCE, "Network Internet Data Transfer Out from Iowa to Japan", "GB", **GOOGLE),
    ),
    (
        "transfer_inter_region",
        usage(*GCE, "Network Inter Region Data Transfer Out", "GB", **GOOGLE),
    ),
    ("transfer_intra_region", usage(*GCE, "Network Inter Zone Data Transfer Out", "GB", **GOOGLE)),
    ("storage_object", usage(*BLOB, "Hot LRS Data Stored", "GB-Months", **AZURE)),
    ("storage_object_infrequent", usage(*BLOB, "Cool LRS Data Stored", "GB-Months", **AZURE)),
    ("storage_archive", usage(*BLOB, "Archive LRS Data Stored", "GB-Months", **AZURE)),
    ("request_put", usage(*BLOB, "Hot LRS Write Operations", "Requests", **AZURE)),
    ("request_get", usage(*BLOB, "Hot Read Operations", "Requests", **AZURE)),
    (
        "request_other",
        usage(*BLOB, "LRS List and Create Container Operations", "Requests", **AZURE),
    ),
    ("request_other", usage(*BLOB, "Iterative Read Operations", "Requests", **AZURE)),
    ("egress", usage("Bandwidth", "Networking", "Standard Data Transfer Out", "GB", **AZURE)),
    (
        "transfer_inter_region",
        usage("Bandwidth", "Networking", "Intra Continent Data Transfer Out", "GB", **AZURE),
    ),
    ("other", usage("Amazon Simple Queue Service", "Integration", "requests", "Requests")),
    # usage types decide before words of the description
    (
        "storage_object_infrequent",
        usage(
            *AWS_S3,
            "$0.004 per GB-Month of storage used in Glacier Instant Retrieval",
            "GB-Months",
            x_UsageType="TimedStorage-GIR-ByteHrs",
        ),
    ),
    (
        "storage_archive",
        usage(
            *AWS_S3,
            "$0.0036 per GB-Month of storage used in Glacier Flexible Retrieval",
            "GB-Months",
            x_UsageType="USW2-TimedStorage-GlacierByteHrs",
        ),
    ),
    (
        "storage_object_infrequent",
        usage(
            *AWS_S3,
            "Early delete from Glacier Instant Retrieval",
            "GB-Months",
            x_UsageType="EarlyDelete-GIR",
        ),
    ),
    ("storage_object_infrequent", usage(*AWS_S3, "EarlyDelete-GIR-SmObjects", "GB-Months")),
    ("storage_object_infrequent", usage(*AWS_S3, "USW2-EarlyDelete-SIA", "GB-Months")),
    ("storage_object_infrequent", usage(*AWS_S3, "EarlyDelete-ZIA", "GB-Months")),
    ("storage_archive", usage(*AWS_S3, "EarlyDelete-GDA", "GB-Months")),
    ("storage_archive", usage(*AWS_S3, "EarlyDelete-GlacierByteHrs", "GB-Months")),
    ("storage_archive", usage("AmazonGlacier", "Storage", "TimedStorage-ByteHrs", "GB-Months")),
    ("storage_archive", usage("Amazon Glacier", "Storage", "EarlyDelete-ByteHrs", "GB-Months")),
    ("storage_file", usage("AmazonEFS", "Storage", "USW2-TimedStorage-ByteHrs", "GB-Months")),
    ("storage_file", usage("efs", "Storage", "TimedStorage-ByteHrs", "GB-Months")),
    (
        "storage_file",
        usage("Storage", "Storage", "Hot LRS Data Stored", SkuMeter="Files v2", **AZURE),
    ),
    ("storage_object", usage("Storage", "Storage", "Hot LRS Data Stored", "GB-Months", **AZURE)),
    (
        "egress",
        usage(
            *AWS_S3,
            "$0.09 per GB - data transfer out of S3 by GET",
            "GB",
            x_UsageType="USW2-DataTransfer-Out-Bytes",
        ),
    ),
    ("request_get", usage(*AWS_S3, "$0.0004 per 1,000 GET requests", "Requests")),
    (
        "transfer_intra_region",
        usage("NAT Gateway", "Networking", "Standard Data Processed", "GB", **AZURE),
    ),
    (
        "transfer_inter_region",
        usage(*GCS, "Network Data Replication within Northern America", "GB", **GOOGLE),
    ),
    (
        "transfer_inter_region",
        usage(*GCS, "Turbo Replication Inter Region", "GB", **GOOGLE),
    ),
]


def test_every_known_wording_has_its_class():
    rows = [
        {**row, "SubAccountId": f"{index:03} {cost_class}"}
        for index, (cost_class, row) in enumerate(CASES)
    ]

    imported(focus_csv(rows))

    found = dict(DailyCost.objects.values_list("sub_account_id", "x_cost_class"))
    wrong = {
        f"{key}: {CASES[int(key[:3])][1]['ChargeDescription']}": cost_class
        for key, cost_class in found.items()
        if key[4:] != cost_class
    }
    assert wrong == {}
    assert len(found) == len(CASES)
    assert set(found.values()) <= set(COST_CLASSES)


ACCELERATORS = [
    # what the bill says, unit, quantity -> accelerator, hours
    (
        usage(*AWS_EC2, "BoxUsage:p5.48xlarge", "Hours", ConsumedQuantity="10"),
        "h100-sxm-80gb",
        "80",
    ),
    (
        usage(*AWS_EC2, "USW2-SpotUsage:p4d.24xlarge", "Hours", ConsumedQuantity="0.5"),
        "a100-sxm-40gb",
        "4",
    ),
    (usage(*AWS_EC2, "UnusedBox:p5.48xlarge", "Hours", ConsumedQuantity="1"), "h100-sxm-80gb", "8"),
    (
        usage(*AWS_EC2, "Reservation:p5.48xlarge", "Hours", ConsumedQuantity="1"),
        "h100-sxm-80gb",
        None,
    ),
    (
        usage(
            "AmazonSageMaker",
            "AI and Machine Learning",
            "Train:ml.p5.48xlarge",
            "Hours",
            ConsumedQuantity="1",
        ),
        "h100-sxm-80gb",
        "8",
    ),
    (usage(*AWS_EC2, "BoxUsage:g3.4xlarge", "Hours"), "unmapped", None),
    (
        usage(
            *GCE,
            "Nvidia H100 80GB GPU running in Iowa",
            "Seconds",
            ConsumedQuantity="7200",
            **GOOGLE,
        ),
        "h100-sxm-80gb",
        "2",
    ),
    (
        usage(
            *GCE,
            "A3 Instance Core running in Iowa",
            "Hours",
            SkuPriceDetails='{"InstanceType":"a3-highgpu-8g"}',
            **GOOGLE,
        ),
        "h100-sxm-80gb",
        None,
    ),
    (
        usage(*GCE, "a3-highgpu-8g running", "Hours", ConsumedQuantity="3", **GOOGLE),
        "h100-sxm-80gb",
        "24",
    ),
    (
        usage(
            "Virtual Machines",
            "Compute",
            "ND96isr H100 v5 Spot",
            "Hours",
            ConsumedQuantity="2",
            **AZURE,
        ),
        "h100-sxm-80gb",
        "16",
    ),
    (
        usage(
            "Virtual Machines",
            "Compute",
            "NC40ads H100 v5",
            "Hours",
            SkuPriceDetails='{"InstanceType":"Standard_NC40ads_H100_v5"}',
            ConsumedQuantity="2",
            **AZURE,
        ),
        "h100-nvl-94gb",
        "2",
    ),
    (
        usage(
            "GPU",
            "Compute",
            "HGX H100",
            "GPU-Hours",
            ProviderName="Some GPU cloud",
            ConsumedQuantity="5",
        ),
        "h100-sxm-80gb",
        "5",
    ),
    # only the machine itself bills hours, not a fee that names it
    (usage("AmazonEKS", "Compute", "EKS-Auto:g6.xlarge-management-hours", "Hours"), None, None),
    (usage("ElasticMapReduce", "Analytics", "BoxUsage:g6.xlarge", "Hours"), None, None),
    (usage("Amazon Elastic MapReduce", "Analytics", "BoxUsage:g6.xlarge", "Hours"), None, None),
    (usage("some-product-code", "Other", "USW2-SoftwareUsage:g6.xlarge", "Hours"), None, None),
    (
        usage("SageMaker", "AI and Machine Learning", "Host:ml.g6.xlarge", "Hours"),
        "l4-24gb",
        "1",
    ),
    (
        usage("Virtual Machines Licenses", "Compute", "NC40ads H100 v5", "Hours", **AZURE),
        None,
        None,
    ),
    (usage("Azure Databricks", "Analytics", "NC40ads H100 v5", "Hours", **AZURE), None, None),
    (
        usage(
            "Azure Machine Learning",
            "AI and Machine Learning",
            "NC40ads H100 v5 Surcharge",
            "Hours",
            SkuPriceDetails='{"ServiceType":"Standard_NC40ads_H100_v5","UsageType":"ComputeHR_SW"}',
            **AZURE,
        ),
        None,
        None,
    ),
    (usage(*GCE, "Nvidia L4 GPU Premium in Iowa", "Hours", **GOOGLE), None, None),
    (
        usage(
            "Vertex AI",
            "AI and Machine Learning",
            "Management Fee on Nvidia Tesla T4 GPU",
            "Hours",
            **GOOGLE,
        ),
        None,
        None,
    ),
    # parts of a GPU, and machines without a label
    (
        usage(*GCE, "1/8 vGPU no lssd running in Iowa", "Hours", ConsumedQuantity="16", **GOOGLE),
        "rtx-pro-6000-96gb",
        "2",
    ),
    (
        usage(*GCE, "RTX 6000 96GB running in Iowa", "Hours", ConsumedQuantity="3", **GOOGLE),
        "rtx-pro-6000-96gb",
        "3",
    ),
    (usage(*GCE, "A3 Instance Core running in Iowa", "Hours", **GOOGLE), None, None),
    (usage(*GCE, "A3Plus Instance Ram running in Iowa", "Hours", **GOOGLE), None, None),
    (usage(*GCE, "A2 Instance Ram running in Iowa", "Hours", **GOOGLE), None, None),
    (usage(*GCE, "A4 Instance Core running in Iowa", "Hours", **GOOGLE), None, None),
    (usage(*GCE, "G2 Instance Core running in Iowa", "Hours", **GOOGLE), None, None),
    (usage(*AWS_EC2, "BoxUsage:gr6.4xlarge", "Hours"), "unmapped", None),
    (usage(*AWS_EC2, "BoxUsage:gr6f.4xlarge", "Hours"), "unmapped", None),
    (usage(*AWS_EC2, "USW2-HostUsage:g5", "Hours"), "unmapped", None),
    (usage(*AWS_EC2, "HostUsage:p5", "Hours"), "unmapped", None),
    (usage(*AWS_EC2, "HostUsage:m5", "Hours"), None, None),
]


def test_accelerators_and_their_hours_are_read_from_the_bill():
    rows = [{**row, "SubAccountId": str(index)} for index, (row, _, _) in enumerate(ACCELERATORS)]

    delivery = imported(focus_csv(rows))

    found = {
        int(key): (accelerator, hours)
        for key, accelerator, hours in DailyCost.objects.values_list(
            "sub_account_id", "x_accelerator", "accelerator_h"
        )
    }
    assert found == {
        index: (accelerator, None if hours is None else Decimal(hours))
        for index, (_, accelerator, hours) in enumerate(ACCELERATORS)
    }
    assert {item["name"] for item in delivery.report["unmapped_accelerators"]} == {
        "g3.4xlarge",
        "g5",
        "gr6.4xlarge",
        "gr6f.4xlarge",
        "p5",
    }


def test_a_commitment_that_lies_unused_counts_no_hours():
    imported(
        focus_csv(
            [
                usage(
                    *AWS_EC2,
                    "BoxUsage:p5.48xlarge",
                    "Hours",
                    CommitmentDiscountId="sp-1",
                    CommitmentDiscountStatus="Unused",
                )
            ]
        )
    )

    assert list(DailyCost.objects.values_list("x_cost_class", "accelerator_h")) == [
        ("commitment", None)
    ]

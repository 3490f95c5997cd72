"""The articles that the demo project is charged for, and what each costs. Prices are invented."""

from decimal import Decimal
from typing import Final

from costwatch.demo.focus import Sku
from costwatch.demo.story import GPUS_PER_NODE, Rate

AWS: Final = "AWS"
GCP: Final = "Google Cloud"


def rate(listed: str, contracted: str | None = None) -> Rate:
    """A price as text; without a contract the list price holds."""
    return Rate(listed=Decimal(listed), contracted=Decimal(contracted or listed))


def _ec2(instance_type: str, *, cost_class: str, gpus: int = 0) -> Sku:
    details = {"InstanceType": instance_type, "OperatingSystem": "Linux"}
    return Sku(
        provider=AWS,
        service_name="Amazon Elastic Compute Cloud",
        service_category="Compute",
        service_subcategory="Virtual Machines",
        service_code="AmazonEC2",
        usage_type=f"USW2-BoxUsage:{instance_type}",
        operation="RunInstances",
        description=f"{instance_type} Linux instance hour (synthetic)",
        unit="Hours",
        x_cost_class=cost_class,
        price_details=details | ({"GpuCount": str(gpus)} if gpus else {}),
        accelerators_per_unit=gpus,
    )


def _s3(usage_type: str, operation: str, *, unit: str, cost_class: str) -> Sku:
    return Sku(
        provider=AWS,
        service_name="Amazon Simple Storage Service",
        service_category="Storage",
        service_subcategory="Object Storage",
        service_code="AmazonS3",
        usage_type=usage_type,
        operation=operation,
        description=f"{usage_type} (synthetic)",
        unit=unit,
        x_cost_class=cost_class,
    )


def _transfer(usage_type: str, description: str, *, cost_class: str) -> Sku:
    return Sku(
        provider=AWS,
        service_name="AWS Data Transfer",
        service_category="Networking",
        service_subcategory="Network Connectivity",
        service_code="AWSDataTransfer",
        usage_type=usage_type,
        operation="",
        description=f"{description} (synthetic)",
        unit="GB",
        x_cost_class=cost_class,
    )


def _flat(service_name: str, service_code: str, description: str, *, cost_class: str) -> Sku:
    return Sku(
        provider=AWS,
        service_name=service_name,
        service_category="Other",
        service_subcategory="Other (Other)",
        service_code=service_code,
        usage_type="",
        operation="",
        description=f"{description} (synthetic)",
        unit="Months",
        x_cost_class=cost_class,
        region_id="",
        region_name="",
    )


def _gcp(service: str, sku: str, *, unit: str, cost_class: str, gpus: int = 0) -> Sku:
    is_network = cost_class == "egress"
    return Sku(
        provider=GCP,
        service_name=service,
        service_category="Networking" if is_network else "Compute",
        service_subcategory="Network Connectivity" if is_network else "Virtual Machines",
        service_code="6F81-5844-456A",
        usage_type=sku,
        operation="",
        description=f"{sku}",
        unit=unit,
        x_cost_class=cost_class,
        region_id="us-west1",
        region_name="Oregon",
        accelerators_per_unit=gpus,
    )


P5: Final = _ec2("p5.48xlarge", cost_class="accelerator", gpus=GPUS_PER_NODE)
CPU_NODE: Final = _ec2("c7a.48xlarge", cost_class="other_compute")
CPU_NODE_RATE: Final = rate("9.85344", "6.80")
SHARED_NODE: Final = _ec2("m7i.4xlarge", cost_class="other_compute")
SHARED_NODE_RATE: Final = rate("0.8064")

LUSTRE: Final = Sku(
    provider=AWS,
    service_name="Amazon FSx",
    service_category="Storage",
    service_subcategory="File Storage",
    service_code="AmazonFSx",
    usage_type="USW2-Storage.Lustre.PERSISTENT_2-SSD-500",
    operation="CreateFileSystem:Lustre",
    description="FSx for Lustre persistent SSD storage (synthetic)",
    unit="GB-Mo",
    x_cost_class="storage_file",
)
LUSTRE_RATE: Final = rate("0.34", "0.21")
EBS: Final = Sku(
    provider=AWS,
    service_name="Amazon Elastic Block Store",
    service_category="Storage",
    service_subcategory="Block Storage",
    service_code="AmazonEC2",
    usage_type="USW2-EBS:VolumeUsage.gp3",
    operation="CreateVolume-Gp3",
    description="gp3 root volumes of the training nodes (synthetic)",
    unit="GB-Mo",
    x_cost_class="storage_block",
)
EBS_RATE: Final = rate("0.08")
S3_STANDARD: Final = _s3(
    "USW2-TimedStorage-ByteHrs", "StandardStorage", unit="GB-Mo", cost_class="storage_object"
)
S3_STANDARD_RATE: Final = rate("0.0220", "0.0209")
S3_ARCHIVE: Final = _s3(
    "USW2-TimedStorage-GDA-ByteHrs",
    "DeepArchiveStorage",
    unit="GB-Mo",
    cost_class="storage_archive",
)
S3_ARCHIVE_RATE: Final = rate("0.00099")
S3_PUT: Final = _s3("USW2-Requests-Tier1", "PutObject", unit="Requests", cost_class="request_put")
S3_PUT_RATE: Final = rate("0.000005")
S3_GET: Final = _s3("USW2-Requests-Tier2", "GetObject", unit="Requests", cost_class="request_get")
S3_GET_RATE: Final = rate("0.0000004")

EGRESS: Final = _transfer(
    "USW2-DataTransfer-Out-Bytes", "Data transfer out to the internet", cost_class="egress"
)
EGRESS_RATE: Final = rate("0.09", "0.07")
INTER_REGION: Final = _transfer(
    "USW2-USE1-AWS-Out-Bytes", "Checkpoint copies to us-east-1", cost_class="transfer_inter_region"
)
INTER_REGION_RATE: Final = rate("0.02")
NAT: Final = Sku(
    provider=AWS,
    service_name="Amazon Virtual Private Cloud",
    service_category="Networking",
    service_subcategory="Network Connectivity",
    service_code="AmazonEC2",
    usage_type="USW2-NatGateway-Bytes",
    operation="NatGateway",
    description="Data processed by NAT gateways (synthetic)",
    unit="GB",
    x_cost_class="transfer_intra_region",
)
NAT_RATE: Final = rate("0.045")
LOGS: Final = Sku(
    provider=AWS,
    service_name="AmazonCloudWatch",
    service_category="Management and Governance",
    service_subcategory="Observability",
    service_code="AmazonCloudWatch",
    usage_type="USW2-DataProcessing-Bytes",
    operation="PutLogEvents",
    description="Log data ingested (synthetic)",
    unit="GB",
    x_cost_class="logging",
)
LOGS_RATE: Final = rate("0.50")

SUPPORT: Final = _flat(
    "AWS Support (Enterprise)",
    "AWSSupportEnterprise",
    "Enterprise support, 3 % of usage",
    cost_class="support",
)
TAX: Final = _flat("Tax", "Tax", "Sales tax on support", cost_class="tax")
CREDIT: Final = _flat(
    "Amazon Elastic Compute Cloud",
    "AmazonEC2",
    "Promotional research credit",
    cost_class="credit",
)
P5_REFUND: Final = Sku(
    provider=AWS,
    service_name="Amazon Elastic Compute Cloud",
    service_category="Compute",
    service_subcategory="Virtual Machines",
    service_code="AmazonEC2",
    usage_type="USW2-BoxUsage:p5.48xlarge",
    operation="Refund",
    description="Refund for hours of a failed node (synthetic)",
    unit="Hours",
    x_cost_class="refund",
)

GCP_GPU: Final = _gcp(
    "Compute Engine",
    "Nvidia H100 80GB GPU running in Oregon",
    unit="Hours",
    cost_class="accelerator",
    gpus=1,
)
GCP_GPU_RATE: Final = rate("9.7965", "4.20")
GCP_CORE: Final = _gcp(
    "Compute Engine", "A3 Instance Core running in Oregon", unit="Hours", cost_class="accelerator"
)
GCP_CORE_RATE: Final = rate("0.02868", "0.0172")
GCP_EGRESS: Final = _gcp(
    "Compute Engine",
    "Network Internet Data Transfer Out from Oregon to Americas",
    unit="GB",
    cost_class="egress",
)
GCP_EGRESS_RATE: Final = rate("0.12", "0.08")

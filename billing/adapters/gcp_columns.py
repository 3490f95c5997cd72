"""The columns of Google's BigQuery billing export, standard and detailed, and Google's words.

Source: Cloud Billing documentation, "Structure of standard / detailed data export".
"""

from collections.abc import Mapping
from typing import Final

DIRECT: Final[Mapping[str, str]] = {
    "billing_account_id": "billing_account_id",
    "sub_account_id": "project.id",
    "sub_account_name": "project.name",
    "billing_period_start": "invoice.month",
    "charge_period_start": "usage_start_time",
    "charge_period_end": "usage_end_time",
    "billed_cost": "cost",
    "list_cost": "cost_at_list",
    "list_unit_price": "price.list_price",
    "contracted_unit_price": "price.effective_price",
    "billing_currency": "currency",
    "pricing_quantity": "usage.amount_in_pricing_units",
    "pricing_unit": "usage.pricing_unit",
    "consumed_quantity": "usage.amount",
    "consumed_unit": "usage.unit",
    "service_name": "service.description",
    "sku_id": "sku.id",
    "availability_zone": "location.zone",
    "x_usage_type": "sku.description",
}
REQUIRED: Final = (
    "billing_account_id",
    "service.description",
    "sku.description",
    "usage_start_time",
    "usage_end_time",
    "cost",
    "currency",
    "invoice.month",
)
WANTED: Final = ("credits", "cost_type", "usage.amount", "usage.unit", "project.id")
NUMBERS: Final = (
    "cost",
    "cost_at_list",
    "price.list_price",
    "price.effective_price",
    "usage.amount_in_pricing_units",
    "usage.amount",
)
READ: Final = (
    "cost_type",
    "credits",
    "adjustment_info.id",
    "adjustment_info.description",
    "adjustment_info.mode",
    "adjustment_info.type",
    "invoice.publisher_type",
    "location.location",
    "location.region",
    "resource.global_name",
    "resource.name",
    "seller_name",
    "service.id",
    "subscription.instance_id",
)
# Tags, the first wins where two have the same key; the others' keys get the word before it.
TAG_COLUMNS: Final[Mapping[str, str]] = {
    "labels": "",
    "project.labels": "project/",
    "system_labels": "system/",
    "tags": "tag/",
}
# Kept beside the charge: amounts of other currencies cannot be explained without it.
KEPT: Final = ("currency_conversion_rate",)
ALSO: Final = (
    "consumption_model.description",
    "consumption_model.id",
    "cost_at_effective_price_default",
    "cost_at_list_consumption_model",
    "export_time",
    "location.country",
    "partition_date",
    "price.effective_price_default",
    "price.list_price_consumption_model",
    "price.pricing_unit",
    "price.pricing_unit_quantity",
    "price.tier_start_amount",
    "price.unit",
    "project.ancestors",
    "project.ancestry_numbers",
    "project.number",
    "transaction_type",
)
KNOWN: Final = (*DIRECT.values(), *NUMBERS, *READ, *TAG_COLUMNS, *KEPT, *ALSO)

CATEGORIES: Final[Mapping[str, str]] = {
    "regular": "Usage",
    "tax": "Tax",
    "adjustment": "Adjustment",
    "rounding_error": "Adjustment",
}
# Words of the SKUs by which Google sells commitments.
COMMITMENT_SKU: Final = r"(?i)^commitment\b|\bcommitment (?:v[0-9]|fee|- )|^commitment -"
# SKUs that are part of a machine: only there does the machine's type tell what was used.
MACHINE_SKU: Final = r"(?i)\b(?:core|ram|gpus?|tpu|vcpu|instance|slice|lssd|h200|b200)\b"
# service.description -> service category, the first pattern wins.
SERVICE_CATEGORIES: Final = (
    (r"^compute engine$|kubernetes|cloud run|cloud functions|app engine|^vmware", "Compute"),
    (
        r"vertex|gemini|^cloud (?:tpu|natural|speech|vision|translat)|machine learning|dialogflow"
        r"|^ai platform|notebooks",
        "AI and Machine Learning",
    ),
    (r"cloud storage|filestore|backup|storage transfer|parallelstore|netapp", "Storage"),
    (r"cloud sql|spanner|bigtable|firestore|alloydb|memorystore|datastore", "Databases"),
    (r"bigquery|dataflow|dataproc|composer|data fusion|looker|dataplex", "Analytics"),
    (r"networking|cdn|^cloud (?:dns|nat|vpn|interconnect|load)|network|interconnect", "Networking"),
    (
        r"logging|monitoring|trace|support|stackdriver|deployment|^cloud asset",
        "Management and Governance",
    ),
    (r"key management|security|secret|armor|certificate|recaptcha|chronicle|data loss", "Security"),
    (r"identity", "Identity"),
    (r"pub/sub|eventarc|workflows|tasks|scheduler|apigee", "Integration"),
    (r"artifact|container registry|source repo|cloud build|firebase", "Developer Tools"),
    (r"\biot\b", "Internet of Things"),
    (r"maps|workspace", "Business Applications"),
)
# SKUs of Compute Engine that are no machines.
DISK_SKU: Final = r"(?i)\bPD\b|persistent disk|hyperdisk|snapshot|storage image|disk capacity"
TRAFFIC_SKU: Final = (
    r"(?i)^network |\begress\b|\bingress\b|data transfer|nat gateway|external ip|\bvpn\b|"
    r"load balanc|forwarding rule"
)
SPEND_CREDITS: Final = ("COMMITTED_USAGE_DISCOUNT_DOLLAR_BASE", "FEE_UTILIZATION_OFFSET")
USAGE_CREDITS: Final = ("COMMITTED_USAGE_DISCOUNT",)

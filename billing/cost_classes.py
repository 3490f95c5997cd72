"""Which cost class a charge belongs to, as data: rules in order, the first match wins; no engine.

Patterns are RE2 and ignore case. Sources: AWS "Understanding your billing and usage reports" (EC2
and S3 user guides), Google Cloud SKU descriptions, Azure meter names, FOCUS 1.2 enumerations.
`words` is all that an export says about what was used: usage type, meter, description, details.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

STORAGE_SERVICES: Final = (
    r"\bs3\b|amazons3|simple storage|glacier|cloud storage|storage accounts|blob|"
    r"object storage|archive storage"
)
COMPUTE_CATEGORIES: Final = ("Compute", "AI and Machine Learning")
# Service categories in which an accelerator's instance or SKU can be billed.
ACCELERATOR_CATEGORIES: Final = (*COMPUTE_CATEGORIES, "Analytics", "Multicloud", "Other")
PROVIDERS: Final = (
    ("aws", r"aws|amazon"),
    ("gcp", r"google|gcp"),
    ("azure", r"microsoft|azure"),
)
# How each provider writes an instance type inside `words`; group 1 is the type.
INSTANCE_TYPES: Final = (
    (
        "aws",
        r"\b([a-z][a-z0-9]*(?:-[a-z0-9]+)*\."
        r"(?:metal(?:-[a-z0-9]+)?|nano|micro|small|medium|large|[0-9]*xlarge))\b",
    ),
    ("aws", r"\bhostusage:([a-z][a-z0-9-]*)"),  # a host is billed by its family
    ("gcp", r"\b((?:a[2-9]x?|g[2-9]|ct[0-9][a-z]*|tpu[0-9]+x?)-[a-z]+-[0-9]+[gt]?(?:-metal)?)\b"),
    ("azure", r"\b(?:standard_)?(n[cdv][0-9]+[a-z0-9]*(?:[ _][a-z0-9]+){0,3}[ _]v[0-9]+)\b"),
)
# Instance types that have accelerators even where the catalogue does not know them.
ACCELERATED: Final[Mapping[str, str]] = {
    "aws": r"^(?:p[2-9]|gr?[3-9]|trn|inf|dl[12]|vt1|f[12]\.)",
    "gcp": r".",
    "azure": r".",
}
# Rows of an accelerator's machine that must not count its hours again: parts billed beside the
# GPU itself, instances on a host that is billed, reservations whose use is billed.
PART_OF_MACHINE: Final = (
    r"\b(?:core|ram|memory|vcpu|cpu|ssd|local ssd|lssd)\b|"
    r"hostboxusage|ebsoptimized|\breservation:|dedicatedres:"
)
# Fees that name the machine they are charged on: only the machine itself bills its hours.
SURCHARGE_SERVICES: Final = (
    r"elastic ?mapreduce|\bemr\b|virtual machines? licenses|databricks|"
    r"\b(?:amazon)?eks\b|elastic (?:kubernetes|container) service"
)
SURCHARGE_WORDS: Final = (
    r"\beks-auto:|management-hours|softwareusage:|computehr_sw|gpu premium|management fee|"
    r"licensing fee"
)
# Google's words for machines with accelerators where neither a type nor a GPU is named.
GCP_MACHINE_WORDS: Final = (
    r"\b(?:a[2-4](?:x|plus| ?ultra| ?mega)?|g[24]) (?:[a-z]+ )?instance (?:core|ram)\b|"
    r"\bvgpus?\b|\brtx\b"
)
# A part of a GPU that Google sells, as 1/8 vGPU; group 1 is how many parts make one.
GPU_FRACTION: Final = r"\b1/([0-9]+) v?gpus?\b"
# The only GPU of which Google sells parts.
GCP_SHARED_GPU: Final = (r"\bvgpus?\b", "rtx-pro-6000-96gb")
ACCELERATOR_WORDS: Final = (
    r"gpu|tpu|\brtx\b|nvidia|tesla|trainium|gaudi|"
    r"\b(?:g?b[23]00|gh200|h[128]00|h20|a[18]00|v100|l40s?|a10g?|l4|t4|mi[23]\d\dx)\b"
)
ACCELERATOR_UNITS: Final = r"gpu|accelerator|chip"
UNMAPPED: Final = "unmapped"
# Capacity that was billed and used by nobody.
IDLE_WORDS: Final = r"unusedbox:|unusedded:|unused reservation"
IDLE_TYPES: Final = r"^unused(?:reservation|savingsplan)$"
STORAGE_CLASSES: Final = (
    "storage_file",
    "storage_block",
    "storage_object",
    "storage_object_infrequent",
    "storage_archive",
)
REQUEST_CLASSES: Final = ("request_get", "request_put", "request_other")
TRANSFER_CLASSES: Final = (
    "retrieval",
    "egress",
    "transfer_inter_region",
    "transfer_intra_region",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRule:
    """All of `equals` and `matches` must hold, on charge columns or on what derives from them."""

    cost_class: str
    equals: Mapping[str, str | bool] = field(default_factory=dict)
    matches: Mapping[str, str] = field(default_factory=dict)


def _when(cost_class: str, words: str, **equals: str | bool) -> ClassRule:
    return ClassRule(cost_class=cost_class, equals=equals, matches={"words": words})


def _stored(cost_class: str, words: str, service_name: str) -> ClassRule:
    """By a storage service's name and the words together."""
    return ClassRule(
        cost_class=cost_class,
        equals={"storage": True},
        matches={"words": words, "service_name": service_name},
    )


def _lined(cost_class: str, line_item_type: str) -> ClassRule:
    """An adjustment by the provider's own word for the kind of line."""
    return ClassRule(
        cost_class=cost_class,
        equals={"charge_category": "Adjustment"},
        matches={"x_line_item_type": line_item_type},
    )


# AWS's usage types decide before any word of a description: no other words look like them.
_TYPED_REQUEST_OTHER = (
    r"requests(?:-[a-z]+)?-tier[34568]|batchoperations|monitoring-automation|inventory-|storagelens|"
    r"tagstorage"
)
_TYPED_RETRIEVAL = (
    r"retrieval-(?:sia|zia|gir|xz)|(?:standard|bulk|expedited)-retrieval|"
    r"select-(?:scanned|returned)|upload-xz"
)
_STORED = r"timedstorage|earlydelete"
_TYPED_INFREQUENT = r"(?:timedstorage|earlydelete)-(?:sia|zia|gir|int-ia|int-aia)"
_TYPED_ARCHIVE = r"(?:timedstorage|earlydelete)-(?:glacier|gda|int-d?aa)"
_REQUEST_OTHER = (
    r"iterative (?:read|write) operations|list and create container|"
    r"all other operations|delete operations|tagging|lifecycle"
)
_REQUEST_PUT = r"class a (?:operations|requests)|write operations|\bput\b|\bpost\b"
_REQUEST_GET = r"class b (?:operations|requests)|read operations|\bget\b"
_RETRIEVAL = r"data retrieval|\bretrieval\b"
_INTER_REGION = (
    r"inter[- ]region|intra[- ]continent|inter[- ]continent|"
    r"geo-replication data|\) data transfer (?:to|from) "
)
_TYPED_INTRA_REGION = (
    r"datatransfer-regional|c3datatransfer|natgateway-bytes|vpcendpoint-bytes|transitgateway-bytes"
)
_INTRA_REGION = (
    r"regional data transfer|inter[- ]?(?:zone|az)\b|nat (?:gateway )?data process|"
    r"processed by nat|peering|inter-virtual network|data transfer (?:in|out).* cloudfront"
)
_INGRESS = r"data transfer in\b"
_EGRESS = (
    r"data transfer out|"
    r"download (?:worldwide|apac|china|australia)|internet (?:data transfer out|egress)|"
    r"outbound data transfer|internet egress"
)
_BLOCK = (
    r"ebs:|volumeusage|snapshot|provisioned storage|general purpose ssd|persistent disk|"
    r"pd capacity|hyperdisk|managed disk|provisioned iops|iops-month|gib/second|throughput|"
    r"\b[pes]\d+ (?:lrs|zrs) disk|block (?:volume|storage)"
)
_FILE = (
    r"\b(?:amazon)?fsx|lustre|\b(?:amazon)?efs\b|elastic file|filestore|azure files|netapp files|"
    r"file storage"
)
_INFREQUENT = (
    r"infrequent|standard-ia|one zone-ia|glacier instant|nearline|coldline|\bcool\b|\bcold\b"
)
_ARCHIVE = r"glacier|-gda-|int-d?aa-|\barchive\b|deep archive"
_LOGGING = (
    r"cloudwatch|cloudtrail|x-ray|cloud logging|cloud monitoring|stackdriver|azure monitor|"
    r"log analytics"
)

RULES: Final[tuple[ClassRule, ...]] = (
    ClassRule(cost_class="tax", equals={"charge_category": "Tax"}),
    _when("refund", r"\brefund", charge_category="Credit"),
    ClassRule(cost_class="credit", equals={"charge_category": "Credit"}),
    _lined("refund", r"^refund$"),
    _lined("rounding", r"^round"),
    _lined("discount", r"discount$"),
    _when("rounding", r"\bround", charge_category="Adjustment"),
    _when("refund", r"\brefund", charge_category="Adjustment"),
    _when("discount", r"discount|\bedp\b|negotiated|private rate", charge_category="Adjustment"),
    ClassRule(cost_class="other", equals={"charge_category": "Adjustment"}),
    ClassRule(cost_class="commitment", equals={"charge_category": "Purchase", "committed": True}),
    _when("commitment", r"savings plan|reserv|commit", charge_category="Purchase"),
    ClassRule(cost_class="commitment", equals={"commitment_discount_status": "Unused"}),
    ClassRule(cost_class="support", matches={"service_name": r"\bsupport\b|awssupport"}),
    # Own hardware that the catalogue does not know is an accelerator all the same.
    _when("accelerator", r"\bdepreciation of ", service_name="Own hardware"),
    ClassRule(cost_class="accelerator", equals={"accelerated": True}),
    ClassRule(cost_class="logging", matches={"service_name": _LOGGING}),
    ClassRule(cost_class="logging", equals={"service_subcategory": "Observability"}),
    _when("request_other", _TYPED_REQUEST_OTHER, storage=True),
    _when("request_put", r"requests(?:-[a-z]+)?-tier1\b", storage=True),
    _when("request_get", r"requests(?:-[a-z]+)?-tier2\b", storage=True),
    _when("retrieval", _TYPED_RETRIEVAL, storage=True),
    _when("storage_file", _STORED, service_subcategory="File Storage"),
    _stored("storage_file", _STORED, _FILE),
    _when("storage_object_infrequent", _TYPED_INFREQUENT, storage=True),
    _when("storage_archive", _TYPED_ARCHIVE, storage=True),
    _stored("storage_archive", _STORED, "glacier"),
    _when("storage_object", _STORED, storage=True),
    _when("transfer_inter_region", r"-aws-(?:out|in)-bytes|s3rtc", transfer=True),
    _when("transfer_intra_region", _TYPED_INTRA_REGION, transfer=True),
    _when("other", r"datatransfer-in-bytes", transfer=True),
    _when(
        "egress", r"datatransfer-out-bytes|cloudfront-out|aws-out-abytes|mrap-out", transfer=True
    ),
    _when("request_other", _REQUEST_OTHER, storage=True),
    _when("request_put", _REQUEST_PUT, storage=True),
    _when("request_get", _REQUEST_GET, storage=True),
    _when("retrieval", _RETRIEVAL, storage=True),
    ClassRule(
        cost_class="transfer_inter_region",
        equals={"transfer": True},
        matches={"service_name": r"cloud storage", "words": r"\breplication\b|inter[- ]region"},
    ),
    ClassRule(
        cost_class="transfer_intra_region",
        equals={"transfer": True},
        matches={"service_name": r"nat gateway", "words": r"data processed"},
    ),
    _when("transfer_inter_region", _INTER_REGION, transfer=True),
    _when("transfer_intra_region", _INTRA_REGION, transfer=True),
    _when("other", _INGRESS, transfer=True),
    _when("egress", _EGRESS, transfer=True),
    ClassRule(cost_class="storage_file", equals={"service_subcategory": "File Storage"}),
    ClassRule(cost_class="storage_block", equals={"service_subcategory": "Block Storage"}),
    ClassRule(
        cost_class="storage_file",
        equals={"service_category": "Storage"},
        matches={"service_name": _FILE},
    ),
    _when("storage_file", _FILE, service_category="Storage"),
    _stored("storage_file", r"\bfiles\b", r"^storage$|storage accounts"),
    _when("storage_block", _BLOCK, service_category="Storage"),
    _when("storage_object_infrequent", _INFREQUENT, storage=True),
    _when("storage_archive", _ARCHIVE, storage=True),
    ClassRule(
        cost_class="request_other", equals={"storage": True}, matches={"unit": r"request|operation"}
    ),
    ClassRule(cost_class="storage_object", equals={"storage": True}),
    *(
        ClassRule(cost_class="other_compute", equals={"service_category": category})
        for category in COMPUTE_CATEGORIES
    ),
)
OTHERWISE: Final = "other"

"""Which S3 usage types of the AWS price list are which class of charges; words only."""

from typing import Final

# Usage types without their region's prefix, as the S3 user guide lists them.
STORAGE_TYPES: Final = {
    "TimedStorage-ByteHrs": ("storage_object", "S3 Standard"),
    "TimedStorage-XZ-ByteHrs": ("storage_object", "S3 Express One Zone"),
    "TimedStorage-INT-FA-ByteHrs": ("storage_object", "S3 Intelligent-Tiering, frequent access"),
    "TimedStorage-SIA-ByteHrs": ("storage_object_infrequent", "S3 Standard-IA"),
    "TimedStorage-ZIA-ByteHrs": ("storage_object_infrequent", "S3 One Zone-IA"),
    "TimedStorage-INT-IA-ByteHrs": (
        "storage_object_infrequent",
        "S3 Intelligent-Tiering, infrequent access",
    ),
    "TimedStorage-GIR-ByteHrs": ("storage_object_infrequent", "S3 Glacier Instant Retrieval"),
    "TimedStorage-GlacierByteHrs": ("storage_archive", "S3 Glacier Flexible Retrieval"),
    "TimedStorage-GDA-ByteHrs": ("storage_archive", "S3 Glacier Deep Archive"),
}
REQUEST_TYPES: Final = {
    "Requests-Tier1": ("request_put", "S3 Standard"),
    "Requests-Tier2": ("request_get", "S3 Standard"),
    "Requests-SIA-Tier1": ("request_put", "S3 Standard-IA"),
    "Requests-SIA-Tier2": ("request_get", "S3 Standard-IA"),
    "Requests-GIR-Tier1": ("request_put", "S3 Glacier Instant Retrieval"),
    "Requests-GIR-Tier2": ("request_get", "S3 Glacier Instant Retrieval"),
}

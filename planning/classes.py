"""Which classes of charges the burn-down shows together, and which count as compute. Pure."""

from planning.records import CostGroup

# The design's tiers: hot = file and block, warm = object and infrequent access, cold = archive.
GROUP_OF_CLASS: dict[str, CostGroup] = {
    "accelerator": CostGroup.ACCELERATOR,
    "commitment": CostGroup.ACCELERATOR,
    "other_compute": CostGroup.OTHER_COMPUTE,
    "storage_file": CostGroup.STORAGE_HOT,
    "storage_block": CostGroup.STORAGE_HOT,
    "storage_object": CostGroup.STORAGE_WARM,
    "storage_object_infrequent": CostGroup.STORAGE_WARM,
    "storage_archive": CostGroup.STORAGE_COLD,
    "retrieval": CostGroup.STORAGE_COLD,
    "request_get": CostGroup.REQUESTS,
    "request_put": CostGroup.REQUESTS,
    "request_other": CostGroup.REQUESTS,
    "egress": CostGroup.TRANSFER,
    "transfer_inter_region": CostGroup.TRANSFER,
    "transfer_intra_region": CostGroup.TRANSFER,
    "logging": CostGroup.SERVICES,
    "support": CostGroup.SERVICES,
    "tax": CostGroup.TAX,
    "credit": CostGroup.CREDITS,
    "refund": CostGroup.CREDITS,
    "discount": CostGroup.CREDITS,
    "rounding": CostGroup.OTHER,
    "other": CostGroup.OTHER,
}
# What the programme multiple counts: the price of computing, commitments bought for it included.
COMPUTE_CLASSES = frozenset({"accelerator", "commitment", "other_compute"})


def group_of(x_cost_class: str) -> CostGroup:
    """The band of a class of charges; one that is new to this table is shown under other."""
    return GROUP_OF_CLASS.get(x_cost_class, CostGroup.OTHER)

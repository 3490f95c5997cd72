"""Clears away what killed jobs left in the lake: files that no row refers to."""

from billing.models import ChargeSlice, Delivery, DeliveryFile
from billing.records import DATASET
from billing.services.dry_run import SHELF as SAMPLES
from lake import blobs, store
from lake.places import GRACE_S, sweep_scratch


def sweep_lake(*, grace_s: float = GRACE_S) -> dict[str, int]:
    """Remove scratch folders, slices and bytes that nothing refers to and nobody touched lately."""
    kept = DeliveryFile.objects.exclude(delivery__state=Delivery.State.REFUSED)
    return {
        "scratch": sweep_scratch(grace_s=grace_s),
        "slices": store.sweep(
            DATASET, keep=set(ChargeSlice.objects.values_list("path", flat=True)), grace_s=grace_s
        ),
        "blobs": blobs.sweep(keep=set(kept.values_list("sha256", flat=True)), grace_s=grace_s),
        "samples": blobs.sweep(keep=(), grace_s=grace_s, shelf=SAMPLES),
    }

"""What people read instead of the names of cost classes; no rule lives here."""

from typing import Final

from django.utils.translation import gettext_lazy as _

CLASS_NAMES: Final = {
    "accelerator": _("Accelerators"),
    "other_compute": _("Other compute"),
    "storage_file": _("File storage"),
    "storage_block": _("Block storage"),
    "storage_object": _("Object storage"),
    "storage_object_infrequent": _("Object storage, infrequent access"),
    "storage_archive": _("Archive storage"),
    "request_get": _("GET requests"),
    "request_put": _("PUT requests"),
    "request_other": _("Other requests"),
    "retrieval": _("Retrieval"),
    "egress": _("Egress to the internet"),
    "transfer_inter_region": _("Transfer between regions"),
    "transfer_intra_region": _("Transfer within a region"),
    "logging": _("Logging and monitoring"),
    "support": _("Support"),
    "tax": _("Tax"),
    "credit": _("Credits"),
    "refund": _("Refunds"),
    "discount": _("Discounts"),
    "commitment": _("Commitments"),
    "rounding": _("Rounding"),
    "other": _("Other"),
}
VIEW_NAMES: Final = {
    "version": _("The version's own total"),
    "lake": _("Every single row of the lake"),
    "project_id": _("By project"),
    "x_cost_class": _("By class"),
    "service_name": _("By service"),
    "region_id": _("By region"),
    "sub_account_id": _("By account"),
    "charge_category": _("By kind of charge"),
    "day": _("By day"),
}

"""What people read instead of the names of price classes, units and purchases; no rule here."""

from typing import Final

from django.utils.translation import gettext_lazy as _

from billing.price_records import PRICE_CLASSES
from billing.words import CLASS_NAMES

PRICE_CLASS_NAMES: Final = {name: CLASS_NAMES.get(name, _("Electricity")) for name in PRICE_CLASSES}
UNIT_NAMES: Final = {
    "accelerator_h": _("per accelerator-hour"),
    "tb_month": _("per TB and month"),
    "1000_requests": _("per 1,000 requests"),
    "gb": _("per GB"),
    "month": _("per month"),
    "kwh": _("per kWh"),
}
PURCHASE_NAMES: Final = {
    "on_demand": _("On demand"),
    "spot": _("Spot"),
    "reserved_1y": _("Reserved, 1 year"),
    "reserved_3y": _("Reserved, 3 years"),
    "contract": _("Contract"),
}
DERIVATION_NAMES: Final = {
    "stated": _("as stated"),
    "inverse": _("one over the stated rate"),
    "cross": _("by way of the euro"),
}
PROVIDER_NAMES: Final = {
    "aws": "AWS",
    "gcp": "Google Cloud",
    "azure": "Azure",
    "coreweave": "CoreWeave",
    "lambda": "Lambda",
    "nebius": "Nebius",
}

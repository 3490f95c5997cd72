"""What people read instead of the names of columns, bases and measures; no figure lives here."""

from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.cost_questions import TAG_PREFIX, Filter
from billing.records import Basis
from billing.words import CLASS_NAMES

COLUMN_NAMES: Final = {
    "x_cost_class": gettext_lazy("Class"),
    "service_name": gettext_lazy("Service"),
    "service_category": gettext_lazy("Service category"),
    "region_id": gettext_lazy("Region"),
    "sub_account_id": gettext_lazy("Account"),
    "project": gettext_lazy("Project"),
    "provider_name": gettext_lazy("Provider"),
    "sku_id": gettext_lazy("SKU"),
    "charge_category": gettext_lazy("Charge category"),
    "x_accelerator": gettext_lazy("Accelerator"),
    "resource_id": gettext_lazy("Resource"),
    "run_key": gettext_lazy("Run"),
    "team": gettext_lazy("Team"),
    "plan_line_key": gettext_lazy("Plan line"),
    "rule_position": gettext_lazy("Allocation rule"),
    "day": gettext_lazy("Day"),
    "month": gettext_lazy("Month"),
    "invoice_id": gettext_lazy("Invoice"),
    "billing_currency": gettext_lazy("Currency"),
    "x_estimated": gettext_lazy("Estimated"),
    "charge_description": gettext_lazy("Description"),
    "x_instance_type": gettext_lazy("Instance type"),
    "x_usage_type": gettext_lazy("Usage type"),
}
MISSING_NAMES: Final = {
    "project": gettext_lazy("Unallocated"),
    "service_name": gettext_lazy("no service"),
    "service_category": gettext_lazy("no service category"),
    "region_id": gettext_lazy("no region"),
    "sub_account_id": gettext_lazy("no account"),
    "provider_name": gettext_lazy("no provider"),
    "sku_id": gettext_lazy("no SKU"),
    "x_accelerator": gettext_lazy("no accelerator"),
    "resource_id": gettext_lazy("no resource"),
    "run_key": gettext_lazy("no run"),
    "team": gettext_lazy("no team"),
    "plan_line_key": gettext_lazy("no plan line"),
    "rule_position": gettext_lazy("no rule"),
    "invoice_id": gettext_lazy("no invoice"),
}
TABS: Final = (
    "x_cost_class",
    "service_name",
    "region_id",
    "sub_account_id",
    "project",
    "provider_name",
    "sku_id",
)
BASIS_NAMES: Final = {
    Basis.BILLED: gettext_lazy("Billed"),
    Basis.EFFECTIVE: gettext_lazy("Effective"),
    Basis.LIST: gettext_lazy("List"),
    Basis.CONTRACTED: gettext_lazy("Contracted"),
}
BASIS_WORDS: Final = {
    Basis.BILLED: gettext_lazy("What the provider's invoice asks for."),
    Basis.EFFECTIVE: gettext_lazy(
        "What was used, with upfront payments and commitments spread over their use."
    ),
    Basis.LIST: gettext_lazy("What was used at list prices, before any discount."),
    Basis.CONTRACTED: gettext_lazy("What was used at the negotiated prices."),
}


def column_name(name: str) -> str:
    """The column as people call it."""
    if name.startswith(TAG_PREFIX):
        return _("Tag {key}").format(key=name.removeprefix(TAG_PREFIX))
    return str(COLUMN_NAMES.get(name, name))


def value_name(column: str, value: str | None) -> str:
    """A value of a column as people read it; where there is none, what is missing."""
    if value is None and column.startswith(TAG_PREFIX):
        return _("without this tag")
    if value is None:
        return str(MISSING_NAMES.get(column, _("not stated")))
    if column == "x_cost_class":
        return str(CLASS_NAMES.get(value, value))
    return value


def filter_words(one: Filter) -> str:
    """A filter as people read it."""
    values = " / ".join(value_name(one.column, value) for value in one.values)
    words = _("{column} is not {values}") if one.is_not else _("{column}: {values}")
    return words.format(column=column_name(one.column), values=values)

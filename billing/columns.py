"""The columns of a stored charge, in order: FOCUS names in snake case, then our own."""

from collections.abc import Mapping
from typing import Final

from billing.records import ChargeColumn, Kind

_CHARGE_CATEGORY = ("Usage", "Purchase", "Tax", "Credit", "Adjustment")
_SERVICE_CATEGORY = (
    "AI and Machine Learning",
    "Analytics",
    "Business Applications",
    "Compute",
    "Databases",
    "Developer Tools",
    "Multicloud",
    "Identity",
    "Integration",
    "Internet of Things",
    "Management and Governance",
    "Media",
    "Migration",
    "Mobile",
    "Networking",
    "Security",
    "Storage",
    "Web",
    "Other",
)


def _text(name: str, *, required: bool = False, nullable: bool = True) -> ChargeColumn:
    return ChargeColumn(name=name, required=required, nullable=nullable)


def _enum(name: str, values: tuple[str, ...], *, required: bool = False) -> ChargeColumn:
    return ChargeColumn(
        name=name, kind=Kind.ENUM, required=required, nullable=not required, values=values
    )


def _money(name: str, *, required: bool = False) -> ChargeColumn:
    return ChargeColumn(name=name, kind=Kind.MONEY, required=required, nullable=not required)


def _quantity(name: str) -> ChargeColumn:
    return ChargeColumn(name=name, kind=Kind.QUANTITY)


def _instant(name: str) -> ChargeColumn:
    return ChargeColumn(name=name, kind=Kind.INSTANT, required=True, nullable=False)


CHARGE_COLUMNS: Final = (
    _text("provider_name", required=True, nullable=False),
    _text("publisher_name"),
    _text("host_provider_name"),
    _text("invoice_issuer_name"),
    _text("invoice_id"),
    _text("invoice_detail_id"),
    _text("billing_account_id", required=True, nullable=False),
    _text("billing_account_name"),
    _text("billing_account_type"),
    _text("sub_account_id"),
    _text("sub_account_name"),
    _text("sub_account_type"),
    _instant("billing_period_start"),
    _instant("billing_period_end"),
    _instant("charge_period_start"),
    _instant("charge_period_end"),
    _enum("charge_category", _CHARGE_CATEGORY, required=True),
    _enum("charge_class", ("Correction",)),
    _text("charge_description"),
    _enum("charge_frequency", ("One-Time", "Recurring", "Usage-Based")),
    _money("billed_cost", required=True),
    _money("effective_cost", required=True),
    _money("list_cost", required=True),
    _money("contracted_cost", required=True),
    _money("list_unit_price"),
    _money("contracted_unit_price"),
    ChargeColumn(name="billing_currency", kind=Kind.CURRENCY, required=True, nullable=False),
    _enum("pricing_category", ("Standard", "Dynamic", "Committed", "Other")),
    _quantity("pricing_quantity"),
    _text("pricing_unit"),
    _text("pricing_currency"),
    _money("pricing_currency_contracted_unit_price"),
    _money("pricing_currency_effective_cost"),
    _money("pricing_currency_list_unit_price"),
    _quantity("consumed_quantity"),
    _text("consumed_unit"),
    _text("service_name", required=True, nullable=False),
    _enum("service_category", _SERVICE_CATEGORY, required=True),
    _text("service_subcategory"),
    _text("sku_id"),
    _text("sku_meter"),
    _text("sku_price_id"),
    _text("sku_price_details"),
    _text("resource_id"),
    _text("resource_name"),
    _text("resource_type"),
    _text("region_id"),
    _text("region_name"),
    _text("availability_zone"),
    _text("commitment_discount_id"),
    _text("commitment_discount_name"),
    _enum("commitment_discount_category", ("Spend", "Usage")),
    _text("commitment_discount_type"),
    _enum("commitment_discount_status", ("Used", "Unused")),
    _quantity("commitment_discount_quantity"),
    _text("commitment_discount_unit"),
    _text("capacity_reservation_id"),
    _enum("capacity_reservation_status", ("Used", "Unused")),
    _text("allocated_method_id"),
    _text("allocated_method_details"),
    _text("allocated_resource_id"),
    _text("allocated_resource_name"),
    _text("allocated_tags"),
    _text("contract_applied"),
    ChargeColumn(name="tags", kind=Kind.TAGS),
    # the provider's own words for what was used, where an export carries them
    _text("x_usage_type"),
    _text("x_operation"),
    _text("x_line_item_type"),
    _text("x_credit_type"),
    _text("x_instance_type"),
)
BY_NAME: Final = {column.name: column for column in CHARGE_COLUMNS}
UNKNOWN: Final = "x_unknown"  # every other column, as MAP(text, text)
# What staging adds to a charge: where it stands in its file, and what it means to training.
DERIVED_COLUMNS: Final[Mapping[str, str]] = {
    "x_billing_period": "string",  # 2026-05
    "x_source_file": "string",
    "x_source_row": "int64",  # the header is row 1
    UNKNOWN: "map<string, string>",
    "x_estimated": "boolean",  # priced by us: the bill states no cost
    "x_price_label": "string",  # by which price
    "x_cost_class": "string",
    "x_accelerator": "string",
    "x_accelerator_h": "decimal(38, 18)",
    "x_idle_accelerator_h": "decimal(38, 18)",  # billed, and used by nobody
    "x_storage_tb_month": "decimal(38, 18)",
    "x_requests": "decimal(38, 18)",
    "x_transfer_bytes": "decimal(38, 18)",
}
STORED_TYPES: Final[Mapping[str, str]] = {
    **{column.name: column.stored_type for column in CHARGE_COLUMNS},
    **DERIVED_COLUMNS,
}

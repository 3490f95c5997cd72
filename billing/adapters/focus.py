"""FOCUS cost and usage as text, versions 1.0 to 1.4: its columns, and nothing but its columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import ibis

from billing.adapters.azure_columns import SIZE
from billing.adapters.cells import tag_map
from billing.adapters.focus_extras import GOOGLE_ONLY, is_known
from billing.adapters.gcp import category_of
from billing.adapters.layout import InstantStyle, Layout, assembled, plain_values
from billing.columns import BY_NAME, CHARGE_COLUMNS
from billing.records import COST_COLUMNS, MONEY_TYPE, ChargesRefusedError, Kind

# The file's column -> the charge column; where two name the same, the first found wins.
COLUMNS: Final[Mapping[str, str]] = {
    "ProviderName": "provider_name",  # 1.0 to 1.3
    "ServiceProviderName": "provider_name",  # 1.3 on
    "PublisherName": "publisher_name",
    "HostProviderName": "host_provider_name",  # 1.3 on
    "InvoiceIssuerName": "invoice_issuer_name",
    "InvoiceId": "invoice_id",  # 1.2 on
    "InvoiceDetailId": "invoice_detail_id",  # 1.4 on
    "BillingAccountId": "billing_account_id",
    "BillingAccountName": "billing_account_name",
    "BillingAccountType": "billing_account_type",  # 1.2 on
    "SubAccountId": "sub_account_id",
    "SubAccountName": "sub_account_name",
    "SubAccountType": "sub_account_type",  # 1.2 on
    "BillingPeriodStart": "billing_period_start",
    "BillingPeriodEnd": "billing_period_end",
    "ChargePeriodStart": "charge_period_start",
    "ChargePeriodEnd": "charge_period_end",
    "ChargeCategory": "charge_category",
    "ChargeClass": "charge_class",
    "ChargeDescription": "charge_description",
    "ChargeFrequency": "charge_frequency",
    "BilledCost": "billed_cost",
    "EffectiveCost": "effective_cost",
    "ListCost": "list_cost",
    "ContractedCost": "contracted_cost",
    "ListUnitPrice": "list_unit_price",
    "ContractedUnitPrice": "contracted_unit_price",
    "BillingCurrency": "billing_currency",
    "PricingCategory": "pricing_category",
    "PricingQuantity": "pricing_quantity",
    "PricingUnit": "pricing_unit",
    "PricingCurrency": "pricing_currency",  # 1.2 on
    "PricingCurrencyContractedUnitPrice": "pricing_currency_contracted_unit_price",
    "PricingCurrencyEffectiveCost": "pricing_currency_effective_cost",
    "PricingCurrencyListUnitPrice": "pricing_currency_list_unit_price",
    "ConsumedQuantity": "consumed_quantity",
    "ConsumedUnit": "consumed_unit",
    "ServiceName": "service_name",
    "ServiceCategory": "service_category",
    "ServiceSubcategory": "service_subcategory",  # 1.1 on
    "SkuId": "sku_id",
    "SkuMeter": "sku_meter",  # 1.1 on
    "SkuPriceId": "sku_price_id",
    "SkuPriceDetails": "sku_price_details",  # 1.1 on
    "ResourceId": "resource_id",
    "ResourceName": "resource_name",
    "ResourceType": "resource_type",
    "RegionId": "region_id",
    "RegionName": "region_name",
    "AvailabilityZone": "availability_zone",
    "CommitmentDiscountId": "commitment_discount_id",
    "CommitmentDiscountName": "commitment_discount_name",
    "CommitmentDiscountCategory": "commitment_discount_category",
    "CommitmentDiscountType": "commitment_discount_type",
    "CommitmentDiscountStatus": "commitment_discount_status",
    "CommitmentDiscountQuantity": "commitment_discount_quantity",  # 1.1 on
    "CommitmentDiscountUnit": "commitment_discount_unit",  # 1.1 on
    "CapacityReservationId": "capacity_reservation_id",  # 1.1 on
    "CapacityReservationStatus": "capacity_reservation_status",  # 1.1 on
    "AllocatedMethodId": "allocated_method_id",  # 1.3 on
    "AllocatedMethodDetails": "allocated_method_details",
    "AllocatedResourceId": "allocated_resource_id",
    "AllocatedResourceName": "allocated_resource_name",
    "AllocatedTags": "allocated_tags",
    "ContractApplied": "contract_applied",  # 1.3 on
    "Tags": "tags",
    # what the providers' own exports add
    "x_UsageType": "x_usage_type",  # AWS
    "x_Operation": "x_operation",  # AWS
    "x_SkuMeterName": "x_usage_type",  # Azure
    "x_SkuDescription": "x_usage_type",  # Azure, Google
    # what our own export adds
    "x_LineItemType": "x_line_item_type",
    "x_CreditType": "x_credit_type",
    "x_InstanceType": "x_instance_type",
}
JSON_COLUMNS: Final = ("Tags",)
TAG_PREFIX: Final = "Tags."  # a Parquet file may hold the tags as a record, one field for each key
FILLED: Final = "x_FilledColumns"  # our own export: what the bill itself left out
# Mandatory in every version, yet no figure hangs on them: their absence is reported, not refused.
WANTED: Final = (
    "BillingAccountName",
    "ChargeClass",
    "ChargeDescription",
    "InvoiceIssuerName",
    "PricingQuantity",
    "PricingUnit",
)
SINCE: Final = (
    ("1.4", frozenset({"InvoiceDetailId"})),
    (
        "1.3",
        frozenset(
            {"ServiceProviderName", "HostProviderName", "AllocatedMethodId", "ContractApplied"}
        ),
    ),
    ("1.2", frozenset({"InvoiceId", "PricingCurrency", "BillingAccountType", "SubAccountType"})),
    (
        "1.1",
        frozenset({"ServiceSubcategory", "SkuMeter", "SkuPriceDetails", "CapacityReservationId"}),
    ),
)
OWN: Final = frozenset(
    {"BilledCost", "EffectiveCost", "ChargePeriodStart", "BillingPeriodStart", "ChargeCategory"}
)


# Who provides the service, where a version or an export names nobody under that name.
PROVIDER_NAMES: Final = ("ServiceProviderName", "HostProviderName")
SKU_DETAILS: Final = "x_SkuDetails"  # Microsoft
ALSO_READ: Final = ("ProviderName", *PROVIDER_NAMES, SKU_DETAILS, FILLED)
COSTS: Final = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")
QUANTITIES: Final = ("ConsumedQuantity", "PricingQuantity")


@dataclass(frozen=True, slots=True)
class Focus:
    """The FOCUS adapter."""

    name: str = "focus"
    json_columns: tuple[str, ...] = JSON_COLUMNS
    list_columns: tuple[str, ...] = ()

    def recognises(self, columns: Sequence[str]) -> int:
        """How many of the columns that only FOCUS has stand in the file."""
        return len(OWN & set(columns))

    def layout(self, columns: Sequence[str]) -> Layout:
        """Map FOCUS columns to charge columns; refuse when one is missing that figures hang on."""
        found: dict[str, str] = {}
        for theirs, ours in COLUMNS.items():
            if theirs in columns:
                found.setdefault(ours, theirs)
        for theirs in PROVIDER_NAMES:
            if theirs in columns:
                found.setdefault("provider_name", theirs)
        without_category = _is_google(columns) and "ServiceCategory" not in columns
        usage_only = not set(COSTS) & set(columns) and bool(set(QUANTITIES) & set(columns))
        optional = COST_COLUMNS if usage_only else ()
        _require(found, but=(*optional, "service_category") if without_category else optional)
        tags = () if "Tags" in columns else tuple(filter(_is_tag, columns))
        known_names = {*COLUMNS, *tags, FILLED}
        unknown = tuple(name for name in columns if name not in known_names and not is_known(name))
        known = len(columns) - len(unknown)
        what = "usage without costs, " if usage_only else ""
        return Layout(
            columns=found,
            numbers=tuple(theirs for ours, theirs in found.items() if BY_NAME[ours].is_number),
            instants={
                theirs: InstantStyle.ISO
                for ours, theirs in found.items()
                if BY_NAME[ours].kind is Kind.INSTANT
            },
            read_columns=(*(name for name in ALSO_READ if name in columns), *tags),
            extra_columns=unknown,
            unknown_columns=unknown,
            missing_columns=tuple(name for name in WANTED if name not in columns),
            saw=f"FOCUS {_version(columns)}, {what}{known} of {len(columns)} columns are known",
            facts={"tags": tags},
        )

    def charges(self, lines: ibis.Table, layout: Layout) -> ibis.Table:
        """FOCUS columns are charge columns."""
        values = plain_values(lines, layout)
        values["provider_name"] = _provider(lines)
        if SKU_DETAILS in lines.columns:
            size = lines[SKU_DETAILS].cast("string").re_extract(SIZE, 1)
            stated = [values[name] for name in ("x_instance_type",) if name in values]
            values["x_instance_type"] = ibis.coalesce(*stated, size.nullif(""))
        if layout.facts["tags"]:
            tags = {name: lines[name].cast("string") for name in layout.facts["tags"]}
            values["tags"] = tag_map(
                {name.removeprefix(TAG_PREFIX): value for name, value in tags.items()}
            )
        if FILLED in lines.columns:
            filled = lines[FILLED].cast("string").fill_null("").split(" ")
            for ours in COST_COLUMNS:
                if ours in values:
                    values[ours] = ibis.ifelse(
                        filled.contains(layout.columns[ours]), ibis.null(MONEY_TYPE), values[ours]
                    )
        if "service_category" not in values:  # Google's table has none
            values["service_category"] = category_of(values["service_name"])
        return assembled(lines, layout, values)


def _provider(lines: ibis.Table) -> Any:
    """The first of the names that a line states."""
    names = [name for name in ("ProviderName", *PROVIDER_NAMES) if name in lines.columns]
    return ibis.coalesce(*(lines[name].cast("string") for name in names))


def _is_tag(name: str) -> bool:
    return name.startswith(TAG_PREFIX)


def _is_google(columns: Sequence[str]) -> bool:
    return any(name in columns for name in GOOGLE_ONLY)


def _require(found: Mapping[str, str], *, but: Sequence[str]) -> None:
    for column in CHARGE_COLUMNS:
        if column.required and column.name not in found and column.name not in but:
            names = [theirs for theirs, ours in COLUMNS.items() if ours == column.name]
            raise ChargesRefusedError(
                "missing_column",
                f"the column {' or '.join(names)} is missing; export the bill again with it",
                row=1,
                column=names[0],
            )


def _version(columns: Sequence[str]) -> str:
    present = set(columns)
    return next((version for version, marks in SINCE if marks & present), "1.0")


FOCUS: Final = Focus()

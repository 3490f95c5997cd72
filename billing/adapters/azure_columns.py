"""The columns of Azure's cost exports, actual and amortised, and Azure's words in FOCUS's.

Names are those of the enterprise agreement's export; that of the customer agreement, older ones
and the camel-case variants differ in case, or are listed behind it.
Source: Microsoft Cost Management, "Understand cost details fields", "Convert to FOCUS".
"""

from collections.abc import Mapping
from typing import Final

# The format's name for a fact -> the file's names for it, the first that is there.
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "cost": ("CostInBillingCurrency", "Cost", "PreTaxCost"),
    "currency": ("BillingCurrencyCode", "BillingCurrency", "Currency"),
    "date": ("Date", "UsageDateTime", "UsageDate"),
    "period_start": ("BillingPeriodStartDate", "BillingPeriodStart"),
    "period_end": ("BillingPeriodEndDate", "BillingPeriodEnd"),
    "account": ("BillingAccountId", "BillingProfileId"),
    "account_name": ("BillingAccountName", "BillingProfileName"),
    "subscription": ("SubscriptionId", "SubscriptionGuid"),
    "subscription_name": ("SubscriptionName",),
    "quantity": ("Quantity", "UsageQuantity"),
    "unit": ("UnitOfMeasure",),
    "unit_price": ("UnitPrice",),
    "list_price": ("PayGPrice",),
    "list_cost": ("PaygCostInBillingCurrency",),
    "pricing_currency": ("PricingCurrencyCode", "PricingCurrency"),
    "service": ("MeterCategory",),
    "meter_group": ("MeterSubCategory",),
    "meter": ("MeterName",),
    "meter_id": ("MeterId",),
    "family": ("ServiceFamily",),
    "product": ("ProductName", "Product"),
    "sku": ("ProductId", "PartNumber"),
    "resource": ("ResourceId", "InstanceId", "InstanceName"),
    "resource_name": ("ResourceName",),
    "provider_type": ("ConsumedService",),
    "region": ("ResourceLocationNormalized", "ResourceLocation", "Location"),
    "zone": ("AvailabilityZone",),
    "kind": ("ChargeType",),
    "frequency": ("Frequency",),
    "pricing_model": ("PricingModel",),
    "benefit": ("BenefitId",),
    "benefit_name": ("BenefitName",),
    "reservation": ("ReservationId",),
    "reservation_name": ("ReservationName",),
    "publisher": ("PublisherName",),
    "publisher_type": ("PublisherType",),
    "issuer": ("PartnerName",),
    "invoice": ("InvoiceId",),
    "details": ("AdditionalInfo",),
    "tags": ("Tags",),
}
DIRECT: Final[Mapping[str, str]] = {
    "billing_account_id": "account",
    "billing_account_name": "account_name",
    "sub_account_id": "subscription",
    "sub_account_name": "subscription_name",
    "charge_period_start": "date",
    "billing_period_start": "period_start",
    "billing_currency": "currency",
    "list_cost": "list_cost",
    "list_unit_price": "list_price",
    "contracted_unit_price": "unit_price",
    "pricing_quantity": "quantity",
    "pricing_unit": "unit",
    "service_name": "service",
    "sku_id": "sku",
    "sku_meter": "meter",
    "charge_description": "product",
    "resource_id": "resource",
    "resource_name": "resource_name",
    "resource_type": "provider_type",
    "availability_zone": "zone",
    "invoice_id": "invoice",
    "x_usage_type": "meter_group",
    "x_line_item_type": "kind",
}
REQUIRED: Final = ("cost", "currency", "date", "service", "subscription")
WANTED: Final = ("kind", "pricing_model", "quantity", "unit", "meter", "account")
NUMBERS: Final = ("cost", "list_cost", "list_price", "quantity", "unit_price")
INSTANTS: Final = ("date", "period_start", "period_end")
# Known, and not needed: the original line stays readable from its file.
_ALSO: Final = (
    "AccountId AccountName AccountOwnerId BenefitType BillingProfileId BillingProfileName "
    "BillingPeriod CostAllocationRuleName CostCenter CostInPricingCurrency CostInUsd CustomerName "
    "CustomerTenantId DepartmentId DepartmentName EffectivePrice ExchangeRate ExchangeRateDate "
    "ExchangeRatePricingToBilling InvoiceSection InvoiceSectionId InvoiceSectionName "
    "IsAzureCreditEligible IsRecurringCharge Location MarketPrice MeterRegion OfferId "
    "PartnerEarnedCreditApplied PartnerEarnedCreditRate PartnerName PartnerTenantId PaygCostInUsd "
    "PlanName PreviousInvoiceId Product ProductIdentifier ProductOrderId ProductOrderName "
    "PublisherId ResellerMpnId ResellerName ResourceGroup ResourceGroupName ResourceLocation "
    "ResourceRate ResourceType ServiceInfo1 ServiceInfo2 ServiceName ServicePeriodEndDate "
    "ServicePeriodStartDate ServiceTier Term TestEnabled UnitId"
)
ALSO: Final = tuple(_ALSO.split())

CATEGORIES: Final[Mapping[str, str]] = {
    "usage": "Usage",
    "unusedreservation": "Usage",
    "unusedsavingsplan": "Usage",
    "purchase": "Purchase",
    "tax": "Tax",
    "credit": "Credit",
}
OTHER_CATEGORY: Final = "Adjustment"  # Refund, RoundingAdjustment, Adjustment
FREQUENCIES: Final[Mapping[str, str]] = {
    "onetime": "One-Time",
    "recurring": "Recurring",
    "usagebased": "Usage-Based",
}
PRICING: Final[Mapping[str, str]] = {
    "ondemand": "Standard",
    "spot": "Dynamic",
    "reservation": "Committed",
    "savingsplan": "Committed",
}
# Meter category -> service category, the first pattern wins; then the service family.
SERVICE_CATEGORIES: Final = (
    (r"^virtual machines|container instances|kubernetes|^functions|app service|batch", "Compute"),
    (r"^storage$|backup|netapp|data lake|site recovery|managed lustre|hpc cache", "Storage"),
    (
        r"bandwidth|virtual network|load balancer|vpn|nat gateway|expressroute|front door|dns|"
        r"application gateway|private link|traffic manager|content delivery|network|virtual wan",
        "Networking",
    ),
    (r"machine learning|cognitive|openai|foundry|bot service|ai search", "AI and Machine Learning"),
    (r"sql|cosmos|database|redis", "Databases"),
    (r"databricks|synapse|data factory|event hubs|hdinsight|stream analytics|fabric", "Analytics"),
    (
        r"log analytics|monitor|automation|insight and analytics|support|policy",
        "Management and Governance",
    ),
    (r"defender|sentinel|key vault|advanced threat|security|firewall|ddos", "Security"),
    (r"active directory|entra", "Identity"),
    (r"service bus|logic apps|api management|event grid", "Integration"),
    (r"devops|container registry|devtest", "Developer Tools"),
    (r"iot", "Internet of Things"),
    (r"media", "Media"),
)
FAMILIES: Final = (
    (r"compute|containers", "Compute"),
    (r"storage", "Storage"),
    (r"network", "Networking"),
    (r"^ai\b|machine learning", "AI and Machine Learning"),
    (r"database", "Databases"),
    (r"analytics", "Analytics"),
    (r"management|governance", "Management and Governance"),
    (r"security", "Security"),
    (r"identity", "Identity"),
    (r"integration", "Integration"),
    (r"developer", "Developer Tools"),
    (r"internet of things", "Internet of Things"),
    (r"media", "Media"),
    (r"web", "Web"),
)
# The machine's size in what Azure says about a meter, without its common prefix.
SIZE: Final = r'"ServiceType"\s*:\s*"Standard_([A-Za-z]+[0-9][^"]*)"'

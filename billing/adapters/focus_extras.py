"""Columns beyond FOCUS that providers' own FOCUS exports have: known by name, read by nobody.

Sources: AWS "FOCUS 1.0/1.2 with AWS columns", Microsoft "FOCUS cost and usage details file schema",
Google "Structure of FOCUS data export", Oracle "FOCUS reports".
"""

from typing import Final

_AWS = "Discounts Operation ServiceCode UsageType CostCategories"
_MICROSOFT = (
    "AccountId AccountName AccountOwnerId AccountType AmortizationClass BilledCostInUsd "
    "BilledUnitPrice BillingAccountId BillingAccountName BillingExchangeRate "
    "BillingExchangeRateDate BillingItemCode BillingItemName BillingProfileId BillingProfileName "
    "ChargeId CommitmentDiscountNormalizedRatio CommitmentDiscountSpendEligibility "
    "CommitmentDiscountUsageEligibility ComponentName ComponentType ContractedCostInUsd "
    "ContractedUnitPriceInUsd CostAllocationRuleName CostCategories CostCenter CostType Credits "
    "CurrencyConversionRate CustomerId CustomerName Discount EffectiveCostInUsd EffectiveUnitPrice "
    "EffectiveUnitPriceInUsd ExportTime IngestionTime InvoiceId InvoiceIssuerId InvoiceSectionId "
    "InvoiceSectionName ListCostInUsd ListUnitPriceInUsd Location OnDemandCost OnDemandCostInUsd "
    "OnDemandUnitPrice OnDemandUnitPriceInUsd OwnerAccountID PartnerCreditApplied "
    "PartnerCreditRate PricingBlockSize PricingCurrency PricingSubcategory PricingUnitDescription "
    "Project PublisherCategory PublisherId ResellerId ResellerName ResourceGroupName ResourceType "
    "ServiceCode ServiceId ServiceModel ServicePeriodEnd ServicePeriodStart SkuDescription "
    "SkuDetails SkuIsCreditEligible SkuMeterCategory SkuMeterId SkuMeterName SkuMeterSubcategory "
    "SkuOfferId SkuOrderId SkuOrderName SkuPartNumber SkuPlanName SkuRegion SkuServiceFamily "
    "SkuTerm SkuTier SourceName SourceProvider SourceType SourceVersion SubproductName UsageType"
)
_GOOGLE = (
    "ConsumptionModelDescription ConsumptionModelId CostAtEffectivePriceDefault "
    "CostAtListConsumptionModel CostType Credits CurrencyConversionRate ExportTime Labels Location "
    "PriceEffectivePriceDefault PriceListPriceConsumptionModel Project ProjectAncestors "
    "ProjectAncestryNumbers ProjectId ProjectLabels ProjectName ProjectNumber ServiceId "
    "SkuDescription SubscriptionInstanceId SystemLabels Tags"
)
GOOGLE_ONLY: Final = ("x_Credits", "x_ServiceId", "x_CostType")
# Oracle's own columns have the prefix oci_ instead.
_ORACLE = (
    "AttributedCost AttributedUsage BackReferenceNumber CompartmentId CompartmentName "
    "CostOverage CostOverageFlag OverageFlag ReferenceNumber UnitPriceOverage BilledQuantityOverage"
)
KNOWN_EXTRAS: Final = frozenset(
    f"x_{name}" for name in f"{_AWS} {_MICROSOFT} {_GOOGLE}".split()
) | frozenset(f"oci_{name}" for name in _ORACLE.split())
# Lists of a record's fields, one after the other, as tools that flatten records write them.
KNOWN_PREFIXES: Final = ("x_Project.", "x_SkuDetails.", "x_Discounts.")


def is_known(name: str) -> bool:
    """Whether a provider's own export is known to have the column."""
    return name in KNOWN_EXTRAS or name.startswith(KNOWN_PREFIXES)

"""The columns of the AWS Cost and Usage Report, legacy and 2.0, and AWS's words in FOCUS's.

Names are those of the legacy report; CUR 2.0 and Athena write the same in snake case.
Source: AWS Cost and Usage Report user guide and AWS Data Exports user guide, table dictionaries.
"""

from collections.abc import Mapping
from typing import Final

# Charge columns that one column of the report states as they are.
DIRECT: Final[Mapping[str, str]] = {
    "invoice_id": "bill/InvoiceId",
    "billing_account_id": "bill/PayerAccountId",
    "billing_account_name": "bill/PayerAccountName",
    "sub_account_id": "lineItem/UsageAccountId",
    "sub_account_name": "lineItem/UsageAccountName",
    "billing_period_start": "bill/BillingPeriodStartDate",
    "billing_period_end": "bill/BillingPeriodEndDate",
    "charge_period_start": "lineItem/UsageStartDate",
    "charge_period_end": "lineItem/UsageEndDate",
    "charge_description": "lineItem/LineItemDescription",
    "billed_cost": "lineItem/UnblendedCost",
    "list_cost": "pricing/publicOnDemandCost",
    "list_unit_price": "pricing/publicOnDemandRate",
    "billing_currency": "lineItem/CurrencyCode",
    "pricing_quantity": "lineItem/UsageAmount",
    "pricing_unit": "pricing/unit",
    "pricing_currency": "pricing/currency",
    "service_name": "lineItem/ProductCode",
    "sku_id": "product/sku",
    "sku_price_id": "pricing/RateCode",
    "resource_id": "lineItem/ResourceId",
    "availability_zone": "lineItem/AvailabilityZone",
    "x_usage_type": "lineItem/UsageType",
    "x_operation": "lineItem/Operation",
    "x_line_item_type": "lineItem/LineItemType",
}
REQUIRED: Final = (
    "lineItem/LineItemType",
    "lineItem/UnblendedCost",
    "lineItem/CurrencyCode",
    "lineItem/UsageStartDate",
    "lineItem/UsageEndDate",
    "lineItem/ProductCode",
    "lineItem/UsageAccountId",
    "bill/BillingPeriodStartDate",
)
# Without these the effective cost of covered usage or of unused commitments stays unknown.
WANTED: Final = (
    "lineItem/UsageType",
    "lineItem/UsageAmount",
    "pricing/unit",
    "pricing/publicOnDemandCost",
    "reservation/EffectiveCost",
    "reservation/ReservationARN",
    "savingsPlan/SavingsPlanEffectiveCost",
    "savingsPlan/SavingsPlanARN",
)
INSTANTS: Final = (
    "bill/BillingPeriodStartDate",
    "bill/BillingPeriodEndDate",
    "lineItem/UsageStartDate",
    "lineItem/UsageEndDate",
)
NUMBERS: Final = (
    "lineItem/UnblendedCost",
    "lineItem/NetUnblendedCost",
    "lineItem/UsageAmount",
    "pricing/publicOnDemandCost",
    "pricing/publicOnDemandRate",
    "reservation/EffectiveCost",
    "reservation/NetEffectiveCost",
    "reservation/UnusedAmortizedUpfrontFeeForBillingPeriod",
    "reservation/UnusedRecurringFee",
    "reservation/NetUnusedAmortizedUpfrontFeeForBillingPeriod",
    "reservation/NetUnusedRecurringFee",
    "reservation/UnusedQuantity",
    "savingsPlan/SavingsPlanEffectiveCost",
    "savingsPlan/NetSavingsPlanEffectiveCost",
    "savingsPlan/AmortizedUpfrontCommitmentForBillingPeriod",
    "savingsPlan/RecurringCommitmentForBillingPeriod",
    "savingsPlan/NetAmortizedUpfrontCommitmentForBillingPeriod",
    "savingsPlan/NetRecurringCommitmentForBillingPeriod",
    "savingsPlan/UsedCommitment",
)
# Columns that are read beside those above.
READ: Final = (
    "bill/BillingEntity",
    "bill/InvoicingEntity",
    "lineItem/LegalEntity",
    "pricing/term",
    "product/ProductName",
    "product/servicename",
    "product/instanceType",
    "product/productFamily",
    "product/regionCode",
    "product/region",
    "product/location",
    "reservation/ReservationARN",
    "savingsPlan/SavingsPlanARN",
    "savingsPlan/OfferingType",
    "capacityReservation/CapacityReservationArn",
    "capacityReservation/CapacityReservationStatus",
)
# Known, and not needed: the original line stays readable from its file.
_ALSO: Final = {
    "identity": "LineItemId TimeInterval",
    "bill": "BillType",
    "lineItem": (
        "BlendedCost BlendedRate NetUnblendedRate NormalizationFactor NormalizedUsageAmount "
        "TaxType UnblendedRate UserIdentifier IamPrincipal"
    ),
    "pricing": "LeaseContractLength OfferingClass PurchaseOption RateId",
    "reservation": (
        "AmortizedUpfrontCostForUsage AmortizedUpfrontFeeForBillingPeriod AvailabilityZone EndTime "
        "ModificationStatus NetAmortizedUpfrontCostForUsage "
        "NetAmortizedUpfrontFeeForBillingPeriod NetRecurringFeeForUsage NetUpfrontValue "
        "NormalizedUnitsPerReservation NumberOfReservations RecurringFeeForUsage StartTime "
        "SubscriptionId TotalReservedNormalizedUnits TotalReservedUnits UnitsPerReservation "
        "UnusedNormalizedUnitQuantity UpfrontValue"
    ),
    "savingsPlan": (
        "EndTime InstanceTypeFamily PaymentOption PurchaseTerm Region SavingsPlanRate StartTime "
        "TotalCommitmentToDate"
    ),
    "splitLineItem": (
        "ActualUsage NetSplitCost NetUnusedCost ParentResourceId PublicOnDemandSplitCost "
        "PublicOnDemandUnusedCost ReservedUsage SplitCost SplitUsage SplitUsageRatio UnusedCost"
    ),
    "capacityReservation": "CapacityReservationType",
}
KNOWN: Final = (
    *DIRECT.values(),
    *INSTANTS,
    *NUMBERS,
    *READ,
    *(f"{group}/{name}" for group, names in _ALSO.items() for name in names.split()),
)
# Groups whose columns differ from account to account; the map columns of CUR 2.0 among them.
OPEN_GROUPS: Final = ("product", "discount", "costcategory", "resourcetags")
TAG_MAPS: Final = ("resource_tags", "tags")

CATEGORIES: Final[Mapping[str, str]] = {
    "Usage": "Usage",
    "DiscountedUsage": "Usage",
    "SavingsPlanCoveredUsage": "Usage",
    "SavingsPlanNegation": "Usage",  # takes the covered usage back where that was billed
    "SavingsPlanRecurringFee": "Purchase",
    "SavingsPlanUpfrontFee": "Purchase",
    "RIFee": "Purchase",
    "Fee": "Purchase",
    "Tax": "Tax",
    "Credit": "Credit",
}
OTHER_CATEGORY: Final = "Adjustment"  # Refund, EdpDiscount, PrivateRateDiscount, BundledDiscount, …
FREQUENCIES: Final[Mapping[str, str]] = {
    "Usage": "Usage-Based",
    "DiscountedUsage": "Usage-Based",
    "SavingsPlanCoveredUsage": "Usage-Based",
    "SavingsPlanNegation": "Usage-Based",
    "SavingsPlanRecurringFee": "Recurring",
    "RIFee": "Recurring",
}
COVERED: Final = ("DiscountedUsage", "SavingsPlanCoveredUsage", "SavingsPlanNegation")
BLOCK_STORAGE: Final = r"(?i)\bEBS:"
# Traffic that is billed under the machine's product code.
TRAFFIC: Final = (
    r"(?i)DataTransfer|-(?:In|Out)-A?Bytes|NatGateway|VpcEndpoint|TransitGateway|"
    r"LoadBalancerUsage|LCUUsage|ElasticIP|PublicIPv4"
)
TRAFFIC_PRODUCTS: Final = ("AmazonEC2", "AmazonVPC", "AWSDataTransfer", "AWSELB")
# Product code -> service category, the first pattern wins.
SERVICE_CATEGORIES: Final = (
    (r"^AmazonS3|Glacier|^AmazonEFS|^AmazonFSx|AWSBackup|StorageGateway", "Storage"),
    (
        r"SageMaker|Bedrock|MachineLearning|Comprehend|Rekognition|Polly|Transcribe|Textract|"
        r"AmazonQ\b|Kendra",
        "AI and Machine Learning",
    ),
    (r"^AmazonEC2|^AWSLambda|ECS|EKS|ComputeSavingsPlans|AWSBatch|Lightsail|AppRunner", "Compute"),
    (
        r"AmazonVPC|CloudFront|Route53|DirectConnect|AWSELB|DataTransfer|GlobalAccelerator|"
        r"ApiGateway",
        "Networking",
    ),
    (r"RDS|Aurora|DynamoDB|ElastiCache|Redshift|DocDB|Neptune|MemoryDB|Timestream", "Databases"),
    (r"Athena|Glue|Kinesis|ElasticMapReduce|^AmazonES|OpenSearch|QuickSight|MSK", "Analytics"),
    (
        r"CloudWatch|CloudTrail|XRay|AWSConfig|SystemsManager|CostExplorer|ControlTower|Support",
        "Management and Governance",
    ),
    (r"kms|GuardDuty|SecretsManager|Inspector|Macie|waf|Shield|SecurityHub|Detective", "Security"),
    (r"Cognito|DirectoryService|IAM", "Identity"),
    (r"SNS|Queue|EventBridge|^AWSEvents|StepFunctions|AmazonMQ|SES$", "Integration"),
    (
        r"CodeBuild|CodePipeline|CodeArtifact|CodeCommit|^AmazonECR|Cloud9|Amplify",
        "Developer Tools",
    ),
    (r"IoT", "Internet of Things"),
    (r"WorkSpaces|Connect$|WorkMail|Chime", "Business Applications"),
    (r"DataSync|DatabaseMigration|Snowball|TransferFamily|AWSTransfer", "Migration"),
    (r"Elemental|MediaLive|IVS", "Media"),
)

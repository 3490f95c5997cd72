"""Generates bills of any size with DuckDB: FOCUS 1.2 as Parquet or CSV.gz, AWS CUR as wide CSV.

The same rows and seed give the same rows. Nothing of it describes a real bill; the words are those
that providers use, so that classification has its usual work.
"""

from pathlib import Path

import duckdb

SERVICES = (
    ("AmazonEC2", "Compute", "BoxUsage:p5.48xlarge", "Hours", 60),
    ("AmazonEC2", "Compute", "BoxUsage:c7i.4xlarge", "Hours", 3),
    ("AmazonEC2", "Compute", "SpotUsage:g6e.12xlarge", "Hours", 6),
    ("AmazonS3", "Storage", "TimedStorage-ByteHrs", "GB-Mo", 2),
    ("AmazonS3", "Storage", "Requests-Tier1", "Requests", 1),
    ("AmazonS3", "Storage", "Requests-Tier2", "Requests", 1),
    ("AmazonS3", "Storage", "TimedStorage-GDA-ByteHrs", "GB-Mo", 1),
    ("AmazonVPC", "Networking", "NatGateway-Bytes", "GB", 1),
    ("AmazonEC2", "Networking", "USW2-EUC1-AWS-Out-Bytes", "GB", 1),
    ("AmazonEC2", "Networking", "DataTransfer-Out-Bytes", "GB", 4),
    ("AmazonFSx", "Storage", "Storage.SSD-Lustre", "GB-Mo", 8),
    ("AmazonCloudWatch", "Management and Governance", "DataProcessing-Bytes", "GB", 1),
    ("AWSGlue", "Analytics", "DPU-Hour", "DPU-Hours", 2),
)


def _services() -> str:
    rows = ", ".join(
        f"({index}, '{name}', '{category}', '{usage}', '{unit}', {price})"
        for index, (name, category, usage, unit, price) in enumerate(SERVICES)
    )
    return f"(VALUES {rows}) AS s(k, service, category, usage, unit, price)"


def focus_query(rows: int, *, seed: int, month: str = "2026-05") -> str:
    """A FOCUS 1.2 bill of one month as SQL: 45 columns, exact amounts, tags as JSON text."""
    pick = "hash(i * 2654435761 + {}) % {}"
    money = f"CAST(s.price * (({pick.format(seed + 1, 100000)}) + 1) AS DECIMAL(20,10)) / 1e5"
    cost = f"CAST({money} AS DECIMAL(20,10))"
    hour = f"CAST({pick.format(seed + 2, 720)} AS INT)"
    start = f"TIMESTAMP '{month}-01 00:00:00' + INTERVAL 1 HOUR * {hour}"
    return f"""
    WITH base AS (SELECT i, {pick.format(seed + 3, len(SERVICES))} AS k FROM range({rows}) t(i))
    SELECT '111111111111' AS BillingAccountId, 'Example' AS BillingAccountName,
      'USD' AS BillingCurrency, TIMESTAMP '{month}-01' AS BillingPeriodStart,
      TIMESTAMP '{month}-01' + INTERVAL 1 MONTH AS BillingPeriodEnd,
      {start} AS ChargePeriodStart, {start} + INTERVAL 1 HOUR AS ChargePeriodEnd,
      'Usage' AS ChargeCategory, CAST(NULL AS VARCHAR) AS ChargeClass,
      'Usage-Based' AS ChargeFrequency, s.usage || ' in the region' AS ChargeDescription,
      {cost} AS BilledCost, {cost} AS EffectiveCost, {cost} AS ListCost, {cost} AS ContractedCost,
      CAST(s.price AS DECIMAL(20,10)) AS ListUnitPrice,
      CAST(s.price AS DECIMAL(20,10)) AS ContractedUnitPrice,
      CAST(({pick.format(seed + 1, 100000)}) AS DECIMAL(20,10)) / 1000 AS PricingQuantityRaw,
      s.unit AS PricingUnit, s.unit AS ConsumedUnit,
      s.service AS ServiceName, s.category AS ServiceCategory,
      'Standard' AS PricingCategory, 'AWS' AS ProviderName, 'AWS' AS PublisherName,
      'AWS' AS InvoiceIssuerName, 'inv-{month}' AS InvoiceId,
      'acct-' || ({pick.format(seed + 4, 40)}) AS SubAccountId,
      'Team ' || ({pick.format(seed + 4, 40)}) AS SubAccountName,
      'us-west-' || ({pick.format(seed + 5, 2)} + 1) AS RegionId,
      'US West' AS RegionName, 'us-west-2a' AS AvailabilityZone,
      'arn:aws:thing/' || ({pick.format(seed + 6, 20000)}) AS ResourceId,
      'thing' AS ResourceName, 'Thing' AS ResourceType,
      'SKU' || s.k AS SkuId, 'SKU' || s.k || '.P' AS SkuPriceId,
      s.usage AS SkuMeter, s.usage AS x_UsageType, 'RunInstances' AS x_Operation,
      CAST(NULL AS VARCHAR) AS CommitmentDiscountId,
      CAST(NULL AS VARCHAR) AS CommitmentDiscountStatus,
      CAST(NULL AS VARCHAR) AS CapacityReservationId,
      '{{"project": "p' || ({pick.format(seed + 7, 12)}) || '", "env": "train"}}' AS Tags
    FROM base JOIN {_services()} ON base.k = s.k
    """


def _focus(rows: int, seed: int, month: str) -> str:
    return (
        "SELECT * EXCLUDE (PricingQuantityRaw), "
        "CAST(PricingQuantityRaw AS DECIMAL(20,10)) AS PricingQuantity, "
        "CAST(PricingQuantityRaw AS DECIMAL(20,10)) AS ConsumedQuantity "
        f"FROM ({focus_query(rows, seed=seed, month=month)})"
    )


def write_focus_parquet(path: Path, rows: int, *, seed: int = 7, month: str = "2026-05") -> None:
    """A FOCUS bill as one Parquet file with exact decimals and timestamps."""
    with duckdb.connect() as engine:
        engine.execute(
            f"COPY ({_focus(rows, seed, month)}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)"
        )


def write_focus_gz(path: Path, rows: int, *, seed: int = 7, month: str = "2026-05") -> None:
    """A FOCUS bill as one gzipped CSV."""
    form = "strftime({0}, '%Y-%m-%dT%H:%M:%SZ') AS {0}"
    times = ("BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd")
    texts = ", ".join(form.format(name) for name in times)
    with duckdb.connect() as engine:
        engine.execute(
            f"COPY (SELECT * REPLACE ({texts}) FROM ({_focus(rows, seed, month)})) TO '{path}' "
            "(FORMAT csv, HEADER, COMPRESSION gzip)"
        )


CUR_PLAIN = {
    "bill/BillType": "'Anniversary'",
    "bill/BillingPeriodStartDate": "'2026-05-01T00:00:00Z'",
    "bill/BillingPeriodEndDate": "'2026-06-01T00:00:00Z'",
    "bill/InvoiceId": "''",
    "bill/PayerAccountId": "'111111111111'",
    "identity/LineItemId": "md5(CAST(i AS VARCHAR))",
    "lineItem/UsageAccountId": "SubAccountId",
    "lineItem/LineItemType": "'Usage'",
    "lineItem/UsageStartDate": "strftime(ChargePeriodStart, '%Y-%m-%dT%H:%M:%SZ')",
    "lineItem/UsageEndDate": "strftime(ChargePeriodEnd, '%Y-%m-%dT%H:%M:%SZ')",
    "lineItem/ProductCode": "ServiceName",
    "lineItem/UsageType": "x_UsageType",
    "lineItem/Operation": "x_Operation",
    "lineItem/AvailabilityZone": "AvailabilityZone",
    "lineItem/ResourceId": "ResourceId",
    "lineItem/UsageAmount": "ConsumedQuantity",
    "lineItem/CurrencyCode": "'USD'",
    "lineItem/UnblendedRate": "ListUnitPrice",
    "lineItem/UnblendedCost": "BilledCost",
    "lineItem/BlendedRate": "ListUnitPrice",
    "lineItem/BlendedCost": "BilledCost",
    "lineItem/LineItemDescription": "ChargeDescription",
    "lineItem/LegalEntity": "'Amazon Web Services, Inc.'",
    "product/ProductName": "ServiceName",
    "product/region": "RegionId",
    "product/servicecode": "ServiceName",
    "product/sku": "SkuId",
    "product/usagetype": "x_UsageType",
    "pricing/publicOnDemandCost": "ListCost",
    "pricing/publicOnDemandRate": "ListUnitPrice",
    "pricing/term": "'OnDemand'",
    "pricing/unit": "PricingUnit",
    "pricing/RateId": "'1'",
    "resourceTags/user:project": "'p' || (i % 12)",
}


def write_cur_csv(path: Path, rows: int, *, columns: int = 195) -> None:
    """An AWS Cost and Usage Report with the legacy headers and mostly empty product columns."""
    empty = [f"product/attribute{index}" for index in range(columns - len(CUR_PLAIN))]
    selected = [f'{value} AS "{name}"' for name, value in CUR_PLAIN.items()]
    selected += [
        f"CASE WHEN i % 5 = {index % 5} THEN 'value {index}' END AS \"{name}\""
        if index % 6 == 0
        else f'CAST(NULL AS VARCHAR) AS "{name}"'
        for index, name in enumerate(empty)
    ]
    source = f"SELECT *, row_number() OVER () AS i FROM ({_focus(rows, 7, '2026-05')})"
    with duckdb.connect() as engine:
        engine.execute(
            f"COPY (SELECT {', '.join(selected)} FROM ({source})) TO '{path}' (FORMAT csv, HEADER)"
        )

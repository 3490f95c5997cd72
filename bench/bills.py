"""Generates bills of any size with DuckDB: FOCUS 1.2 as Parquet or CSV.gz, AWS CUR as wide CSV.

The same rows and seed give the same rows. Nothing of it describes a real bill; the words are those
that providers use, so that classification has its usual work.

What costs an import its time is as varied as in a real bill: 14,000 resources, each with an id of
its own, an account, a region and five tags, some of them in many rows; quantities of six decimals;
four costs of ten decimals that follow from the quantity's price (list, discounted, covered by a
commitment, refunded); every hour of the month, in no order. A row of the 45 columns takes about 740
bytes as CSV, 90 gzipped and 50 as Parquet. Words that repeat more than real ones do would pack
smaller, and make unpacking, which imports are compared with, look faster.
"""

from pathlib import Path

import duckdb

SERVICES = (
    ("AmazonEC2", "Compute", "USE1-BoxUsage:p5.48xlarge", "Hours", "98.32"),
    ("AmazonEC2", "Compute", "USE1-SpotUsage:p4d.24xlarge", "Hours", "9.83"),
    ("AmazonEC2", "Compute", "USE1-BoxUsage:g5.12xlarge", "Hours", "5.672"),
    ("AmazonEC2", "Compute", "USE1-BoxUsage:m6i.4xlarge", "Hours", "0.768"),
    ("AmazonEC2", "Compute", "USE1-SpotUsage:g6e.12xlarge", "Hours", "4.1273"),
    ("AmazonEC2", "Storage", "USE1-EBS:VolumeUsage.gp3", "GB-Mo", "0.08"),
    ("AmazonS3", "Storage", "USE1-TimedStorage-ByteHrs", "GB-Mo", "0.023"),
    ("AmazonS3", "Storage", "USE1-TimedStorage-GDA-ByteHrs", "GB-Mo", "0.00099"),
    ("AmazonS3", "Storage", "USE1-Requests-Tier1", "Requests", "0.000005"),
    ("AmazonVPC", "Networking", "USE1-NatGateway-Bytes", "GB", "0.045"),
    ("AmazonEC2", "Networking", "USE1-EUC1-AWS-Out-Bytes", "GB", "0.02"),
    ("AmazonEC2", "Networking", "USE1-DataTransfer-Out-Bytes", "GB", "0.09"),
    ("AmazonFSx", "Storage", "USE1-Lustre.PersistentStorage:SSD", "GB-Mo", "0.145"),
    ("AmazonCloudWatch", "Management and Governance", "USE1-MetricMonitorUsage", "Metrics", "0.3"),
    ("AmazonSageMaker", "AI and Machine Learning", "USE1-Train:ml.p4d.24xlarge", "Hours", "37.69"),
    ("AWSGlue", "Analytics", "USE1-DPU-Hour", "DPU-Hours", "0.44"),
)
REGIONS = (
    ("us-east-1", "US East (N. Virginia)"),
    ("us-west-2", "US West (Oregon)"),
    ("eu-west-1", "Europe (Ireland)"),
    ("eu-north-1", "Europe (Stockholm)"),
    ("ap-southeast-1", "Asia Pacific (Singapore)"),
    ("ap-northeast-1", "Asia Pacific (Tokyo)"),
)
MONEY = "CAST({} AS DECIMAL(20,10))"
RESOURCES = 14_000
SAVINGS_PLAN = "arn:aws:savingsplans::111111111111:savingsplan/0f3c9a51-7b21-4d55-9d0e-2b8f0c6a7e14"


def _values(rows: tuple[tuple[str, ...], ...], names: str) -> str:
    quoted = (", ".join(f"'{value}'" for value in row) for row in rows)
    listed = ", ".join(f"({index}, {texts})" for index, texts in enumerate(quoted))
    return f"(VALUES {listed}) AS {names}"


def _resources() -> str:
    """What belongs to a resource: words, account, region and tags; the same in every bill."""
    pick = "hash(r * 2654435761 + {}) % {}"
    account = "100000000000 + account * 7919"
    return f"""
    SELECT r, s.*, g.*, CAST({account} AS VARCHAR) AS account_id, 'account-' || account AS account,
      'arn:aws:ec2:' || g.region || ':' || ({account}) || ':instance/i-'
        || printf('%017x', hash(r * 40503)) AS resource_id,
      CASE WHEN r % 12 = 0 THEN '{{}}' ELSE '{{"project": "train-' || printf('%03d', project)
        || '", "team": "team-' || printf('%02d', {pick.format(15, 15)}) || '", "env": "'
        || ['prod', 'dev', 'exp'][r % 3 + 1] || '", "job": "run-' || ({pick.format(16, 900)})
        || '", "aws:createdBy": "user:' || ({pick.format(17, 400)}) || '"}}' END AS tags
    FROM (
      SELECT r, project, CAST(hash(project) % 60 AS INT) AS account,
        CAST(hash(project * 31 + r % 2) % {len(REGIONS)} AS INT) AS g_k,
        CAST({pick.format(14, len(SERVICES))} AS INT) AS s_k
      FROM (SELECT r, CAST({pick.format(13, 120)} AS INT) AS project FROM range({RESOURCES}) t(r))
    )
    JOIN {_values(SERVICES, "s(s_key, service, category, usage, unit, price)")} ON s_k = s_key
    JOIN {_values(REGIONS, "g(g_key, region, region_name)")} ON g_k = g_key
    """


def focus_query(rows: int, *, seed: int, month: str = "2026-05") -> str:
    """A FOCUS 1.2 bill of one month as SQL: 45 columns, exact amounts, tags as JSON text."""
    money = MONEY.format
    is_covered = "r % 11 = 0"
    return f"""
    {_discounted(rows, seed=seed, month=month)}
    SELECT region || 'a' AS AvailabilityZone,
      {money(f"CASE WHEN {is_covered} THEN 0 ELSE sign * contracted END")} AS BilledCost,
      '111111111111' AS BillingAccountId, 'Example' AS BillingAccountName,
      'USD' AS BillingCurrency, {_month(month)} + INTERVAL 1 MONTH AS BillingPeriodEnd,
      {_month(month)} AS BillingPeriodStart, category_of_charge AS ChargeCategory,
      CAST(NULL AS VARCHAR) AS ChargeClass,
      '$' || price || ' per ' || unit || ' of ' || usage AS ChargeDescription,
      'Usage-Based' AS ChargeFrequency, start + INTERVAL 1 HOUR AS ChargePeriodEnd,
      start AS ChargePeriodStart,
      CASE WHEN {is_covered} THEN 'Spend' END AS CommitmentDiscountCategory,
      CASE WHEN {is_covered} THEN '{SAVINGS_PLAN}' END AS CommitmentDiscountId,
      CAST(NULL AS VARCHAR) AS CommitmentDiscountName,
      CASE WHEN {is_covered} THEN 'Used' END AS CommitmentDiscountStatus,
      CASE WHEN {is_covered} THEN 'Savings Plan' END AS CommitmentDiscountType,
      {money("quantity")} AS ConsumedQuantity, unit AS ConsumedUnit,
      contracted AS ContractedCost,
      {money("CAST(price AS DECIMAL(12,6)) * 0.86")} AS ContractedUnitPrice,
      {money("sign * contracted * 0.97")} AS EffectiveCost,
      'Amazon Web Services, Inc.' AS InvoiceIssuerName, list_cost AS ListCost,
      {money("price")} AS ListUnitPrice, 'Standard' AS PricingCategory,
      {money("quantity")} AS PricingQuantity, unit AS PricingUnit,
      'AWS' AS ProviderName, 'Amazon Web Services, Inc.' AS PublisherName,
      region AS RegionId, region_name AS RegionName, resource_id AS ResourceId,
      CAST(NULL AS VARCHAR) AS ResourceName, category AS ResourceType,
      category AS ServiceCategory, service AS ServiceName,
      upper(substr(md5(usage), 1, 16)) AS SkuId,
      upper(substr(md5(usage), 1, 16)) || '.JRTCKXETXF' AS SkuPriceId,
      account_id AS SubAccountId, account AS SubAccountName, tags AS Tags,
      usage AS x_UsageType, 'RunInstances' AS x_Operation
    FROM discounted
    """


def _discounted(rows: int, *, seed: int, month: str) -> str:
    """The rows of `discounted`: resources drawn by weight, their prices and costs."""
    chance = "(hash(i * 2654435761 + {}) % 9007199254740992 + 0.5) / 9007199254740992.0"
    dice = [chance.format(seed * 16 + number) for number in range(6)]
    quantity = f"-0.6 * (ln({dice[1]}) + ln({dice[2]}))"
    hours = f"CAST(date_diff('hour', {_month(month)}, {_month(month)} + INTERVAL 1 MONTH) AS INT)"
    money = MONEY.format
    return f"""
    WITH resources AS MATERIALIZED ({_resources()}),
    base AS (
      SELECT i, CAST(floor({RESOURCES} * pow({dice[0]}, 1.3)) AS INT) AS r,
        CAST({quantity} AS DECIMAL(18,6)) AS quantity, {dice[4]} AS kind,
        {_month(month)} + INTERVAL 1 HOUR * CAST(floor({hours} * ({dice[3]})) AS INT) AS start
      FROM range({rows}) t(i)
    ),
    priced AS (
      SELECT *, {money("quantity * CAST(price AS DECIMAL(12,6))")} AS list_cost,
        CASE WHEN kind < 0.005 THEN 'Credit' WHEN kind < 0.015 THEN 'Tax' ELSE 'Usage' END
          AS category_of_charge
      FROM base JOIN resources USING (r)
    ),
    discounted AS (
      SELECT *, {money("list_cost * 0.86")} AS contracted,
        CASE WHEN category_of_charge = 'Credit' THEN -1 ELSE 1 END AS sign
      FROM priced
    )"""


def _month(month: str) -> str:
    return f"TIMESTAMP '{month}-01'"


def _focus(rows: int, seed: int, month: str) -> str:
    return focus_query(rows, seed=seed, month=month)


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

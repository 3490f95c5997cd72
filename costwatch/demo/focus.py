"""Writes charges as FOCUS 1.2 CSV and enters each row in the ledger; charges.py says which."""

import csv
import gzip
import io
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Final

from costwatch.demo.ledger import ChargeLedger, LedgerCost, LedgerKey
from costwatch.demo.story import BILLING_ACCOUNT, Rate, first_of_next_month

COLUMNS: Final = (
    "AvailabilityZone",
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingAccountType",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "ContractedUnitPrice",
    "EffectiveCost",
    "InvoiceId",
    "InvoiceIssuerName",
    "ListCost",
    "ListUnitPrice",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "RegionId",
    "RegionName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "ServiceSubcategory",
    "SkuId",
    "SkuMeter",
    "SkuPriceDetails",
    "SkuPriceId",
    "SubAccountId",
    "SubAccountName",
    "SubAccountType",
    "Tags",
    "x_Operation",
    "x_ServiceCode",
    "x_UsageType",
)
_START_MARK, _END_MARK = "\x01", "\x02"


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """When a charge applies, half-open."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Sku:
    """What is sold: the columns that every charge of one article shares."""

    provider: str
    service_name: str
    service_category: str
    service_subcategory: str
    service_code: str
    usage_type: str
    operation: str
    description: str
    unit: str
    x_cost_class: str
    region_id: str = "us-west-2"
    region_name: str = "US West (Oregon)"
    price_details: dict[str, str] = field(default_factory=dict)
    accelerators_per_unit: int = 0

    @property
    def sku_id(self) -> str:
        """A readable id that nobody takes for a real one."""
        letters = "".join(c if c.isalnum() else "-" for c in self.usage_type or self.service_code)
        return f"DEMO-{letters.upper()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who is charged: sub account, resource, tags, and the project that the demo's rules find."""

    sub_account: str
    project: str | None
    resource: str = ""
    resource_type: str = ""
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """How much at which price. Without a quantity the charge is the flat `billed` amount."""

    quantity: Decimal | None = None
    rate: Rate | None = None
    billed: Decimal | None = None
    charge_category: str = "Usage"
    charge_class: str = ""
    frequency: str = "Usage-Based"

    @property
    def listed(self) -> Decimal:
        """The list cost, exactly price times quantity."""
        if self.quantity is None or self.rate is None:
            return self.billed or Decimal(0)
        return self.quantity * self.rate.listed

    @property
    def contracted(self) -> Decimal:
        """The contracted cost, which the demo is also billed."""
        if self.quantity is None or self.rate is None:
            return self.billed or Decimal(0)
        return self.quantity * self.rate.contracted


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Charges that differ only by their period; all in one billing month."""

    sku: Sku
    owner: Owner
    amount: Amount
    periods: Sequence[Period]
    billing_month: date


@dataclass(frozen=True, slots=True, kw_only=True)
class BillFile:
    """One provider's bill of one month as a gzipped FOCUS 1.2 file."""

    provider: str
    billing_month: date
    name: str
    content: bytes
    rows: int


def instant_text(instant: datetime) -> str:
    """A UTC instant as FOCUS writes it."""
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")


def plain(number: Decimal | None) -> str:
    """A decimal without exponent and without trailing zeros; nothing for None."""
    if number is None:
        return ""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _who_columns(series: Series) -> dict[str, str]:
    """Accounts, resource, tags and the billing month."""
    owner, month, sku = series.owner, series.billing_month, series.sku
    issued = month < date(2026, 11, 1)
    return {
        "BillingAccountId": BILLING_ACCOUNT,
        "BillingAccountName": "Synthetic demo payer",
        "BillingAccountType": "Payer account",
        "BillingCurrency": "USD",
        "BillingPeriodStart": f"{month:%Y-%m}-01T00:00:00Z",
        "BillingPeriodEnd": f"{first_of_next_month(month):%Y-%m}-01T00:00:00Z",
        "InvoiceId": f"DEMO-INVOICE-{sku.provider}-{month:%Y-%m}" if issued else "",
        "SubAccountId": owner.sub_account,
        "SubAccountName": owner.sub_account.partition("-")[2],
        "SubAccountType": "Linked account",
        "ResourceId": owner.resource,
        "ResourceName": owner.resource.rpartition("/")[2],
        "ResourceType": owner.resource_type,
        "Tags": json.dumps(owner.tags) if owner.tags else "",
    }


def _what_columns(sku: Sku) -> dict[str, str]:
    """Provider, service, article and region."""
    return {
        "ProviderName": sku.provider,
        "PublisherName": sku.provider,
        "InvoiceIssuerName": sku.provider,
        "ServiceName": sku.service_name,
        "ServiceCategory": sku.service_category,
        "ServiceSubcategory": sku.service_subcategory,
        "ChargeDescription": sku.description,
        "RegionId": sku.region_id,
        "RegionName": sku.region_name,
        "SkuId": sku.sku_id,
        "SkuMeter": sku.usage_type,
        "SkuPriceId": f"{sku.sku_id}-PRICE",
        "SkuPriceDetails": json.dumps(sku.price_details) if sku.price_details else "",
        "x_Operation": sku.operation,
        "x_ServiceCode": sku.service_code,
        "x_UsageType": sku.usage_type,
    }


def _amount_columns(amount: Amount, unit: str) -> dict[str, str]:
    """Money, prices and quantities."""
    rate = amount.rate
    consumed = amount.quantity if amount.charge_category == "Usage" else None
    return {
        "BilledCost": plain(amount.contracted),
        "EffectiveCost": plain(amount.contracted),
        "ContractedCost": plain(amount.contracted),
        "ListCost": plain(amount.listed),
        "ContractedUnitPrice": plain(rate.contracted) if rate else "",
        "ListUnitPrice": plain(rate.listed) if rate else "",
        "PricingCategory": "Standard" if rate else "",
        "PricingQuantity": plain(amount.quantity),
        "PricingUnit": unit if amount.quantity is not None else "",
        "ConsumedQuantity": plain(consumed),
        "ConsumedUnit": unit if consumed is not None else "",
        "ChargeCategory": amount.charge_category,
        "ChargeClass": amount.charge_class,
        "ChargeFrequency": amount.frequency,
    }


def _template(series: Series) -> str:
    """The CSV line of a series with marks where the period goes."""
    columns = _who_columns(series) | _what_columns(series.sku)
    columns |= _amount_columns(series.amount, series.sku.unit)
    columns |= {"ChargePeriodStart": _START_MARK, "ChargePeriodEnd": _END_MARK}
    if series.amount.rate is None:
        columns |= {"SkuId": "", "SkuPriceId": "", "SkuMeter": ""}
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([columns.get(name, "") for name in COLUMNS])
    return line.getvalue()


def _enter(ledger: ChargeLedger, series: Series) -> None:
    """Enter a series in the ledger, once for each day it touches."""
    amount, sku = series.amount, series.sku
    cost = LedgerCost(
        billed_cost=amount.contracted,
        effective_cost=amount.contracted,
        list_cost=amount.listed,
        contracted_cost=amount.contracted,
        accelerator_h=(amount.quantity or Decimal(0)) * sku.accelerators_per_unit,
        rows=1,
    )
    for day, times in Counter(period.start.date() for period in series.periods).items():
        key = LedgerKey(
            day=day,
            provider=sku.provider,
            x_cost_class=sku.x_cost_class,
            project=series.owner.project,
        )
        ledger.add(key, cost, times=times)


def write_bills(all_series: Iterable[Series], ledger: ChargeLedger) -> tuple[BillFile, ...]:
    """One gzipped file for each provider and month, rows in the order given."""
    lines: defaultdict[tuple[str, date], list[str]] = defaultdict(list)
    for series in all_series:
        template = _template(series)
        _enter(ledger, series)
        lines[series.sku.provider, series.billing_month].extend(
            template.replace(_START_MARK, instant_text(period.start)).replace(
                _END_MARK, instant_text(period.end)
            )
            for period in series.periods
        )
    header = ",".join(COLUMNS) + "\n"
    return tuple(
        BillFile(
            provider=provider,
            billing_month=month,
            name=f"demo-focus-{provider.split()[0].lower()}-{month:%Y-%m}.csv.gz",
            content=gzip.compress((header + "".join(rows)).encode(), compresslevel=1, mtime=0),
            rows=len(rows),
        )
        for (provider, month), rows in sorted(lines.items())
    )

"""Builders of bills: FOCUS text from charges, deliveries through the real doors."""

import csv
import gzip
import io
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from billing.allocation_wishes import RuleWish, TargetWish
from billing.models import DailyCost, Delivery
from billing.records import RuleCondition
from billing.selectors import costs_grouped
from billing.services import IncomingFile, NewDelivery, Receipt, receive_files, replace_rules
from jobs.services import run_job
from projects.access import system_actor
from projects.records import Actor
from tests.builders import organisation

CHARGE = {
    "ProviderName": "AWS",
    "PublisherName": "AWS",
    "InvoiceIssuerName": "AWS",
    "BillingAccountId": "111111111111",
    "BillingAccountName": "Example",
    "SubAccountId": "222222222222",
    "BillingPeriodStart": "2026-05-01T00:00:00Z",
    "BillingPeriodEnd": "2026-06-01T00:00:00Z",
    "ChargePeriodStart": "2026-05-04T00:00:00Z",
    "ChargePeriodEnd": "2026-05-04T01:00:00Z",
    "ChargeCategory": "Usage",
    "ChargeClass": "",
    "ChargeDescription": "a charge",
    "ChargeFrequency": "Usage-Based",
    "BilledCost": "1.10",
    "EffectiveCost": "1.10",
    "ListCost": "1.10",
    "ContractedCost": "1.10",
    "BillingCurrency": "USD",
    "PricingCategory": "Standard",
    "PricingQuantity": "1",
    "PricingUnit": "Hours",
    "ConsumedQuantity": "1",
    "ConsumedUnit": "Hours",
    "ServiceName": "AmazonEC2",
    "ServiceCategory": "Compute",
    "ServiceSubcategory": "Virtual Machines",
    "SkuMeter": "",
    "SkuPriceDetails": "",
    "CommitmentDiscountId": "",
    "CommitmentDiscountStatus": "",
    "ResourceId": "",
    "RegionId": "us-west-2",
    "Tags": "",
}


def charge(**columns: str) -> dict[str, str]:
    """A FOCUS row: the usual one with some columns changed."""
    return {**CHARGE, **columns}


def costing(amount: str, **columns: str) -> dict[str, str]:
    """A row whose four costs are this text."""
    costs = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")
    return charge(**dict.fromkeys(costs, amount), **columns)


def in_month(month: str, **columns: str) -> dict[str, str]:
    """A row of another billing month, as 2026-06."""
    year, number = map(int, month.split("-"))
    following = f"{year + number // 12}-{number % 12 + 1:02}"
    return charge(
        **{
            "BillingPeriodStart": f"{month}-01T00:00:00Z",
            "BillingPeriodEnd": f"{following}-01T00:00:00Z",
            "ChargePeriodStart": f"{month}-04T00:00:00Z",
            "ChargePeriodEnd": f"{month}-04T01:00:00Z",
            **columns,
        }
    )


def focus_csv(rows: Sequence[Mapping[str, str]], *, newline: str = "\n") -> bytes:
    """The rows as a FOCUS file."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator=newline)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def operator() -> Actor:
    """Full rights in the default organisation."""
    return system_actor(organisation().pk, "tests")


def hand_in(
    *files: bytes | tuple[str, bytes],
    source: str = "aws",
    periods: Iterable[str] = (),
    confirm_shrink: bool = False,
    actor: Actor | None = None,
) -> Receipt:
    """Receive files and do their job in this process."""
    named = [file if isinstance(file, tuple) else (name_of(file), file) for file in files]
    receipt = receive_files(
        actor or operator(),
        NewDelivery(
            source_name=source,
            files=[IncomingFile(name=name, chunks=[content]) for name, content in named],
            periods=tuple(periods),
            confirm_shrink=confirm_shrink,
        ),
    )
    run_job(receipt.job_id)
    return receipt


def name_of(content: bytes) -> str:
    return "bill.csv.gz" if content.startswith(b"\x1f\x8b") else "bill.csv"


def imported(*files: bytes | tuple[str, bytes], **options: Any) -> Delivery:
    """The delivery that came of handing files in."""
    return Delivery.objects.get(pk=hand_in(*files, **options).delivery_id)


def gzipped(content: bytes) -> bytes:
    return gzip.compress(content, 6, mtime=0)


def total(basis: str = "billed", currency: str = "USD", **options: Any) -> Decimal:
    """The published total in a currency; 0 when nothing is published."""
    table = costs_grouped(
        organisation().pk,
        group_by=["provider_name"],
        basis=basis,
        include_unallocated=True,
        **options,
    )
    return next((entry.cost for entry in table.total if entry.currency == currency), Decimal(0))


def by(column: str, basis: str = "billed") -> dict[str | None, Decimal | None]:
    """Published costs by one column."""
    table = costs_grouped(
        organisation().pk, group_by=[column], basis=basis, include_unallocated=True
    )
    return {row.group[0]: row.cost for row in table.rows}


def roll_up() -> list[dict[str, Any]]:
    """Every daily cost without its keys, in a fixed order."""
    names = [
        field.attname
        for field in DailyCost._meta.concrete_fields
        if field.attname not in ("id", "version_id", "rule_set_id")
    ]
    return sorted(DailyCost.objects.values(*names), key=str)


def text_sum(content: bytes, column: str) -> Decimal:
    """The exact sum of a column of a CSV, as its own text says."""
    rows = csv.DictReader(io.StringIO(content.decode("utf-8-sig")))
    return sum((Decimal(row[column]) for row in rows), Decimal(0))


def rule(
    match: str,
    value: str,
    slug: str,
    *,
    key: str = "",
    op: str = "is",
    targets: Sequence[TargetWish] = (),
) -> RuleWish:
    """A rule of one condition; all of it goes to one project unless targets are given."""
    condition = RuleCondition(field=match, key=key, op=op, value=value)
    return RuleWish(conditions=(condition,), targets=tuple(targets) or (TargetWish(project=slug),))


def in_force(*rules: RuleWish) -> UUID:
    """Put these rules in force and have them applied; the job that did it."""
    job_id = replace_rules(operator(), rules)
    assert job_id is not None
    run_job(job_id)
    return job_id

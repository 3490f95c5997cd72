"""Samples of every format, what they must add up to, and ways to cut them up."""

import ast
import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import ibis

from billing.lake_tables import stored_charges
from billing.models import ChargeSlice
from lake.engine import open_engine

FOLDER = Path(__file__).parents[1] / "samples" / "billing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One file of a format, and the column whose texts its main cost adds up to."""

    file: str
    format: str
    cost_column: str | None  # None: the file states no cost
    basis: str = "billed"
    credits_column: str | None = None
    required: str = ""  # a column without which it cannot be read

    @property
    def content(self) -> bytes:
        return (FOLDER / self.file).read_bytes()

    def rows(self) -> list[dict[str, str]]:
        return rows_of(self.content)

    def stated(self) -> Decimal | None:
        """The sum of the file's own texts."""
        if self.cost_column is None:
            return None
        total = sum((Decimal(row[self.cost_column]) for row in self.rows()), Decimal(0))
        if self.credits_column:
            for row in self.rows():
                total += sum(amounts_of(row[self.credits_column]), Decimal(0))
        return total

    def charges(self) -> int:
        """How many charges its lines state."""
        if self.credits_column is None:
            return len(self.rows())
        return sum(1 + len(amounts_of(row[self.credits_column])) for row in self.rows())


SAMPLES = (
    Sample(
        file="aws_cur_legacy.csv",
        format="aws-cur",
        cost_column="lineItem/UnblendedCost",
        required="lineItem/LineItemType",
    ),
    Sample(
        file="aws_cur_2.csv",
        format="aws-cur",
        cost_column="line_item_unblended_cost",
        required="line_item_unblended_cost",
    ),
    Sample(
        file="gcp_standard.csv",
        format="gcp-export",
        cost_column="cost",
        credits_column="credits",
        required="invoice.month",
    ),
    Sample(
        file="gcp_detailed.csv",
        format="gcp-export",
        cost_column="cost",
        credits_column="credits",
        required="currency",
    ),
    Sample(file="azure_actual.csv", format="azure-actual", cost_column="Cost", required="Cost"),
    Sample(
        file="azure_amortised.csv",
        format="azure-amortised",
        cost_column="Cost",
        basis="effective",
        required="Date",
    ),
    Sample(
        file="azure_customer_agreement.csv",
        format="azure-actual",
        cost_column="costInBillingCurrency",
        required="meterCategory",
    ),
    Sample(
        file="focus_1_4.csv",
        format="focus",
        cost_column="BilledCost",
        required="ServiceCategory",
    ),
    Sample(
        file="focus_aws_1_2.csv",
        format="focus",
        cost_column="BilledCost",
        required="BillingCurrency",
    ),
    Sample(
        file="focus_google.csv",
        format="focus",
        cost_column="BilledCost",
        required="ChargePeriodStart",
    ),
    Sample(
        file="focus_usage_only.csv", format="focus", cost_column=None, required="BillingAccountId"
    ),
)
BY_FILE = {sample.file: sample for sample in SAMPLES}


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))


def csv_of(rows: Sequence[Mapping[str, str]], columns: Sequence[str] = ()) -> bytes:
    """The rows as a file, with these columns, else all."""
    names = columns or list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def amounts_of(text: str) -> list[Decimal]:
    """The amounts in a cell of credits, JSON or as Python writes it."""
    return [Decimal(str(one["amount"])) for one in _list(text)]


def _list(text: str) -> list[dict[str, Any]]:
    if not text:
        return []
    found: list[dict[str, Any]]
    try:
        found = json.loads(text, parse_float=str)
    except ValueError:
        found = ast.literal_eval(text)
    return found


def published_charges() -> tuple[ibis.Schema, list[dict[str, Any]]]:
    """The columns of all stored charges, and the charges, as readers get them."""
    paths = list(ChargeSlice.objects.order_by("path").values_list("path", flat=True))
    with open_engine() as engine:
        table = stored_charges(engine, paths)
        return table.schema(), engine.rows(table)

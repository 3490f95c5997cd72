"""Any CSV as charges, by a mapping that a person made: columns, constants, how days are written."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import ibis
from babel.numbers import list_currencies

from billing.adapters.layout import InstantStyle, Layout, assembled, require_columns
from billing.columns import BY_NAME
from billing.records import COST_COLUMNS, ChargesRefusedError, Kind

NAME: Final = "mapped"
# What may be mapped, in the order of the page; the rest of FOCUS no hand-made bill states.
MAPPABLE: Final = (
    "charge_period_start",
    "charge_period_end",
    "billing_period_start",
    "billed_cost",
    "effective_cost",
    "list_cost",
    "contracted_cost",
    "billing_currency",
    "provider_name",
    "service_name",
    "service_category",
    "charge_category",
    "charge_description",
    "billing_account_id",
    "sub_account_id",
    "sub_account_name",
    "region_id",
    "resource_id",
    "resource_name",
    "resource_type",
    "sku_id",
    "sku_meter",
    "consumed_quantity",
    "consumed_unit",
    "invoice_id",
    "x_usage_type",
    "x_instance_type",
)
REQUIRED: Final = ("charge_period_start", "billing_currency", "provider_name", "service_name")
DEFAULTS: Final[Mapping[str, str]] = {
    "charge_category": "Usage",
    "service_category": "Other",
    "billing_account_id": "default",
}
STYLES: Final = (
    InstantStyle.ISO_DAY,
    InstantStyle.SLASHED,
    InstantStyle.US_DATE,
    InstantStyle.DAY_FIRST,
)


class Fault(StrEnum):
    """Why a charge column of a mapping cannot be read."""

    UNKNOWN = "is no column of a charge that can be mapped"
    UNTOLD = "is neither mapped to a column nor given one value for all rows"
    VARIES = "differs from row to row; map it to a column"
    NO_COST = "is not mapped, and neither is consumed_quantity"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMapping:
    """A person's mapping: charge column -> the file's column, or a constant for every row."""

    columns: Mapping[str, str]
    constants: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()  # the file's columns that become tags of the same name
    days: InstantStyle = InstantStyle.ISO_DAY

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "ColumnMapping":
        """Read a stored mapping.

        Raises:
            ChargesRefusedError: it names a column that charges do not have, or lacks one they need.
        """
        mapping = cls(
            columns=dict(document.get("columns", {})),
            constants={name: str(text) for name, text in document.get("constants", {}).items()},
            tags=tuple(document.get("tags", ())),
            days=InstantStyle(document.get("days", InstantStyle.ISO_DAY)),
        )
        mapping.check()
        return mapping

    def check(self) -> None:
        """Refuse what cannot be read as charges.

        Raises:
            ChargesRefusedError: says all that is wrong; names the first charge column.
        """
        wrong = self.wrong()
        if wrong:
            words = "; ".join(f"{name} {fault.value}" for name, fault in wrong.items())
            raise ChargesRefusedError("mapping", words, column=next(iter(wrong)))

    def wrong(self) -> dict[str, Fault]:
        """Every charge column for which it cannot be read as charges."""
        told = {**self.constants, **self.columns}
        found = {name: Fault.UNKNOWN for name in told if name not in MAPPABLE}
        found |= {name: Fault.UNTOLD for name in REQUIRED if not told.get(name)}
        found |= {
            name: Fault.VARIES
            for name in self.constants
            if name in MAPPABLE and BY_NAME[name].kind in (Kind.MONEY, Kind.QUANTITY, Kind.INSTANT)
        }
        if "billed_cost" not in self.columns and "consumed_quantity" not in self.columns:
            found.setdefault("billed_cost", Fault.NO_COST)
        return found

    def as_document(self) -> dict[str, Any]:
        """The mapping as it is stored."""
        return {
            "columns": dict(self.columns),
            "constants": dict(self.constants),
            "tags": list(self.tags),
            "days": self.days.value,
        }


@dataclass(frozen=True, slots=True)
class Mapped:
    """The adapter of one mapping."""

    mapping: ColumnMapping
    name: str = NAME
    json_columns: tuple[str, ...] = ()
    list_columns: tuple[str, ...] = ()

    def recognises(self, columns: Sequence[str]) -> int:
        """How many of the mapped columns stand in the file."""
        return len(set(self.mapping.columns.values()) & set(columns))

    def layout(self, columns: Sequence[str]) -> Layout:
        """The person's mapping, checked against the file's columns."""
        mapped = self.mapping.columns
        require_columns(columns, (*mapped.values(), *self.mapping.tags), of="the mapping")
        used = {*mapped.values(), *self.mapping.tags}
        unused = tuple(name for name in columns if name not in used)
        return Layout(
            columns=dict(mapped),
            numbers=_of_kind(mapped, Kind.MONEY, Kind.QUANTITY),
            instants=dict.fromkeys(_of_kind(mapped, Kind.INSTANT), self.mapping.days),
            extra_columns=tuple(dict.fromkeys((*unused, *self.mapping.tags))),
            unknown_columns=unused,
            saw=f"a mapped CSV: {len(used)} of {len(columns)} columns are mapped",
        )

    def charges(self, lines: ibis.Table, layout: Layout) -> ibis.Table:
        """Charges by the mapping; what it leaves open follows from what it says."""
        values: dict[str, Any] = {
            name: ibis.literal(text)
            for name, text in {**DEFAULTS, **self.mapping.constants}.items()
        }
        values |= {ours: lines[theirs] for ours, theirs in layout.columns.items()}
        start = values["charge_period_start"]
        values.setdefault("charge_period_end", start + ibis.interval(days=1))
        month = values.get("billing_period_start", start).truncate("month")
        values["billing_period_start"] = month
        values["billing_period_end"] = month + ibis.interval(months=1)
        if "billed_cost" in values:
            for name in COST_COLUMNS:
                values.setdefault(name, values["billed_cost"])
        if self.mapping.tags:
            values["tags"] = ibis.map(
                ibis.array([ibis.literal(name) for name in self.mapping.tags]),
                ibis.array([lines[name].cast("string") for name in self.mapping.tags]),
            )
        return assembled(lines, layout, values)


def _of_kind(mapped: Mapping[str, str], *kinds: Kind) -> tuple[str, ...]:
    """The file's columns whose charge column is of such a kind, each once."""
    return tuple(
        dict.fromkeys(theirs for ours, theirs in mapped.items() if BY_NAME[ours].kind in kinds)
    )


_GUESSES: Final[Mapping[str, tuple[str, ...]]] = {
    "charge_period_start": ("date", "day", "usage date", "start", "start date", "日期", "开始时间"),
    "charge_period_end": ("end", "end date", "结束时间"),
    "billed_cost": ("cost", "amount", "total", "charge", "price", "费用", "金额", "应付金额"),
    "billing_currency": ("currency", "币种"),
    "provider_name": ("provider", "vendor", "cloud"),
    "service_name": ("service", "product", "产品", "服务"),
    "charge_description": ("description", "item", "details"),
    "sub_account_id": ("account", "project", "subscription", "账号", "项目"),
    "region_id": ("region", "location", "zone", "地域"),
    "resource_id": ("resource", "instance id", "resource id", "实例id"),
    "consumed_quantity": ("quantity", "usage", "hours", "gpu hours", "用量"),
    "consumed_unit": ("unit", "usage unit", "单位"),
    "x_instance_type": ("instance type", "machine type", "gpu", "gpu type", "规格"),
    "invoice_id": ("invoice", "invoice id", "invoice number", "发票号"),
}


def guessed(columns: Sequence[str]) -> dict[str, str]:
    """The columns that a name gives away: FOCUS names first, then everyday words."""
    plain = {_plain(name): name for name in reversed(columns)}
    found: dict[str, str] = {}
    for ours in MAPPABLE:
        words = (ours.replace("_", " "), ours.replace("_", ""), *_GUESSES.get(ours, ()))
        match = next((plain[word] for word in words if word in plain), None)
        if match is not None and match not in found.values():
            found[ours] = match
    return found


def guessed_constants(columns: Sequence[str]) -> dict[str, str]:
    """What a name gives away for all rows: the currency of "Amount (USD)", where no column is."""
    found = guessed(columns)
    currency = _currency_in(found.get("billed_cost", ""))
    return {"billing_currency": currency} if currency and "billing_currency" not in found else {}


_IN_BRACKETS: Final = re.compile(r"\s*[(\[（]\s*([A-Z]{3})\s*[)\]）]\s*$")


def _currency_in(name: str) -> str:
    """The currency in brackets at a name's end; empty where none is."""
    match = _IN_BRACKETS.search(name)
    return match[1] if match and match[1] in list_currencies(locale="en") else ""


def _plain(name: str) -> str:
    if _currency_in(name):
        name = _IN_BRACKETS.sub("", name)
    return name.strip().lower().replace("_", " ").replace("-", " ")

"""The rows of the bill around the accelerators, between the form's fields and SPEC; no prices."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from planning.estimate_fields import exact, number, whole

MONEY: Final = frozenset(
    {
        "price_per_tb_month",
        "price_per_1000",
        "price_per_gb",
        "per_month",
        "capital_per_accelerator",
        "electricity_per_kwh",
        "staff_per_accelerator_h",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One list of SPEC: its key, what tells its rows apart, the rows, and each row's columns."""

    key: str
    by: str
    title: Any
    rows: tuple[tuple[str, Any], ...]
    columns: tuple[tuple[str, Any], ...]


PARTS: Final = (
    Part(
        key="storage",
        by="tier",
        title=_("Storage"),
        rows=(
            ("hot", _("Hot: parallel file system")),
            ("warm", _("Warm: object store")),
            ("cold", _("Cold: archive")),
        ),
        columns=(
            ("terabytes", _("TB")),
            ("months", _("Months")),
            ("price_per_tb_month", _("Price per TB-month")),
        ),
    ),
    Part(
        key="requests",
        by="verb",
        title=_("Requests"),
        rows=(("get", _("GET requests")), ("put", _("PUT requests"))),
        columns=(
            ("count", _("Requests in all")),
            ("dataset_terabytes", _("or dataset (TB)")),
            ("object_megabytes", _("Object (MB)")),
            ("epochs", _("Epochs")),
            ("shard_megabytes", _("Shard to compare (MB)")),
            ("price_per_1000", _("Price per 1,000")),
        ),
    ),
    Part(
        key="transfer",
        by="kind",
        title=_("Traffic"),
        rows=(
            ("egress", _("Out to the internet")),
            ("inter_region", _("Between regions")),
            ("nat", _("Through NAT")),
        ),
        columns=(
            ("terabytes", _("TB in all")),
            ("dataset_terabytes", _("or dataset (TB)")),
            ("epochs", _("Epochs")),
            ("cached_fraction", _("Cached (0 to 1)")),
            ("price_per_gb", _("Price per GB")),
        ),
    ),
    Part(
        key="services",
        by="kind",
        title=_("Services"),
        rows=(("logging", _("Logging")), ("support", _("Support"))),
        columns=(
            ("per_month", _("Per month")),
            ("fraction_of_compute", _("or share of compute (0 to 1)")),
            ("gigabytes_per_month", _("or logs (GB a month)")),
        ),
    ),
)
ON_PREMISES: Final = (
    ("capital_per_accelerator", _("Capital per accelerator")),
    ("life_years", _("Life (years)")),
    ("utilisation_fraction", _("Used share of its hours (0 to 1)")),
    ("residual_fraction", _("Residual value (0 to 1)")),
    ("electricity_per_kwh", _("Electricity per kWh")),
    ("staff_per_accelerator_h", _("Staff per accelerator-hour")),
)
_WHOLE: Final = frozenset({"count", "epochs"})


def field_name(part: str, row: str, column: str) -> str:
    """The form's name of one cell."""
    return f"{part}_{row}_{column}"


def bill_fields() -> dict[str, forms.Field]:
    """Every field of the bill."""
    found: dict[str, forms.Field] = {}
    for part in PARTS:
        for row, row_label in part.rows:
            for column, label in part.columns:
                if column == "gigabytes_per_month" and row != "logging":
                    continue
                text = _("%(row)s: %(column)s") % {"row": row_label, "column": label}
                found[field_name(part.key, row, column)] = _field(column, text)
    for column, label in ON_PREMISES:
        found[f"on_premises_{column}"] = _field(column, label)
    return found


def _field(column: str, label: Any) -> forms.Field:
    if column in _WHOLE:
        return whole(label)
    return exact(label) if column in MONEY or "terabytes" in column else number(label)


def bill_document(cleaned: dict[str, Any], *, currency: str) -> dict[str, Any]:
    """The filled rows as SPEC's lists; a row without any value is left out."""
    document: dict[str, Any] = {}
    for part in PARTS:
        rows = []
        for row, _label in part.rows:
            names = [column for column, _text in part.columns]
            found = _filled(cleaned, f"{part.key}_{row}", names, currency=currency)
            if found and set(found) != {"shard_megabytes"}:
                rows.append({part.by: row, **found})
        if rows:
            document[part.key] = rows
    own = _filled(cleaned, "on_premises", [name for name, _text in ON_PREMISES], currency=currency)
    return document | ({"on_premises": own} if own else {})


def _filled(
    cleaned: dict[str, Any], prefix: str, names: list[str], *, currency: str
) -> dict[str, Any]:
    """The columns that have a value, amounts of money with the plan's currency."""
    found: dict[str, Any] = {}
    for name in names:
        value = cleaned.get(f"{prefix}_{name}")
        if value is None:
            continue
        text = format(value, "f") if isinstance(value, Decimal) else value
        found[name] = {"amount": text, "currency": currency} if name in MONEY else text
    return found


def bill_initial(document: dict[str, Any], *, currency: str) -> dict[str, Any]:
    """The rows of SPEC as first values; what has no place in the form stays in `document`."""
    initial: dict[str, Any] = {}
    for part in PARTS:
        rows = document.get(part.key, [])
        kinds = [row[part.by] for row in rows]
        columns = {column for column, _text in part.columns} | {part.by}
        fits = all(set(row) <= columns and _in(row, currency) for row in rows)
        if rows and fits and len(set(kinds)) == len(kinds):
            for row in document.pop(part.key):
                kind = row.pop(part.by)
                initial |= _values(f"{part.key}_{kind}", row)
    own = document.get("on_premises")
    if own and _in(own, currency):
        initial |= _values("on_premises", document.pop("on_premises"))
    return initial


def _in(row: dict[str, Any], currency: str) -> bool:
    """Whether every amount is in the plan's currency."""
    return all(row[name]["currency"] == currency for name in MONEY & set(row))


def _values(prefix: str, row: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{prefix}_{name}": value["amount"] if name in MONEY else value
        for name, value in row.items()
    }

"""Ibis expressions that turn stored charges into FOCUS 1.2 rows; opens no engine, writes no file.

What FOCUS wants in every row and a bill left out is filled with what follows from the rest, never
invented: a provider that names no issuer issues itself. `x_FilledColumns` names what was filled.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Final

import ibis

from billing.columns import STORED_TYPES
from billing.cost_classes import PROVIDERS
from billing.focus_columns import EXPORT_COLUMNS
from billing.records import MONEY_TYPE

_FORMULA: Final = r"^[=+\-@\t\r]"  # what a spreadsheet would compute
# What follows from other columns where a bill left the column out.
_FOLLOWS: Final[Mapping[str, Callable[[ibis.Table], Any]]] = {
    "publisher_name": lambda charges: charges.provider_name,
    "invoice_issuer_name": lambda charges: charges.provider_name,
    "billing_account_type": lambda charges: _where(charges.billing_account_id, "Billing Account"),
    "sub_account_type": lambda charges: _where(charges.sub_account_id, "Sub Account"),
    "service_subcategory": lambda charges: (
        ibis.literal("Other (") + charges.service_category + ibis.literal(")")
    ),
    "region_id": lambda charges: charges.region_name,
    "region_name": lambda charges: charges.region_id,
    "sub_account_name": lambda charges: charges.sub_account_id,
    "charge_frequency": lambda charges: ibis.ifelse(
        charges.charge_category == "Usage", ibis.literal("Usage-Based"), ibis.literal("One-Time")
    ),
    "pricing_currency": lambda charges: charges.billing_currency,
    "charge_description": lambda charges: ibis.coalesce(
        charges.x_usage_type, charges.x_credit_type, charges.service_name, charges.charge_category
    ),
    "list_cost": lambda charges: ibis.coalesce(
        _price_less(charges), charges.contracted_cost, charges.billed_cost
    ),
    "contracted_cost": lambda charges: ibis.coalesce(
        _price_less(charges), charges.list_cost, charges.billed_cost
    ),
}
# Units that providers abbreviate -> as FOCUS spells them.
_UNITS: Final = ((r"^[Hh]rs?$", "Hours"), (r"-[Mm]o$", "-Months"), (r"-[Hh]rs?$", "-Hours"))


def focus_rows(charges: ibis.Table) -> ibis.Table:
    """Stored charges, with x_project and the other keys of allocation, under FOCUS names."""
    filled = _filled(charges)
    return filled.select(
        **{theirs: _value(filled, ours) for theirs, ours in EXPORT_COLUMNS.items()}
    )


def as_texts(rows: ibis.Table) -> ibis.Table:
    """FOCUS rows as a CSV holds them: plain digits, and no text that a spreadsheet would run."""
    return rows.select(**{name: _as_text(rows[name]) for name in rows.columns})


def _where(column: Any, word: str) -> Any:
    return ibis.ifelse(column.notnull(), ibis.literal(word), ibis.null("string"))


def _price_less(charges: ibis.Table) -> Any:
    """The cost of what has no list price: a credit or a tax costs what is billed."""
    is_priced = charges.charge_category.isin(["Usage", "Purchase"])
    return ibis.ifelse(is_priced, ibis.null(MONEY_TYPE), charges.billed_cost)


def _filled(charges: ibis.Table) -> ibis.Table:
    """Fill what follows from the rest, and note the names of the columns that were filled."""
    theirs = {ours: name for name, ours in EXPORT_COLUMNS.items()}
    follows = {name: rule(charges) for name, rule in _FOLLOWS.items()}
    issuer = _issuer(charges)
    notes = [
        ibis.ifelse(charges[name].isnull() & value.notnull(), ibis.literal(f"{theirs[name]} "), "")
        for name, value in follows.items()
    ]
    note = reduce(lambda left, right: left + right, notes)
    values = {name: charges[name].coalesce(value) for name, value in follows.items()}
    return charges.mutate(
        **{**values, "invoice_issuer_name": issuer},
        x_invoice_issuer_name=charges.invoice_issuer_name,
        x_filled_columns=note.strip().nullif(""),
    )


def _issuer(charges: ibis.Table) -> Any:
    """The issuer, under the provider's name where the two are companies of one group.

    FOCUS tells by the names whether a third party takes the payment, and then wants a cost of 0.
    """
    named = charges.invoice_issuer_name
    same = reduce(
        lambda left, right: left | right,
        (
            named.re_search(f"(?i){pattern}") & charges.provider_name.re_search(f"(?i){pattern}")
            for _key, pattern in PROVIDERS
        ),
    )
    return ibis.ifelse(named.isnull() | same.fill_null(False), charges.provider_name, named)


def _value(charges: ibis.Table, name: str) -> Any:
    column = charges[name]
    if name == "tags":
        has_any = (column.length() > 0).fill_null(False)
        return ibis.ifelse(has_any, column.cast("json").cast("string"), ibis.null("string"))
    if column.type().is_timestamp():
        return column.strftime("%Y-%m-%dT%H:%M:%SZ")
    if column.type().is_boolean():
        return ibis.ifelse(column.fill_null(False), ibis.literal("true"), ibis.null("string"))
    if STORED_TYPES.get(name) == MONEY_TYPE:
        return column.cast(MONEY_TYPE)
    if name in ("pricing_unit", "consumed_unit"):
        for pattern, word in _UNITS:
            column = column.re_replace(pattern, word)
    return column.nullif("") if column.type().is_string() else column


def _as_text(column: Any) -> Any:
    if column.type().is_decimal():
        digits = column.cast("string").re_replace(r"0+$", "")  # always with a point before
        return ibis.ifelse(digits.endswith("."), digits + "0", digits)
    if not column.type().is_string():
        return column.cast("string")
    is_formula = column.re_search(_FORMULA).fill_null(False)
    return ibis.ifelse(is_formula, ibis.literal("'") + column, column)

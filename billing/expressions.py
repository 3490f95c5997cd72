"""Ibis expressions over charges: texts, typed charges, projects, daily costs; opens no engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final

import ibis

from billing.adapters.layout import Layout
from billing.columns import CHARGE_COLUMNS, UNKNOWN
from billing.records import COST_COLUMNS, MONEY_TYPE, Kind, RuleCondition, RuleRecord

ANY_VALUE: Final = "*"
MAP_TYPE: Final = "map<string, string>"
PLAIN_NUMBER: Final = r"^-?[0-9]{1,20}(?:\.[0-9]{1,18})?$"
INSTANT: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?: (?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"|T(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.0+)?)?Z)$"
)
NUMBERS: Final = tuple(
    column.name for column in CHARGE_COLUMNS if column.kind in (Kind.MONEY, Kind.QUANTITY)
)
INSTANTS: Final = tuple(column.name for column in CHARGE_COLUMNS if column.kind is Kind.INSTANT)
DAILY_KEYS: Final = (
    "day",
    "project_id",
    "provider_name",
    "service_name",
    "service_category",
    "region_id",
    "sub_account_id",
    "charge_category",
    "x_cost_class",
    "x_accelerator",
    "billing_currency",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """What reading has settled: irregular number texts, and odd spellings of known words."""

    numbers: ibis.Table | None = None  # columns `number_text`, `number`
    irregular_columns: frozenset[str] = frozenset()
    spellings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def charge_texts(
    table: ibis.Table, layout: Layout, *, map_columns: Sequence[str], source_file: str
) -> ibis.Table:
    """One file's texts under the names of charge columns; what is not in the file is null."""
    selected: dict[str, Any] = {}
    for column in CHARGE_COLUMNS:
        theirs = layout.columns.get(column.name)
        kind = MAP_TYPE if column.kind is Kind.TAGS else "string"
        if theirs is None or (column.kind is Kind.TAGS and theirs not in map_columns):
            selected[column.name] = ibis.null(kind)
        else:
            selected[column.name] = table[theirs]
    extra = [name for name in layout.extra_columns if name not in map_columns]
    selected[UNKNOWN] = (
        ibis.map(
            ibis.array([ibis.literal(name) for name in extra]),
            ibis.array([table[name] for name in extra]),
        )
        if extra
        else ibis.null(MAP_TYPE)
    )
    return table.select(
        **selected,
        x_source_file=ibis.literal(source_file),
        x_source_row=(table.file_row_number + 2).cast("int64"),
    )


def is_total_line(texts: ibis.Table) -> Any:
    """A line that sums up others: an amount, but no account, category, time or service."""
    absent = [
        texts[name].isnull()
        for name in ("billing_account_id", "charge_category", "charge_period_start", "service_name")
    ]
    return reduce(lambda left, right: left & right, absent) & texts.billed_cost.notnull()


def typed_charges(texts: ibis.Table, repairs: Repairs) -> ibis.Table:
    """Charges with exact decimals and instants, from texts that reading found to be in order."""
    joined = texts.filter(~is_total_line(texts))
    values: dict[str, Any] = {}
    for name in NUMBERS:
        if name in repairs.irregular_columns and repairs.numbers is not None:
            lookup = repairs.numbers.rename(
                {f"text_{name}": "number_text", f"value_{name}": "number"}
            )
            joined = joined.left_join(lookup, joined[name] == lookup[f"text_{name}"])
            values[name] = ibis.coalesce(joined[f"value_{name}"], joined[name].try_cast(MONEY_TYPE))
        else:
            values[name] = joined[name].cast(MONEY_TYPE)
    for name in INSTANTS:
        values[name] = joined[name].cast("timestamp")
    for name, spellings in repairs.spellings.items():
        values[name] = ibis.cases(
            *((joined[name] == odd, usual) for odd, usual in spellings.items()), else_=joined[name]
        )
    typed = {name: values.get(name, joined[name]) for name in texts.columns}
    return joined.select(**typed, x_billing_period=joined.billing_period_start.substr(0, 7))


def allocated(charges: ibis.Table, rules: Sequence[RuleRecord]) -> ibis.Table:
    """Add project_id, that of the first rule that matches, else null: no charge goes to two."""
    if not rules:
        return charges.mutate(project_id=ibis.null("string"))
    ordered = sorted(rules, key=lambda rule: rule.position)
    return charges.mutate(
        project_id=ibis.cases(
            *((_rule_holds(charges, rule), str(rule.targets[0].project_id)) for rule in ordered),
            else_=ibis.null("string"),
        )
    )


def _rule_holds(charges: ibis.Table, rule: RuleRecord) -> Any:
    return reduce(
        lambda left, right: left & right, (_holds(charges, one) for one in rule.conditions)
    )


def _holds(charges: ibis.Table, condition: RuleCondition) -> Any:
    column = {
        "tag": lambda: charges.tags[condition.key],
        "resource": lambda: charges.resource_id,
        "sub_account": lambda: charges.sub_account_id,
    }[condition.field]()
    if condition.value == ANY_VALUE:
        return column.notnull()
    return (column == condition.value).fill_null(False)


def whole_sum(charges: ibis.Table, name: str) -> Any:
    """The sum of a cost; null where a row lacks it: a partial sum would read as the whole."""
    column = charges[name]
    return ibis.ifelse(column.count() == charges.count(), column.sum(), ibis.null(MONEY_TYPE))


def daily_costs(charges: ibis.Table) -> ibis.Table:
    """Costs by day and every dimension of dashboards; a charge's day is the one it starts on."""
    dated = charges.mutate(day=charges.charge_period_start.date())
    sums: dict[str, Any] = {name: whole_sum(dated, name) for name in COST_COLUMNS}
    return dated.group_by(list(DAILY_KEYS)).agg(
        **sums, accelerator_h=dated.x_accelerator_h.sum(), rows=dated.count()
    )


def totals_by_currency(charges: ibis.Table) -> ibis.Table:
    """The four costs by currency, with the rows."""
    sums: dict[str, Any] = {name: charges[name].sum() for name in COST_COLUMNS}
    return (
        charges.group_by("billing_currency")
        .agg(**sums, rows=charges.count())
        .order_by("billing_currency")
    )

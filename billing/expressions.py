"""Ibis expressions over charges: typed lines, charges, projects, daily costs; opens no engine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import ibis
import ibis.expr.operations as ops
import pyarrow as pa

from billing.adapters.layout import InstantStyle, Layout
from billing.allocation_matching import FIELD_COLUMNS, TAG, WITHOUT_VALUE, values_of
from billing.columns import CHARGE_COLUMNS
from billing.patterns import read_pattern
from billing.records import COST_COLUMNS, MONEY_TYPE, Kind, RuleCondition, RuleRecord

PLAIN_NUMBER: Final = r"^-?[0-9]{1,20}(?:\.[0-9]{1,18})?$"
_DAY: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
INSTANT_TEXTS: Final[Mapping[InstantStyle, str]] = {
    InstantStyle.ISO: rf"^{_DAY}(?: {_CLOCK}(?: UTC|\+00:00|\+00)?|T{_CLOCK}(?:Z|\+00:00))$",
    InstantStyle.ISO_DAY: rf"^{_DAY}(?:[ T]{_CLOCK}(?:Z| UTC|\+00:00|\+00)?)?$",
    InstantStyle.US_DATE: (
        rf"^(?:0?[1-9]|1[0-2])/(?:0?[1-9]|[12][0-9]|3[01])/[0-9]{{4}}(?: {_CLOCK})?$"
    ),
    InstantStyle.DAY_FIRST: (
        rf"^(?:0?[1-9]|[12][0-9]|3[01])[/.](?:0?[1-9]|1[0-2])[/.][0-9]{{4}}(?: {_CLOCK})?$"
    ),
    InstantStyle.SLASHED: (
        rf"^[0-9]{{4}}/(?:0?[1-9]|1[0-2])/(?:0?[1-9]|[12][0-9]|3[01])(?: {_CLOCK})?$"
    ),
    InstantStyle.MONTH: r"^[0-9]{4}(?:0[1-9]|1[0-2])$",
}
INSTANT_WORDS: Final[Mapping[InstantStyle, str]] = {
    InstantStyle.ISO: "is not a time in UTC such as 2026-05-01T00:00:00Z or 2026-05-01 00:00:00",
    InstantStyle.ISO_DAY: "is not a day such as 2026-05-31",
    InstantStyle.US_DATE: "is not a day such as 05/31/2026, the month first",
    InstantStyle.DAY_FIRST: "is not a day such as 31/05/2026 or 31.05.2026, the day first",
    InstantStyle.SLASHED: "is not a day such as 2026/05/31",
    InstantStyle.MONTH: "is not a month such as 202605",
}
# Where year, month and day stand among a written day's three numbers.
_DAY_PARTS: Final[Mapping[InstantStyle, tuple[int, int, int]]] = {
    InstantStyle.US_DATE: (3, 1, 2),
    InstantStyle.DAY_FIRST: (3, 2, 1),
    InstantStyle.SLASHED: (1, 2, 3),
}
EARLIEST: Final = "1970-01-01"
LATEST: Final = "9000-01-01"
NUMBERS: Final = tuple(column.name for column in CHARGE_COLUMNS if column.is_number)
INSTANTS: Final = tuple(column.name for column in CHARGE_COLUMNS if column.kind is Kind.INSTANT)
DAILY_KEYS: Final = (
    "day",
    "rule_position",
    "provider_name",
    "service_name",
    "service_category",
    "region_id",
    "sub_account_id",
    "charge_category",
    "x_cost_class",
    "x_accelerator",
    "billing_currency",
    "has_tags",
    "is_estimated",
)
# What is summed beside the costs, under its name in the roll-up -> in a stored charge.
DAILY_MEASURES: Final[Mapping[str, str]] = {
    "accelerator_h": "x_accelerator_h",
    "idle_accelerator_h": "x_idle_accelerator_h",
    "storage_tb_month": "x_storage_tb_month",
    "requests": "x_requests",
    "transfer_bytes": "x_transfer_bytes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """What reading has settled of a file: numbers whose texts are not plain."""

    numbers: ibis.Table | None = None  # columns `number_text`, `number`
    irregular_columns: frozenset[str] = frozenset()


def number_text(column: Any) -> Any:
    """A number as the file writes it, as text."""
    return column if column.type().is_string() else column.cast("string")


def is_exact(column: Any) -> bool:
    """Whether the file's own type holds numbers that need no reading."""
    kind = column.type()
    return bool(kind.is_integer() or (kind.is_decimal() and (kind.scale or 0) <= 18))


def is_irregular(column: Any) -> Any:
    """Whether a number's text is not plain digits within the exact type."""
    return ~number_text(column).re_search(PLAIN_NUMBER)


def instant_of(column: Any, style: InstantStyle) -> Any:
    """The time that a readable text states; null where it states none."""
    if not column.type().is_string():
        return column.cast("timestamp")
    if style in _DAY_PARTS:
        year, month, day = (
            column.re_extract(r"^([0-9]+)[/.]([0-9]+)[/.]([0-9]+)", group)
            for group in _DAY_PARTS[style]
        )
        date = year + "-" + month.lpad(2, "0") + "-" + day.lpad(2, "0")
        return (date + column.re_extract(r"^[^ ]+( .*)?$", 1)).try_cast("timestamp")
    if style is InstantStyle.MONTH:
        return (column.substr(0, 4) + "-" + column.substr(4, 2) + "-01").try_cast("timestamp")
    # engines read UTC's marks themselves; Spark not after a time without seconds
    plain = column.re_replace(r"(?: UTC|Z|\+00:00|\+00)$", "")
    return ibis.coalesce(column.try_cast("timestamp"), plain.try_cast("timestamp"))


def is_readable_instant(column: Any, style: InstantStyle) -> Any:
    """Whether a text states a time of our age; null where there is no text."""
    instant = instant_of(column, style)
    known = instant.notnull()
    if column.type().is_string():
        known = known & column.re_search(INSTANT_TEXTS[style])
    first, last = (ibis.literal(text).cast("timestamp") for text in (EARLIEST, LATEST))
    found = known & (instant >= first) & (instant < last)
    return ibis.ifelse(column.isnull(), ibis.null("boolean"), found.fill_null(False))


def typed_lines(lines: ibis.Table, layout: Layout, repairs: Repairs) -> ibis.Table:
    """A file's lines with exact numbers and times, from texts that reading found to be in order."""
    joined, values = lines, {}
    for index, name in enumerate(layout.numbers):
        if name in repairs.irregular_columns and repairs.numbers is not None:
            text, value = f"x_number_text_{index}", f"x_number_{index}"
            lookup = repairs.numbers.rename({text: "number_text", value: "number"})
            joined = joined.left_join(lookup, number_text(joined[name]) == lookup[text])
            values[name] = ibis.coalesce(
                joined[value], number_text(joined[name]).try_cast(MONEY_TYPE)
            )
        elif is_exact(joined[name]):
            values[name] = joined[name].cast(MONEY_TYPE)
        else:
            values[name] = number_text(joined[name]).cast(MONEY_TYPE)
    for name, style in layout.instants.items():
        values[name] = instant_of(joined[name], style)
    return joined.select(**{name: values.get(name, joined[name]) for name in lines.columns})


def is_total_line(charges: ibis.Table) -> Any:
    """A line that sums up others: an amount, but no account, category, time or service."""
    absent = [
        charges[name].isnull()
        for name in ("billing_account_id", "charge_category", "charge_period_start", "service_name")
    ]
    return reduce(lambda left, right: left & right, absent) & charges.billed_cost.notnull()


def null_columns(table: ibis.Table) -> frozenset[str]:
    """The columns of a selection that are stated to be null; nothing is computed."""
    found = table.op()
    values = found.values.items() if isinstance(found, ops.Project) else ()
    return frozenset(name for name, value in values if _is_null(value))


def _is_null(value: Any) -> bool:
    while isinstance(value, ops.Cast):
        value = value.arg
    return isinstance(value, ops.Literal) and value.value is None


def telling_columns(kinds: pa.Table) -> list[str]:
    """A few columns that tell all kinds apart: a charge like a kind in these is of that kind.

    They make a short join of a wide one. Each kind stands in the table once.
    """
    values = {name: len(kinds[name].unique()) for name in kinds.column_names}
    most_first = sorted(values, key=lambda name: (-values[name], kinds[name].nbytes))
    telling = most_first[:1]
    for name in most_first[1:]:
        if kinds.group_by(telling).aggregate([]).num_rows == kinds.num_rows:
            break
        telling.append(name)
    return telling


def spelled(charges: ibis.Table, spellings: Mapping[str, Mapping[str, str]]) -> ibis.Table:
    """The charges with the usual spelling of known words."""
    if not spellings:
        return charges
    return charges.mutate(
        **{
            name: ibis.cases(
                *((charges[name] == odd, usual) for odd, usual in words.items()),
                else_=charges[name],
            )
            for name, words in spellings.items()
        }
    )


def with_billing_period(charges: ibis.Table) -> ibis.Table:
    """Add the billing month, as 2026-05."""
    return charges.mutate(x_billing_period=charges.billing_period_start.strftime("%Y-%m"))


def allocated(charges: ibis.Table, rules: Sequence[RuleRecord]) -> ibis.Table:
    """Add rule_position, that of the first rule that matches, else null: no charge goes to two.

    The rules are those of one source: what no charge carries is decided before.
    """
    ordered = sorted(rules, key=lambda rule: rule.position)
    nobody = ibis.null("int64")
    if not ordered:
        return charges.mutate(rule_position=nobody)
    cases = ((rule_holds(charges, rule), ibis.literal(rule.position, "int64")) for rule in ordered)
    return charges.mutate(rule_position=ibis.cases(*cases, else_=nobody))


def rule_holds(charges: ibis.Table, rule: RuleRecord) -> Any:
    """Whether a charge meets all conditions of a rule, whatever rules stand before it."""
    return reduce(
        lambda left, right: left & right,
        (_holds(charges, one) for one in rule.conditions),
        ibis.literal(True),
    )


def _holds(charges: ibis.Table, condition: RuleCondition) -> Any:
    column = charges[FIELD_COLUMNS[condition.field]]
    if condition.field == TAG:
        column = column[condition.key]
    if condition.op in WITHOUT_VALUE:
        return column.isnull() if condition.op == "absent" else column.notnull()
    tests: dict[str, Callable[[], Any]] = {
        "is": lambda: column == condition.value,
        "one_of": lambda: column.isin(values_of(condition)),
        "starts_with": lambda: column.startswith(condition.value),
        "matches": lambda: column.re_search(read_pattern(condition.value).engine_form),
    }
    return tests[condition.op]().fill_null(False)


def whole_sum(charges: ibis.Table, name: str) -> Any:
    """The sum of a cost; null where a row lacks it: a partial sum would read as the whole."""
    column = charges[name]
    return ibis.ifelse(column.count() == charges.count(), column.sum(), ibis.null(MONEY_TYPE))


def daily_costs(charges: ibis.Table) -> ibis.Table:
    """Costs by day and every dimension of dashboards; a charge's day is the one it starts on."""
    dated = with_daily_keys(charges)
    sums: dict[str, Any] = {name: whole_sum(dated, name) for name in COST_COLUMNS}
    measures = {name: dated[column].sum() for name, column in DAILY_MEASURES.items()}
    return dated.group_by(list(DAILY_KEYS)).agg(**sums, **measures, rows=dated.count())


def with_daily_keys(charges: ibis.Table) -> ibis.Table:
    """Add what the roll-up tells apart and no charge has as a column."""
    return charges.mutate(
        day=charges.charge_period_start.date(),
        has_tags=(charges.tags.length() > 0).fill_null(False),
        is_estimated=charges.x_estimated.fill_null(False),
    )


def totals_by_currency(charges: ibis.Table, *also: str) -> ibis.Table:
    """The four costs by currency, with the rows; a cost that a row lacks is unknown."""
    keys = (*also, "billing_currency")
    sums: dict[str, Any] = {name: whole_sum(charges, name) for name in COST_COLUMNS}
    return charges.group_by(keys).agg(**sums, rows=charges.count()).order_by(keys)

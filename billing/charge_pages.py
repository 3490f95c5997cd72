"""What the page of charges shows of a cost table: rows, shares, chart, links, CSV; no database."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode

from django.utils.translation import gettext as _

from billing.amounts import exact_text
from billing.charge_words import filter_words, value_name
from billing.cost_questions import CostQuestion, written, written_column
from billing.cost_records import MEASURES, CostRow, CurrencyTotal, merged, total_of
from ui.bar_charts import monthly_bar_figure
from ui.charts import Figure, Series, TimeChart, burn_down_figure

MAX_ROWS: Final = 300
MAX_PARTS: Final = 7  # of the chart, the rest is one part
# What a group is told apart by once it is chosen: the first that is not chosen yet.
_FINER: Final = ("service_name", "sku_id", "resource_id")
_FORMULA: Final = re.compile(r"[=+\-@\t\r]")  # what a spreadsheet would compute
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A line of the table."""

    name: str
    row: CostRow
    share: Decimal | None  # of the total in its currency, 0..1
    narrow_url: str
    rows_url: str
    is_known: bool
    is_estimated: bool


def query_of(question: CostQuestion, **more: str) -> str:
    """The parameters of a page about this question."""
    pairs = [*written(question), *more.items()]
    if question.start_on is None and question.end_on is None:
        pairs.append(("month", "all"))
    return urlencode(pairs)


def period_text(question: CostQuestion) -> str:
    """The days of a question for the name of a file: a month, first and last day, or all."""
    start, end = question.start_on, question.end_on
    if month := month_of(question):
        return month
    last = end - timedelta(days=1) if end else None
    days = [day.isoformat() for day in (start, last) if day]
    return ("" if start else "to-") + "_".join(days) if days else "all"


def month_of(question: CostQuestion) -> str:
    """The month that the days of a question are, as 2026-05; empty where they are no month."""
    start, end = question.start_on, question.end_on
    if start is None or end is None or start.day != 1:
        return ""
    return f"{start:%Y-%m}" if end == (start + timedelta(days=32)).replace(day=1) else ""


def _finer(question: CostQuestion) -> CostQuestion:
    """The question by a column that is not one value: a table of one line says nothing."""
    chosen = {one.column for one in question.filters}
    column = next((name for name in _FINER if name not in chosen), question.group_by[0])
    return replace(question, group_by=(column,))


def groups_of(
    rows: Sequence[CostRow], question: CostQuestion, estimated: frozenset[str | None]
) -> list[Group]:
    """The lines of a table by one column, the dearest first."""
    column = question.group_by[0]
    totals = {total.currency: total.cost for total in total_of(rows)}
    ordered = sorted(rows, key=lambda row: (row.cost is None, -(row.cost or 0), row.group[0] or ""))
    found = []
    for row in ordered:
        narrowed = question.narrowed(column, row.group[0])
        found.append(
            Group(
                name=value_name(column, row.group[0]),
                row=row,
                share=_share(row.cost, totals[row.currency]),
                narrow_url=f"?{query_of(_finer(narrowed))}",
                rows_url=query_of(narrowed),
                is_known=row.group[0] is not None,
                is_estimated=row.group[0] in estimated,
            )
        )
    return found


def _share(cost: Decimal | None, total: Decimal | None) -> Decimal | None:
    return None if cost is None or not total else cost / total


def folded(rows: Iterable[CostRow]) -> list[CostRow]:
    """Rows by group and day as rows by group."""
    return merged(replace(row, group=row.group[:1]) for row in rows)


def measures_of(rows: Sequence[CostRow]) -> list[str]:
    """The measures that any of the rows has."""
    return [name for name in MEASURES if any(getattr(row, name) is not None for row in rows)]


def chips_of(question: CostQuestion) -> list[dict[str, str]]:
    """The filters in words, each with the address without it."""
    return [
        {
            "words": filter_words(one),
            "url": "?"
            + query_of(
                replace(
                    question, filters=tuple(other for other in question.filters if other != one)
                )
            ),
        }
        for one in question.filters
    ]


def figure_of(
    rows: Sequence[CostRow], question: CostQuestion, currency: str, days: tuple[date, date]
) -> Figure:
    """Cost by day or month, the dearest groups stacked; left out is what is negative or unknown."""
    column = question.group_by[0]
    is_monthly = any(len(row.group[1] or "") == 7 for row in rows)
    costs: dict[str | None, dict[date, Decimal]] = {}
    for row in rows:
        day = date.fromisoformat(
            (row.group[1] or "") + ("-01" if len(row.group[1] or "") == 7 else "")
        )
        if row.currency == currency and row.cost is not None:
            costs.setdefault(row.group[0], {})[day] = row.cost
    sums = {group: sum(by_day.values(), Decimal(0)) for group, by_day in costs.items()}
    ordered = [
        group
        for group in sorted(sums, key=lambda group: (-sums[group], group or ""))
        if sums[group] > 0
    ]
    stacked = _stacked(costs, ordered, column)
    if is_monthly:
        return monthly_bar_figure(stacked, currency=currency)
    chart = TimeChart(stacked=stacked, starts_on=days[0], ends_on=days[1] - timedelta(days=1))
    return burn_down_figure(chart, currency=currency)


def _stacked(
    costs: Mapping[str | None, Mapping[date, Decimal]], ordered: list[str | None], column: str
) -> list[Series]:
    """The first groups as a series each, and the others as one."""
    axis = sorted({day for by_day in costs.values() for day in by_day})
    parts = [(value_name(column, group), [group]) for group in ordered[:MAX_PARTS]]
    if rest := ordered[MAX_PARTS:]:
        parts.append((_("Others"), rest))
    return [
        Series(
            name=name,
            days=axis,
            values=[
                sum((costs[group].get(day, Decimal(0)) for group in groups), Decimal(0))
                for day in axis
            ],
        )
        for name, groups in parts
    ]


def table_csv(
    groups: Sequence[Group], totals: Sequence[CurrencyTotal], question: CostQuestion
) -> str:
    """The table as CSV: texts that a spreadsheet cannot run, numbers with all their digits."""
    shown = measures_of([group.row for group in groups])
    out = io.StringIO()
    writer = csv.writer(out)
    column = question.group_by[0]
    cost = question.basis.column
    header = [written_column(column), "currency", cost, "share", *shown, "rows"]
    writer.writerow([harmless(text) for text in header])
    for group in groups:
        row = group.row
        writer.writerow(
            [
                harmless(group.name),
                row.currency,
                _number(row.cost),
                _number(group.share and round(group.share, 6)),
                *(_number(getattr(row, name)) for name in shown),
                row.rows,
            ]
        )
    for total in totals:
        sums = [_number(getattr(total, name)) for name in shown]
        writer.writerow([_("Total"), total.currency, _number(total.cost), "", *sums, total.rows])
    return out.getvalue()


def harmless(text: str) -> str:
    """A text cell that no spreadsheet takes for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def _number(value: Decimal | None) -> str:
    return "" if value is None else exact_text(value)


def visible_fields(values: Mapping[str, Any], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """The fields of a charge under the names that its file standard gives them."""
    return [{"name": theirs, "value": _shown(values.get(ours))} for theirs, ours in names.items()]


def _shown(value: Any) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, Decimal):
        return exact_text(value)
    if isinstance(value, list | dict):
        pairs = dict(value)
        return ", ".join(f"{key}={text}" for key, text in sorted(pairs.items())) or None
    return _CONTROLS.sub(" ", str(value))

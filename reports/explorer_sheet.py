"""The explorer's answer as one table, with its links and its chart; no costs are read here."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from billing.charge_pages import query_of as charges_query
from billing.charge_words import BASIS_NAMES, column_name, filter_words
from billing.cost_questions import CostQuestion, Filter
from billing.cost_records import MEASURES, CostRow
from formulae.money import exact_sum
from reports.explorer import Answer, Days, Group, group_names
from reports.explorer_questions import (
    MAX_DIMENSIONS,
    Asked,
    period_end,
    period_name,
    query_of,
)
from reports.sheets import Cell, Column, Kind, Line, Sheet
from ui.bar_charts import stacked_bar_figure
from ui.charts import Figure, Series

MAX_PARTS: Final = 7  # of the chart, the rest is one part
# What a group is told apart by once it is chosen: the first that is not chosen yet.
_FINER: Final = ("x_cost_class", "service_name", "sku_id", "resource_id")
_MEASURE_KINDS: Final = {"requests": Kind.COUNT, "transfer_bytes": Kind.BYTES}


def cost_sheet(answer: Answer) -> Sheet:
    """The table: groups, what they cost and did before, their measures, their bars."""
    measures = _measures(answer)
    return Sheet(
        key="costs",
        title=_("Costs"),
        columns=_columns(answer, measures),
        lines=(
            *(_line(answer, group, measures) for group in answer.groups),
            *(_rest_line(answer, group, measures) for group in answer.rest),
        ),
        totals=tuple(_total_line(answer, group, measures) for group in answer.totals),
        facts=_facts(answer),
    )


def _measures(answer: Answer) -> list[str]:
    """The measures that any group has; where each bar has a column, there is no room for them."""
    if answer.asked.by_period:
        return []
    rows = [group.row for group in answer.totals]
    return [name for name in MEASURES if any(getattr(row, name) is not None for row in rows)]


def _columns(answer: Answer, measures: Sequence[str]) -> tuple[Column, ...]:
    names = [column_name(name) for name in answer.asked.dimensions] or [_("Costs")]
    columns = [Column(title=name) for name in names]
    columns += [
        Column(title=_("Currency"), in_files_only=True),
        Column(title=str(BASIS_NAMES[answer.asked.question.basis]), kind=Kind.MONEY),
        Column(title=_("Share"), kind=Kind.FRACTION),
    ]
    if answer.before is not None:
        columns += [
            Column(title=_("Before"), kind=Kind.MONEY),
            Column(title=_("Difference"), kind=Kind.MONEY),
            Column(title=_("Change"), kind=Kind.FRACTION),
        ]
    titles = {
        "accelerator_h": _("Accelerator-hours"),
        "idle_accelerator_h": _("of these idle"),
        "storage_tb_month": _("TB-months"),
        "requests": _("Requests"),
        "transfer_bytes": _("Bytes moved"),
    }
    columns += [
        Column(title=titles[name], kind=_MEASURE_KINDS.get(name, Kind.NUMBER)) for name in measures
    ]
    columns.append(Column(title=_("Rows"), kind=Kind.COUNT))
    if answer.asked.by_period:
        columns += [
            Column(title=period_name(start, answer.every), kind=Kind.MONEY)
            for start in answer.periods
        ]
    return tuple(columns)


def _line(answer: Answer, group: Group, measures: Sequence[str]) -> Line:
    """A group: its name narrows the explorer, its amounts lead to its charges."""
    question = narrowed(answer, group)
    names = group_names(group, answer.asked.dimensions) or [_("All charges")]
    narrow = f"?{query_of(_finer(answer.asked, question))}" if answer.asked.dimensions else ""
    cells = [Cell(value=name, href=narrow) for name in names]
    if group.is_estimated:
        cells[0] = replace(cells[0], badge="estimated")
    return Line(
        cells=(*cells, *_amounts(answer, group, measures, question)), currency=group.row.currency
    )


def _rest_line(answer: Answer, group: Group, measures: Sequence[str]) -> Line:
    words = ngettext("{count} more group", "{count} more groups", answer.rest_count)
    names = [Cell(value=words.format(count=answer.rest_count))]
    names += [Cell(value="")] * (len(answer.asked.dimensions) - 1)
    return Line(
        cells=(*names, *_amounts(answer, group, measures, None)),
        currency=group.row.currency,
        is_quiet=True,
    )


def _total_line(answer: Answer, group: Group, measures: Sequence[str]) -> Line:
    names = [Cell(value=_("Total {currency}").format(currency=group.row.currency))]
    names += [Cell(value="")] * (len(answer.asked.dimensions) - 1)
    question = answer.asked.question
    if len(answer.totals) > 1:
        question = question.narrowed("billing_currency", group.row.currency)
    return Line(
        cells=(*names, *_amounts(answer, group, measures, question)), currency=group.row.currency
    )


def _amounts(
    answer: Answer, group: Group, measures: Sequence[str], question: CostQuestion | None
) -> list[Cell]:
    """Every cell after the names; with a question, money leads to the charges behind it."""
    row = group.row
    total = next(one.row.cost for one in answer.totals if one.row.currency == row.currency)
    href = charges_url(question) if row.rows else ""
    cells = [
        Cell(value=row.currency),
        Cell(value=row.cost, href=href),
        Cell(value=_share(row.cost, total)),
    ]
    if answer.before is not None:
        earlier = charges_url(question, answer.before)
        cells += [
            Cell(value=group.previous, href=earlier if group.previous else ""),
            Cell(value=group.difference),
            Cell(value=group.change),
        ]
    cells += [Cell(value=getattr(row, name)) for name in measures]
    rows_href = charges_url(question, page="charge_rows") if row.rows else ""
    cells.append(Cell(value=row.rows, href=rows_href))
    if answer.asked.by_period:
        cells += [_period_cell(answer, group, start, question) for start in answer.periods]
    return cells


def _period_cell(answer: Answer, group: Group, start: date, question: CostQuestion | None) -> Cell:
    """What a group costs in a bar; nothing where it has no charges then."""
    found = group.by_period.get(start)
    if found is None:
        return Cell(value=Decimal(0))
    days = Days(start_on=start, end_on=period_end(start, answer.every))
    return Cell(value=found.cost, href=charges_url(question, _inside(days, answer.days)))


def _inside(days: Days, whole: Days | None) -> Days:
    """The part of some days that was asked for: a week may begin before the first day."""
    if whole is None:
        return days
    return Days(start_on=max(days.start_on, whole.start_on), end_on=min(days.end_on, whole.end_on))


def _share(cost: Decimal | None, total: Decimal | None) -> Decimal | None:
    return None if cost is None or not total else round(cost / total, 6)


def narrowed(answer: Answer, group: Group) -> CostQuestion:
    """The question of one group alone."""
    question = answer.asked.question
    for name, value in zip(answer.asked.dimensions, group.key, strict=True):
        question = question.narrowed(name, value)
    if len(answer.totals) > 1:
        question = question.narrowed("billing_currency", group.row.currency)
    return question


def _finer(asked: Asked, question: CostQuestion) -> Asked:
    """The explorer's question of a group, by a column that is not one value."""
    chosen = {one.column for one in question.filters}
    column = next((name for name in _FINER if name not in chosen), question.group_by[0])
    return replace(asked, question=replace(question, group_by=(column,)))


def charges_url(
    question: CostQuestion | None, days: Days | None = None, *, page: str = "charges"
) -> str:
    """The address of the charges of a question, maybe of other days."""
    if question is None:
        return ""
    if days is not None:
        question = replace(question, start_on=days.start_on, end_on=days.end_on)
    chosen = {one.column for one in question.filters}
    column = next((name for name in _FINER if name not in chosen), "resource_id")
    question = replace(question, group_by=(column,))
    return f"{reverse(page)}?{charges_query(question)}"


def chips(asked: Asked) -> list[dict[str, str]]:
    """The filters in words, each with the address without it."""
    question = asked.question

    def without(one: Filter) -> str:
        kept = tuple(other for other in question.filters if other != one)
        return f"?{query_of(replace(asked, question=replace(question, filters=kept)))}"

    return [{"words": filter_words(one), "url": without(one)} for one in question.filters]


def _facts(answer: Answer) -> tuple[tuple[str, str], ...]:
    """What was asked, for a reader of the file."""
    question = answer.asked.question
    facts = [(_("Cost basis"), str(BASIS_NAMES[question.basis]))]
    if answer.days:
        facts.append((_("Days"), days_text(answer.days)))
    if answer.compared and answer.before:
        facts.append((_("Compared days"), days_text(answer.compared)))
        facts.append((_("Days before"), days_text(answer.before)))
    if answer.known:
        facts.append((_("Charges known"), days_text(answer.known)))
    facts += [(_("Filter"), filter_words(one)) for one in question.filters]
    return tuple(facts)


def days_text(days: Days) -> str:
    """First and last day."""
    return f"{days.start_on} – {days.last_on}"


def chart_currency(answer: Answer) -> str:
    """The currency of the picture: that of most rows; sums of two are never mixed."""
    totals = sorted(answer.totals, key=lambda one: (-one.row.rows, one.row.currency))
    return totals[0].row.currency if totals else ""


def cost_figure(answer: Answer) -> Figure | None:
    """A bar for each step of time, the dearest groups stacked; negative sums are left out."""
    currency = chart_currency(answer)
    own = [group for group in answer.groups if group.row.currency == currency]
    own = [group for group in own if group.row.cost is not None and group.row.cost > 0]
    if not own or not answer.periods:
        return None
    parts = [(" · ".join(_names(answer, group)), [group]) for group in own[:MAX_PARTS]]
    others = [*own[MAX_PARTS:], *(one for one in answer.rest if one.row.currency == currency)]
    if others:
        parts.append((_("Others"), others))
    stacked = [
        Series(
            name=name,
            days=answer.periods,
            values=[_height(groups, day) for day in answer.periods],
        )
        for name, groups in parts
    ]
    letters = len(period_name(answer.periods[0], answer.every))
    return stacked_bar_figure(stacked, currency=currency, letters=letters)


def _names(answer: Answer, group: Group) -> list[str]:
    return group_names(group, answer.asked.dimensions) or [_("All charges")]


def _height(groups: Sequence[Group], day: date) -> Decimal | None:
    """What groups cost together in a period, not below 0; None where one of them is not known."""
    costs = [_cost(group, day) for group in groups]
    known = [cost for cost in costs if cost is not None]
    return max(exact_sum(known), Decimal(0)) if len(known) == len(costs) else None


def _cost(group: Group, day: date) -> Decimal | None:
    """What a period cost: nothing where nothing is charged, None where a charge has no cost."""
    row: CostRow | None = group.by_period.get(day)
    return Decimal(0) if row is None else row.cost


def mover_lines(answer: Answer) -> list[dict[str, object]]:
    """The largest rises and falls with their words and addresses."""
    return [
        {
            "currency": movers.currency,
            "rises": [_mover(answer, group) for group in movers.rises],
            "falls": [_mover(answer, group) for group in movers.falls],
        }
        for movers in answer.movers
    ]


def _mover(answer: Answer, group: Group) -> dict[str, object]:
    return {
        "name": " · ".join(_names(answer, group)[:MAX_DIMENSIONS]),
        "group": group,
        "href": charges_url(narrowed(answer, group)),
        "is_new": group.previous == 0,
    }

"""What the explorer's forms offer: columns, values of one, months; and the address they lead to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.http import QueryDict
from django.utils.translation import gettext as _

from billing.charge_pages import month_of as whole_month
from billing.charge_words import COLUMN_NAMES, column_name, value_name
from billing.cost_questions import (
    GROUP_COLUMNS,
    ROLL_UP_COLUMNS,
    TAG_PREFIX,
    CostQuestion,
    QuestionError,
    read_filters,
    written_column,
)
from billing.cost_selectors import cost_table
from reports.explorer import Answer
from reports.explorer_questions import Asked, Every, pairs_of

MAX_VALUES: Final = 200
# Parameters of the forms alone: an address in its one spelling has none of them.
_OF_FORMS: Final = ("through", "tag", "add_value", "add_missing")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnGroup:
    """Columns to choose from, under one heading: each its text and its name."""

    title: str
    columns: tuple[tuple[str, str], ...]


def column_choices(tags: Sequence[str], chosen: Sequence[str]) -> list[ColumnGroup]:
    """Every column to group and filter by: the usual ones, tags, and the rest of a bill's."""
    usual = [name for name in ROLL_UP_COLUMNS if name not in ("day", "month")]
    usual += [name for name in COLUMN_NAMES if name in GROUP_COLUMNS and name not in usual]
    own = [name for name in chosen if name.startswith(TAG_PREFIX)]
    tagged = dict.fromkeys([*own, *(TAG_PREFIX + key for key in tags)])
    rest = [name for name in GROUP_COLUMNS if name not in usual]
    groups = ((_("Usual"), usual), (_("Tags"), list(tagged)), (_("All of a bill"), rest))
    return [
        ColumnGroup(
            title=title,
            columns=tuple((written_column(name), column_name(name)) for name in names),
        )
        for title, names in groups
        if names
    ]


def values_of(organisation_id: UUID, answer: Answer, picked: str) -> list[dict[str, str]]:
    """The values of a column in the days and under the other filters, the dearest first."""
    column = _column(picked)
    if column is None:
        return []
    question = answer.asked.question
    rows: Sequence[Any]
    if answer.asked.dimensions[:1] == (column,) and not _filters(question, column):
        found = list(dict.fromkeys(group.key[0] for group in answer.groups))
    else:
        wanted = replace(question.without_filter(column), group_by=(column,))
        rows = cost_table(organisation_id, wanted).rows
        ordered = sorted(rows, key=lambda row: -(row.cost or 0))
        found = list(dict.fromkeys(row.group[0] for row in ordered))
    return [
        {"value": value, "name": value_name(column, value)}
        for value in found[:MAX_VALUES]
        if value is not None
    ]


def _filters(question: CostQuestion, column: str) -> bool:
    return any(one.column == column for one in question.filters)


def _column(text: str) -> str | None:
    try:
        return read_filters([f"{text}="])[0].column
    except QuestionError:
        return None


def address_of_form(sent: QueryDict, asked: Asked) -> str | None:
    """The address in its one spelling where a form was sent; None where it is one already.

    Raises:
        QuestionError: the filter that the form adds cannot be read.
    """
    group_fields = len(sent.getlist("group_by")) > 1
    if not group_fields and not any(sent.get(name) for name in _OF_FORMS):
        return None
    if sent.get("add_value") or sent.get("add_missing"):
        sign = "!=" if sent.get("add_is") == "not" else "="
        value = "" if sent.get("add_missing") else sent.get("add_value", "").strip()
        added = f"{sent.get('add_column', '')}{sign}{value}"
        texts = [text for name, text in pairs_of(asked) if name == "filter"]
        filters = read_filters([*texts, added])
        asked = replace(asked, question=replace(asked.question, filters=filters))
    return urlencode(pairs_of(asked))


def steps() -> list[tuple[str, str]]:
    """The steps of time, the first for what fits the days."""
    return [
        ("", _("what fits")),
        (Every.DAY.value, _("Day")),
        (Every.WEEK.value, _("Week")),
        (Every.MONTH.value, _("Month")),
    ]


def month_of(question: CostQuestion) -> str:
    """The month that the days are, all, or nothing where they are other days."""
    if question.start_on is None and question.end_on is None:
        return "all"
    return whole_month(question)

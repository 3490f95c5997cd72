"""A question of costs: read and written in one place for pages, API and commands; no answer."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Final
from urllib.parse import quote, unquote
from uuid import UUID

from django.utils.translation import gettext as _

from billing.columns import CHARGE_COLUMNS
from billing.records import Basis, Kind

TAG_PREFIX: Final = "tag:"
# What the roll-up of daily costs holds; the rest is asked of the lake.
ROLL_UP_COLUMNS: Final = (
    "provider_name",
    "service_name",
    "service_category",
    "region_id",
    "sub_account_id",
    "charge_category",
    "x_cost_class",
    "x_accelerator",
    "x_estimated",
    "billing_currency",
    "project",
    "run_key",
    "team",
    "plan_line_key",
    "rule_position",
    "day",
    "month",
)
# What allocation says of a charge, not the bill.
ALLOCATED_COLUMNS: Final = ("project", "run_key", "team", "plan_line_key", "rule_position")
LAKE_COLUMNS: Final = tuple(
    dict.fromkeys(
        (
            *(
                column.name
                for column in CHARGE_COLUMNS
                if column.kind in (Kind.TEXT, Kind.ENUM, Kind.CURRENCY)
            ),
            "x_line_item_type",
            "x_credit_type",
            "x_instance_type",
            "x_billing_period",
            "x_source_file",
        )
    )
)
GROUP_COLUMNS: Final = tuple(dict.fromkeys((*ROLL_UP_COLUMNS, *LAKE_COLUMNS)))
MAX_GROUPS: Final = 6
MAX_FILTERS: Final = 40
MAX_TEXT: Final = 1000
_FILTER: Final = re.compile(r"(?s)(?P<column>[^=]*?)(?P<sign>!?=)(?P<value>.*)")


class QuestionError(ValueError):
    """A question that cannot be asked; `field` is the part of it that is wrong."""

    def __init__(self, field_name: str, message: str) -> None:
        super().__init__(message)
        self.field, self.message = field_name, message


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Charges whose column has one of the values, or none of them; None = no value."""

    column: str
    values: tuple[str | None, ...]
    is_not: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose charges may be seen: a project's, those of some projects, or everybody's."""

    project_id: UUID | None = None
    allowed: tuple[UUID, ...] | None = None  # None = every project
    include_unallocated: bool = True

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        return self.project_id is None and self.allowed is None and self.include_unallocated


@dataclass(frozen=True, slots=True, kw_only=True)
class CostQuestion:
    """Which costs, by what; days are [start_on, end_on), `as_of` asks for an earlier knowledge."""

    group_by: tuple[str, ...] = ("x_cost_class",)
    basis: Basis = Basis.BILLED
    start_on: date | None = None
    end_on: date | None = None
    filters: tuple[Filter, ...] = ()
    scope: Scope = field(default_factory=Scope)
    as_of: datetime | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that it names."""
        return (*self.group_by, *(one.column for one in self.filters))

    @property
    def needs_lake(self) -> bool:
        """Whether the roll-up lacks a column of it."""
        return any(name not in ROLL_UP_COLUMNS for name in self.columns)

    @property
    def needs_allocation(self) -> bool:
        """Whether it matters to whom a charge was given."""
        named = any(name in ALLOCATED_COLUMNS for name in self.columns)
        return named or not self.scope.is_everything

    def without_filter(self, column: str) -> "CostQuestion":
        """The question without what it asks of a column."""
        return replace(self, filters=tuple(one for one in self.filters if one.column != column))

    def narrowed(self, column: str, value: str | None) -> "CostQuestion":
        """The question of one value of a column."""
        kept = self.without_filter(column)
        return replace(kept, filters=(*kept.filters, Filter(column=column, values=(value,))))


def question_in(
    parameters: Mapping[str, Sequence[str]], scope: Scope, *, group_by: str = "x_cost_class"
) -> CostQuestion:
    """The question of a page's or the API's parameters.

    Raises:
        QuestionError: a parameter cannot be read; says which and what is possible.
    """
    start_on, end_on = _days_in(parameters)
    return make_question(
        group_by=(_last(parameters, "group_by") or group_by).split(","),
        basis=_last(parameters, "basis") or Basis.BILLED.value,
        days=(start_on, end_on),
        filters=parameters.get("filter", ()),
        scope=scope,
    )


def make_question(
    *,
    group_by: Iterable[str],
    basis: str,
    days: tuple[date | None, date | None] = (None, None),
    filters: Iterable[str] = (),
    scope: Scope,
) -> CostQuestion:
    """A question from its texts; the same rules for every door.

    Raises:
        QuestionError: a part cannot be read; says which and what is possible.
    """
    wanted = tuple(
        dict.fromkeys(_column("group_by", name.strip()) for name in group_by if name.strip())
    )
    if len(wanted) > MAX_GROUPS:
        raise QuestionError(
            "group_by", _("costs can be grouped by {limit} columns").format(limit=MAX_GROUPS)
        )
    start_on, end_on = days
    if start_on and end_on and start_on > end_on:
        raise QuestionError("from", _("the first day lies after the last"))
    return CostQuestion(
        group_by=wanted,
        basis=_basis(basis),
        start_on=start_on,
        end_on=end_on,
        filters=read_filters(filters),
        scope=scope,
    )


def read_filters(texts: Iterable[str]) -> tuple[Filter, ...]:
    """Filters from `column=value` and `column!=value`; several values of a column are "or".

    Raises:
        QuestionError: a text is no filter, or its column is unknown.
    """
    found: dict[tuple[str, bool], list[str | None]] = {}
    for text in texts:
        match = _FILTER.fullmatch(text)
        if match is None or len(text) > MAX_TEXT or "\x00" in text:
            raise QuestionError(
                "filter",
                _("{text} is no filter: write column=value or column!=value").format(
                    text=repr(text[:60])
                ),
            )
        column = _column("filter", match["column"].strip())
        values = found.setdefault((column, match["sign"] == "!="), [])
        if (match["value"] or None) not in values:
            values.append(match["value"] or None)
    if sum(map(len, found.values())) > MAX_FILTERS:
        raise QuestionError("filter", _("at most {limit} filters").format(limit=MAX_FILTERS))
    return tuple(
        Filter(column=column, values=tuple(values), is_not=is_not)
        for (column, is_not), values in found.items()
    )


def written_filters(filters: Sequence[Filter]) -> list[str]:
    """Filters as `read_filters` reads them."""
    return [
        f"{written_column(one.column)}{'!=' if one.is_not else '='}{value or ''}"
        for one in filters
        for value in one.values
    ]


def written(question: CostQuestion) -> list[tuple[str, str]]:
    """The question as the parameters of a page; its scope goes without saying."""
    pairs = [
        ("group_by", ",".join(written_column(name) for name in question.group_by)),
        ("basis", question.basis.value),
    ]
    if question.start_on is not None:
        pairs.append(("from", question.start_on.isoformat()))
    if question.end_on is not None:
        pairs.append(("to", question.end_on.isoformat()))
    return pairs + [("filter", text) for text in written_filters(question.filters)]


def written_column(name: str) -> str:
    """A column's name where `=`, `!`, `,` and `%` mean something."""
    if not name.startswith(TAG_PREFIX):
        return name
    return TAG_PREFIX + quote(name.removeprefix(TAG_PREFIX), safe=" /:;@&+$?#[]()*'\"<>|^`{}~\\.-_")


def _column(part: str, text: str) -> str:
    """The column of this name.

    Raises:
        QuestionError: there is none; says which there are.
    """
    name = text
    if text.startswith(TAG_PREFIX):
        name = TAG_PREFIX + unquote(text.removeprefix(TAG_PREFIX))
        if len(name) > len(TAG_PREFIX) and "\x00" not in name and len(name) <= MAX_TEXT:
            return name
    if name in GROUP_COLUMNS:
        return name
    words = (
        _("costs cannot be grouped by {name}; choose from {known}")
        if part == "group_by"
        else _("charges cannot be filtered by {name}; choose from {known}")
    )
    known = ", ".join((*GROUP_COLUMNS, "tag:KEY"))
    raise QuestionError(part, words.format(name=repr(text[:60]), known=known))


def _basis(text: str) -> Basis:
    try:
        return Basis(text)
    except ValueError as error:
        known = ", ".join(basis.value for basis in Basis)
        raise QuestionError(
            "basis",
            _("{text} is no cost basis; choose from {known}").format(text=text, known=known),
        ) from error


def _last(parameters: Mapping[str, Sequence[str]], name: str) -> str:
    values = parameters.get(name) or ("",)
    return values[-1].strip()


def _days_in(parameters: Mapping[str, Sequence[str]]) -> tuple[date | None, date | None]:
    """The days from `from` and `to`, or those of `month`."""
    month = _last(parameters, "month")
    if month:
        first = read_day("month", f"{month}-01")
        return first, date(first.year + first.month // 12, first.month % 12 + 1, 1)
    start, end = (_last(parameters, name) for name in ("from", "to"))
    return read_day("from", start) if start else None, read_day("to", end) if end else None


def read_day(name: str, text: str) -> date:
    """A day.

    Raises:
        QuestionError: the text is none.
    """
    try:
        found = date.fromisoformat(text)
        if found.year >= 9999:
            raise ValueError(text)
    except ValueError as error:
        example = "2026-05" if name == "month" else "2026-05-31"
        raise QuestionError(
            name,
            _("{text} is no {name}; write it as {example}").format(
                text=repr(text[:40]), name=name, example=example
            ),
        ) from error
    return found

"""What the cost explorer is asked, read from and written to its address; no answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import StrEnum
from typing import Final
from urllib.parse import urlencode

from django.utils.translation import gettext as _

from billing.cost_questions import (
    TAG_PREFIX,
    CostQuestion,
    QuestionError,
    Scope,
    question_in,
    read_day,
    written,
    written_column,
)

MAX_DIMENSIONS: Final = 2
MAX_BARS: Final = 120
TOPS: Final = (20, 100, 500, 5000)
# Columns that say when: what they hold cannot be compared with an earlier time.
_TIME_COLUMNS: Final = frozenset({"day", "month", "x_billing_period"})

Parameters = Mapping[str, Sequence[str]]


class Every(StrEnum):
    """How much time a bar of the chart is."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question of costs and how its answer is laid out."""

    question: CostQuestion
    every: Every | None = None  # None = what fits the days
    is_compared: bool = True
    by_period: bool = False  # a column for each bar, in table and files
    top: int = TOPS[0]

    @property
    def dimensions(self) -> tuple[str, ...]:
        """What the lines are told apart by."""
        return self.question.group_by

    @property
    def can_be_compared(self) -> bool:
        """Whether days before these mean anything: they do not where a month is asked for."""
        return not _TIME_COLUMNS & set(self.question.columns)


def asked_in(parameters: Parameters, scope: Scope) -> Asked:
    """What the address asks.

    Raises:
        QuestionError: a part cannot be read; says which and what is possible.
    """
    plain = {name: list(values) for name, values in parameters.items()}
    _read_last_day(plain)
    dimensions = _dimensions_in(plain)
    plain["group_by"] = [",".join(dimensions)]
    question = question_in(plain, scope)
    if dimensions == [] and "group_by" in parameters:
        question = replace(question, group_by=())
    if len(question.group_by) > MAX_DIMENSIONS:
        raise QuestionError(
            "group_by",
            _("the explorer groups by {limit} columns at most").format(limit=MAX_DIMENSIONS),
        )
    return Asked(
        question=question,
        every=_every_in(plain),
        is_compared=_last(plain, "compare") != "none",
        by_period=_last(plain, "table") == "periods",
        top=_top_in(plain),
    )


def _dimensions_in(plain: dict[str, list[str]]) -> list[str]:
    """The columns to group by: of two fields or one with commas, and the tag of its own field."""
    texts = ",".join(plain.get("group_by", ())).split(",")
    names = [text.strip() for text in texts if text.strip()]
    tag = _last(plain, "tag")
    if tag:
        names = [written_column(TAG_PREFIX + tag), *names[: MAX_DIMENSIONS - 1]]
    return list(dict.fromkeys(names))


def _read_last_day(plain: dict[str, list[str]]) -> None:
    """`through` of the form is the last day; an address says `to`, the first day that is out."""
    if _last(plain, "month") == "all":
        plain["month"] = [""]
    through = _last(plain, "through")
    if through and not _last(plain, "to"):
        last = read_day("through", through)
        plain["to"] = [(last + timedelta(days=1)).isoformat()]


def _every_in(plain: Parameters) -> Every | None:
    text = _last(plain, "by")
    try:
        return Every(text) if text else None
    except ValueError as error:
        known = ", ".join(Every)
        raise QuestionError(
            "by",
            _("{text} is no step of time; choose from {known}").format(
                text=repr(text[:40]), known=known
            ),
        ) from error


def _top_in(plain: Parameters) -> int:
    text = _last(plain, "top")
    return int(text) if text in map(str, TOPS) else TOPS[0]


def _last(parameters: Parameters, name: str) -> str:
    values = parameters.get(name) or ("",)
    return values[-1].strip()


def is_without_days(parameters: Parameters) -> bool:
    """Whether the address leaves the days open."""
    return not any(_last(parameters, name) for name in ("month", "from", "to", "through"))


def pairs_of(asked: Asked) -> list[tuple[str, str]]:
    """The address of what is asked, in one spelling."""
    question = asked.question
    pairs = written(question)
    if question.start_on is None and question.end_on is None:
        pairs.append(("month", "all"))
    if asked.every is not None:
        pairs.append(("by", asked.every.value))
    if not asked.is_compared:
        pairs.append(("compare", "none"))
    if asked.by_period:
        pairs.append(("table", "periods"))
    if asked.top != TOPS[0]:
        pairs.append(("top", str(asked.top)))
    return pairs


def query_of(asked: Asked) -> str:
    """The address after its question mark."""
    return urlencode(pairs_of(asked))


def kept_query(asked: Asked, parameters: Parameters) -> str:
    """The address for a saved view: days that were left open stay open, for the newest month."""
    pairs = pairs_of(asked)
    if is_without_days(parameters):
        pairs = [pair for pair in pairs if pair[0] not in ("from", "to", "month")]
    return urlencode(pairs)


def step_of(asked: Asked, days: int) -> Every:
    """How much time a bar is: what was asked for, as long as there are not too many bars."""
    steps = {Every.DAY: days, Every.WEEK: days // 7 + 1, Every.MONTH: days // 28 + 1}
    wanted = asked.every or (Every.DAY if days <= 62 else Every.WEEK if days <= 400 else None)
    order = list(Every)
    first = order.index(wanted) if wanted else len(order) - 1
    return next((step for step in order[first:] if steps[step] <= MAX_BARS), Every.MONTH)


def period_start(day: date, every: Every) -> date:
    """The first day of the bar that a day is in; weeks begin on Monday."""
    if every is Every.WEEK:
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if every is Every.MONTH else day


def period_end(start: date, every: Every) -> date:
    """The first day after a bar."""
    if every is Every.MONTH:
        return date(start.year + start.month // 12, start.month % 12 + 1, 1)
    return start + timedelta(days=7 if every is Every.WEEK else 1)


def period_name(start: date, every: Every) -> str:
    """A bar's name: its month, or its first day."""
    return f"{start:%Y-%m}" if every is Every.MONTH else start.isoformat()

"""Answers to questions about energy: which table, over which days; no pages."""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from django.utils.translation import gettext as _

from carbon.device_energy import device_table
from carbon.energy_questions import (
    HOUR,
    MAX_DEVICE_DAYS,
    MAX_HOURS,
    EnergyQuestion,
    QuestionError,
    next_month,
)
from carbon.energy_records import EnergyTable
from carbon.energy_selectors import booked_span, booked_table, booked_total

DAYS_BY_DAY: Final = 62  # a longer time is shown by the month, unless a day is asked for


def usual_group(question: EnergyQuestion) -> str:
    """By the day, or by the month where the books are longer."""
    first, last = booked_span(question)
    if first is None or last is None:
        return "day"
    return "month" if last - first > timedelta(days=DAYS_BY_DAY) else "day"


def bounded(question: EnergyQuestion) -> EnergyQuestion:
    """The question limited to what its kind of table can hold.

    Raises:
        QuestionError: more days are asked for than that.
    """
    if question.is_by_device:
        return _of_a_month(question)
    if question.by != "hour":
        return question
    if question.start is None or question.end is None:
        question = _of_a_day(question)
    if question.start and question.end and (question.end - question.start) / HOUR > MAX_HOURS:
        raise QuestionError(
            _("By the hour at most {days} days at once: choose a month or a day.").format(
                days=MAX_HOURS // 24
            )
        )
    return question


def _of_a_day(question: EnergyQuestion) -> EnergyQuestion:
    """The last day on the books, where no days are named."""
    _first, last = booked_span(question)
    if last is None:
        return question
    start = last.replace(hour=0)
    return replace(question, start=start, end=start + timedelta(days=1))


def _of_a_month(question: EnergyQuestion) -> EnergyQuestion:
    """The last month on the books, where no days are named."""
    if question.start is None or question.end is None:
        _first, last = booked_span(replace(question, node="", device=""))
        if last is None:
            return question
        start = last.replace(day=1, hour=0)
        question = replace(question, start=start, end=next_month(start))
    if (
        question.start
        and question.end
        and question.end - question.start > timedelta(days=MAX_DEVICE_DAYS)
    ):
        raise QuestionError(
            _("By node or device at most {days} days at once: choose a month.").format(
                days=MAX_DEVICE_DAYS
            )
        )
    return question


def energy_table(question: EnergyQuestion) -> EnergyTable:
    """The table that answers a question."""
    if not question.is_by_device:
        return booked_table(question)
    if question.start is None or question.end is None:
        return EnergyTable(rows=(), total=booked_total(question))
    table = device_table(question)
    if question.node or question.device:
        return table
    return replace(table, total=booked_total(question))

"""What the page of energy and carbon shows of a table: rows with links, chart, choices, words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from carbon.energy_questions import (
    BOUNDARIES,
    IN_TIME,
    METHODS,
    NOBODY,
    EnergyQuestion,
    hour_text,
    next_month,
)
from carbon.energy_records import EnergyRow, EnergyTable
from carbon.energy_selectors import has_estimated_factor
from ui.charts import Figure
from ui.quality_charts import QualityBar, quality_figure

MAX_ROWS: Final = 2300


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRow:
    """A line of the table: its figures at the chosen boundary and method, and where it leads."""

    row: EnergyRow
    url: str
    energy_kwh: float | None
    emitted_kgco2e: float | None
    intensity_g_per_kwh: float | None


def group_name(by: str) -> str:
    """What a table is by, in words."""
    return {
        "hour": _("Hour"),
        "day": _("Day"),
        "month": pgettext("of the calendar", "Month"),
        "project": _("Project"),
        "run": _("Run"),
        "site": _("Site"),
        "node": _("Node"),
        "device": _("Device"),
    }[by]


def boundary_name(boundary: str) -> str:
    """Where energy is counted, in words."""
    return {
        "facility": _("Facility"),
        "it": _("IT"),
        "accelerator": _("Accelerators"),
    }[boundary]


def method_name(method: str) -> str:
    """How emissions are counted, in words."""
    return {"location": _("Location-based"), "market": _("Market-based")}[method]


def badge_of(question: EnergyQuestion, table: EnergyTable) -> str:
    """How a total is known; beyond the accelerators its factors count, too."""
    if table.total.energy_kwh(question.boundary) is None:
        return "not-set"
    if question.boundary != "accelerator" and has_estimated_factor(question):
        return "estimated"
    return table.total.badge


def shown_row(row: EnergyRow, question: EnergyQuestion, url: str = "") -> ShownRow:
    """A row as the question wants it read."""
    return ShownRow(
        row=row,
        url=url,
        energy_kwh=row.energy_kwh(question.boundary),
        emitted_kgco2e=row.emitted_kgco2e(question.method),
        intensity_g_per_kwh=row.intensity_g_per_kwh(question.method),
    )


def shown_rows(table: EnergyTable, question: EnergyQuestion) -> list[ShownRow]:
    """The lines of a table, each with a link one level down."""
    return [shown_row(row, question, narrower(row, question)) for row in table.rows[:MAX_ROWS]]


def narrower(row: EnergyRow, question: EnergyQuestion) -> str:
    """The address one level below a row."""
    if question.by == "hour" and row.start is not None:
        return hour_url(question, row.start)
    return f"{reverse('energy')}?{_narrowed(row, question).query()}"


def hour_url(question: EnergyQuestion, hour: datetime) -> str:
    """The page of an hour, with what else the question is about."""
    kept = replace(question, start=None, end=None)
    pairs = [pair for pair in kept.written() if pair[0] != "by"]
    address = reverse("energy_hour", args=[hour_text(hour)])
    return f"{address}?{urlencode(pairs)}" if pairs else address


def _narrowed(row: EnergyRow, question: EnergyQuestion) -> EnergyQuestion:
    by, start = question.by, row.start
    if by == "month" and start is not None:
        return replace(question, by="day", start=start, end=next_month(start))
    if by == "day" and start is not None:
        return replace(question, by="hour", start=start, end=start + timedelta(days=1))
    if by == "project":
        return replace(question, by="day", project=row.key)
    if by == "run":
        project, _slash, run = row.key.partition("/")
        return replace(question, by="day", project=project, run="" if project == NOBODY else run)
    if by == "site":
        return replace(question, by="day", site=row.key)
    if by == "node":
        return replace(question, by="device", node=row.key)
    return replace(question, by="day", device=row.key)


def figure_of(table: EnergyTable, question: EnergyQuestion) -> Figure | None:
    """Bars over time; None for a table that is not over time, or of one row."""
    if question.by not in IN_TIME or len(table.rows) < 2:
        return None
    return quality_figure([_bar(row, question) for row in table.rows])


def _bar(row: EnergyRow, question: EnergyQuestion) -> QualityBar:
    energy_kwh = row.energy_kwh(question.boundary)
    covered = row.coverage_fraction

    def part(quality: str) -> float | None:
        share = row.share(quality)
        return None if energy_kwh is None or share is None else energy_kwh * share

    at = f"{row.start:%Y-%m-%dT%H:%M}" if question.by == "hour" and row.start else row.key
    return QualityBar(
        at=at,
        measured_kwh=part("measured"),
        spread_kwh=part("spread"),
        estimated_kwh=part("estimated"),
        missing_fraction=None if covered is None else 1 - covered,
        intensity_g_per_kwh=row.intensity_g_per_kwh(question.method),
    )


def choices_of(question: EnergyQuestion) -> dict[str, Any]:
    """The links that ask the same otherwise."""

    def link(name: str, wanted: EnergyQuestion, is_current: bool) -> dict[str, Any]:
        return {"name": name, "url": f"?{wanted.query()}", "is_current": is_current}

    groups = ["month", "day", "hour", "site", "project", "run", "node"]
    if question.by not in groups:
        groups.append(question.by)
    return {
        "groups": [
            link(group_name(by), replace(question, by=by), by == question.by) for by in groups
        ],
        "boundaries": [
            link(boundary_name(one), replace(question, boundary=one), one == question.boundary)
            for one in BOUNDARIES
        ],
        "methods": [
            link(method_name(one), replace(question, method=one), one == question.method)
            for one in METHODS
        ],
        "boundary_name": boundary_name(question.boundary),
        "method_name": method_name(question.method),
        "group_name": group_name(question.by),
    }


def chips_of(question: EnergyQuestion) -> list[dict[str, str]]:
    """What the question is limited to, each with the address without it."""
    chips: list[tuple[str, EnergyQuestion]] = []
    if question.start or question.end:
        chips.append((period_words(question), replace(question, start=None, end=None)))
    if question.project:
        name = _("No project") if question.is_of_nobody else question.project
        cleared = replace(question, project="", project_id=None, run="", run_id=None)
        chips.append((f"{_('Project')}: {name}", cleared))
    if question.run:
        run = _("no run") if question.run == NOBODY else question.run
        chips.append((f"{_('Run')}: {run}", replace(question, run="", run_id=None)))
    if question.site:
        chips.append((f"{_('Site')}: {question.site}", replace(question, site="", site_id=None)))
    if question.node:
        chips.append((f"{_('Node')}: {question.node}", replace(question, node="")))
    if question.device:
        chips.append((f"{_('Device')}: {question.device}", replace(question, device="")))
    if question.as_of:
        at = f"{question.as_of:%Y-%m-%d %H:%M} UTC"
        chips.append((_("as known on {at}").format(at=at), replace(question, as_of=None)))
    return [
        {"words": words, "url": f"{reverse('energy')}?{wanted.query()}"} for words, wanted in chips
    ]


def period_words(question: EnergyQuestion) -> str:
    """The days of a question: a month, one day, or first and last."""
    start, end = question.start, question.end
    if start and end and end == next_month(start) and start.day == 1 and not start.hour:
        return f"{start:%Y-%m}"
    if start and end and end - start == timedelta(days=1) and not start.hour:
        return f"{start:%Y-%m-%d}"
    last = end - timedelta(microseconds=1) if end else None
    return f"{start:%Y-%m-%d} – " if last is None else " – ".join(_days(start, last))


def _days(start: datetime | None, last: datetime) -> Sequence[str]:
    return (f"{start:%Y-%m-%d}" if start else "…", f"{last:%Y-%m-%d}")

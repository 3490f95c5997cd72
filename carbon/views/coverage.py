"""The calendar of meters: which device time has energy, by day, of sites, nodes and devices."""

import calendar
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from carbon.coverage_selectors import (
    CoverDay,
    CoverRow,
    by_node,
    device_rows,
    gaps_of,
    site_days,
)
from carbon.energy_questions import QuestionError, month_named, next_month
from carbon.views.energy import refused
from projects.access import actor_of, require_organisation_role
from projects.records import Actor
from runs.records import SiteRecord
from runs.selectors import site_by_slug, sites

MONTHS_SHOWN: Final = 13
MAX_ROWS: Final = 600
DAY_NUMBERS: Final = range(1, 32)


@require_safe
def energy_coverage(request: HttpRequest) -> HttpResponse:
    """All sites by month; with `site` and `month`, its nodes; with `node`, the node's devices."""
    actor = actor_of(request)
    require_organisation_role(actor, write=False)
    slug, month = request.GET.get("site", ""), request.GET.get("month", "")
    place = site_by_slug(actor.organisation_id, slug) if slug else None
    if slug and place is None:
        raise Http404("No such site.")
    if place is None or not month:
        places = [place] if place else sites(actor.organisation_id)
        return _all(request, actor, places)
    try:
        start = month_named(month).date()
    except ValueError:
        return refused(request, QuestionError(f"{month!r}: 2026-05"))
    return _month(request, actor, place, start)


def _all(request: HttpRequest, actor: Actor, places: Sequence[SiteRecord]) -> HttpResponse:
    today = datetime.now(UTC).date()
    shown = []
    for place in places:
        days = site_days(actor.organisation_id, place.site_id, date(2000, 1, 1), today)
        months = sorted({day.replace(day=1) for day in days}, reverse=True)[:MONTHS_SHOWN]
        kept = [one for day, one in sorted(days.items()) if months and day >= months[-1]]
        shown.append(
            {
                "site": place,
                "months": [_month_row(place, month, days) for month in months],
                "gaps": gaps_of(place.site_id, kept)[-40:][::-1],
            }
        )
    context = {"tab": "energy_coverage", "shown": shown, "day_numbers": DAY_NUMBERS}
    return render(request, "carbon/coverage.html", context)


def _month_row(place: SiteRecord, month: date, days: Mapping[date, CoverDay]) -> dict[str, Any]:
    mine = {day: one for day, one in days.items() if day.replace(day=1) == month}
    row = CoverRow(key=f"{month:%Y-%m}", name=f"{month:%Y-%m}", days=mine)
    query = urlencode({"site": place.slug, "month": row.key})
    url = f"{reverse('energy_coverage')}?{query}"
    return {"row": row, "url": url, "cells": _cells(row, month, {"site": place.slug})}


def _cells(row: CoverRow, month: date, about: Mapping[str, str]) -> list[dict[str, Any]]:
    """A cell for each day of a month, with the way to the day's energy."""
    way = f"{reverse('energy')}?{urlencode({'by': 'hour', **about})}"
    cells = []
    for number in range(1, calendar.monthrange(month.year, month.month)[1] + 1):
        day = month.replace(day=number)
        one = row.days.get(day, CoverDay(day=day, expected=0, covered=0))
        after = date.fromordinal(day.toordinal() + 1)
        cells.append(
            {
                "on": f"{day}",
                "state": one.state,
                "percent": one.percent,
                "url": f"{way}&from={day}&to={after}",
            }
        )
    return cells


def _month(request: HttpRequest, actor: Actor, place: SiteRecord, start: date) -> HttpResponse:
    end = next_month(datetime(start.year, start.month, 1, tzinfo=UTC)).date()
    found = device_rows(actor.organisation_id, place.site_id, start, end)
    node = request.GET.get("node")
    has_nodes = len({device.node for device, _days in found}) > 1
    rows: list[dict[str, Any]] = []
    if node is None and has_nodes:
        for row in by_node(found):
            query = urlencode({"site": place.slug, "month": f"{start:%Y-%m}", "node": row.key})
            about = {"site": place.slug, **({"node": row.key} if row.key else {})}
            url = f"{reverse('energy_coverage')}?{query}"
            rows.append({"row": row, "url": url, "cells": _cells(row, start, about)})
    else:
        for device, days in found:
            if node is None or device.node == node:
                row = CoverRow(key=device.device_uuid, name=device.device_uuid, days=days)
                about = {"site": place.slug, "device": device.device_uuid}
                rows.append({"row": row, "url": "", "cells": _cells(row, start, about)})
    context = {
        "tab": "energy_coverage",
        "site": place,
        "month": f"{start:%Y-%m}",
        "node": node,
        "rows": rows[:MAX_ROWS],
        "hidden": max(0, len(rows) - MAX_ROWS),
        "is_by_node": node is None and has_nodes,
        "day_numbers": range(1, calendar.monthrange(start.year, start.month)[1] + 1),
    }
    return render(request, "carbon/coverage_month.html", context)

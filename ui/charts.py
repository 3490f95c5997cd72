"""Plotly figures from plain values: shape, labels, colour names; app.js draws and themes them.

Colours are written `token:series-1` or `token:series-1/0.4`; app.js resolves them from tokens.css,
so one figure serves both themes. Text that people or bills brought in passes `plain_text`.
"""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from babel.core import Locale
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from ui.chart_text import plain_text, round_ticks, visible_text, week_ticks
from ui.formatting import (
    CARBON_KG,
    ENERGY_KWH,
    babel_locale,
    count_text,
    decimal_text,
    money_text,
    scaled,
)

Figure = dict[str, Any]
Value = Decimal | float | int | None

SERIES_COLOURS: Final = tuple(f"series-{number}" for number in range(1, 9))


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line or area over days; `values` as long as `days`, None where nothing is known."""

    name: str
    days: Sequence[dt.date]
    values: Sequence[Value]
    colour: str = ""
    dash: str = "solid"  # solid | dot | dash | dashdot


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A day worth a word: data as of, a restart, a price change."""

    day: dt.date
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeChart:
    """What a chart over days shows: `stacked` cumulative parts, `estimated` hatched on top."""

    stacked: Sequence[Series] = ()
    estimated: Series | None = None
    lines: Sequence[Series] = ()
    references: Sequence[Series] = ()
    as_of_on: dt.date | None = None
    markers: Sequence[Marker] = field(default=())
    starts_on: dt.date | None = None
    ends_on: dt.date | None = None
    weeks_from: dt.date | None = None  # the first day of week W0, named under the days


def flat_line(name: str, value: Value, *, starts_on: dt.date, ends_on: dt.date) -> Series:
    """A level that does not change with time, such as the 2.0× line."""
    return Series(name=name, days=(starts_on, ends_on), values=(value, value))


def burn_down_figure(chart: TimeChart, *, currency: str) -> Figure:
    """Cumulative cost: planned value dotted, reference lines dashed, actual cost stacked."""
    locale = babel_locale(get_language())

    def tick(value: float) -> str:
        digits = _tick_digits(value)
        return money_text(Decimal(repr(value)), currency, locale, compact=True, digits=digits)

    def hover(value: Value) -> str:
        return money_text(Decimal(str(value)), currency, locale, digits=0)

    return _time_figure(chart, _Scale(tick=tick, hover=hover, title=currency))


def cumulative_area_figure(chart: TimeChart, *, quantity: str) -> Figure:
    """Cumulative `quantity`, "energy" in kWh or "carbon" in kgCO2e, with the plan as a line."""
    locale = babel_locale(get_language())
    ladder = {"energy": ENERGY_KWH, "carbon": CARBON_KG}[quantity]
    top = _highest(chart)
    size, unit = next((rung for rung in ladder if top >= rung[0]), (Decimal(1), ladder[-2][1]))

    def tick(value: float) -> str:
        return _short(value / float(size), locale)

    def hover(value: Value) -> str:
        return scaled(Decimal(str(value)), locale, ladder).text

    step = float(size)
    return _time_figure(chart, _Scale(tick=tick, hover=hover, title=unit, unit_size=step))


def line_figure(chart: TimeChart, *, unit: str) -> Figure:
    """Any quantity over days, in `unit`."""
    locale = babel_locale(get_language())

    def tick(value: float) -> str:
        return _short(value, locale)

    def hover(value: Value) -> str:
        return f"{decimal_text(Decimal(str(value)), locale)} {unit}"

    return _time_figure(chart, _Scale(tick=tick, hover=hover, title=unit))


# --- scale: ticks are computed here, so that they read 128万 in Chinese and never move


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    tick: Callable[[float], str]
    hover: Callable[[Value], str]
    title: str
    unit_size: float = 1.0


def _short(value: float, locale: Locale) -> str:
    exact = Decimal(repr(value))
    if abs(exact) >= 1000:
        return count_text(exact, locale, compact=True)
    return decimal_text(exact.normalize(), locale, digits=max(0, _exponent_digits(exact)))


def _exponent_digits(exact: Decimal) -> int:
    """Decimals needed to show a round tick fully, at most four."""
    exponent = exact.quantize(Decimal("0.0001")).normalize().as_tuple().exponent
    return min(4, -exponent) if isinstance(exponent, int) else 0


def _tick_digits(value: float) -> int | None:
    if value == 0:
        return 0
    if abs(value) < 1000:
        return max(0, _exponent_digits(Decimal(repr(value))))
    return 2 if f"{value:.2e}"[3] != "0" else (1 if f"{value:.1e}"[2] != "0" else 0)


def _highest(chart: TimeChart) -> float:
    """The top of the chart: the stack's sum or the highest line."""
    sums: dict[dt.date, float] = {}
    for series in _stack_of(chart):
        for day, value in zip(series.days, series.values, strict=True):
            sums[day] = sums.get(day, 0.0) + float(value or 0)
    levels = [
        float(value)
        for series in (*chart.lines, *chart.references)
        for value in series.values
        if value is not None
    ]
    return max([*sums.values(), *levels, 0.0])


def _stack_of(chart: TimeChart) -> tuple[Series, ...]:
    return (*chart.stacked, *((chart.estimated,) if chart.estimated else ()))


# --- figure


def _time_figure(chart: TimeChart, scale: _Scale) -> Figure:
    top = _highest(chart)
    ticks = [tick * scale.unit_size for tick in round_ticks(top / scale.unit_size)]
    return {
        "data": [*_areas(chart, scale), *_lines(chart, scale), *_reference_lines(chart, scale)],
        "layout": {
            "hovermode": "x unified",
            "dragmode": False,
            "xaxis": _day_axis(chart),
            "yaxis": {
                "tickmode": "array",
                "tickvals": ticks,
                "ticktext": [scale.tick(value) for value in ticks],
                "range": [0, top * 1.08 or 1],
                "fixedrange": True,
            },
            "shapes": [_vertical(marker, colour) for marker, colour in _markers(chart)],
            "annotations": [
                _unit_label(scale.title),
                *(_end_label(series) for series in chart.references if series.days),
                *(_marker_label(marker, colour) for marker, colour in _markers(chart)),
            ],
        },
    }


def _day_axis(chart: TimeChart) -> dict[str, Any]:
    everyone = (*_stack_of(chart), *chart.lines, *chart.references)
    days = [day for series in everyone for day in series.days]
    first = chart.starts_on or (min(days) if days else None)
    last = chart.ends_on or (max(days) if days else None)
    axis: dict[str, Any] = {"type": "date", "fixedrange": True}
    if first and last:
        axis["range"] = [first.isoformat(), last.isoformat()]
        if chart.weeks_from:
            axis |= week_ticks(chart.weeks_from, first, last)
    return axis


def _trace(series: Series, scale: _Scale) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plain_text(series.name),
        "meta": visible_text(series.name),
        "x": [day.isoformat() for day in series.days],
        "y": [None if value is None else float(value) for value in series.values],
        "customdata": [
            _("n/a") if value is None else plain_text(scale.hover(value)) for value in series.values
        ],
        "hovertemplate": "%{customdata}",
    }


def _areas(chart: TimeChart, scale: _Scale) -> list[dict[str, Any]]:
    areas = []
    for index, series in enumerate(chart.stacked):
        colour = series.colour or SERIES_COLOURS[index % len(SERIES_COLOURS)]
        areas.append(
            _trace(series, scale)
            | {
                "stackgroup": "actual",
                "line": {"color": f"token:{colour}", "width": 1.5},
                "fillcolor": f"token:{colour}/0.55",
            }
        )
    if chart.estimated is not None:
        colour = chart.estimated.colour or "series-8"
        areas.append(
            _trace(chart.estimated, scale)
            | {
                "stackgroup": "actual",
                "line": {"color": f"token:{colour}", "width": 1.5, "dash": "dot"},
                "fillcolor": f"token:{colour}/0.2",
                "fillpattern": {
                    "shape": "/",
                    "size": 7,
                    "solidity": 0.25,
                    "fgcolor": f"token:{colour}",
                    "bgcolor": f"token:{colour}/0.12",
                },
            }
        )
    return areas


def _lines(chart: TimeChart, scale: _Scale) -> list[dict[str, Any]]:
    return [
        _trace(series, scale)
        | {
            "line": {
                "color": f"token:{series.colour or 'chart-plan'}",
                "width": 2.5,
                "dash": "dot" if series.dash == "solid" and not series.colour else series.dash,
            }
        }
        for series in chart.lines
    ]


def _reference_lines(chart: TimeChart, scale: _Scale) -> list[dict[str, Any]]:
    return [
        _trace(series, scale)
        | {
            "line": {
                "color": f"token:{series.colour or 'chart-reference'}",
                "width": 1.5,
                "dash": "dash",
            },
            "showlegend": False,
            "hoverinfo": "skip",
            "hovertemplate": None,
        }
        for series in chart.references
    ]


def _unit_label(unit: str) -> dict[str, Any]:
    """The axis' unit above it, lying, where it can be read."""
    return {
        "x": 0,
        "xref": "paper",
        "y": 1,
        "yref": "paper",
        "text": plain_text(unit),
        "showarrow": False,
        "xanchor": "left",
        "yanchor": "bottom",
        "xshift": -2,
        "font": {"size": 11, "color": "token:ink-faint"},
    }


def _end_label(series: Series) -> dict[str, Any]:
    """The line's name at its end, so that no legend is needed to read it."""
    known = [pair for pair in zip(series.days, series.values, strict=True) if pair[1] is not None]
    day, value = known[-1] if known else (series.days[-1], 0)
    return {
        "x": day.isoformat(),
        "y": float(value or 0),
        "text": plain_text(series.name),
        "showarrow": False,
        "xanchor": "right",
        "yanchor": "bottom",
        "bgcolor": "token:surface/0.7",
        "borderpad": 1,
        "font": {"size": 12, "color": "token:ink-soft"},
    }


def _markers(chart: TimeChart) -> list[tuple[Marker, str]]:
    marked = [(marker, "chart-reference") for marker in chart.markers]
    if chart.as_of_on is not None:
        marked.append((Marker(day=chart.as_of_on, label=_("data as of")), "chart-marker"))
    return sorted(marked, key=lambda pair: pair[0].day)


def _vertical(marker: Marker, colour: str) -> dict[str, Any]:
    day = marker.day.isoformat()
    return {
        "type": "line",
        "xref": "x",
        "yref": "paper",
        "x0": day,
        "x1": day,
        "y0": 0,
        "y1": 1,
        "layer": "below",
        "line": {"color": f"token:{colour}", "width": 1, "dash": "dot"},
    }


def _marker_label(marker: Marker, colour: str) -> dict[str, Any]:
    return {
        "name": "" if colour == "chart-marker" else "wide",  # left out where there is no room
        "x": marker.day.isoformat(),
        "y": 1,
        "yref": "paper",
        "text": plain_text(marker.label),
        "showarrow": False,
        "xanchor": "center",
        "yanchor": "bottom",
        "font": {"size": 11, "color": f"token:{'ink-faint' if 'ref' in colour else colour}"},
    }

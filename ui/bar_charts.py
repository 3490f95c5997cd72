"""Plotly figures of stacked bars, one a day, week or month; shape and colours as `ui.charts`."""

from collections.abc import Sequence
from typing import Any

from ui.charts import Figure, Series, TimeChart, burn_down_figure


def monthly_bar_figure(stacked: Sequence[Series], *, currency: str) -> Figure:
    """A bar for each month, its parts stacked; the series' days are first days of months."""
    return stacked_bar_figure(stacked, currency=currency, letters=7)


def stacked_bar_figure(stacked: Sequence[Series], *, currency: str, letters: int = 10) -> Figure:
    """A bar for each of the series' days, its parts stacked; named by so many of its letters."""
    figure = burn_down_figure(TimeChart(stacked=stacked), currency=currency)
    axis = {"type": "category", "fixedrange": True, "showspikes": False}
    return {
        "data": [_bar(trace, letters) for trace in figure["data"]],
        "layout": {**figure["layout"], "barmode": "stack", "bargap": 0.35, "xaxis": axis},
    }


def _bar(trace: dict[str, Any], letters: int) -> dict[str, Any]:
    """The trace of an area, as bars."""
    kept = {name: trace[name] for name in ("name", "meta", "y", "customdata", "hovertemplate")}
    line = {"color": trace["line"]["color"], "width": 1}
    marker = {"color": trace["fillcolor"], "line": line}
    return {"type": "bar", "x": [day[:letters] for day in trace["x"]], "marker": marker, **kept}

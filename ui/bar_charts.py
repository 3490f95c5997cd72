"""Plotly figures of stacked bars, one bar a month; shape and colours only, as `ui.charts`."""

from collections.abc import Sequence
from typing import Any

from ui.charts import Figure, Series, TimeChart, burn_down_figure


def monthly_bar_figure(stacked: Sequence[Series], *, currency: str) -> Figure:
    """A bar for each month, its parts stacked; the series' days are first days of months."""
    figure = burn_down_figure(TimeChart(stacked=stacked), currency=currency)
    axis = {"type": "category", "fixedrange": True, "showspikes": False}
    return {
        "data": [_bar(trace) for trace in figure["data"]],
        "layout": {**figure["layout"], "barmode": "stack", "bargap": 0.35, "xaxis": axis},
    }


def _bar(trace: dict[str, Any]) -> dict[str, Any]:
    """The trace of an area, as bars."""
    kept = {name: trace[name] for name in ("name", "meta", "y", "customdata", "hovertemplate")}
    line = {"color": trace["line"]["color"], "width": 1}
    marker = {"color": trace["fillcolor"], "line": line}
    return {"type": "bar", "x": [day[:7] for day in trace["x"]], "marker": marker, **kept}

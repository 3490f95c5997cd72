"""Bars of energy by how it is known, with intensity as a line and a strip of what is missing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from ui.chart_text import plain_text, round_ticks, visible_text
from ui.charts import Figure
from ui.formatting import ENERGY_KWH, babel_locale, decimal_text, percent_text, scaled

_MISSING_FROM: Final = 0.0005  # below that a bar of the strip could not be seen


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityBar:
    """One hour, day or month: energy by how it is known, kWh; None where nothing is known."""

    at: str  # 2026-05, 2026-05-01 or 2026-05-01T12:00
    measured_kwh: float | None
    spread_kwh: float | None
    estimated_kwh: float | None
    missing_fraction: float | None
    intensity_g_per_kwh: float | None


def quality_figure(bars: Sequence[QualityBar]) -> Figure:
    """Stacked bars: measured full, spread pale, estimated hatched; missing time under them."""
    has_missing = any((bar.missing_fraction or 0) > _MISSING_FROM for bar in bars)
    top = max([_height(bar) for bar in bars], default=0.0)
    size, unit = next(
        (rung for rung in ENERGY_KWH if top >= rung[0]), (Decimal(1), ENERGY_KWH[2][1])
    )
    data = [
        _bars(bars, _("measured"), [bar.measured_kwh for bar in bars], "series-3", pattern=""),
        _bars(
            bars, _("spread over time"), [bar.spread_kwh for bar in bars], "series-3", pattern="."
        ),
        _bars(bars, _("estimated"), [bar.estimated_kwh for bar in bars], "series-2", pattern="/"),
    ]
    data = [trace for index, trace in enumerate(data) if index == 0 or any(trace["y"])]
    data.append(_line(bars))
    if has_missing:
        data.append(_strip(bars))
    return {"data": data, "layout": _layout(bars, top, (float(size), unit), has_missing)}


def _height(bar: QualityBar) -> float:
    return (bar.measured_kwh or 0) + (bar.spread_kwh or 0) + (bar.estimated_kwh or 0)


def _trace(
    bars: Sequence[QualityBar],
    name: str,
    values: Sequence[float | None],
    words: Callable[[float], str],
) -> dict[str, Any]:
    return {
        "name": plain_text(name),
        "meta": visible_text(name),
        "x": [bar.at for bar in bars],
        "y": list(values),
        "customdata": [_("n/a") if value is None else plain_text(words(value)) for value in values],
        "hovertemplate": "%{customdata}",
    }


def _bars(
    bars: Sequence[QualityBar],
    name: str,
    values: Sequence[float | None],
    colour: str,
    *,
    pattern: str,
) -> dict[str, Any]:
    locale = babel_locale(get_language())

    def words(value: float) -> str:
        return scaled(value, locale, ENERGY_KWH).text

    marker: dict[str, Any] = {
        "color": f"token:{colour}/{'0.25' if pattern else '0.75'}",
        "line": {"color": f"token:{colour}", "width": 0 if len(bars) > 100 else 1},
    }
    if pattern:
        marker["pattern"] = {
            "shape": pattern,
            "size": 6,
            "solidity": 0.35,
            "fgcolor": f"token:{colour}",
            "bgcolor": f"token:{colour}/0.15",
        }
    return {"type": "bar", "marker": marker, **_trace(bars, name, values, words)}


def _line(bars: Sequence[QualityBar]) -> dict[str, Any]:
    locale = babel_locale(get_language())

    def words(value: float) -> str:
        return f"{decimal_text(value, locale)} g/kWh"

    values = [bar.intensity_g_per_kwh for bar in bars]
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(bars) < 3 else "lines",
        "yaxis": "y2",
        "line": {"color": "token:series-5", "width": 2, "shape": "hvh"},
        **_trace(bars, _("intensity of facility energy, g/kWh, right"), values, words),
    }


def _strip(bars: Sequence[QualityBar]) -> dict[str, Any]:
    locale = babel_locale(get_language())

    def words(value: float) -> str:
        return percent_text(value, locale)

    marker = {"color": "token:bad/0.35", "line": {"color": "token:bad", "width": 1}}
    values = [bar.missing_fraction for bar in bars]
    trace = _trace(bars, _("device time without energy"), values, words)
    return {"type": "bar", "yaxis": "y3", "marker": marker, **trace}


def _layout(
    bars: Sequence[QualityBar], top: float, rung: tuple[float, str], has_missing: bool
) -> dict[str, Any]:
    locale = babel_locale(get_language())
    size, unit = rung
    ticks = round_ticks(top / size, about=5)
    highest = max([bar.intensity_g_per_kwh or 0 for bar in bars], default=0.0)
    right = round_ticks(highest, about=4)
    frame = {"gridcolor": "token:chart-grid", "linecolor": "token:chart-axis", "zeroline": False}
    axis = {"fixedrange": True, "tickmode": "array"}
    layout: dict[str, Any] = {
        "barmode": "stack",
        "bargap": 0.25 if len(bars) <= 100 else 0,
        "hovermode": "x unified",
        "dragmode": False,
        "xaxis": _time_axis(bars) | ({"anchor": "y3"} if has_missing else {}),
        "yaxis": {
            **axis,
            "domain": [0.2 if has_missing else 0, 1],
            "tickvals": [tick * size for tick in ticks],
            "ticktext": [decimal_text(tick, locale, digits=_digits(ticks)) for tick in ticks],
            "range": [0, top * 1.08 or 1],
        },
        "yaxis2": {
            **axis,
            "overlaying": "y",
            "side": "right",
            "showgrid": False,
            "zeroline": False,
            "automargin": True,
            "tickvals": right,
            "ticktext": [decimal_text(tick, locale, digits=_digits(right)) for tick in right],
            "range": [0, highest * 1.15 or 1],
        },
        "annotations": [_label(unit, 0, "left"), _label("g/kWh", 1, "right")],
    }
    if has_missing:
        strip = {"domain": [0, 0.12], "range": [0, 1], "tickvals": [0, 1]}
        words = [percent_text(one, locale, digits=0) for one in (0, 1)]
        layout["yaxis3"] = {**axis, **frame, **strip, "ticktext": words, "automargin": True}
    return layout


def _digits(ticks: Sequence[float]) -> int:
    """Decimals that tell these ticks apart."""
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    return next((digits for digits in range(5) if round(step, digits) == step), 4)


def _time_axis(bars: Sequence[QualityBar]) -> dict[str, Any]:
    is_monthly = bool(bars) and len(bars[0].at) == 7
    axis: dict[str, Any] = {"type": "category" if is_monthly else "date", "fixedrange": True}
    if bars and "T" in bars[0].at:
        axis["hoverformat"] = "%Y-%m-%d %H:%M UTC"
    return axis | {"showspikes": False}


def _label(unit: str, x: int, anchor: str) -> dict[str, Any]:
    return {
        "x": x,
        "xref": "paper",
        "y": 1,
        "yref": "paper",
        "text": plain_text(unit),
        "showarrow": False,
        "xanchor": anchor,
        "yanchor": "bottom",
        "font": {"size": 11, "color": "token:ink-faint"},
    }

"""Figures: their shape, colours by token, ticks by language, and hostile labels made harmless."""

import datetime as dt
import json
import re
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import plotly.graph_objects as go
import pytest
from django.template import Context, Template
from django.utils import translation

from ui.bar_charts import monthly_bar_figure
from ui.chart_text import plain_text, round_ticks
from ui.charts import (
    Figure,
    Marker,
    Series,
    TimeChart,
    burn_down_figure,
    cumulative_area_figure,
    flat_line,
    line_figure,
)

TOKENS = Path(__file__).resolve().parents[2] / "ui/static/ui/tokens.css"
START = dt.date(2026, 9, 14)
DAYS = [START + dt.timedelta(days=offset) for offset in range(3)]
END = START + dt.timedelta(days=10)
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    r"$\href{javascript:alert(1)}{x}$",
    '<a href="javascript:alert(1)">x</a>',
    "%{fullData.name}",
    "&lt;b&gt;",
)


def make_chart(name: str = "Accelerators") -> TimeChart:
    return TimeChart(
        stacked=[
            Series(
                name=name, days=DAYS, values=[Decimal("1.1"), Decimal(200_000), Decimal(900_000)]
            )
        ],
        estimated=Series(name="Accrued", days=DAYS, values=[None, None, Decimal(50_000)]),
        lines=[Series(name="Planned value", days=[START, END], values=[0, 1_500_000])],
        references=[flat_line("2.0×", Decimal(2_000_000), starts_on=START, ends_on=END)],
        as_of_on=DAYS[-1],
        markers=[Marker(day=DAYS[1], label="restart")],
        starts_on=START,
        ends_on=END,
    )


def without_tokens(figure: Figure) -> Figure:
    """The figure with a plain colour where app.js would put a token's."""
    return json.loads(re.sub(r'"token:[^"]+"', '"#123456"', json.dumps(figure)))


def test_a_figure_is_plain_json() -> None:
    figure = burn_down_figure(make_chart(), currency="USD")
    assert json.loads(json.dumps(figure, allow_nan=False)) == figure


@pytest.mark.parametrize(
    "figure",
    [
        burn_down_figure(make_chart(), currency="USD"),
        cumulative_area_figure(make_chart(), quantity="energy"),
        cumulative_area_figure(make_chart(), quantity="carbon"),
        line_figure(make_chart(), unit="g/kWh"),
        line_figure(TimeChart(), unit="W"),
    ],
)
def test_plotly_accepts_the_figure(figure: Figure) -> None:
    go.Figure(without_tokens(figure))


def test_the_burn_down_shows_plan_dotted_references_dashed_and_actual_stacked() -> None:
    figure = burn_down_figure(make_chart(), currency="USD")
    by_name = {trace["meta"]: trace for trace in figure["data"]}
    assert by_name["Accelerators"]["stackgroup"] == by_name["Accrued"]["stackgroup"]
    assert "fillpattern" in by_name["Accrued"]
    assert by_name["Planned value"]["line"]["dash"] == "dot"
    assert by_name["2.0×"]["line"]["dash"] == "dash"
    texts = [note["text"] for note in figure["layout"]["annotations"]]
    assert texts == ["USD", "2.0×", "restart", "data as of"]


def test_a_value_that_is_not_known_stays_a_gap() -> None:
    figure = burn_down_figure(make_chart(), currency="USD")
    accrued = next(trace for trace in figure["data"] if trace["meta"] == "Accrued")
    assert accrued["y"] == [None, None, 50_000.0]
    assert accrued["customdata"][0] == "n/a"


def test_colours_are_names_of_tokens_that_the_style_sheet_has() -> None:
    css = TOKENS.read_text(encoding="utf-8")
    for figure in (
        burn_down_figure(make_chart(), currency="USD"),
        line_figure(make_chart(), unit="W"),
    ):
        names = re.findall(r'"token:([a-z0-9-]+)', json.dumps(figure))
        assert names
        assert all(f"--{name}:" in css for name in names)
        assert "#" not in re.sub(r"&#\d+;", "", json.dumps(figure))


def test_ticks_speak_the_language_of_the_page() -> None:
    english = burn_down_figure(make_chart(), currency="USD")["layout"]["yaxis"]["ticktext"]
    with translation.override("zh-hans"):
        chinese = burn_down_figure(make_chart(), currency="USD")["layout"]["yaxis"]["ticktext"]
    assert english[-1] == "$2M"
    assert chinese[-1] == "US$200万"


def test_energy_and_carbon_climb_to_the_unit_that_reads_best() -> None:
    chart = make_chart()
    units = [
        cumulative_area_figure(chart, quantity=quantity)["layout"]["annotations"][0]["text"]
        for quantity in ("energy", "carbon")
    ]
    assert units == ["GWh", "kt CO₂e"]


@pytest.mark.parametrize(
    ("top", "ticks"),
    [
        (0, [0, 1]),
        (3, [0, 0.5, 1, 1.5, 2, 2.5, 3]),
        (0.4, [0, 0.1, 0.2, 0.3, 0.4]),
        (3_060_000, [0, 500_000, 1_000_000, 1_500_000, 2_000_000, 2_500_000, 3_000_000]),
    ],
)
def test_ticks_are_round_and_stay_below_the_top(top: float, ticks: list[float]) -> None:
    assert round_ticks(top) == pytest.approx(ticks)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_labels_lose_every_character_that_plotly_reads(text: str) -> None:
    escaped = re.sub(r"&(amp|lt|gt|#36|#37|#123);", "", plain_text(text))
    assert not set(escaped) & set("<>&$%{")


def test_labels_lose_controls_and_direction_marks_and_stay_short() -> None:
    assert plain_text("a\u202eb\x00c\nd") == "ab c d"
    assert len(plain_text("x" * 500)) == 80


@pytest.mark.parametrize("text", HOSTILE)
def test_a_chart_on_a_page_carries_no_foreign_element(text: str) -> None:
    found: list[str] = []

    class Elements(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append(tag)
            found.extend(name for name, _ in attrs if name.startswith("on") or name == "style")

    markup = Template('{% load quantities %}{% chart "c" figure label %}').render(
        Context({"figure": line_figure(make_chart(text), unit=text), "label": text})
    )
    Elements().feed(markup)
    assert sorted(found) == ["div", "div", "script"]


def test_months_are_bars_that_stack_and_say_their_parts():
    months = [dt.date(2026, 8, 1), dt.date(2026, 9, 1)]
    parts = [Series(name=name, days=months, values=[Decimal(1), Decimal(2)]) for name in ("a", "b")]

    figure = monthly_bar_figure(parts, currency="USD")

    assert [trace["type"] for trace in figure["data"]] == ["bar", "bar"]
    assert figure["data"][0]["x"] == ["2026-08", "2026-09"]
    assert figure["data"][1]["customdata"][1].endswith("2")
    assert figure["layout"]["barmode"] == "stack"
    assert figure["layout"]["yaxis"]["range"][1] > 4

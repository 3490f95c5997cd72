"""What is served: one file of plotly, and pages' scripts and styles that keep to the policy."""

import re
from pathlib import Path

import pytest

from ui.finders import PlotlyFinder

ROOT = Path(__file__).resolve().parents[2]


def test_plotly_gives_exactly_one_file() -> None:
    files = [(storage.prefix, path) for path, storage in PlotlyFinder().list(None)]
    assert files == [("plotly", "plotly.min.js")]


def test_plotly_finds_its_file_and_no_other() -> None:
    finder = PlotlyFinder()
    assert Path(finder.find("plotly/plotly.min.js")).is_file()
    assert not finder.find("plotly/widgetbundle.js")
    assert not finder.find("plotly/../plotly/datasets/iris.csv.gz")


@pytest.mark.parametrize("path", sorted((ROOT / "templates").rglob("*.html")), ids=str)
def test_templates_hold_no_inline_style_or_handler(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"<[^>]*\sstyle=", text)
    assert not re.search(r"<[^>]*\son[a-z]+=", text)
    assert not re.search(r"hx-on|hx-vals=['\"]js:|javascript:", text)


@pytest.mark.parametrize("path", sorted((ROOT / "ui/static/ui").glob("*.css")), ids=str)
def test_every_custom_property_used_is_a_token_or_has_a_fallback(path: Path) -> None:
    tokens = (ROOT / "ui/static/ui/tokens.css").read_text(encoding="utf-8")
    used = set(re.findall(r"var\((--[a-z0-9-]+)\)", path.read_text(encoding="utf-8")))
    assert not {name for name in used if f"{name}:" not in tokens}


def test_colours_live_in_the_tokens_only() -> None:
    for name in ("app.css", "parts.css"):
        text = (ROOT / "ui/static/ui" / name).read_text(encoding="utf-8")
        assert set(re.findall(r"#[0-9a-fA-F]{3,8}\b", text)) <= {"#fff"}, name

"""Text reaches 4.5:1 on its ground and chart marks 3:1, in both themes (WCAG 2.2 AA)."""

import re
from pathlib import Path

import pytest

TOKENS = Path(__file__).resolve().parents[2] / "ui/static/ui/tokens.css"
COLOURS = {
    name: (light, dark)
    for name, light, dark in re.findall(
        r"--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)",
        TOKENS.read_text(encoding="utf-8"),
    )
}
GROUNDS = ("paper", "surface", "surface-sunken", "sidebar")
TEXTS = ("ink", "ink-soft", "ink-faint", "accent")
PAIRS = [(text, ground, 4.5) for text in TEXTS for ground in GROUNDS]
PAIRS += [(tone, f"{tone}-wash", 4.5) for tone in ("good", "warn", "bad", "info", "synthetic")]
PAIRS += [
    ("on-accent", "accent", 4.5),
    ("on-accent", "accent-strong", 4.5),
    ("accent-strong", "accent-wash", 4.5),
    ("ink-soft", "neutral-wash", 4.5),
    ("line-control", "surface", 3.0),
    ("chart-reference", "surface", 3.0),
]
PAIRS += [(f"series-{number}", "surface", 3.0) for number in range(1, 9)]


def luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("ink", "ground", "least"), PAIRS)
def test_a_pair_of_tokens_can_be_told_apart(ink: str, ground: str, least: float) -> None:
    for theme in (0, 1):
        pair = sorted((luminance(COLOURS[ink][theme]), luminance(COLOURS[ground][theme])))
        assert (pair[1] + 0.05) / (pair[0] + 0.05) >= least, ("light", "dark")[theme]

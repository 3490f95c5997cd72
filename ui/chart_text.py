"""Text and ticks of charts: letters that Plotly shows as they are, round values, project weeks."""

import datetime as dt
import math
import re
import unicodedata
from typing import Any, Final

from babel.dates import format_skeleton
from django.utils.translation import get_language

from ui.formatting import babel_locale

_LONGEST_LABEL: Final = 80
_PLOTLY_MARKUP: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;", "%": "&#37;", "{": "&#123;"}
)


def plain_text(text: object) -> str:
    """Text that Plotly shows letter by letter: no pseudo-HTML, MathJax, template or hidden control.

    Plotly reads `<a href>`, entities, `$...$` and `%{...}` in labels; each becomes an entity here.
    """
    return visible_text(text).translate(_PLOTLY_MARKUP)


def visible_text(text: object) -> str:
    """One short line of letters a reader can see, for places that never read markup."""
    visible = "".join(
        " " if unicodedata.category(letter) in {"Cc", "Zl", "Zp"} else letter
        for letter in str(text)
        if unicodedata.category(letter) != "Cf"
    )
    short = re.sub(r"\s+", " ", visible).strip()
    if len(short) > _LONGEST_LABEL:
        short = short[: _LONGEST_LABEL - 1] + "…"
    return short


def round_ticks(top: float, *, about: int = 7) -> list[float]:
    """Round values from 0 up to `top`, in steps of 1, 2, 2.5 or 5 times a power of ten."""
    if top <= 0:
        return [0.0, 1.0]
    rough = top / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(
        (size * power for size in (1, 2, 2.5, 5, 10) if size * power >= rough * (1 - 1e-9)),
        10 * power,
    )
    return [round(step * index, 10) for index in range(math.floor(top / step * (1 + 1e-9)) + 1)]


def week_ticks(weeks_from: dt.date, first: dt.date, last: dt.date) -> dict[str, Any]:
    """Ticks on the first days of project weeks, at most ten or so, each with its number."""
    locale = babel_locale(get_language())
    weeks = range(max((first - weeks_from).days // 7, 0), (last - weeks_from).days // 7 + 1)
    step = next(size for size in (1, 2, 4, 8, 13, 26, 52, 520) if len(weeks) <= 10 * size)
    shown = [week for week in weeks if week % step == 0]
    days = [weeks_from + dt.timedelta(weeks=week) for week in shown]
    return {
        "tickmode": "array",
        "tickvals": [day.isoformat() for day in days],
        "ticktext": [
            f"{plain_text(format_skeleton('MMMd', day, locale=locale))}<br>W{week}"
            for day, week in zip(days, shown, strict=True)
        ],
    }

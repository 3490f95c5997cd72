"""Numbers and instants as logs write them, and how patterns of profiles name them."""

import math
import re
from datetime import UTC, datetime, tzinfo
from typing import Final

from costwatch_agent.records import Document

ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# What <integer> and <number> stand for in a profile's patterns.
PLACEHOLDERS: Final = {
    "<integer>": r"([+-]?\d[\d,]*)(?!\d|\.\d)",
    "<number>": (
        r"([+-]?(?:(?:\d[\d,]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|(?i:nan|inf(?:inity)?)\b))"
    ),
}
MIN_AT_S: Final = 946_684_800  # 2000; what is below is no instant
MAX_AT_S: Final = 4_102_444_800  # 2100; what is above counts milli-, micro- or nanoseconds


def plain(text: str) -> str:
    """The text without colours; of a progress bar what it shows last."""
    return ANSI.sub("", text).rstrip("\r\n").rpartition("\r")[2]


def pattern(text: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """A profile's pattern. re.error: it is none."""
    for name, meaning in PLACEHOLDERS.items():
        text = text.replace(name, meaning)
    return re.compile(text, re.IGNORECASE if ignore_case else 0)


def number_of(value: object) -> float | None:
    """A number from what a log holds, NaN and infinities among them; None: it holds none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return None
    if isinstance(value, str):
        try:
            return float(value.replace(",", "").replace("_", "x"))
        except ValueError:
            return None
    return None


def instant_ms(value: object, zone: tzinfo | None) -> int | None:
    """An instant in milliseconds since 1970: ISO 8601 or near it, or a count of seconds.

    `zone` is for texts that name none; None: the machine's own.
    """
    count = number_of(value)
    if count is not None:
        return _from_count(count)
    if not isinstance(value, str):
        return None
    text = value.strip().replace(",", ".")
    if text.endswith(" UTC"):
        text = text[:-4] + "+00:00"
    try:
        at = datetime.fromisoformat(text)
        at = at if at.tzinfo is not None else at.replace(tzinfo=zone)
        return round(at.astimezone(UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def _from_count(count: float) -> int | None:
    if not math.isfinite(count) or count < MIN_AT_S:
        return None
    for per_s in (1, 10**3, 10**6, 10**9):
        if count / per_s < MAX_AT_S:
            return round(count / per_s * 1000)
    return None


def at_path(document: Document, path: str) -> object:
    """The value at a dotted path; None where there is none."""
    found: object = document.get(path)
    if found is not None or "." not in path:
        return found
    found = document
    for name in path.split("."):
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found

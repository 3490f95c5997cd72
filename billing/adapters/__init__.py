"""The bill formats that can be read, and how one is told from another; no format's own columns."""

from collections.abc import Sequence
from typing import Final

from billing.adapters.focus import FOCUS
from billing.adapters.layout import BillAdapter, Layout
from billing.records import ChargesRefusedError

AUTO: Final = "auto"
ADAPTERS: Final[tuple[BillAdapter, ...]] = (FOCUS,)
FORMATS: Final = (AUTO, *(adapter.name for adapter in ADAPTERS))
# Read as maps by some adapter; the text parser is told before the format is known.
JSON_COLUMNS: Final = tuple(sorted({name for adapter in ADAPTERS for name in adapter.json_columns}))

LIST_COLUMNS: Final = tuple(sorted({name for adapter in ADAPTERS for name in adapter.list_columns}))

__all__ = [
    "ADAPTERS",
    "AUTO",
    "FORMATS",
    "JSON_COLUMNS",
    "LIST_COLUMNS",
    "BillAdapter",
    "Layout",
    "detect",
]


def detect(columns: Sequence[str], *, wanted: str = AUTO) -> BillAdapter:
    """The adapter for a file with these columns.

    Raises:
        ChargesRefusedError: no adapter knows them, or not the one asked for; says what was seen.
    """
    candidates = [adapter for adapter in ADAPTERS if wanted in (AUTO, adapter.name)]
    best = max(candidates, key=lambda adapter: adapter.recognises(columns), default=None)
    if best is None:
        raise ChargesRefusedError(
            "format", f"the format {wanted!r} is not one of {', '.join(FORMATS)}"
        )
    if best.recognises(columns) == 0:
        seen = ", ".join(columns[:6])
        raise ChargesRefusedError(
            "format",
            f"the {len(columns)} columns ({seen}, …) are not those of "
            f"{best.name.upper() if wanted != AUTO else 'a bill that can be read: FOCUS'}; "
            "is the file comma-separated, with the column names in its first row?",
            row=1,
        )
    return best

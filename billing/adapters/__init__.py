"""The bill formats that can be read, and how one is told from another; no format's own columns."""

from collections.abc import Sequence
from typing import Final

from billing.adapters.aws_cur import AWS_CUR
from billing.adapters.azure import AZURE, AZURE_ACTUAL, AZURE_AMORTISED
from billing.adapters.focus import FOCUS
from billing.adapters.gcp import GCP_EXPORT
from billing.adapters.layout import BillAdapter, Layout
from billing.records import ChargesRefusedError

AUTO: Final = "auto"
ADAPTERS: Final[tuple[BillAdapter, ...]] = (
    FOCUS,
    AWS_CUR,
    GCP_EXPORT,
    AZURE,
    AZURE_ACTUAL,
    AZURE_AMORTISED,
)
FORMATS: Final = (AUTO, *(adapter.name for adapter in ADAPTERS))
# Read as maps by some adapter; the text parser is told before the format is known.
JSON_COLUMNS: Final = tuple(sorted({name for adapter in ADAPTERS for name in adapter.json_columns}))

LIST_COLUMNS: Final = tuple(sorted({name for adapter in ADAPTERS for name in adapter.list_columns}))
SHOWN_COLUMNS: Final = 6
SHOWN_FORMATS: Final = 4  # the two that are one export each are said by their common name

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
    best = max(ADAPTERS, key=lambda adapter: adapter.recognises(columns))
    if wanted != AUTO:
        asked = next((adapter for adapter in ADAPTERS if adapter.name == wanted), None)
        if asked is None:
            raise ChargesRefusedError(
                "format", f"the format {wanted!r} is not one of {', '.join(FORMATS)}"
            )
        if asked.recognises(columns):
            return asked
        if best.recognises(columns):
            raise ChargesRefusedError(
                "format",
                f"the columns are not those of {wanted}: they look like {best.name}; import the "
                f"file as {best.name}, or leave the format to be detected",
                row=1,
            )
    if not best.recognises(columns):
        seen = ", ".join(name[:60] for name in columns[:SHOWN_COLUMNS])
        known = ", ".join(adapter.name for adapter in ADAPTERS[:SHOWN_FORMATS])
        what = wanted if wanted != AUTO else f"a bill that can be read ({known})"
        raise ChargesRefusedError(
            "format",
            f"the {len(columns)} columns ({seen}, …) are not those of {what}; is the file "
            "comma-separated, with the column names in its first row?",
            row=1,
        )
    return best

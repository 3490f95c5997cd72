"""Which texts the app shows: read from Python and templates with Babel, so no gettext is needed."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from django.utils.translation.template import templatize

ROOMS = (
    "costwatch",
    "reports",
    "planning",
    "billing",
    "carbon",
    "runs",
    "projects",
    "jobs",
    "audit",
    "ui",
)
KEYWORDS: dict[str, tuple[int, ...] | None] = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
}


def _sources(root: Path) -> Iterator[tuple[Path, bytes]]:
    """Every source that may hold texts, templates turned into something that Babel reads."""
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path, path.read_bytes()
    for path in sorted((root / "templates").rglob("*.html")):
        text = templatize(path.read_text(encoding="utf-8"), origin=str(path))
        yield path, text.encode()


def shown_texts(root: Path) -> Catalog:
    """A catalogue of every text with the places that show it.

    Args:
        root: the project's folder.
    """
    catalog = Catalog()
    for path, content in _sources(root):
        # What templatize leaves of a template is calls between noise: no Python, but JavaScript's
        # reader minds neither the noise nor the indentation.
        language = "javascript" if path.suffix == ".html" else "python"
        for line, message, _comments, _context in extract(
            language, BytesIO(content), keywords=KEYWORDS, options={"encoding": "utf-8"}
        ):
            flags = ["python-format"] if "%(" in str(message) or "%s" in str(message) else []
            catalog.add(message, locations=[(path.relative_to(root).as_posix(), line)], flags=flags)
    return catalog

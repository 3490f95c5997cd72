"""Finds plotly.min.js inside the plotly package, and nothing else of that package."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage, Storage

FILE_NAME: Final = "plotly.min.js"
STATIC_PATH: Final = f"plotly/{FILE_NAME}"


def plotly_folder() -> Path:
    """The folder of plotly's browser files, found without importing plotly."""
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("The plotly package is missing: install requirements.lock")
    return Path(spec.origin).parent / "package_data"


class PlotlyFinder(BaseFinder):
    """One file; the folder beside it holds 5 MB of widget bundle and data sets we never serve."""

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        if os.path.normpath(path) != os.path.normpath(STATIC_PATH):
            return []
        found = str(plotly_folder() / FILE_NAME)
        return [found] if find_all else found

    def list(self, ignore_patterns: Any) -> Iterator[tuple[str, Storage]]:
        storage = FileSystemStorage(location=plotly_folder())
        storage.prefix = "plotly"  # type: ignore[attr-defined]  # collectstatic reads it
        yield FILE_NAME, storage

"""Files that survive a crash: whole writes, renames into place, folders made durable."""

import json
import os
from pathlib import Path
from typing import Any


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte; the disk may take them in pieces."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def make_durable(folder: Path) -> None:
    """Let the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes, *, durable: bool) -> None:
    """Put a file in place of another, so that a reader finds the old or the new one, whole."""
    scratch = path.with_name(path.name + ".new")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        write_all(descriptor, data)
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    scratch.replace(path)
    if durable:
        make_durable(path.parent)


def read_document(path: Path) -> dict[str, Any]:
    """A JSON object from a file; empty where the file is missing or damaged."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}

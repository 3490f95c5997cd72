"""Where the lake keeps its files: folders, temporary files, durable moves; no engine."""

import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

GRACE_S = 3600.0


class LakeError(Exception):
    """The lake cannot do what it was asked; the message says why."""


def root() -> Path:
    """The lake's folder, made when it is missing.

    Raises:
        LakeError: LAKE_URL is not a folder.
    """
    url: str = settings.LAKE_URL
    if "://" in url:
        raise LakeError(f"LAKE_URL is {url!r}: only a folder is supported; give a path")
    path = Path(url)
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path.resolve()


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder of one's own on the lake's file system, gone afterwards."""
    path = root() / "tmp" / str(uuid.uuid4())
    path.mkdir(parents=True, mode=0o700)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def move_durably(source: Path, target: Path) -> None:
    """Rename a finished file into place so that a power cut leaves it whole or absent."""
    sync(source)
    missing = [folder for folder in (target.parent, *target.parent.parents) if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    source.replace(target)
    for folder in (target.parent, *(made.parent for made in missing)):
        sync(folder)


def sync(path: Path) -> None:
    """Write a file or folder through to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def older_than(path: Path, age_s: float) -> bool:
    """Whether nothing has touched the path for that long; False when it is gone."""
    try:
        return time.time() - path.stat().st_mtime >= age_s
    except FileNotFoundError:
        return False


def sweep_scratch(*, grace_s: float = GRACE_S) -> int:
    """Remove scratch folders that a killed process left behind; return how many."""
    stale = [path for path in (root() / "tmp").glob("*") if older_than(path, grace_s)]
    for path in stale:
        shutil.rmtree(path, ignore_errors=True)
    return len(stale)

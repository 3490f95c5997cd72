"""Where the lake keeps its files: folders, temporary files, durable moves; no engine, no bucket."""

import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from django.conf import settings

GRACE_S = 3600.0
BUCKET_SCHEME: Final = "s3://"
CACHE_MARK: Final = "cache-of"


class LakeError(Exception):
    """The lake cannot do what it was asked; the message says why."""


def is_remote() -> bool:
    """Whether the lake is a bucket, and its folder here only a cache."""
    return str(settings.LAKE_URL).startswith(BUCKET_SCHEME)


def root() -> Path:
    """The lake's folder on this machine, made when it is missing; for a bucket, that of the copies.

    Raises:
        LakeError: LAKE_URL is neither a folder nor a bucket; LAKE_CACHE_DIR holds something else.
    """
    url: str = settings.LAKE_URL
    if is_remote():
        return _cache_of(url.rstrip("/"))
    if "://" in url:
        raise LakeError(
            f"LAKE_URL is {url!r}: only a folder or s3://bucket/prefix is supported; give one"
        )
    path = Path(url)
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path.resolve()


def _cache_of(url: str) -> Path:
    """The cache folder; what lies in it may be removed, so it must never be anything else."""
    path = Path(settings.LAKE_CACHE_DIR)
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    mark = path / CACHE_MARK
    try:
        marked = mark.read_text(encoding="utf-8")
    except FileNotFoundError:
        if any(path.iterdir()) and not mark.exists():
            raise LakeError(
                f"LAKE_CACHE_DIR is {str(path)!r}, which holds other files: "
                "a cache is emptied when it is full, so give it an empty folder of its own"
            ) from None
        made = path.parent / f".{path.name}-{uuid.uuid4()}"
        made.write_text(url, encoding="utf-8")
        made.replace(mark)
        marked = url
    if marked != url:
        raise LakeError(
            f"LAKE_CACHE_DIR is {str(path)!r}, which holds copies of {marked}, not of {url}: "
            "give it an empty folder of its own"
        )
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

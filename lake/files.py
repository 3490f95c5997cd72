"""The lake's immutable files by their relative paths: in its folder, or in a bucket with copies
here that may be removed at any time. Knows no Parquet.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final
from uuid import uuid4

from django.conf import settings

from lake.places import (
    CACHE_MARK,
    GRACE_S,
    LakeError,
    is_remote,
    move_durably,
    older_than,
    root,
    scratch,
    sync,
)
from lake.remote import bucket

MEBIBYTE: Final = 2**20
FETCHED_AT_ONCE: Final = 8
LOWEST_FRACTION: Final = 0.9  # a full cache is emptied down to this share of its bound


def publish(made: Path, relative: str) -> None:
    """Put a finished scratch file in its place: in the bucket first, when there is one.

    Raises:
        LakeError: it did not reach the bucket; nothing is kept.
    """
    remote = bucket()
    if remote is not None:
        remote.upload(made, relative)
    move_durably(made, root() / relative)
    if remote is not None:
        make_room()


def touch(relative: str, *, size_bytes: int) -> bool:
    """Whether the file is there, and a sweep will spare it for a while."""
    path, remote = root() / relative, bucket()
    if remote is None:
        if not path.exists():
            return False
        os.utime(path)
        sync(path)
        return True
    found = remote.find(relative)
    # an object's time cannot be touched: one that a sweep could take soon is written again
    return (
        found is not None
        and found.size_bytes == size_bytes
        and not found.is_older_than(GRACE_S / 2)
    )


def local(relative: str) -> Path:
    """The file on this machine, fetched when it is only in the bucket.

    A copy may vanish while it is not open; `held` gives one that stays.

    Raises:
        LakeError: the bucket does not hold it, or what it holds is damaged.
    """
    path, remote = root() / relative, bucket()
    if remote is None:
        return path
    try:
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))  # when it was last wanted
    except FileNotFoundError:
        with scratch() as folder:
            remote.fetch(relative, folder / path.name)
            move_durably(folder / path.name, path)
        make_room(spare=path)
    return path


def held(relatives: Sequence[str], *, folder: Path) -> list[Path]:
    """The files on this machine; a copy gets a second name in `folder`, and stays while it has it.

    Raises:
        LakeError: the bucket lacks one, or holds it damaged.
    """
    if not is_remote():
        return [root() / relative for relative in relatives]
    with ThreadPoolExecutor(FETCHED_AT_ONCE) as pool:
        return list(pool.map(lambda relative: _held(relative, folder), relatives))


def _held(relative: str, folder: Path) -> Path:
    for _attempt in range(10):  # it may be removed between the look and the link
        path = local(relative)
        name = folder / f"{uuid4()}{path.suffix}"
        try:
            name.hardlink_to(path)
        except FileNotFoundError:
            continue
        return name
    raise LakeError(f"{relative} is removed as fast as it is fetched: raise LAKE_CACHE_MB")


def exists(relative: str) -> bool:
    """Whether the lake holds the file, wherever its copies are."""
    remote = bucket()
    if remote is None:
        return (root() / relative).exists()
    return remote.find(relative) is not None


def remove(relative: str) -> None:
    """Forget a file that nothing refers to any more, in the bucket and here."""
    remote = bucket()
    if remote is not None:
        remote.remove(relative)
    (root() / relative).unlink(missing_ok=True)


def sweep(folder: str, *, is_wanted: Callable[[str], bool], grace_s: float) -> int:
    """Remove what nobody wants and nobody touched lately, in the bucket and here; say how many."""
    base, remote = root(), bucket()
    stale = {
        str(path.relative_to(base))
        for path in (base / folder).rglob("*")
        if path.is_file()
        and not is_wanted(path.relative_to(base).as_posix())
        and older_than(path, grace_s)
    }
    if remote is not None:
        gone = {
            item.path
            for item in remote.listing(folder)
            if not is_wanted(item.path) and item.is_older_than(grace_s)
        }
        for relative in gone:
            remote.remove(relative)
        remote.abort_uploads(folder, age_s=grace_s)
        for relative in stale - gone:
            (base / relative).unlink(missing_ok=True)
        stale = gone
    for relative in stale:
        (base / relative).unlink(missing_ok=True)
    return len(stale)


def make_room(*, spare: Path | None = None) -> int:
    """Remove the copies that were longest unwanted, until the cache keeps to its bound.

    A copy in use has a second name (`held`) and stays. Return the bytes that were removed.
    """
    bound_bytes = settings.LAKE_CACHE_MB * MEBIBYTE
    copies = list(_copies())
    excess_bytes = sum(state.st_size for _path, state in copies) - bound_bytes
    if not is_remote() or excess_bytes <= 0:
        return 0
    wanted_bytes = excess_bytes + (1 - LOWEST_FRACTION) * bound_bytes
    removed_bytes = 0
    for path, state in sorted(copies, key=lambda copy: copy[1].st_atime_ns):
        if removed_bytes >= wanted_bytes:
            break
        if state.st_nlink > 1 or path == spare:
            continue
        path.unlink(missing_ok=True)
        removed_bytes += state.st_size
    return removed_bytes


def _copies() -> Iterator[tuple[Path, os.stat_result]]:
    """Every file of the cache but scratch, with its size, times and number of names."""
    base = root()
    for top in base.iterdir():
        if top.name in ("tmp", CACHE_MARK):
            continue
        for path in top.rglob("*"):
            try:
                state = path.stat()
            except FileNotFoundError:
                continue
            if path.is_file():
                yield path, state

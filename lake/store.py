"""Immutable versioned Parquet files under internal names, whatever they hold."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq

from lake.places import GRACE_S, LakeError, move_durably, older_than, root, scratch

_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
_RELATIVE = re.compile(r"[A-Za-z0-9-]+(/[A-Za-z0-9_-]+=[A-Za-z0-9-]+)+/[A-Za-z0-9-]+\.parquet")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTable:
    """One immutable Parquet file; `path` is relative to the lake's root."""

    path: str
    size_bytes: int


def store(
    *,
    dataset: str,
    partition: Mapping[str, str],
    version: UUID,
    write: Callable[[Path], None],
) -> StoredTable:
    """Let `write` make a Parquet file, then move it to its dataset, partition and version.

    The file is written aside, flushed to disk and renamed, so a reader sees it whole or not at all.
    """
    folders = [f"{key}={_checked(value)}" for key, value in partition.items()]
    relative = "/".join([_checked(dataset), *folders, f"version={version}", "part-0.parquet"])
    with scratch() as folder:
        made = folder / "part-0.parquet"
        write(made)
        size_bytes = made.stat().st_size
        move_durably(made, resolve(relative))
    return StoredTable(path=relative, size_bytes=size_bytes)


def resolve(relative: str) -> Path:
    """The file behind an internal path.

    Raises:
        LakeError: the text is no internal path: user names and patterns never reach the engine.
    """
    if not _RELATIVE.fullmatch(relative):
        raise LakeError("not a path of the lake")
    return root() / relative


def rows_of(relative: str, *, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of a stored file as plain Python values, without any engine; for checks."""
    with pq.ParquetFile(resolve(relative)) as file:
        for batch in file.iter_batches(batch_size=20_000, columns=list(columns)):
            yield from batch.to_pylist()


def remove(relative: str) -> None:
    """Forget a file that nothing refers to any more."""
    resolve(relative).unlink(missing_ok=True)


def sweep(dataset: str, *, keep: Collection[str], grace_s: float = GRACE_S) -> int:
    """Remove files that nothing refers to and nobody touched lately; return how many."""
    known, base = frozenset(keep), root()
    stale = [
        path
        for path in (base / _checked(dataset)).rglob("*.parquet")
        if path.relative_to(base).as_posix() not in known and older_than(path, grace_s)
    ]
    for path in stale:
        path.unlink(missing_ok=True)
    return len(stale)


def _checked(part: str) -> str:
    if not _PART.fullmatch(part):
        raise LakeError("a folder of the lake is named by letters, digits and hyphens")
    return part

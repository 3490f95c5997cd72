"""Immutable versioned Parquet files under internal names, whatever they hold."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq

from lake import files
from lake.places import GRACE_S, LakeError, scratch

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

    The file is written aside, sent to the bucket where the lake is one, flushed to disk and
    renamed, so a reader sees it whole or not at all.
    """
    folders = [f"{key}={_checked(value)}" for key, value in partition.items()]
    relative = "/".join([_checked(dataset), *folders, f"version={version}", "part-0.parquet"])
    with scratch() as folder:
        made = folder / "part-0.parquet"
        write(made)
        size_bytes = made.stat().st_size
        files.publish(made, relative)
    return StoredTable(path=relative, size_bytes=size_bytes)


def checked(relative: str) -> str:
    """The internal path, as given.

    Raises:
        LakeError: the text is no internal path: user names and patterns never reach the engine.
    """
    if not _RELATIVE.fullmatch(relative):
        raise LakeError("not a path of the lake")
    return relative


def resolve(relative: str) -> Path:
    """The file behind an internal path on this machine, fetched from the bucket where need be."""
    return files.local(checked(relative))


def exists(relative: str) -> bool:
    """Whether the lake still holds the file."""
    return files.exists(checked(relative))


def rows_of(relative: str, *, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of a stored file as plain Python values, without any engine; for checks.

    A column that an older file lacks is None.
    """
    with scratch() as folder:
        (path,) = files.held([checked(relative)], folder=folder)
        with pq.ParquetFile(path) as file:
            there = [name for name in columns if name in file.schema_arrow.names]
            lacking = dict.fromkeys(name for name in columns if name not in there)
            for batch in file.iter_batches(batch_size=20_000, columns=there):
                for row in batch.to_pylist():
                    yield lacking | row


def remove(relative: str) -> None:
    """Forget a file that nothing refers to any more."""
    files.remove(checked(relative))


def sweep(dataset: str, *, keep: Collection[str], grace_s: float = GRACE_S) -> int:
    """Remove files that nothing refers to and nobody touched lately; return how many."""
    known = frozenset(keep)
    return files.sweep(_checked(dataset), is_wanted=known.__contains__, grace_s=grace_s)


def _checked(part: str) -> str:
    if not _PART.fullmatch(part):
        raise LakeError("a folder of the lake is named by letters, digits and hyphens")
    return part

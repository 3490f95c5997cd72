"""Received bytes, stored once under their SHA-256, durable before anybody is told."""

import hashlib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from lake import files
from lake.places import GRACE_S, LakeError, root, scratch

SHELF = "blobs"
_SHA256 = re.compile(r"[0-9a-f]{64}")


class BlobTooLargeError(LakeError):
    """More bytes than allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Bytes as they came; `head` are the first few, for telling formats apart."""

    sha256: str
    size_bytes: int
    head: bytes


def receive(chunks: Iterable[bytes], *, max_bytes: int, shelf: str = SHELF) -> Blob:
    """Store the bytes and return their address; the same bytes again change nothing.

    Each room has a shelf of its own: what one room removes or sweeps, another may still want.

    Raises:
        BlobTooLargeError: there are more than `max_bytes`; nothing is kept.
    """
    digest, size_bytes, head = hashlib.sha256(), 0, b""
    with scratch() as folder:
        incoming = folder / "incoming"
        with incoming.open("wb") as file:
            for chunk in chunks:
                size_bytes += len(chunk)
                if size_bytes > max_bytes:
                    raise BlobTooLargeError(f"more than {max_bytes} bytes")
                if len(head) < 4096:
                    head = (head + chunk)[:4096]
                digest.update(chunk)
                file.write(chunk)
        sha256 = digest.hexdigest()
        relative = _relative(sha256, shelf)
        if not files.touch(relative, size_bytes=size_bytes):
            files.publish(incoming, relative)
    return Blob(sha256=sha256, size_bytes=size_bytes, head=head)


def path_of(sha256: str, *, shelf: str = SHELF) -> Path:
    """Where the bytes with this hash lie on this machine, or would lie; see `held`."""
    return root() / _relative(sha256, shelf)


def held(sha256: str, *, folder: Path, shelf: str = SHELF) -> Path:
    """The bytes as a local file that stays at least as long as the scratch `folder`.

    Raises:
        LakeError: the lake's bucket does not hold them any more.
    """
    return files.held([_relative(sha256, shelf)], folder=folder)[0]


def exists(sha256: str, *, shelf: str = SHELF) -> bool:
    """Whether the bytes are kept."""
    return files.exists(_relative(sha256, shelf))


def remove(sha256: str, *, shelf: str = SHELF) -> None:
    """Forget bytes that nothing refers to any more."""
    files.remove(_relative(sha256, shelf))


def sweep(*, keep: Collection[str], grace_s: float = GRACE_S, shelf: str = SHELF) -> int:
    """Remove bytes that nothing refers to and nobody touched lately; return how many."""
    known = frozenset(keep)
    return files.sweep(
        shelf,
        is_wanted=lambda relative: relative.rpartition("/")[2] in known,
        grace_s=grace_s,
    )


def _relative(sha256: str, shelf: str) -> str:
    if not _SHA256.fullmatch(sha256):
        raise LakeError("a blob is named by its SHA-256 in 64 small hexadecimal digits")
    return f"{shelf}/{sha256[:2]}/{sha256}"

"""Readings on disk that no batch holds yet: one append-only file, emptied when they are in one."""

import os
from pathlib import Path
from typing import Final

from costwatch_agent.files import make_durable, write_all
from costwatch_agent.framing import Damage, Record, frame, scan

TICK: Final = 1  # the kinds of record
DROPPED: Final = 3


class Journal:
    """The file. Not thread-safe: the spool holds the lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        is_new = not path.exists()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        if is_new:
            make_durable(path.parent)
        self.size = os.fstat(self._descriptor).st_size

    def recover(self) -> list[Record | Damage]:
        """What a former start of the agent left."""
        return list(scan(self.path.read_bytes()))

    def read(self, damage: Damage) -> bytes:
        """The bytes of a damaged stretch."""
        return os.pread(self._descriptor, damage.end - damage.start, damage.start)

    def append(self, kind: int, number: int, payload: bytes, *, rows: int) -> None:
        """Store a record; when this returns it survives a power cut. OSError: it is not stored."""
        data = frame(kind, number, payload, rows=rows)
        try:
            write_all(self._descriptor, data)
            os.fdatasync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, self.size)
            raise
        self.size += len(data)

    def clear(self) -> None:
        """Forget everything: it is in batches that are on the disk."""
        if self.size:
            os.ftruncate(self._descriptor, 0)
            self.size = 0

    def close(self) -> None:
        os.close(self._descriptor)

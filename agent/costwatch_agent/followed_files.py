"""Follows a text file that grows: through rotation, truncation and restarts, whole lines only."""

import hashlib
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from costwatch_agent.records import Document

log = logging.getLogger(__name__)
READ_BYTES: Final = 4 << 20
HEAD_BYTES: Final = 256  # by which a file is known again
MAX_LINE_BYTES: Final = 1 << 20  # what is longer is no line of a log


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """What one read found."""

    lines: list[str]
    is_live: bool  # written since the read before, not found when the file was opened
    at_end: bool  # nothing more is to be read now
    is_last: bool  # nothing follows but a line that is still being written
    modified_ms: int


class FollowedFile:
    """One path. A line counts once, with its end; what was rotated away is read out first."""

    def __init__(self, path: Path, state: Document | None = None) -> None:
        self.path = path
        self.inode = 0
        self.offset = 0
        self._head = ("", 0)  # digest and length of the file's beginning
        self._done: list[list[object]] = []  # inode and head of what was rotated away
        self._descriptor: int | None = None
        self._is_live = False
        self._skipping = False  # the rest of a line that is too long
        if state:
            self._restore(state)

    def state(self) -> Document:
        """Where reading stands, to keep."""
        digest, length = self._head
        return {
            "inode": self.inode,
            "offset": self.offset,
            "head": digest,
            "head_bytes": length,
            "done": self._done,
        }

    def holds(self, path: Path) -> bool:
        """Whether another path names this file, or what was rotated away of it."""
        try:
            inode = path.stat().st_ino
            if inode == self.inode and self._descriptor is not None:
                return True
            known = [entry for entry in self._done if entry[0] == inode]
            return any(_head_of(path, int(str(entry[2]))) == entry[1] for entry in known)
        except OSError:
            return False

    def _restore(self, state: Document) -> None:
        """Go on where a former start stopped: in this file, or in what it was renamed to."""
        self._head = (str(state.get("head", "")), int(state.get("head_bytes", 0)))
        self._done = list(state.get("done", []))
        for path in self._candidates(int(state.get("inode", 0))):
            if not self._open(path):
                continue
            if self._is_known_head():
                self.offset = int(state.get("offset", 0))
                return
            self._close()
        self._head = ("", 0)
        log.warning("%s: what was read before is gone; it is read from its beginning", self.path)

    def _candidates(self, inode: int) -> Iterator[Path]:
        """The path itself and its neighbours, where they have the number of the file."""
        neighbours = []
        try:
            neighbours = sorted(self.path.parent.iterdir())
        except OSError:
            return
        for path in [self.path, *neighbours]:
            try:
                if path.stat().st_ino == inode:
                    yield path
            except OSError:
                continue

    def _open(self, path: Path) -> bool:
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            log.debug("%s: %s", path, error.strerror)
            return False
        self.inode = os.fstat(self._descriptor).st_ino
        self.offset = 0
        return True

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def close(self) -> None:
        """Let go of the file."""
        self._close()

    def read(self) -> Lines | None:
        """The lines that were finished since the last read; None: there is no file."""
        if self._descriptor is None and not self._open(self.path):
            return None
        self._notice_truncation()
        descriptor = self._descriptor
        assert descriptor is not None  # noqa: S101 - opened above
        before = self.offset
        data = os.pread(descriptor, READ_BYTES, before)
        lines = self._whole_lines(data)
        if lines:
            self._remember_head()
        found = Lines(
            lines=lines,
            is_live=self._is_live,
            at_end=self.offset == before,
            is_last=len(data) < READ_BYTES,
            modified_ms=int(os.fstat(descriptor).st_mtime * 1000),
        )
        if found.at_end:
            self._is_live = True
            return self._turn(found)
        return found

    def _whole_lines(self, data: bytes) -> list[str]:
        end = data.rfind(b"\n") + 1
        if end == 0:
            if len(data) >= MAX_LINE_BYTES:
                self._skipping = True
                self.offset += len(data)
            return []
        self.offset += end
        lines = data[:end].decode("utf-8", "replace").split("\n")[:-1]
        if self._skipping:
            self._skipping = False
            lines = lines[1:]
        return lines

    def _turn(self, found: Lines) -> Lines:
        """Where the path names another file by now, take the rest of this one and go over to it."""
        try:
            is_same = self.path.stat().st_ino == self.inode
        except OSError:
            return found  # renamed, and nothing new yet
        if is_same or self._descriptor is None:
            return found
        rest = os.pread(self._descriptor, MAX_LINE_BYTES, self.offset)
        if b"\n" in rest:
            return found  # it grew at the last moment: read on first
        self._close()
        self._done = [*self._done[-7:], [self.inode, *self._head]]
        self._head = ("", 0)
        self._open(self.path)
        lines = [rest.decode("utf-8", "replace")] if rest and not self._skipping else []
        self._skipping = False
        return replace(found, lines=lines, at_end=False)

    def _notice_truncation(self) -> None:
        """A file that was emptied, and maybe filled again, is read from its beginning."""
        if self._descriptor is None or not self.offset:
            return
        if os.fstat(self._descriptor).st_size < self.offset or not self._is_known_head():
            log.info("%s was truncated; it is read from its beginning", self.path)
            self.offset = 0
            self._head = ("", 0)
            self._skipping = False

    def _remember_head(self) -> None:
        if self._head[1] >= HEAD_BYTES or self._descriptor is None:
            return
        data = os.pread(self._descriptor, min(HEAD_BYTES, self.offset), 0)
        self._head = (hashlib.sha256(data).hexdigest(), len(data))

    def _is_known_head(self) -> bool:
        digest, length = self._head
        if self._descriptor is None:
            return False
        data = os.pread(self._descriptor, length, 0)
        return not length or hashlib.sha256(data).hexdigest() == digest


def _head_of(path: Path, length: int) -> str:
    with path.open("rb") as file:
        return hashlib.sha256(file.read(length)).hexdigest()

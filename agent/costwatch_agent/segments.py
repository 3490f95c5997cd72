"""Batches on disk in the order of sending: append-only segment files and where sending stands."""

import logging
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from costwatch_agent.files import make_durable, write_all
from costwatch_agent.framing import Damage, Record, frame, scan

log = logging.getLogger(__name__)
BATCH: Final = 2  # the kind of record
SUFFIX: Final = ".seg"


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where the first batch lies that is not done."""

    segment: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A batch to send, and where the next one begins."""

    payload: bytes
    rows: int
    after: Position


class Segments:
    """The batches that wait. Not thread-safe: the spool holds the lock."""

    def __init__(
        self, folder: Path, *, segment_bytes: int, on_damage: Callable[[str, Damage, bytes], None]
    ) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._on_damage = on_damage
        self._sizes = {
            int(path.stem.partition("-")[2]): path.stat().st_size
            for path in folder.glob(f"batches-*{SUFFIX}")
        }
        self._next_number = max(self._sizes, default=0) + 1
        self._descriptor: int | None = None  # of the segment that is written to, the last one
        self._loaded: tuple[int, deque[Record | Damage]] | None = None
        self.head = Position(segment=0, offset=0)

    @property
    def total_bytes(self) -> int:
        """How much lies on the disk."""
        return sum(self._sizes.values())

    @property
    def waiting(self) -> bool:
        """Whether any batch is not done."""
        return any(
            size > (self.head.offset if number == self.head.segment else 0)
            for number, size in self._sizes.items()
            if number >= self.head.segment
        )

    def path(self, segment: int) -> Path:
        return self._folder / f"batches-{segment:08d}{SUFFIX}"

    def newest(self) -> list[Record]:
        """The batches of the newest two segments: those that the last cut can have made."""
        return [
            item
            for segment in sorted(self._sizes)[-2:]
            for item in scan(self.path(segment).read_bytes())
            if isinstance(item, Record)
        ]

    def append(self, number: int, payload: bytes, *, rows: int) -> None:
        """Store a batch; when this returns it survives a power cut. OSError: it is not stored."""
        data = frame(BATCH, number, payload, rows=rows)
        descriptor, segment = self._open_for(len(data))
        before = self._sizes[segment]
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        except OSError:
            self.rotate()  # what was half written stays behind, and is skipped as damage
            self._sizes[segment] = self.path(segment).stat().st_size
            raise
        self._sizes[segment] = before + len(data)
        if self._loaded is not None and self._loaded[0] == segment:
            self._loaded[1].extend(
                replace(item, start=item.start + before, end=item.end + before)
                for item in scan(data)
            )

    def _open_for(self, size: int) -> tuple[int, int]:
        if self._descriptor is not None:
            segment = max(self._sizes)
            if self._sizes[segment] + size <= self._segment_bytes or not self._sizes[segment]:
                return self._descriptor, segment
            self.rotate()
        segment = self._next_number
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._descriptor = os.open(self.path(segment), flags, 0o600)
        self._next_number += 1
        self._sizes[segment] = 0
        make_durable(self._folder)
        return self._descriptor, segment

    def rotate(self) -> None:
        """Write no more to the segment that is open."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def first(self) -> Entry | None:
        """The batch to send next; damage before it is reported and passed over."""
        while (items := self._load()) is not None:
            segment, found = items
            if not found:
                if segment == max(self._sizes) and self._descriptor is not None:
                    return None
                self.head = Position(segment=segment + 1, offset=0)
                continue
            item = found[0]
            after = Position(segment=segment, offset=item.end)
            if isinstance(item, Record):
                return Entry(payload=item.payload, rows=item.rows, after=after)
            found.popleft()
            self.head = after
            self._report(segment, item)
        return None

    def _load(self) -> tuple[int, deque[Record | Damage]] | None:
        """What is left of the first segment that is not done."""
        segments = sorted(number for number in self._sizes if number >= self.head.segment)
        if not segments:
            return None
        segment = segments[0]
        if segment != self.head.segment:
            self.head = Position(segment=segment, offset=0)
        if self._loaded is None or self._loaded[0] != segment:
            data = self.path(segment).read_bytes()
            self._loaded = (segment, deque(scan(data, self.head.offset)))
        return self._loaded

    def _report(self, segment: int, damage: Damage) -> None:
        path = self.path(segment)
        with path.open("rb") as file:
            file.seek(damage.start)
            data = file.read(damage.end - damage.start)
        self._on_damage(path.name, damage, data)

    def done(self, entry: Entry) -> None:
        """The batch was taken, or set aside: go on behind it."""
        if self._loaded is not None and self._loaded[0] == entry.after.segment:
            found = self._loaded[1]
            while found and found[0].end <= entry.after.offset:
                found.popleft()
        if (entry.after.segment, entry.after.offset) > (self.head.segment, self.head.offset):
            self.head = entry.after

    def tidy(self) -> None:
        """Remove the segments behind the head, which hold nothing that is still to be sent."""
        for segment in sorted(self._sizes):
            size = self._sizes[segment]
            finished = segment == self.head.segment and self.head.offset >= size
            is_open = self._descriptor is not None and segment == max(self._sizes)
            if segment < self.head.segment or (finished and not is_open):
                self.remove(segment)

    def oldest(self) -> tuple[int, int]:
        """The oldest segment and how many readings that are still to be sent lie in it."""
        segment = min(self._sizes)
        start = self.head.offset if segment == self.head.segment else 0
        found = scan(self.path(segment).read_bytes(), start)
        return segment, sum(item.rows or 0 for item in found)

    def remove(self, segment: int) -> None:
        """Delete a segment, whatever is in it; one that is gone already is no fault."""
        if self._descriptor is not None and segment == max(self._sizes):
            self.rotate()
        self._sizes.pop(segment, None)
        if self._loaded is not None and self._loaded[0] == segment:
            self._loaded = None
        self.path(segment).unlink(missing_ok=True)

    def __contains__(self, segment: int) -> bool:
        return segment in self._sizes

    def __len__(self) -> int:
        return len(self._sizes)

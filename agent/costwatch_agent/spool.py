"""What was read and is not yet taken by the server, safe on disk; nothing is sent here.

A reading is appended to the journal and made durable. From time to time the journal is cut into
batches, whose bytes never change again; a batch leaves when the server took it. After a crash the
journal is cut into batches of the new start, and batches of the former one are sent as they are.
"""

import fcntl
import json
import logging
import os
import threading
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Protocol

from costwatch_agent.aside import SetAside
from costwatch_agent.files import read_document, replace_file
from costwatch_agent.framing import Damage, Record
from costwatch_agent.journal import DROPPED, TICK, Journal
from costwatch_agent.records import Document
from costwatch_agent.segments import Entry, Position, Segments

log = logging.getLogger(__name__)
MAX_SEGMENT_BYTES: Final = 256 * 1024
MAX_TICKS_IN_MEMORY: Final = 360  # while the disk takes nothing: an hour, every 10 s


class SpoolInUseError(Exception):
    """Another agent holds the folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What a batch is made of."""

    ticks: tuple[Document, ...]
    boot: str
    sequence: int
    dropped: int


class Builder(Protocol):
    """How ticks become the bytes of a batch."""

    def lengths(self, ticks: list[Document]) -> list[int]:
        """How many of them, in order, go together into each batch."""

    def body(self, cut: Cut) -> bytes:
        """The bytes to send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A batch to send, as it lies on the disk."""

    boot: str
    sequence: int
    rows: int
    body: bytes
    entry: Entry


@dataclass(slots=True, kw_only=True)
class Tally:
    """What the spool had to do since the start, for the endpoint."""

    dropped: int = 0
    damaged: int = 0
    set_aside: int = 0
    disk_errors: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tick:
    number: int
    rows: int
    document: Document


class Spool:
    """The folder. Every method may be called from any thread."""

    def __init__(self, folder: Path, *, max_bytes: int, builder: Builder) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = folder
        self.boot = str(uuid.uuid4())
        self.tally = Tally()
        self._max_bytes = max_bytes
        self._builder = builder
        self._lock = threading.RLock()
        self.arrived = threading.Condition(self._lock)  # a batch waits
        self._held = self._hold()
        self._sequence = 0
        self._number = 0  # of the last tick
        self._dropped = 0  # readings, since the last cut
        self._ticks: list[_Tick] = []
        self._in_journal: set[int] = set()  # what a former start left there
        self._aside = SetAside(folder / "set-aside")
        self._segments = Segments(
            folder,
            segment_bytes=max(min(MAX_SEGMENT_BYTES, max_bytes // 8), 4096),
            on_damage=self._batch_damaged,
        )
        self._state = folder / "state.json"
        self._restore_head()
        self._journal = Journal(folder / "journal")
        self._recover()

    def _hold(self) -> int:
        held = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(held)
            raise SpoolInUseError(str(self.folder)) from error
        return held

    def _restore_head(self) -> None:
        """Go on where sending stood; without the note everything is sent again, which is safe."""
        head = read_document(self._state).get("head")
        if isinstance(head, dict):
            segment, offset = head.get("segment"), head.get("offset")
            if isinstance(segment, int) and isinstance(offset, int):
                self._segments.head = Position(segment=segment, offset=offset)

    def _recover(self) -> None:
        """Take up what a former start read and did not bring into a batch."""
        covered: set[int] = set()
        for batch in self._segments.newest():
            envelope = json.loads(batch.payload.partition(b"\n")[0])
            covered.update(range(envelope["first"], envelope["last"] + 1))
        found = self._journal.recover()
        self._in_journal = {item.number for item in found if isinstance(item, Record)}
        self._number = max(covered | self._in_journal, default=0)
        for item in found:
            if isinstance(item, Damage):
                self._report_damage(self._journal.path.name, item, self._journal.read(item))
            elif item.number not in covered:  # else the crash came before the journal was emptied
                self._take_up(item)

    def _take_up(self, record: Record) -> None:
        document = json.loads(record.payload)
        if record.kind == TICK:
            tick = _Tick(number=record.number, rows=record.rows, document=document)
            self._ticks.append(tick)
        elif record.kind == DROPPED:
            self._dropped += record.rows
            self._segments.remove(document["segment"])

    # --- readings in

    def add(self, document: Document, *, rows: int) -> bool:
        """Keep what was read; False: the disk does not take it, so it is kept in memory alone."""
        payload = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
        with self._lock:
            self._number += 1
            self._ticks.append(_Tick(number=self._number, rows=rows, document=document))
            try:
                self._journal.append(TICK, self._number, payload, rows=rows)
            except OSError as error:
                self._disk_fails(error)
                while len(self._ticks) > MAX_TICKS_IN_MEMORY:
                    self._drop(self._ticks.pop(0).rows)
                return False
        return True

    def _disk_fails(self, error: OSError) -> None:
        self.tally.disk_errors += 1
        log.error("the spool cannot be written: %s; readings wait in memory", error.strerror)

    def _drop(self, rows: int) -> None:
        self._dropped += rows
        self.tally.dropped += rows

    # --- readings into batches

    def cut(self) -> int:
        """Make batches of all that was read; the number of them. They are durable on return."""
        made = 0
        with self._lock:
            self._make_room(max(self._journal.size, 4096))
            lengths = self._builder.lengths([tick.document for tick in self._ticks])
            if not lengths and self._dropped:
                lengths = [0]  # nothing was read, but a loss is to be told
            for left in range(len(lengths), 0, -1):
                ticks = self._ticks[: lengths[-left]]
                if not self._store_batch(ticks, is_last=left == 1):
                    break
                self._ticks = self._ticks[len(ticks) :]
                made += 1
            if made == len(lengths):
                self._journal.clear()
            if made:
                self.arrived.notify_all()
        return made

    def _store_batch(self, ticks: list[_Tick], *, is_last: bool) -> bool:
        """Make one batch durable. The last of a cut tells what was dropped."""
        self._sequence += 1
        dropped = self._dropped if is_last else 0
        rows = sum(tick.rows for tick in ticks)
        last = self._number if is_last else ticks[-1].number
        envelope = {
            "boot": self.boot,
            "sequence": self._sequence,
            "rows": rows,
            "first": ticks[0].number if ticks else self._number,
            "last": last,
        }
        cut = Cut(
            ticks=tuple(tick.document for tick in ticks),
            boot=self.boot,
            sequence=self._sequence,
            dropped=dropped,
        )
        payload = json.dumps(envelope).encode() + b"\n" + self._builder.body(cut)
        try:
            self._segments.append(last, payload, rows=rows + dropped)
        except OSError as error:
            self._disk_fails(error)
            return False
        self._dropped -= dropped
        return True

    def _make_room(self, size: int) -> None:
        """Drop the oldest batches where the spool would grow over its bound; count what is lost."""
        while len(self._segments) and self.total_bytes + size > self._max_bytes:
            segment, rows = self._segments.oldest()
            if rows:
                self._note_drop(segment, rows)
                log.error("the spool is full: %d of the oldest readings were dropped", rows)
            self._segments.remove(segment)

    def _note_drop(self, segment: int, rows: int) -> None:
        """Count before deleting: a crash between the two deletes again and counts once."""
        self._number += 1
        payload = json.dumps({"segment": segment}).encode()
        try:
            self._journal.append(DROPPED, self._number, payload, rows=rows)
        except OSError as error:
            self._disk_fails(error)
        self._drop(rows)

    # --- batches out

    def first(self) -> Waiting | None:
        """The batch to send next."""
        with self._lock:
            entry = self._segments.first()
        if entry is None:
            return None
        line, _, body = entry.payload.partition(b"\n")
        envelope = json.loads(line)
        return Waiting(
            boot=envelope["boot"],
            sequence=envelope["sequence"],
            rows=envelope["rows"],
            body=body,
            entry=entry,
        )

    def done(self, waiting: Waiting) -> None:
        """The server took it: forget it."""
        with self._lock:
            self._segments.done(waiting.entry)
            state = {"head": asdict(self._segments.head)}
            try:
                replace_file(self._state, json.dumps(state).encode(), durable=False)
                self._segments.tidy()
            except OSError as error:  # it will be sent again, which adds nothing
                self._disk_fails(error)

    def set_aside(self, waiting: Waiting, *, status: int, reason: str) -> None:
        """The server will never take it: keep it beside the queue with the reason, and go on."""
        name = f"{waiting.boot}-{waiting.sequence}.{status}"
        with self._lock:
            self.tally.set_aside += 1
            self._keep(f"{name}.json.gz", waiting.body)
            self._keep(f"{name}.txt", reason.encode())
            self.done(waiting)

    def _keep(self, name: str, data: bytes) -> None:
        try:
            self._aside.keep(name, data)
        except OSError as error:
            self._disk_fails(error)

    def _batch_damaged(self, name: str, damage: Damage, data: bytes) -> None:
        unfinished = damage.number in self._in_journal or (
            damage.number is None and bool(self._in_journal)
        )
        if damage.torn and unfinished:
            log.info("%s: a batch was not finished; its readings were kept and are sent", name)
        else:
            self._report_damage(name, damage, data)

    def _report_damage(self, name: str, damage: Damage, data: bytes) -> None:
        """Say what cannot be read, keep its bytes, count it as dropped; the rest goes on."""
        lost = 1 if damage.rows is None else damage.rows
        log.error(
            "%s: bytes %d to %d of the spool are damaged, %s reading(s) lost; the rest is sent",
            name,
            damage.start,
            damage.end,
            "an unknown number (counted as 1) of" if damage.rows is None else lost,
        )
        self.tally.damaged += 1
        self._drop(lost)
        self._keep(f"damaged-{name}-{damage.start}.bin", data)

    # --- how it stands

    @property
    def total_bytes(self) -> int:
        """How much lies on the disk."""
        return self._segments.total_bytes + self._journal.size

    @property
    def waiting(self) -> bool:
        """Whether a batch is still to be sent."""
        with self._lock:
            return self._segments.waiting

    def close(self) -> None:
        """Let go of the folder."""
        with self._lock:
            self._segments.rotate()
            self._journal.close()
            os.close(self._held)

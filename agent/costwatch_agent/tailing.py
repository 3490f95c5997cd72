"""Tails the logs of one run: lines in, points and events into the spool, batches to the server."""

import glob
import json
import logging
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from costwatch_agent.files import read_document, replace_file
from costwatch_agent.followed_logs import FollowedLog
from costwatch_agent.log_profiles import Profile
from costwatch_agent.log_reading import Item, Told
from costwatch_agent.progress import Point, ProgressBuilder, document_of
from costwatch_agent.records import Document
from costwatch_agent.sender import Answer, Sender
from costwatch_agent.spool import Spool

log = logging.getLogger(__name__)
RUN: Final = re.compile(r"[a-zA-Z0-9_-]{1,100}/[a-zA-Z0-9_-]{1,99}")  # as addresses hold them
POLL_S: Final = 1.0
LOOK_S: Final = 10.0  # between two looks for files that a pattern names
FORGET_S: Final = 600.0  # a file that is gone may come back: rotation takes a moment
COMPRESSED: Final = (".gz", ".xz", ".bz2", ".zst")
LAST_SEND_S: Final = 5.0
ONCE_TRIES: Final = 4
ONCE_S: Final = 20.0
DOCUMENT_ROWS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class TailJob:
    """Which logs are whose."""

    run: str  # project/run
    patterns: tuple[str, ...]
    profiles: tuple[Profile, ...]  # one, or those to choose from
    told: Told
    name: str
    spool: Path
    spool_max_bytes: int
    send_every_s: float

    @property
    def folder(self) -> Path:
        """A run has a folder of its own, so that no batch goes to another's."""
        return self.spool / self.run.replace("/", "--")


def files_named(patterns: Sequence[str]) -> list[str]:
    """The files that patterns name, and the names that are none, whether they exist or not."""
    found: list[str] = []
    for pattern in patterns:
        if glob.has_magic(pattern):
            found += sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - may be absolute
        else:
            found.append(pattern)
    return [name for name in dict.fromkeys(found) if not name.endswith(COMPRESSED)]


def path_of(run: str) -> str:
    """The door of a run's progress."""
    project, _, name = run.partition("/")
    return f"/api/v1/runs/{project}/{name}/progress"


def telling_refusals(post: Callable[[bytes], Answer], run: str) -> Callable[[bytes], Answer]:
    """Post, and say which records the server took the others without."""

    def posted(body: bytes) -> Answer:
        answer = post(body)
        if 200 <= answer.status < 300:
            refused = _refused(answer.text)
            if refused:
                log.error("%s: the server refused %d record(s): %s", run, len(refused), refused[0])
        return answer

    return posted


def _refused(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError:
        return []
    refused = found.get("refused") if isinstance(found, dict) else None
    return [json.dumps(entry)[:300] for entry in refused] if isinstance(refused, list) else []


class Tail:
    """The logs of one run."""

    def __init__(self, job: TailJob, post: Callable[[bytes], Answer]) -> None:
        """OSError, SpoolInUseError: the spool cannot be had."""
        self._job = job
        builder = ProgressBuilder(source=f"agent-tail:{job.name}")
        self._spool = Spool(job.folder, max_bytes=job.spool_max_bytes, builder=builder)
        self._sender = Sender(self._spool, telling_refusals(post, job.run))
        self._state = job.folder / "tail.json"
        self._remembered: Document = read_document(self._state).get("files", {})
        self._followed: dict[str, FollowedLog] = {}
        self._gone_s: dict[str, float] = {}  # since when a path names nothing
        self._looked_s: float | None = None
        self.stopping = threading.Event()
        self.rows = 0  # points and events found since the start

    # --- files

    def _look(self) -> None:
        """Begin to follow what the patterns name; forget what has long been gone."""
        now_s = time.monotonic()
        if self._looked_s is not None and now_s - self._looked_s < LOOK_S:
            return
        self._looked_s = now_s
        named = files_named(self._job.patterns)
        for name in sorted(named, key=lambda name: name not in self._remembered):
            if name not in self._followed and not self._is_followed(name):
                job, known = self._job, self._remembered.get(name)
                self._followed[name] = FollowedLog(Path(name), job.profiles, job.told, known)
        for name, followed in list(self._followed.items()):
            if Path(name).exists():
                self._gone_s.pop(name, None)
            elif now_s - self._gone_s.setdefault(name, now_s) > FORGET_S:
                followed.file.close()
                del self._followed[name]

    def _is_followed(self, name: str) -> bool:
        """Whether a pattern found a file that was only renamed."""
        path = Path(name)
        return any(followed.file.holds(path) for followed in self._followed.values())

    # --- lines

    def poll(self) -> int:
        """Read what was written since the last time and keep it; how many points and events."""
        self._look()
        items: list[Item] = []
        lines = 0
        for followed in self._followed.values():
            before, is_more = followed.lines, True
            while is_more and len(items) <= DOCUMENT_ROWS:  # the rest with the next poll
                found, is_more = followed.read()
                items += found
            lines += followed.lines - before
        if self._keep(items) and lines:
            self._remember()
        self.rows += len(items)
        return len(items)

    def _keep(self, items: Sequence[Item]) -> bool:
        """Make what was found durable; False: the disk does not take it."""
        durable = True
        for start in range(0, len(items), DOCUMENT_ROWS):
            part = items[start : start + DOCUMENT_ROWS]
            document: Document = {
                "records": [document_of(item) for item in part if isinstance(item, Point)],
                "events": [document_of(item) for item in part if not isinstance(item, Point)],
            }
            durable = self._spool.add(document, rows=len(part)) and durable
        return durable

    def _remember(self) -> None:
        """Note where reading stands, once what was read is safe. Read twice, it counts once."""
        for name, followed in self._followed.items():
            if (state := followed.state()) is not None:
                self._remembered[name] = state
        for name in set(self._remembered) - set(self._followed):
            if not Path(name).exists():
                del self._remembered[name]
        text = json.dumps({"files": self._remembered})
        try:
            replace_file(self._state, text.encode(), durable=False)
        except OSError as error:
            log.error("%s cannot be written: %s", self._state, error.strerror)

    # --- the beat

    def run(self) -> None:
        """Follow until told to stop."""
        self._spool.cut()  # what a former start left
        sending = threading.Thread(target=self._sender.run, name="tail-sender", daemon=True)
        sending.start()
        next_cut_s = time.monotonic() + self._job.send_every_s
        while not self.stopping.is_set():
            found = self.poll()
            if time.monotonic() >= next_cut_s:
                self._spool.cut()
                next_cut_s = time.monotonic() + self._job.send_every_s
            self.stopping.wait(0.0 if found > DOCUMENT_ROWS else POLL_S)
        self.poll()
        self._spool.cut()
        deadline = time.monotonic() + LAST_SEND_S
        while self._spool.waiting and sending.is_alive() and time.monotonic() < deadline:
            time.sleep(0.02)
        self._sender.stop()
        self.close()

    def once(self) -> bool:
        """Read everything there is and send it; False: it waits in the spool."""
        while self.poll():
            self._spool.cut()
        self._spool.cut()
        arrived = self._sender.empty(tries=ONCE_TRIES, until=time.monotonic() + ONCE_S)
        self.close()
        return arrived

    def close(self) -> None:
        """Let go of the files and the spool."""
        for followed in self._followed.values():
            followed.file.close()
        self._spool.close()

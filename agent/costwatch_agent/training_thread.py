"""The thread behind a training script's `start`: takes from its queue, spools, sends."""

import logging
import os
import re
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult

from costwatch_agent.progress import Event, Point, ProgressBuilder, document_of
from costwatch_agent.sender import AddressError, Door, Sender, address
from costwatch_agent.spool import Spool, SpoolInUseError
from costwatch_agent.tailing import RUN, path_of, telling_refusals

log = logging.getLogger(__name__)
Item = Point | Event
BEAT_S: Final = 0.5
SEND_EVERY_S: Final = 5.0
MAX_SPOOL_BYTES: Final = 64 << 20


class SettingsError(ValueError):
    """What is missing to tell anything; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where progress goes."""

    run: str
    server: SplitResult
    token: Path | str
    ca_file: Path | None
    spool: Path


def settings_of(run: str | None) -> Settings:
    """From the environment. SettingsError: something is missing."""
    environ = os.environ
    run = run or environ.get("COSTWATCH_RUN", "")
    if "/" not in run and environ.get("COSTWATCH_PROJECT"):
        run = f"{environ['COSTWATCH_PROJECT']}/{run}"
    if not RUN.fullmatch(run):
        raise SettingsError(f"{run!r} names no run: write project/run, or set COSTWATCH_RUN")
    url = environ.get("COSTWATCH_URL", "")
    if not url:
        raise SettingsError("set COSTWATCH_URL to the server's address")
    token: Path | str = environ.get("COSTWATCH_TOKEN", "")
    if not token:
        token = Path(environ.get("COSTWATCH_TOKEN_FILE", ""))
        if not os.access(token, os.R_OK) or token.is_dir():
            raise SettingsError("set COSTWATCH_TOKEN, or COSTWATCH_TOKEN_FILE to a readable file")
    allow = environ.get("COSTWATCH_ALLOW_PLAIN_HTTP", "") == "1"
    try:
        server = address(url, allow_plain_http=allow)
    except AddressError as error:
        raise SettingsError(str(error)) from error
    ca_file = environ.get("COSTWATCH_CA_FILE")
    spool = environ.get("COSTWATCH_SPOOL") or f"{tempfile.gettempdir()}/costwatch-{os.getuid()}"
    return Settings(
        run=run,
        server=server,
        token=token,
        ca_file=Path(ca_file) if ca_file else None,
        spool=Path(spool),
    )


class Worker:
    """Empties the queue into a spool, and the spool into the server."""

    def __init__(self, settings: Settings, queue: deque[Callable[[], Item]]) -> None:
        self._queue = queue
        self.has_complained = False
        self._stopping = threading.Event()
        host = re.sub(r"[^\w.-]", "-", os.uname().nodename)
        self._spool = _spool(settings, ProgressBuilder(source=f"training:{host}"))
        door = Door(
            settings.server,
            settings.token,
            ca_file=settings.ca_file,
            path=path_of(settings.run),
        )
        self._sender = Sender(self._spool, telling_refusals(door.post, settings.run))
        self._thread = threading.Thread(target=self._run, name="costwatch", daemon=True)
        self._sending = threading.Thread(
            target=self._sender.run, name="costwatch-sender", daemon=True
        )
        self._thread.start()
        self._sending.start()

    def _run(self) -> None:
        is_last = False
        next_cut_s = 0.0  # at once: what a former start left
        while not is_last:
            is_last = self._stopping.wait(BEAT_S)
            try:
                self._take()
                if is_last or time.monotonic() >= next_cut_s:
                    self._spool.cut()
                    next_cut_s = time.monotonic() + SEND_EVERY_S
            except Exception as error:  # noqa: BLE001 - the thread's outermost line
                self._complain(error)

    def _take(self) -> None:
        """Make durable what waits. A value that cannot be read costs its own record alone."""
        items: list[Item] = []
        for _ in range(len(self._queue)):
            try:
                items.append(self._queue.popleft()())
            except Exception as error:  # noqa: BLE001 - the script's own objects may raise anything
                self._complain(error)
        if items:
            self._spool.add(
                {
                    "records": [document_of(item) for item in items if isinstance(item, Point)],
                    "events": [document_of(item) for item in items if isinstance(item, Event)],
                },
                rows=len(items),
            )

    def _complain(self, error: Exception) -> None:
        if not self.has_complained:
            self.has_complained = True
            log.warning("costwatch: %s: %s; training goes on", type(error).__name__, error)

    def finish(self, timeout_s: float) -> None:
        """Bring the rest; what is not taken in time waits in the spool for the next start."""
        until_s = time.monotonic() + timeout_s
        self._stopping.set()
        self._thread.join(timeout_s)
        while self._spool.waiting and time.monotonic() < until_s:
            time.sleep(0.01)
        self._sender.stop()
        if not self._spool.waiting and not self._thread.is_alive():
            self._spool.close()


def _spool(settings: Settings, builder: ProgressBuilder) -> Spool:
    """The run's folder; where another process has it, one of its own."""
    folder = settings.spool / settings.run.replace("/", "--")
    try:
        return Spool(folder, max_bytes=MAX_SPOOL_BYTES, builder=builder)
    except SpoolInUseError:
        own = Path(tempfile.mkdtemp(prefix="costwatch-"))
        return Spool(own, max_bytes=MAX_SPOOL_BYTES, builder=builder)

"""Starts confined children that are loaded already, in place of new interpreters."""

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from lake.child_process import PROJECT_ROOT
from tests.warm_child import PID_BYTES

_one_asks = threading.Lock()


class WarmChild:
    """What `lake.child_process` asks of a Popen."""

    def __init__(self, asking: socket.socket) -> None:
        requests, own_requests = os.pipe()
        own_answers, answers = os.pipe()
        with _one_asks:
            socket.send_fds(asking, [b"x"], [requests, answers])
            pid = int.from_bytes(asking.recv(PID_BYTES), "big")
        os.close(requests)
        os.close(answers)
        self.stdin = os.fdopen(own_requests, "w", encoding="utf-8")
        self.stdout = os.fdopen(own_answers, encoding="utf-8")
        self._process: int | None = None
        with suppress(ProcessLookupError):  # it is over already
            self._process = os.pidfd_open(pid)

    def kill(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, signal.SIGKILL)

    def wait(self) -> None:
        if self._process is not None:
            select.select([self._process], [], [])
            os.close(self._process)
            self._process = None


@contextmanager
def warm_children() -> Iterator[socket.socket]:
    """The process to fork from, by the socket that asks it; it ends with this one."""
    ours, theirs = socket.socketpair()
    with ours:
        process = subprocess.Popen(
            [sys.executable, "-E", "-s", "-m", "tests.warm_child", str(theirs.fileno())],
            cwd=PROJECT_ROOT,
            env={"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        try:
            yield ours
        finally:
            process.kill()
            process.wait()

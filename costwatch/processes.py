"""Child processes and signals: who dies with whom. Knows neither servers nor Django."""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
STOP_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
POLL_S = 0.01
LOOK_EVERY_S = 0.5
LEFTOVER_GRACE_S = 3.0
SERVER_ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}

_libc = ctypes.CDLL(None, use_errno=True)


class LauncherError(Exception):
    """Something a person must mend; the message is the one line they read."""


class StoppedError(Exception):
    """A stop signal arrived before the command was started."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The user whom the servers run as; None for the caller's own."""

    uid: int
    gid: int


def stop_signals() -> frozenset[signal.Signals]:
    """The signals that stop us; not SIGHUP for whoever started us with nohup."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return STOP_SIGNALS - {signal.SIGHUP}
    return STOP_SIGNALS


def block_stop_signals() -> None:
    """Signals wait in the queue until asked for, so no `finally` is ever interrupted half-way."""
    signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals() | {signal.SIGCHLD})


class Terminal:
    """The terminal we are in the foreground of, if any.

    When it goes, the kernel tells the session's first process only. A shell passes that on, but
    `ssh -t HOST make run` has no shell, and make does not.
    """

    def __init__(self) -> None:
        self._file: int | None = None
        self._in_foreground = False
        with suppress(OSError):
            self._file = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)

    def has_gone(self) -> bool:
        """True once, when the terminal went while we were in its foreground."""
        if self._file is None:
            return False
        try:
            self._in_foreground = os.tcgetpgrp(self._file) == os.getpgrp()
        except OSError:
            os.close(self._file)
            self._file = None
            return self._in_foreground
        return False


def adopt_orphans() -> None:
    """Become the parent of whatever a descendant leaves running, whatever session it is in."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(signal_number: int, parent_pid: int) -> None:
    """Ask the kernel for `signal_number` on the parent's death, which may have happened already."""
    _libc.prctl(PR_SET_PDEATHSIG, int(signal_number), 0, 0, 0)
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal_number)


def raise_if_stopped() -> None:
    if (info := signal.sigtimedwait(stop_signals(), 0)) is not None:
        raise StoppedError(info.si_signo)


def _set_up_child(death_signal: int) -> Callable[[], None]:
    parent_pid = os.getpid()

    def in_child() -> None:  # runs after the change of user, which would clear the request
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        die_with_parent(death_signal, parent_pid)

    return in_child


def start_command(command: Sequence[str], *, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the person's command; it is asked to stop when this process ends in any way."""
    return subprocess.Popen(command, env=dict(env), preexec_fn=_set_up_child(signal.SIGTERM))


def start_piped(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a child in a session of its own, with all it says on one pipe."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=_set_up_child(signal.SIGTERM),
    )


def start_server(
    command: Sequence[str | Path],
    *,
    owner: Owner | None,
    log: BufferedWriter,
    death_signal: int = signal.SIGTERM,
) -> subprocess.Popen[bytes]:
    """Start a child out of the terminal's reach; it gets `death_signal` when this process ends."""
    return subprocess.Popen(
        command,
        env=SERVER_ENV,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=_set_up_child(death_signal),
        cwd="/",
        user=owner.uid if owner else None,
        group=owner.gid if owner else None,
        extra_groups=[] if owner else None,
    )


def wait_until(
    ready: Callable[[], bool], *, process: subprocess.Popen[bytes], timeout_s: float
) -> bool:
    """True when `ready`, False when the process ended or the time is over."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        raise_if_stopped()
        if ready():
            return True
        if process.poll() is not None:
            return False
        time.sleep(POLL_S)
    return False


def stop(process: subprocess.Popen[bytes], *, signal_number: int, timeout_s: float) -> None:
    if process.poll() is None:
        process.send_signal(signal_number)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def descendants(root_pid: int, *, except_below: Iterable[int] = ()) -> list[int]:
    """Living process ids below `root_pid`, leaving out the given ones and all below them."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, parent = (
                (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            )
        except OSError:
            continue  # it ended while we looked
        if state != "Z":
            children.setdefault(int(parent), []).append(int(entry.name))
    spared, found, to_visit = set(except_below), [], [root_pid]
    while to_visit:
        for pid in children.get(to_visit.pop(), []):
            if pid not in spared:
                found.append(pid)
                to_visit.append(pid)
    return found


def end_descendants(*, except_below: Iterable[int] = ()) -> None:
    """End whatever is still below this process: politely, then not. Needs `adopt_orphans`."""
    spared = set(except_below)
    for signal_number, grace_s in (
        (signal.SIGTERM, LEFTOVER_GRACE_S),
        (signal.SIGKILL, LEFTOVER_GRACE_S),
    ):
        deadline, told = time.monotonic() + grace_s, set[int]()
        while left := descendants(os.getpid(), except_below=spared):
            for pid in set(left) - told:
                _send(pid, signal_number)
            told.update(left)
            if time.monotonic() > deadline:
                break
            time.sleep(POLL_S)
        if not left:
            return


def _send(pid: int, signal_number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How to wait for a command.

    A command that ignores SIGTERM, SIGHUP or SIGQUIT for `kill_after_s` is killed; what it does on
    SIGINT is its own affair. `check` is called now and then and raises when waiting is pointless.
    """

    kill_after_s: float | None = None
    on_stop: Callable[[], None] = lambda: None
    check: Callable[[], None] = lambda: None


def wait_forwarding(pid: int, how: Waiting) -> int:
    """Wait for the child `pid` and pass stop signals on; its exit status, 128 + n for a signal.

    A signal from the terminal reached the child already (same process group), only one from `kill`
    is passed on.
    """
    deadline: float | None = None
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        how.check()
        _bury_adopted(pid)
        if deadline is not None and time.monotonic() > deadline:
            _send(pid, signal.SIGKILL)
        info = signal.sigtimedwait(stop_signals() | {signal.SIGCHLD}, LOOK_EVERY_S)
        if info is None or info.si_signo == signal.SIGCHLD:
            continue
        how.on_stop()
        if info.si_code <= 0:
            _send(pid, info.si_signo)
        if how.kill_after_s is not None and info.si_signo != signal.SIGINT and deadline is None:
            deadline = time.monotonic() + how.kill_after_s


def _bury_adopted(awaited_pid: int) -> None:
    """Collect ended orphans, of which a run of weeks may adopt many."""
    while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
        if ended.si_pid == awaited_pid:
            return
        with suppress(ChildProcessError):
            os.waitpid(ended.si_pid, os.WNOHANG)

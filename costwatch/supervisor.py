"""Runs several long-lived processes as one: all up or all down, their lines prefixed. No Django."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from costwatch import processes

STOP_GRACE_S = 15.0
LOOK_EVERY_S = 0.2
LAST_LINES_S = 2.0


def supervise(
    commands: Mapping[str, Sequence[str]], *, is_ready: Callable[[], bool], when_ready: str
) -> int:
    """Run until a stop signal (exit status 0) or until one of them ends (1); leave none behind."""
    processes.block_stop_signals()
    processes.adopt_orphans()
    width = max(len(name) for name in commands)
    children: dict[str, subprocess.Popen[bytes]] = {}
    pumps: list[threading.Thread] = []
    try:
        for name, command in commands.items():
            children[name] = processes.start_piped(command)
            pumps.append(_pass_lines_on(children[name], prefix=f"{name:<{width}} | "))
        return _watch(children, is_ready=is_ready, when_ready=when_ready)
    finally:
        _stop_all(children)
        processes.end_descendants()
        for pump in pumps:  # their last lines are often the ones that matter
            pump.join(LAST_LINES_S)


def _watch(
    children: Mapping[str, subprocess.Popen[bytes]],
    *,
    is_ready: Callable[[], bool],
    when_ready: str,
) -> int:
    announced = False
    while True:
        if signal.sigtimedwait(processes.stop_signals(), LOOK_EVERY_S) is not None:
            _say("Stopping. (Ctrl-C again stops at once.)")
            return 0
        for name, child in children.items():
            if child.poll() is not None:
                _say(f"The {name} process {_how_it_ended(child.returncode)}; stopping the others.")
                return 1
        if not announced and is_ready():
            announced = True
            _say(when_ready)


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"ended by itself with exit status {code}"
    return f"was killed by {signal.Signals(-code).name}"


def _stop_all(children: Mapping[str, subprocess.Popen[bytes]]) -> None:
    """Ask all at once, wait for work in hand, then insist; a second stop signal insists at once."""
    for child in children.values():
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + STOP_GRACE_S
    while any(child.poll() is None for child in children.values()):
        again = signal.sigtimedwait(processes.stop_signals(), 0.05)
        if again is not None or time.monotonic() > deadline:
            break
    for child in children.values():
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _pass_lines_on(child: subprocess.Popen[bytes], *, prefix: str) -> threading.Thread:
    def pump() -> None:
        stream = child.stdout
        for line in iter(stream.readline, b"") if stream else ():
            _say(prefix + line.decode(errors="replace").rstrip("\n"))

    thread = threading.Thread(target=pump, daemon=True)
    thread.start()
    return thread


def _say(text: str) -> None:
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except (OSError, ValueError):
        return  # the terminal is gone; the processes go on until they are told

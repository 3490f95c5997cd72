"""Runs the agent and kills it with SIGKILL at the n-th write, sync, truncation, rename or removal.

Writes to a file what was durable until then: every byte of the spool that a sync returned for. A
write that is the n-th is torn: half of it reaches the file.
"""

import os
import signal
import sys
from pathlib import Path

SPOOL, LEDGER, AT = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
steps = 0
real = {
    name: getattr(os, name)
    for name in ("write", "fsync", "fdatasync", "ftruncate", "replace", "unlink")
}


def path_of(target: object) -> str:
    if isinstance(target, int):
        return Path(f"/proc/self/fd/{target}").readlink().as_posix()
    return os.fspath(target)  # type: ignore[call-overload,no-any-return]


def step() -> bool:
    global steps
    steps += 1
    return steps == AT


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def note(text: str) -> None:
    with LEDGER.open("a", encoding="utf-8") as file:
        file.write(text + "\n")


def guarded(name):
    def call(target, *arguments, **keywords):
        path = path_of(target)
        if not path.startswith(SPOOL):
            return real[name](target, *arguments, **keywords)
        if step():
            if name == "write":
                data = bytes(arguments[0])
                real["write"](target, data[: len(data) // 2])
            die()
        result = real[name](target, *arguments, **keywords)
        if name in {"fsync", "fdatasync"} and path.endswith("journal"):
            note(Path(path).read_bytes().decode("latin-1").replace("\n", " "))
        return result

    return call


for called in real:
    setattr(os, called, guarded(called))

from costwatch_agent.__main__ import main  # noqa: E402

status = main(sys.argv[4:])
note(f"STEPS {steps}")
sys.exit(status)

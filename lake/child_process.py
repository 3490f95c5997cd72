"""Starts the confined child that reads a stranger's file, and hears its answer."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

from lake.file_kinds import TextFileRefusedError
from lake.places import LakeError

PROJECT_ROOT: Final = Path(__file__).resolve().parent.parent
MEBIBYTE: Final = 2**20
CHILD_MEMORY_BYTES: Final = (
    6 * 1024 * MEBIBYTE
)  # address space: threads and maps count, not only what is used
ENGINE_MEMORY_BYTES: Final = 512 * MEBIBYTE
BYTES_PER_CPU_S: Final = 2 * MEBIBYTE  # far below what was measured, so only a hang meets it
PACKED_RATIO: Final = 20  # of what is packed; only bounds the time
MAX_FIELD_BYTES: Final = 128 * 1024


class Ask(Protocol):
    """How a child is asked: one request after the other about the same file."""

    def __call__(
        self, request: Mapping[str, Any], *, on_bytes: Callable[[int], None] | None = None
    ) -> Mapping[str, Any]:
        """The child's answer.

        Raises:
            TextFileRefusedError: the file cannot be read whole and safely.
        """


@contextmanager
def confined_child(*, timeout_s: float = 3600.0) -> Iterator[Ask]:
    """A confined process that answers requests about one file; the first sets its bounds."""
    child = start_child()
    alarm = threading.Timer(timeout_s, child.kill)
    alarm.start()

    def ask(
        request: Mapping[str, Any], *, on_bytes: Callable[[int], None] | None = None
    ) -> Mapping[str, Any]:
        return _converse(child, json.dumps({**_defaults(request), **request}), on_bytes)

    try:
        yield ask
    finally:
        alarm.cancel()
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def start_child() -> subprocess.Popen[str]:
    """A new interpreter that waits for its first request."""
    return subprocess.Popen(
        [sys.executable, "-E", "-s", "-m", "lake.parse_child"],
        cwd=PROJECT_ROOT,
        env={"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )


def ask_child(request: Mapping[str, Any], *, timeout_s: float) -> Mapping[str, Any]:
    """The answer of a confined process that is asked one thing.

    Raises:
        TextFileRefusedError: the file cannot be read whole and safely.
    """
    with confined_child(timeout_s=timeout_s) as ask:
        return ask(request)


def _defaults(request: Mapping[str, Any]) -> dict[str, Any]:
    """The bounds, and what most tasks do not ask for."""
    ratio = 1 if request["compression"] == "none" else PACKED_RATIO
    likely_bytes = max(Path(request["source"]).stat().st_size * ratio, 64 * MEBIBYTE)
    return {
        "memory_bytes": CHILD_MEMORY_BYTES,
        "engine_memory_bytes": ENGINE_MEMORY_BYTES,
        "max_field_bytes": MAX_FIELD_BYTES,
        "cpu_s": 60 + likely_bytes // BYTES_PER_CPU_S,
        "file_bytes": request["max_unpacked_bytes"] + 64 * MEBIBYTE,
        "threads": 0,
        "json_columns": [],
        "list_columns": [],
        "wanted_columns": None,
        "number_rows": False,
    }


def _converse(
    child: subprocess.Popen[str], request: str, on_bytes: Callable[[int], None] | None
) -> Mapping[str, Any]:
    """Hand the request over, pass progress on, return the child's answer."""
    if child.stdin is None or child.stdout is None:
        raise LakeError("the parsing process has no pipes")
    with suppress(BrokenPipeError):  # it died at once; its missing answer says so below
        child.stdin.write(request + "\n")
        child.stdin.flush()
    for line in child.stdout:
        answer: Mapping[str, Any] = json.loads(line)
        if "refused" in answer:
            raise TextFileRefusedError(
                answer["refused"],
                answer["message"],
                row=answer.get("row"),
                column=answer.get("column") or "",
            )
        if "progress_bytes" not in answer:
            return answer
        if on_bytes is not None:
            on_bytes(answer["progress_bytes"])
    raise TextFileRefusedError(
        "limits",
        "the file needed more memory or time than one file may use; "
        "split it, or check that it is a bill of ordinary rows",
    )

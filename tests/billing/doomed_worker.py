"""A process that receives and stages bills in forked children, each killed at the n-th operation.

It reads one JSON document a line (`WorkOrder`), and answers each with how the child ended. The
children are forked before any thread starts, so that no import pays for loading Django.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

OPERATIONS = ("fsync", "replace", "rename", "unlink", "rmdir")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOrder:
    """Files to hand in, or a job to do; `fatal_call` 0 lets the child live."""

    fatal_call: int
    counted: str
    paths: tuple[str, ...] = ()
    job_id: str = ""
    source: str = "aws"


class Doom:
    """Counts the file operations of this process, and kills it instead of the fatal one."""

    def __init__(self, fatal_call: int) -> None:
        self.fatal_call, self.calls = fatal_call, 0

    def install(self) -> None:
        for name in OPERATIONS:
            setattr(os, name, self._counted(getattr(os, name)))

    def _counted(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls == self.fatal_call:
                os.kill(os.getpid(), signal.SIGKILL)
            return operation(*given, **named)

        return call


def work(order: WorkOrder) -> None:
    """Hand the files in as an upload does, or do the job as a worker does."""
    from billing.services import IncomingFile, NewDelivery, receive_files
    from jobs.services import run_job
    from tests.billing.builders import operator

    doom = Doom(order.fatal_call)
    doom.install()
    if order.job_id:
        run_job(UUID(order.job_id), holder=f"doomed {os.getpid()}")
    else:
        files = [
            IncomingFile(name=Path(path).name, chunks=[Path(path).read_bytes()])
            for path in order.paths
        ]
        receive_files(operator(), NewDelivery(source_name=order.source, files=files))
    Path(order.counted).write_text(str(doom.calls), encoding="utf-8")


def main() -> None:
    """Fork a child for each order; answer with its wait status."""
    import django

    django.setup()
    import duckdb  # noqa: F401  # loaded here, the children need not
    import ibis.backends.duckdb  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    from django.db import connections

    import billing.services.staging  # noqa: F401
    import tests.billing.builders  # noqa: F401

    connections.close_all()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            given = json.loads(line)
            try:
                work(WorkOrder(**{**given, "paths": tuple(given["paths"])}))
            finally:
                os._exit(0)
        status = os.waitpid(child, 0)[1]
        sys.stdout.write(f"{status}\n")
        sys.stdout.flush()


def as_line(order: WorkOrder) -> str:
    return json.dumps(asdict(order)) + "\n"


if __name__ == "__main__":
    main()

"""The child process that reads one file of a stranger: requests in, an answer to each out."""

import json
import sys
from itertools import chain
from pathlib import Path
from typing import Any

from lake.confinement import die_with_parent, limit_resources, refuse_network


def main() -> None:
    """Confine this process by the first request, then do what is asked until no more is."""
    requests = map(json.loads, sys.stdin)
    first = next(requests)
    die_with_parent()
    limit_resources(
        memory_bytes=first["memory_bytes"], cpu_s=first["cpu_s"], file_bytes=first["file_bytes"]
    )
    refuse_network()
    for request in chain([first], requests):
        _say(_answered(request))


def _answered(request: dict[str, Any]) -> dict[str, Any]:
    # imported only now: what they load is confined too
    from lake.refusing import RefusedError

    try:
        return _answer(request)
    except RefusedError as refusal:
        return refusal.answer
    except MemoryError:
        return RefusedError("limits", "the file needed more memory than one file may use").answer
    except OSError as error:
        return _trouble(error)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    task = request["task"]
    if task == "members":
        from lake.archives import list_members

        return list_members(request)
    request["kind"] = _kind(request)
    if task == "line":
        from lake.line_finding import find

        return find(request, _say)
    if request["kind"] == "parquet":
        from lake import parquet_parsing

        return (
            parquet_parsing.read_header(request)
            if task == "header"
            else parquet_parsing.parse(request, _say)
        )
    from lake import csv_parsing

    return (
        csv_parsing.read_header(request) if task == "header" else csv_parsing.parse(request, _say)
    )


def _kind(request: dict[str, Any]) -> str:
    """`parquet` or `csv`, by the first bytes; for a member of an archive too."""
    if request["compression"] == "parquet":
        return "parquet"
    if request["compression"].startswith("zip:"):
        from lake.unpacking import chunks_of

        chunks = chunks_of(
            Path(request["source"]),
            request["compression"],
            limit_bytes=request["max_unpacked_bytes"],
        )
        if next(chunks).startswith(b"PAR1"):
            return "parquet"
    return "csv"


def _trouble(error: OSError) -> dict[str, Any]:
    import errno

    from lake.refusing import RefusedError

    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        words = "the disk is full; free some space and send it again"
        return RefusedError("disk_full", words).answer
    return RefusedError("limits", "the file could not be read within the limits").answer


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    main()

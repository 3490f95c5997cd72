"""The child process that parses one CSV of a stranger: one request in, one answer out."""

import json
import sys
from pathlib import Path
from typing import Any

from lake.confinement import die_with_parent, limit_resources, refuse_network


def main() -> None:
    """Confine this process, then parse."""
    request = json.loads(sys.stdin.read())
    die_with_parent()
    limit_resources(
        memory_bytes=request["memory_bytes"],
        cpu_s=request["cpu_s"],
        file_bytes=request["file_bytes"],
    )
    refuse_network()
    # imported only now: what they load is confined too
    from lake.csv_parsing import RefusedError, parse

    try:
        answer = parse(request, _say)
    except RefusedError as refusal:
        answer = refusal.answer
    except MemoryError:
        answer = RefusedError("limits", "the file needed more memory than one file may use").answer
    _say(answer)


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    main()

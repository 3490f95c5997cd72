"""`costwatch-agent tail`: runs one tail until it is stopped, or once, or without sending."""

import json
import logging
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Final

from costwatch_agent.followed_logs import FollowedLog
from costwatch_agent.log_reading import Item
from costwatch_agent.progress import Point, document_of
from costwatch_agent.records import Document
from costwatch_agent.sender import Door
from costwatch_agent.spool import SpoolInUseError
from costwatch_agent.tail_options import TailOptions, tail_options_of
from costwatch_agent.tailing import Tail, TailJob, files_named, path_of

log = logging.getLogger(__name__)
OK: Final = 0
UNUSABLE: Final = 1
NOTHING_FOUND: Final = 2
NOT_SENT: Final = 3


def tail_main(arguments: Sequence[str]) -> int:
    """Run; the exit status."""
    options = tail_options_of(arguments)
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.INFO,
        format="%(levelname)s %(message)s",
        stream=sys.stderr,
    )
    if options.dry_run or options.server is None:
        return dry_run(options.job)
    try:
        tail = _tail(options)
    except (OSError, SpoolInUseError) as error:
        log.error("%s", _cause(error))
        return UNUSABLE
    if options.once:
        arrived = tail.once()
        if not arrived:
            log.error("not everything was sent: it waits in %s", options.job.folder)
            return NOT_SENT
        return OK if tail.rows else NOTHING_FOUND

    def stop(number: int, frame: FrameType | None) -> None:
        tail.stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    tail.run()
    return OK


def _tail(options: TailOptions) -> Tail:
    assert options.server is not None and options.token_file is not None  # noqa: S101, PT018
    options.token_file.read_bytes()
    path = path_of(options.job.run)
    door = Door(options.server, options.token_file, ca_file=options.ca_file, path=path)
    return Tail(options.job, door.post)


def _cause(error: OSError | SpoolInUseError) -> str:
    if isinstance(error, SpoolInUseError):
        return f"another tail of this run uses the spool {error}: give this one another --spool"
    return f"{error.strerror or error}: {error.filename or ''}"


def dry_run(job: TailJob) -> int:
    """Read the files and print what would be sent: a summary as one JSON document."""
    summaries = [_summary(job, Path(name)) for name in files_named(job.patterns)]
    sys.stdout.write(json.dumps({"files": summaries}, indent=2) + "\n")
    return OK if any(summary["records"] for summary in summaries) else NOTHING_FOUND


def _summary(job: TailJob, path: Path) -> Document:
    followed = FollowedLog(path, job.profiles, job.told)
    items: list[Item] = []
    is_more = True
    while is_more:
        found, is_more = followed.read()
        items += found
    followed.file.close()
    points = [document_of(item) for item in items if isinstance(item, Point)]
    return {
        "file": str(path),
        "profile": followed.profile.name if followed.profile is not None else None,
        "lines": followed.lines,
        "records": len(points),
        "fields": dict(Counter(name for point in points for name in point)),
        "first": points[0] if points else None,
        "last": points[-1] if points else None,
        "events": [document_of(item) for item in items if not isinstance(item, Point)],
    }

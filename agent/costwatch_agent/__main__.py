"""The command: `costwatch-agent` and `costwatch-agent tail`, or `python -m costwatch_agent`."""

import logging
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from costwatch_agent import VERSION
from costwatch_agent.agent import Agent
from costwatch_agent.options import Options, options_of
from costwatch_agent.spool import SpoolInUseError
from costwatch_agent.tail_command import tail_main

log = logging.getLogger("costwatch_agent")
UNUSABLE = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the agent; the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["tail"]:
        return tail_main(given[1:])
    options = options_of(given)
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.INFO,
        format="%(levelname)s %(message)s",  # journald and kubectl know the time
        stream=sys.stderr,
    )
    try:
        agent = _agent(options)
    except (OSError, SpoolInUseError) as error:
        log.error("%s", _cause(error))
        return UNUSABLE
    log.info("costwatch-agent %s on %s", VERSION, options.name)
    if options.once:
        return agent.once()

    def stop(number: int, frame: FrameType | None) -> None:
        agent.stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    return agent.run()


def _agent(options: Options) -> Agent:
    if not os.access(options.token_file, os.R_OK):
        raise PermissionError(13, "the token cannot be read", str(options.token_file))
    return Agent(options)


def _cause(error: OSError | SpoolInUseError) -> str:
    if isinstance(error, SpoolInUseError):
        return f"another agent uses the spool {error}: give this one another --spool"
    return f"{error.strerror or error}: {error.filename or ''}"


if __name__ == "__main__":
    sys.exit(main())

"""The command line of `costwatch-agent tail`, and the agent's own options for tailing."""

import argparse
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from costwatch_agent.log_profiles import BUILT_IN, Profile, profile_named
from costwatch_agent.log_reading import Told
from costwatch_agent.sender import AddressError, address
from costwatch_agent.tailing import RUN, TailJob

DESCRIPTION: Final = "Follows training logs and sends a run's progress to Costwatch."
AUTO: Final = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class TailOptions:
    """What `tail` was told. Without a server nothing is sent."""

    job: TailJob
    server: SplitResult | None
    token_file: Path | None
    ca_file: Path | None
    once: bool
    dry_run: bool
    verbose: bool


def tail_parser() -> argparse.ArgumentParser:
    """The options; docs/agent.md tells each."""
    environ = os.environ
    found = argparse.ArgumentParser(prog="costwatch-agent tail", description=DESCRIPTION)
    add = found.add_argument
    add("files", nargs="+", metavar="FILE", help="a log, or a pattern in quotes: 'logs/*.log'")
    add("--run", default=environ.get("COSTWATCH_RUN"), help="project/run")
    add("--server", default=environ.get("COSTWATCH_URL"), metavar="URL", help="https://host")
    token_file = environ.get("COSTWATCH_TOKEN_FILE")
    add("--token-file", type=Path, default=token_file, help="a token of scope ingest:runs")
    add("--profile", default=AUTO, help=f"{AUTO}, {', '.join(BUILT_IN)}, or a TOML file")
    add("--tokens-per-step", type=int, metavar="N", help="where the log does not say")
    add("--world-size", type=int, metavar="N", help="accelerators, where the log does not say")
    add("--rank", type=int, help="the process that speaks for the run (default: the first heard)")
    add(
        "--timezone", default="", help="of the log's clock, as Europe/Berlin (default: this host's)"
    )
    add("--once", action="store_true", help="read what is there, send, stop; 3: it waits")
    add("--dry-run", action="store_true", help="send nothing, print what would be sent")
    add("--name", default=socket.gethostname(), help="who says so (default: the host's name)")
    add("--spool", type=Path, default=_spool(), help="where progress waits for the server")
    add("--spool-max-mb", type=float, default=64.0, help="then the oldest is dropped")
    add("--send-every", type=float, default=10.0, metavar="S", help="seconds between batches")
    add("--ca-file", type=Path, help="certificates to trust instead of the system's")
    add("--allow-plain-http", action="store_true", help="send the token in the clear")
    add("--verbose", action="store_true", help="log more")
    return found


def _spool() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    return Path(base) / "costwatch-agent"


def tail_options_of(arguments: Sequence[str]) -> TailOptions:
    """The checked options. SystemExit: they make no sense, and standard error says why."""
    found = tail_parser()
    given = found.parse_args(arguments)
    if given.spool_max_mb < 0.125:
        found.error("--spool-max-mb has to be at least 0.125")
    if not 0.05 <= given.send_every <= 3600:
        found.error("--send-every has to lie between 0.05 and 3600 seconds")
    try:
        return TailOptions(
            job=TailJob(
                run=checked_run("dry/run" if given.dry_run else given.run or ""),
                patterns=tuple(given.files),
                profiles=profiles_of(given.profile),
                told=Told(
                    tokens_per_step=given.tokens_per_step,
                    world_size=given.world_size,
                    zone=_zone(given.timezone),
                    rank=given.rank,
                ),
                name=given.name,
                spool=given.spool,
                spool_max_bytes=int(given.spool_max_mb * 1024 * 1024),
                send_every_s=given.send_every,
            ),
            server=None if given.dry_run else _server(given),
            token_file=given.token_file,
            ca_file=given.ca_file,
            once=given.once,
            dry_run=given.dry_run,
            verbose=given.verbose,
        )
    except ValueError as error:
        found.error(str(error))


def checked_run(run: str) -> str:
    """project/run. ValueError: it is none."""
    if not run:
        raise ValueError("name the run: --run project/run, or COSTWATCH_RUN")
    project = os.environ.get("COSTWATCH_PROJECT", "")
    run = run if "/" in run or not project else f"{project}/{run}"
    if not RUN.fullmatch(run):
        raise ValueError(f"--run {run!r}: write project/run")
    return run


def profiles_of(name: str) -> tuple[Profile, ...]:
    """One profile, or all that are shipped. ProfileError: there is none of that name."""
    names = BUILT_IN if name == AUTO else (name,)
    return tuple(profile_named(one) for one in names)


def tails_of(given: Sequence[str], *, profile: str, name: str, spool: Path) -> tuple[TailJob, ...]:
    """The agent's own tails, from `project/run=FILE`. ValueError: that makes no sense."""
    files: dict[str, list[str]] = {}
    for text in given:
        run, _, pattern = text.partition("=")
        if not pattern or not RUN.fullmatch(run):
            raise ValueError(f"--tail {text!r}: write project/run=FILE")
        files.setdefault(run, []).append(pattern)
    return tuple(
        TailJob(
            run=run,
            patterns=tuple(patterns),
            profiles=profiles_of(profile),
            told=Told(),
            name=name,
            spool=spool / "progress",
            spool_max_bytes=64 << 20,
            send_every_s=10.0,
        )
        for run, patterns in files.items()
    )


def _server(given: argparse.Namespace) -> SplitResult:
    if not given.server:
        raise AddressError("name the server: --server https://host, or COSTWATCH_URL")
    if given.token_file is None:
        raise ValueError("name the token: --token-file FILE, or COSTWATCH_TOKEN_FILE")
    return address(given.server, allow_plain_http=given.allow_plain_http)


def _zone(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError(f"--timezone {name!r} is not known") from error

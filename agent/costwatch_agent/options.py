"""The command line: every option with its default and its check."""

import argparse
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult

from costwatch_agent import VERSION
from costwatch_agent.sender import AddressError, address
from costwatch_agent.tail_options import tails_of
from costwatch_agent.tailing import TailJob

DESCRIPTION: Final = "Reads the energy of this node's GPUs and sends it to Costwatch."
LISTEN: Final = "127.0.0.1:9838"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the agent was told."""

    server: SplitResult
    token_file: Path
    ca_file: Path | None
    name: str
    spool: Path
    spool_max_bytes: int
    period_s: float
    send_every_s: float
    listen: tuple[str, int] | None
    jobs: bool
    jobs_folder: Path | None
    rapl: bool
    bmc: bool
    bmc_period_s: float
    bmc_includes_gpus: bool
    proc: Path
    sys: Path
    tails: tuple[TailJob, ...]
    tail_token_file: Path
    once: bool
    verbose: bool


def parser() -> argparse.ArgumentParser:
    """The options; docs/agent.md tells each."""
    found = argparse.ArgumentParser(prog="costwatch-agent", description=DESCRIPTION)
    add = found.add_argument
    add("--server", required=True, metavar="URL", help="Costwatch's address, https://host")
    add("--token-file", required=True, type=Path, help="file with a token of scope ingest:power")
    add("--ca-file", type=Path, help="certificates to trust instead of the system's")
    add("--allow-plain-http", action="store_true", help="send the token in the clear")
    add("--name", default=socket.gethostname(), help="the node's name (default: the host's)")
    add("--spool", type=Path, default=Path("/var/lib/costwatch-agent"), help="where readings wait")
    add("--spool-max-mb", type=float, default=256.0, help="then the oldest are dropped and counted")
    add("--period", type=float, default=10.0, metavar="S", help="seconds between readings")
    add("--send-every", type=float, default=30.0, metavar="S", help="seconds between batches")
    add("--listen", default=LISTEN, metavar="HOST:PORT", help="for Prometheus; off: none")
    add("--no-jobs", action="store_true", help="do not look whose work the GPUs do")
    add("--jobs-folder", type=Path, help="where Slurm's prolog notes allocations")
    add("--no-rapl", action="store_true", help="do not read the CPUs' power")
    add("--no-bmc", action="store_true", help="do not read the node's power")
    add("--bmc-period", type=float, default=60.0, metavar="S", help="seconds between BMC readings")
    add("--bmc-without-gpus", action="store_true", help="the BMC does not measure the GPUs")
    add("--proc", type=Path, default=Path("/proc"), help="the host's /proc")
    add("--sys", type=Path, default=Path("/sys"), help="the host's /sys")
    add("--tail", action="append", default=[], metavar="PROJECT/RUN=FILE", help="a training log")
    add("--tail-profile", default="auto", help="the format of the logs that --tail names")
    add("--tail-token-file", type=Path, help="a token of scope ingest:runs, else --token-file's")
    add("--once", action="store_true", help="read once, send, stop; 3: it waits in the spool")
    add("--verbose", action="store_true", help="log more")
    add("--version", action="version", version=f"costwatch-agent {VERSION}")
    return found


def options_of(arguments: Sequence[str]) -> Options:
    """The checked options. SystemExit: they make no sense, and standard error says why."""
    found = parser()
    given = found.parse_args(arguments)
    try:
        server = address(given.server, allow_plain_http=given.allow_plain_http)
        listen = _listen(given.listen)
        tails = tails_of(given.tail, profile=given.tail_profile, name=given.name, spool=given.spool)
    except (AddressError, ValueError) as error:
        found.error(str(error))
    for name in ("period", "send_every", "bmc_period"):
        if not 0.05 <= getattr(given, name) <= 3600:
            found.error(f"--{name.replace('_', '-')} has to lie between 0.05 and 3600 seconds")
    if given.spool_max_mb < 0.125:
        found.error("--spool-max-mb has to be at least 0.125")
    if not given.name or len(given.name) > 120 or not given.name.isprintable():
        found.error("--name has to have 1 to 120 characters that can be shown")
    return Options(
        server=server,
        token_file=given.token_file,
        ca_file=given.ca_file,
        name=given.name,
        spool=given.spool,
        spool_max_bytes=int(given.spool_max_mb * 1024 * 1024),
        period_s=given.period,
        send_every_s=max(given.send_every, given.period),
        listen=listen,
        jobs=not given.no_jobs,
        jobs_folder=given.jobs_folder,
        rapl=not given.no_rapl,
        bmc=not given.no_bmc,
        bmc_period_s=given.bmc_period,
        bmc_includes_gpus=not given.bmc_without_gpus,
        proc=given.proc,
        sys=given.sys,
        tails=tails,
        tail_token_file=given.tail_token_file or given.token_file,
        once=given.once,
        verbose=given.verbose,
    )


def _listen(text: str) -> tuple[str, int] | None:
    if text == "off":
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"--listen {text!r}: write HOST:PORT, or off")
    return host.strip("[]"), int(port)

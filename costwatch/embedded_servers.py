"""Starts and stops one PostgreSQL and one Redis on Unix sockets. Chooses no folder."""

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path

from costwatch.embedded_binaries import Binaries
from costwatch.embedded_places import DataFolders
from costwatch.processes import (
    SERVER_ENV,
    LauncherError,
    Owner,
    start_server,
    stop,
    wait_until,
)

DATABASE = "costwatch"
REDIS_SOCKET = "r.sock"
START_TIMEOUT_S = 60.0  # crash recovery of a large database takes its time
STOP_TIMEOUT_S = 30.0
LOG_KEPT_BYTES = 10_000_000
# The built-in locale provider needs no locale of the machine's.
MAKE_CLUSTER = (
    *("-U", DATABASE, "--auth=trust", "--encoding=UTF8", "--no-instructions"),
    *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
)
# Sums over a year of daily costs sort and hash in memory; compiling them takes longer than they do.
FOR_SUMS = ("-c", "work_mem=64MB", "-c", "jit=off", "-c", "shared_buffers=256MB")
NOT_DURABLE = ("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """All that a server needs to know of its surroundings."""

    binaries: Binaries
    folders: DataFolders
    sockets: Path
    owner: Owner | None


def urls(sockets: Path) -> dict[str, str]:
    """How a command reaches the servers whose sockets are there."""
    return {
        "DATABASE_URL": f"postgresql://{DATABASE}@/{DATABASE}?host={sockets}",
        "REDIS_URL": f"redis+socket://{sockets / REDIS_SOCKET}?virtual_host=0",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """Both servers, up and ready."""

    place: Place
    processes: Mapping[str, subprocess.Popen[bytes]]

    @property
    def pids(self) -> list[int]:
        """Their process ids."""
        return [process.pid for process in self.processes.values()]

    def check(self) -> None:
        """Raise when one of them is gone: a command without its database only confuses."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                raise LauncherError(f"{name} ended by itself: {_reason(self.place, name)}")


@contextmanager
def both_servers(place: Place) -> Iterator[Servers]:
    """Redis starts while PostgreSQL does."""
    with _redis(place) as redis, _postgres(place) as postgres:
        if not wait_until(lambda: _redis_answers(place), process=redis, timeout_s=START_TIMEOUT_S):
            raise LauncherError(f"Redis did not start: {_reason(place, 'redis')}")
        yield Servers(place=place, processes={"redis": redis, "postgres": postgres})


@contextmanager
def _redis(place: Place) -> Iterator[subprocess.Popen[bytes]]:
    """Started, perhaps not answering yet."""
    durable = "yes" if place.folders.durable else "no"
    options = {
        "--port": "0",
        "--unixsocket": str(place.sockets / REDIS_SOCKET),
        "--unixsocketperm": "700",
        "--save": "",
        "--appendonly": durable,
        "--dir": str(place.folders.redis),
        "--daemonize": "no",
    }
    command = [
        str(place.binaries.redis_server),
        *(part for option in options.items() for part in option),
    ]
    with _open_log(place, "redis") as log:
        process = start_server(command, owner=place.owner, log=log)
    try:
        yield process
    finally:
        stop(process, signal_number=signal.SIGTERM, timeout_s=STOP_TIMEOUT_S)


def _redis_answers(place: Place) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        try:
            client.connect(str(place.sockets / REDIS_SOCKET))
            client.sendall(b"PING\r\n")
            return client.recv(5) == b"+PONG"
        except OSError:
            return False


@contextmanager
def _postgres(place: Place) -> Iterator[subprocess.Popen[bytes]]:
    """Started, answering, with our database in it."""
    if not _cluster(place).exists():
        _make_cluster(place)
    options = ["-D", str(_cluster(place)), "-k", str(place.sockets), "-p", "5432"]
    options += ["-c", "listen_addresses=", *FOR_SUMS]
    # Durable data gets the fast stop that writes a checkpoint; throw-away data just goes.
    stop_signal = signal.SIGINT if place.folders.durable else signal.SIGQUIT
    if not place.folders.durable:
        options += NOT_DURABLE
    with _open_log(place, "postgres") as log:
        process = start_server(
            [place.binaries.postgres_bin / "postgres", *options],
            owner=place.owner,
            log=log,
            death_signal=stop_signal,
        )

    def is_ready() -> bool:
        return _says_ready(_cluster(place) / "postmaster.pid", process.pid)

    try:
        if not wait_until(is_ready, process=process, timeout_s=START_TIMEOUT_S):
            raise LauncherError(f"PostgreSQL did not start: {_reason(place, 'postgres')}")
        _make_database(place)
        yield process
    finally:
        stop(process, signal_number=stop_signal, timeout_s=STOP_TIMEOUT_S)


def _says_ready(pid_file: Path, pid: int) -> bool:
    """As pg_ctl does: the first line of postmaster.pid is our process, the eighth its state."""
    try:
        lines = pid_file.read_text().splitlines()
    except OSError:
        return False
    return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"


def _cluster(place: Place) -> Path:
    return place.folders.postgres / "cluster"


def _make_cluster(place: Place) -> None:
    """Made under another name first, so that a half-made one is never taken for ours."""
    unfinished = place.folders.postgres / "unfinished"
    if unfinished.exists():
        shutil.rmtree(unfinished)
    options = ["-D", str(unfinished), *MAKE_CLUSTER]
    if not place.folders.durable:
        options.append("--no-sync")
    _run_to_end(place, ["initdb", *options])
    unfinished.rename(_cluster(place))


def _make_database(place: Place) -> None:
    """Make ours unless it is there; a first start may have been cut short before it was."""
    connection = ["-h", str(place.sockets), "-p", "5432", "-U", DATABASE]
    list_names = [*connection, "-XAtc", "SELECT datname FROM pg_database", "template1"]
    psql = place.binaries.postgres_bin / "psql"
    listing = subprocess.run([psql, *list_names], env=SERVER_ENV, capture_output=True, check=False)
    if DATABASE not in listing.stdout.decode().split():
        _run_to_end(place, ["createdb", *connection, DATABASE])


def _run_to_end(place: Place, command: Sequence[str]) -> None:
    name = command[0]
    with _open_log(place, name) as log:
        process = start_server(
            [place.binaries.postgres_bin / name, *command[1:]], owner=place.owner, log=log
        )
    try:
        wait_until(lambda: False, process=process, timeout_s=START_TIMEOUT_S)
    finally:
        stop(process, signal_number=signal.SIGTERM, timeout_s=STOP_TIMEOUT_S)
    if process.returncode:
        raise LauncherError(f"{name} failed: {_reason(place, name)}")


def _open_log(place: Place, name: str) -> BufferedWriter:
    path = place.folders.log / f"{name}.log"
    if path.exists() and path.stat().st_size > LOG_KEPT_BYTES:
        path.replace(path.with_suffix(".log.1"))
    return path.open("ab")


def _reason(place: Place, name: str) -> str:
    """What the log says went wrong: its last error, else its last line."""
    path = place.folders.log / f"{name}.log"
    lines = [line.strip() for line in path.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if any(word in line for word in ("FATAL", "PANIC", "error:"))]
    return f"{(errors or lines or ['it said nothing'])[-1]} (more in {path})"

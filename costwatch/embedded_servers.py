"""Starts and stops one PostgreSQL and one Redis on Unix sockets. Chooses no folder and runs no command."""

import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path

from costwatch.embedded_places import Binaries, DataFolders
from costwatch.embedded_processes import LauncherError, Owner, start, stop, wait_until

DATABASE = "costwatch"
SERVER_ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
START_TIMEOUT_S = 60.0  # crash recovery of a large database takes its time
STOP_TIMEOUT_S = 30.0
LOG_KEPT_BYTES = 10_000_000
NOT_DURABLE = ("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """All that a server needs to know of its surroundings."""

    binaries: Binaries
    folders: DataFolders
    sockets: Path
    owner: Owner | None


def database_url(place: Place) -> str:
    return f"postgresql://{DATABASE}@/{DATABASE}?host={place.sockets}"


def redis_url(place: Place) -> str:
    return f"redis+socket://{_redis_socket(place)}?virtual_host=0"


def _redis_socket(place: Place) -> Path:
    return place.sockets / "r.sock"


@contextmanager
def both_servers(place: Place) -> Iterator[list[int]]:
    """Both servers up and ready; their process ids. Redis starts while PostgreSQL does."""
    with _redis(place) as redis, _postgres(place) as postgres:
        if not wait_until(lambda: _redis_answers(place), process=redis, timeout_s=START_TIMEOUT_S):
            raise LauncherError(f"Redis did not start: {_last_line(place, 'redis')}")
        yield [redis.pid, postgres.pid]


@contextmanager
def _redis(place: Place) -> Iterator[subprocess.Popen[bytes]]:
    """Started, perhaps not answering yet."""
    durable = "yes" if place.folders.durable else "no"
    options = {
        "--port": "0",
        "--unixsocket": str(_redis_socket(place)),
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
        process = start(command, env=SERVER_ENV, owner=place.owner, output=log, own_session=True)
    try:
        yield process
    finally:
        stop(process, signal_number=signal.SIGTERM, timeout_s=STOP_TIMEOUT_S)


def _redis_answers(place: Place) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        try:
            client.connect(str(_redis_socket(place)))
            client.sendall(b"PING\r\n")
            return client.recv(5) == b"+PONG"
        except OSError:
            return False


@contextmanager
def _postgres(place: Place) -> Iterator[subprocess.Popen[bytes]]:
    """Started, answering, with our database in it."""
    if not (place.folders.postgres / "PG_VERSION").exists():
        _make_cluster(place)
    options = (
        "-D",
        place.folders.postgres,
        "-k",
        place.sockets,
        "-p",
        "5432",
        "-c",
        "listen_addresses=",
    )
    # Durable data gets the fast stop that writes a checkpoint; throw-away data just goes.
    stop_signal = signal.SIGINT if place.folders.durable else signal.SIGQUIT
    with _open_log(place, "postgres") as log:
        process = start(
            [
                place.binaries.postgres_bin / "postgres",
                *options,
                *(() if place.folders.durable else NOT_DURABLE),
            ],
            env=SERVER_ENV,
            death_signal=stop_signal,
            owner=place.owner,
            output=log,
            own_session=True,
        )
    try:
        if not wait_until(
            lambda: _is_ready(place, process.pid), process=process, timeout_s=START_TIMEOUT_S
        ):
            raise LauncherError(f"PostgreSQL did not start: {_last_line(place, 'postgres')}")
        _make_database(place)
        yield process
    finally:
        stop(process, signal_number=stop_signal, timeout_s=STOP_TIMEOUT_S)


def _is_ready(place: Place, pid: int) -> bool:
    """As pg_ctl does: the first line of postmaster.pid is our process, the eighth its state."""
    try:
        lines = (place.folders.postgres / "postmaster.pid").read_text().splitlines()
    except OSError:
        return False
    return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"


def _make_cluster(place: Place) -> None:
    command = [
        place.binaries.postgres_bin / "initdb",
        "-D",
        place.folders.postgres,
        "-U",
        DATABASE,
        "--auth=trust",
    ]
    # The built-in provider needs no locale of the machine's.
    command += [
        "--encoding=UTF8",
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
    ]
    command += ["--no-instructions", *(() if place.folders.durable else ("--no-sync",))]
    _run_to_end(place, command, what="initdb")


def _make_database(place: Place) -> None:
    """Idempotent: a first start may have been cut short between cluster and database."""
    connection = ["-h", place.sockets, "-p", "5432", "-U", DATABASE]
    listing = [
        place.binaries.postgres_bin / "psql",
        *connection,
        "-XAtc",
        "SELECT datname FROM pg_database",
        "template1",
    ]
    names = subprocess.run(
        listing, env=SERVER_ENV, capture_output=True, text=True, check=False
    ).stdout.split()
    if DATABASE not in names:
        _run_to_end(
            place,
            [place.binaries.postgres_bin / "createdb", *connection, DATABASE],
            what="createdb",
        )


def _run_to_end(place: Place, command: list[str | Path], *, what: str) -> None:
    with _open_log(place, what) as log:
        process = start(command, env=SERVER_ENV, owner=place.owner, output=log, own_session=True)
    try:
        wait_until(lambda: process.poll() is not None, process=process, timeout_s=START_TIMEOUT_S)
    finally:
        stop(process, signal_number=signal.SIGTERM, timeout_s=STOP_TIMEOUT_S)
    if process.returncode:
        raise LauncherError(f"{what} failed: {_last_line(place, what)}")


def _open_log(place: Place, name: str) -> BufferedWriter:
    path = place.folders.log / f"{name}.log"
    if path.exists() and path.stat().st_size > LOG_KEPT_BYTES:
        path.replace(path.with_suffix(".log.1"))
    return path.open("ab")


def _last_line(place: Place, name: str) -> str:
    path = place.folders.log / f"{name}.log"
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return f"{lines[-1] if lines else 'it said nothing'} (more in {path})"

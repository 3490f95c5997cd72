"""Real servers that can be killed: a PostgreSQL, a Redis, web processes, a worker with its beat."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection

from costwatch import embedded_binaries, embedded_places, processes
from costwatch.embedded_servers import MAKE_CLUSTER

REPOSITORY = Path(__file__).resolve().parents[2]
DISK_MB = 220


def wait_for(
    condition: Callable[[], Any], what: str, timeout_s: float = 40.0, state: object = ""
) -> Any:
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited in vain for {what}: {state}"
        time.sleep(0.05)
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


class Fleet:
    """All parts, each started and killed by name; every process is one that this started."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._owner = embedded_places.server_owner()
        run = stack.enter_context(embedded_places.run_folder(self._owner))
        self._binaries = embedded_binaries.find_binaries(self._owner, run)
        self.sockets = run / "s"
        self._disk = run / "disk"
        embedded_places.make_folder(self._disk, owner=self._owner)
        self.has_small_disk = self._mount(stack)
        self.web_port = free_port()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        stack.callback(self.stop_all)

    def _mount(self, stack: ExitStack) -> bool:
        """A small disk of its own for the database, where we may mount one."""
        options = f"size={DISK_MB}m,mode=700"
        if self._owner:
            options += f",uid={self._owner.uid},gid={self._owner.gid}"
        mount = ["mount", "-t", "tmpfs", "-o", options, "none", str(self._disk)]
        if subprocess.run(mount, check=False, capture_output=True).returncode:
            return False
        stack.callback(subprocess.run, ["umount", "-l", str(self._disk)], check=False)
        return True

    # --- PostgreSQL and Redis

    def _server(self, name: str, command: list[Any]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = processes.start_server(command, owner=self._owner, log=log)
        return self._processes[name]

    @property
    def _cluster(self) -> Path:
        return self._disk / "cluster"

    def make_cluster(self) -> None:
        """An empty cluster with our database, its files synced as in production."""
        initdb = [self._binaries.postgres_bin / "initdb", "-D", self._cluster, *MAKE_CLUSTER]
        initdb += ["--no-sync", "--set", "max_wal_size=64MB", "--wal-segsize=4"]
        assert self._server("initdb", initdb).wait() == 0

    def start_postgres(self) -> None:
        options = ["-D", self._cluster, "-k", self.sockets, "-p", "5432", "-c", "listen_addresses="]
        options += ["-c", "shared_buffers=32MB", "-c", "jit=off"]
        process = self._server("postgres", [self._binaries.postgres_bin / "postgres", *options])

        def answers() -> bool:
            with suppress(psycopg.OperationalError):
                psycopg.connect(self._dsn("postgres"), connect_timeout=2).close()
                return True
            assert process.poll() is None, (self.folder / "postgres.log").read_text()[-2000:]
            return False

        wait_for(answers, "PostgreSQL")

    def stop_postgres_at_once(self) -> None:
        """An immediate stop, as by a power cut: no checkpoint, recovery at the next start."""
        process = self._processes["postgres"]
        process.send_signal(signal.SIGQUIT)
        process.wait(20)

    @property
    def postgres_runs(self) -> bool:
        return self._processes["postgres"].poll() is None

    def _dsn(self, name: str = "costwatch") -> str:
        return f"host={self.sockets} port=5432 user=costwatch dbname={name}"

    @contextmanager
    def database(self) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self._dsn(), autocommit=True, connect_timeout=5) as opened:
            yield opened

    def copy_our_database(self) -> None:
        """The tables of the tests' own database as they are: faster than migrating anew."""
        ours = connection.settings_dict
        dump = [self._binaries.postgres_bin / "pg_dump", "--no-owner", ours["NAME"]]
        for option, value in (("-h", ours["HOST"]), ("-p", ours["PORT"]), ("-U", ours["USER"])):
            dump += [option, str(value)] if value else []
        wanted = subprocess.run(dump, check=True, capture_output=True).stdout
        psql = [self._binaries.postgres_bin / "psql", "-q", "-v", "ON_ERROR_STOP=1"]
        into = ["-h", self.sockets, "-p", "5432", "-U", "costwatch"]
        create = ["-c", "CREATE DATABASE costwatch", "postgres"]
        subprocess.run([*psql, *into, *create], check=True)
        subprocess.run([*psql, *into, "costwatch"], input=wanted, check=True, capture_output=True)

    def start_redis(self) -> None:
        command = [self._binaries.redis_server, "--port", "0", "--save", ""]
        command += ["--unixsocket", self.sockets / "r.sock", "--dir", self._disk]
        self._server("redis", command)
        wait_for(lambda: (self.sockets / "r.sock").exists(), "Redis")

    def flush_redis(self) -> None:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.sockets / "r.sock"))
            client.sendall(b"FLUSHALL\r\n")
            assert client.recv(5) == b"+OK\r\n"

    # --- a full disk

    def fill_disk(self) -> None:
        """Leave no byte; where no disk of our own could be made, the server refuses as if full."""
        if not self.has_small_disk:
            with self.database() as database:
                database.execute(
                    "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS "
                    "$$BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; "
                    "END$$; CREATE TRIGGER no_room BEFORE INSERT ON carbon_intakebody "
                    "EXECUTE FUNCTION no_room()"
                )
            return
        with (self._disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
            while True:
                ballast.write(bytes(1 << 16))

    def free_disk(self) -> None:
        if self.has_small_disk:
            (self._disk / "ballast").unlink()
            return
        with self.database() as database:
            database.execute("DROP TRIGGER no_room ON carbon_intakebody; DROP FUNCTION no_room")

    # --- Costwatch

    def environment(self) -> dict[str, str]:
        url = f"postgresql://costwatch@/costwatch?host={self.sockets}"
        return {
            **os.environ,
            "DATABASE_URL": url,
            "REDIS_URL": f"redis+socket://{self.sockets}/r.sock?virtual_host=0",
            "COSTWATCH_DATA_DIR": str(self.folder / "data"),
            "COSTWATCH_SECRET_KEY": settings.SECRET_KEY,
            "COSTWATCH_TOKEN_PEPPER": settings.TOKEN_PEPPER,
            "COSTWATCH_INSECURE_HTTP": "1",
            "COSTWATCH_LOG_LEVEL": "WARNING",
            "COSTWATCH_JOB_LEASE_S": "3",
            "DJANGO_SETTINGS_MODULE": "costwatch.settings",
        }

    def _ours(self, name: str, command: list[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                command,
                cwd=REPOSITORY,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def start_web(self) -> None:
        granian = [sys.executable, "-m", "granian", "--interface", "wsgi", "--no-ws"]
        granian += ["--host", "127.0.0.1", "--port", str(self.web_port), "--workers", "2"]
        granian += ["--blocking-threads", "4", "--working-dir", str(REPOSITORY)]
        self._ours("web", [*granian, "--log-level", "warning", "costwatch.wsgi:application"])

    def web_answers(self) -> bool:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", self.web_port), 1).close()
            return True
        return False

    def start_worker(self) -> None:
        celery = [sys.executable, "-m", "celery", "-A", "costwatch.celery", "worker"]
        celery += ["--pool=prefork", "--concurrency=1", "--without-gossip", "--without-mingle"]
        self._ours("worker", [*celery, "--loglevel=WARNING"])

    def start_beat(self) -> None:
        beat = [sys.executable, "-m", "celery", "-A", "costwatch.beat", "beat", "--pidfile="]
        self._ours("beat", [*beat, f"--schedule={self.folder / 'beat'}", "--loglevel=WARNING"])

    def children_of(self, name: str) -> list[int]:
        return processes.descendants(self._processes[name].pid)

    def kill_a_child(self, name: str) -> None:
        """kill -9 of one process below, in the middle of whatever it does."""
        with suppress(ProcessLookupError):
            os.kill(self.children_of(name)[-1], signal.SIGKILL)

    def kill(self, name: str) -> None:
        """kill -9 of the process and everything below it."""
        process = self._processes[name]
        for pid in [process.pid, *self.children_of(name)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(10)

    def stop_all(self) -> None:
        for name in reversed(list(self._processes)):
            process = self._processes[name]
            if process.poll() is None:
                self.kill(name)
        shutil.rmtree(self.folder / "data", ignore_errors=True)

    @contextmanager
    def as_our_database(self) -> Iterator[None]:
        """Let this process work on the database of the fleet."""
        before = dict(connection.settings_dict)
        connection.close()
        connection.settings_dict |= {"HOST": str(self.sockets), "PORT": "5432"}
        connection.settings_dict |= {"NAME": "costwatch", "USER": "costwatch"}
        try:
            yield
        finally:
            connection.close()
            connection.settings_dict.update(before)

"""Fixtures of the queue: the tests' kinds, and real Celery workers that can be killed."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
import redis
from django.db import connection

from jobs.models import Job
from jobs.services import ring_waiting
from tests.jobs.kinds import KINDS, TOPICS

REPOSITORY = Path(__file__).resolve().parents[2]
LEASE_S = 2
TIME_LIMIT_S = 2


@pytest.fixture(autouse=True)
def _kinds(settings) -> None:
    settings.JOB_KINDS = {**settings.JOB_KINDS, **KINDS}
    settings.OUTBOX_TOPICS = {**settings.OUTBOX_TOPICS, **TOPICS}
    settings.JOB_LEASE_S = LEASE_S
    settings.JOB_BACKOFF_S = 0.1
    settings.JOB_RING_AGAIN_S = 1
    settings.JOB_TIME_LIMIT_S = TIME_LIMIT_S


def database_url() -> str:
    """The address of the database that the tests write to."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    return urlunsplit(parts._replace(path=f"/{connection.settings_dict['NAME']}"))


def worker_environment() -> dict[str, str]:
    return {
        **os.environ,
        "DATABASE_URL": database_url(),
        "DJANGO_SETTINGS_MODULE": "tests.jobs.worker_settings",
        "COSTWATCH_JOB_LEASE_S": str(LEASE_S),
        "COSTWATCH_JOB_TIME_LIMIT_S": str(TIME_LIMIT_S),
        "COSTWATCH_LOG_LEVEL": "INFO",
    }


def children_of(parent: int) -> list[int]:
    """The processes that this one has started and that are still there."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            text = status.read_text()
            if int(text.rpartition(")")[2].split()[1]) == parent:
                found.append(int(text.split()[0]))
    return found


class Worker:
    """A real worker with its children, in a process group of its own."""

    def __init__(self, log: Path, *, beat: bool) -> None:
        self._log = log
        command = [sys.executable, "-m", "celery", "-A", "costwatch.celery", "worker"]
        command += ["--pool=prefork", "--concurrency=2", "--loglevel=INFO"]
        command += ["--without-gossip", "--without-mingle"]
        self.process = self._start(command)
        self._beat: subprocess.Popen[bytes] | None = None
        if beat:
            schedule = ["beat", "--pidfile=", f"--schedule={log.with_suffix('.beat')}"]
            celery = [sys.executable, "-m", "celery", "-A", "costwatch.beat"]
            self._beat = self._start([*celery, *schedule])

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as output:
            return subprocess.Popen(
                command,
                cwd=REPOSITORY,
                env=worker_environment(),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + 30
        while b"jobs.run" not in self._log.read_bytes():  # its list of tasks, printed at the start
            assert self.process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.1)

    def kill_all(self) -> None:
        """kill -9 of the worker and its children: the machine went dark."""
        children = children_of(self.process.pid)
        assert children
        self.process.send_signal(signal.SIGSTOP)  # or it would replace the children
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        self.kill_parent()

    def kill_parent(self) -> None:
        """kill -9 of the worker alone: its children are orphans."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self._beat is not None:
            self._beat.kill()
            self._beat.wait()
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill_all()


@contextmanager
def running_worker(folder: Path, *, beat: bool = False) -> Iterator[Worker]:
    worker = Worker(folder / f"worker-{time.monotonic_ns()}.log", beat=beat)
    try:
        worker.wait_until_ready()
        yield worker
    finally:
        worker.stop()


@pytest.fixture(scope="module")
def worker(django_db_setup, django_db_blocker, tmp_path_factory) -> Iterator[Worker]:
    """One worker for the tests that do not kill it."""
    redis.Redis.from_url(_redis_url()).flushall()
    with (
        django_db_blocker.unblock(),
        running_worker(tmp_path_factory.mktemp("worker")) as worker,
    ):
        yield worker


def _redis_url() -> str:
    """redis-py knows socket addresses by another scheme than kombu does."""
    url = os.environ["REDIS_URL"]
    if url.startswith("redis+socket://"):
        parts = urlsplit(url)
        return f"unix://{parts.path}"
    return url


@pytest.fixture
def flush_broker() -> Callable[[], None]:
    """Make the broker forget everything."""
    return lambda: redis.Redis.from_url(_redis_url()).flushall()


def wait_for(
    job: Job, condition: Callable[[Job], bool], *, timeout_s: float = 20, ring: bool = True
) -> Job:
    """Read the job again until it is as expected; ring meanwhile, as beat does."""
    deadline = time.monotonic() + timeout_s
    while True:
        if ring:
            ring_waiting()
        job.refresh_from_db()
        if condition(job):
            return job
        assert time.monotonic() < deadline, f"{job.state} {job.attempts} {job.error!r}"
        time.sleep(0.1)


def is_over(job: Job) -> bool:
    return job.state in {Job.State.SUCCEEDED, Job.State.FAILED}


@pytest.fixture
def worker_log_folder(flush_broker, tmp_path) -> Path:
    """A place for the logs of a worker that starts from an empty broker."""
    flush_broker()
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as server:
        yield server.getsockname()[1]

"""Starts what is measured, replays requests to it, and reads what its processes have used."""

import http.client
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
READY_S = 90.0
LAST_LINES = 30
HEADERS = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
    "User-Agent": "Prometheus/2.42.0",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where requests go, and whose work they are."""

    port: int
    path: str
    pids: tuple[int, ...]
    headers: dict[str, str] = field(default_factory=dict)

    def cpu_s(self) -> float:
        """What all its processes, also those that have ended, have used."""
        return sum(_tree_cpu_s(pid) for pid in self.pids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """How a replay went."""

    wall_s: float
    answers: Counter[int]
    p95_s: float
    worst_s: float


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def prometheus(folder: Path) -> Iterator[Target]:
    """A single-node Prometheus that takes remote-write."""
    program = shutil.which("prometheus")
    if program is None:
        raise SystemExit("prometheus is not installed: apt-get install prometheus")
    config = folder / "prometheus.yml"
    config.write_text("global: {}\n", encoding="utf-8")
    port = free_port()
    command = [program, f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    command += ["--web.enable-remote-write-receiver"]
    with _running(command, port, "/-/ready", {}) as child:
        yield Target(port=port, path="/api/v1/write", pids=(child.pid,))


@contextmanager
def costwatch(
    *, web_workers: int, token: str, postmaster_pid: int, port: int = 0
) -> Iterator[Target]:
    """Web processes, a worker and the schedule, as `manage.py up` starts them."""
    port = port or free_port()
    env = {"COSTWATCH_WEB_WORKERS": str(web_workers), "COSTWATCH_WORKER_PROCESSES": "1"}
    env |= {"COSTWATCH_LOG_LEVEL": "WARNING", "COSTWATCH_INSECURE_HTTP": "1"}
    command = [sys.executable, str(ROOT / "manage.py"), "up", "--bind", f"127.0.0.1:{port}"]
    with _running(command, port, "/readyz", env) as child:
        yield Target(
            port=port,
            path="/api/v1/prometheus/write",
            pids=(child.pid, postmaster_pid),
            headers={"Authorization": f"Bearer {token}"},
        )


@contextmanager
def _running(
    command: list[str], port: int, ready: str, env: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(command, env=os.environ | env, stdout=said, stderr=said)
        try:
            _wait_until_ready(child, f"http://127.0.0.1:{port}{ready}")
            yield child
        finally:
            if child.poll() is not None:  # nobody asked it to
                said.seek(0)
                sys.stderr.buffer.write(b"".join(said.readlines()[-LAST_LINES:]))
            child.terminate()
            child.wait(60)


def _wait_until_ready(child: subprocess.Popen[bytes], url: str) -> None:
    until_s = time.monotonic() + READY_S
    while time.monotonic() < until_s:
        if child.poll() is not None:
            raise SystemExit(f"{child.args} ended with {child.returncode}")
        with suppress(urllib.error.URLError, OSError), urllib.request.urlopen(url, timeout=1):
            return
        time.sleep(0.1)
    raise SystemExit(f"{url} did not answer within {READY_S} s")


class Connection:
    """One connection that is kept alive; a request that gets no 204 is sent again."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.client = http.client.HTTPConnection("127.0.0.1", target.port, timeout=60)
        self.headers = HEADERS | target.headers
        self.answers: Counter[int] = Counter()
        self.seconds: list[float] = []

    def send(self, body: bytes) -> None:
        start = time.perf_counter()
        while True:
            self.client.request("POST", self.target.path, body, self.headers)
            answer = self.client.getresponse()
            said = answer.read()
            self.answers[answer.status] += 1
            if answer.status < 500:
                break
            time.sleep(0.03)
        self.seconds.append(time.perf_counter() - start)
        if answer.status != 204:
            raise SystemExit(f"answered {answer.status}: {said[:300]!r}")


def replay(target: Target, ticks: Sequence[Sequence[bytes]], *, connections: int = 2) -> Replay:
    """Send all requests; a series always takes the same connection, as Prometheus' shards do."""
    lines = [Connection(target) for _ in range(connections)]

    def work(number: int) -> None:
        for tick in ticks:
            for body in tick[number::connections]:
                lines[number].send(body)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(connections)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall_s = time.perf_counter() - start
    seconds = sorted(one for line in lines for one in line.seconds)
    sent = sum(len(tick) for tick in ticks)
    answers = sum((line.answers for line in lines), Counter())
    if answers[204] != sent:
        raise SystemExit(f"{sent} requests sent, answered {dict(answers)}")
    return Replay(
        wall_s=wall_s,
        answers=answers,
        p95_s=seconds[int(len(seconds) * 0.95)],
        worst_s=seconds[-1],
    )


def _tree_cpu_s(pid: int) -> float:
    """User and system seconds of a process, its children, and those of theirs that have ended."""
    tick = os.sysconf("SC_CLK_TCK")
    with suppress(FileNotFoundError, ProcessLookupError):
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        fields = text.rpartition(")")[2].split()
        own = sum(int(fields[place]) for place in (11, 12, 13, 14)) / tick
        children = []
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += (task / "children").read_text(encoding="utf-8").split()
        return own + sum(_tree_cpu_s(int(child)) for child in children)
    return 0.0


def parent_of(pid: int) -> int:
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    return int(text.rpartition(")")[2].split()[1])

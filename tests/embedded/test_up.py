"""`manage.py up` answers over HTTP with all its processes, and takes all of them down."""

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.embedded.launching import CHECKOUT, everything_below, wait_until_gone

READY_WITHIN_S = 60.0
pytestmark = pytest.mark.servers


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def running(port: int, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "manage.py", "up", "--bind", f"127.0.0.1:{port}"]
    with subprocess.Popen(
        command,
        cwd=CHECKOUT,
        env=os.environ | {"COSTWATCH_DATA_DIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        yield process
        process.kill()


def wait_for_welcome(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout
    said, deadline = [], time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline:
        said.append(process.stdout.readline().rstrip())
        if "Ctrl-C stops everything." in said[-1]:
            return said
        assert process.poll() is None, said
    raise AssertionError(f"not ready within {READY_WITHIN_S} s: {said}")


def command_lines(pids: set[tuple[int, str]]) -> str:
    return "\n".join(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") for pid, _ in pids)


def test_up_serves_and_takes_all_its_processes_with_it(running: subprocess.Popen[str], port: int):
    said = "\n".join(wait_for_welcome(running))
    assert f"http://localhost:{port}/" in said
    assert "demo-costwatch" in said
    below = everything_below(running.pid)
    for what in ("-m granian", "-A costwatch worker", "-A costwatch.beat beat"):
        assert what in command_lines(below)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/healthz")
    assert connection.getresponse().status == http.client.OK
    connection.close()
    running.kill()  # the hardest stop; the gentle ones are tested with the supervisor
    assert wait_until_gone(below) == set()


def test_a_taken_port_stops_up_with_one_line(port: int):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        done = subprocess.run(
            [sys.executable, "manage.py", "up", "--bind", f"127.0.0.1:{port}"],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith(f"CommandError: Port {port} is taken; run: make run PORT=")
    assert len(done.stderr.splitlines()) == 1

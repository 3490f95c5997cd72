"""Web, worker and beat live and die together, and say which of them ended."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from costwatch.bind import BadBindError, Bind, parse_bind, require_free
from tests.embedded.launching import CHECKOUT, everything_below, wait_until_gone

SUPERVISE = """
import sys
from costwatch.supervisor import supervise
commands = dict(zip(sys.argv[1::2], (["sh", "-c", script] for script in sys.argv[2::2])))
sys.exit(supervise(commands, is_ready=lambda: True, when_ready="all is up"))
"""
LINGER = "echo here; exec sleep 600"


def supervised(**scripts: str) -> subprocess.Popen[str]:
    pairs = [part for pair in scripts.items() for part in pair]
    return subprocess.Popen(
        [sys.executable, "-c", SUPERVISE, *pairs], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True
    )


def test_one_that_ends_is_named_and_stops_the_others():
    with supervised(web=LINGER, worker="setsid sleep 600 & sleep 0.5; exit 3") as supervisor:
        assert supervisor.stdout
        said = supervisor.stdout.read().splitlines()
    assert supervisor.returncode == 1
    assert "The worker process ended by itself with exit status 3; stopping the others." in said


def test_their_lines_are_prefixed_and_readiness_is_said_once():
    with supervised(web=LINGER, worker="sleep 0.7; kill -9 $$") as supervisor:
        assert supervisor.stdout
        said = supervisor.stdout.read().splitlines()
    assert "web    | here" in said
    assert said.count("all is up") == 1
    assert "The worker process was killed by SIGKILL; stopping the others." in said


@pytest.mark.parametrize(
    ("signal_number", "status"),
    [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_a_stop_leaves_none_behind(signal_number: int, status: int):
    with supervised(web=LINGER, worker=LINGER) as supervisor:
        assert supervisor.stdout
        while supervisor.stdout.readline() != "all is up\n":
            pass
        below = everything_below(supervisor.pid)
        assert len(below) == 2
        os.kill(supervisor.pid, signal_number)
        assert supervisor.wait(timeout=20) == status
        assert wait_until_gone(below) == set()


def test_a_second_stop_signal_does_not_wait_for_work_in_hand():
    stubborn = "trap '' TERM; echo deaf; while :; do sleep 1; done"
    with supervised(web=stubborn) as supervisor:
        assert supervisor.stdout
        while "deaf" not in supervisor.stdout.readline():
            pass
        supervisor.send_signal(signal.SIGINT)
        while not supervisor.stdout.readline().startswith("Stopping."):
            pass
        supervisor.send_signal(signal.SIGINT)
        assert supervisor.wait(timeout=5) == 0


def test_a_taken_port_names_a_free_one():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(BadBindError, match=rf"^Port {port} is taken; run: make run PORT=\d+$"):
            require_free(Bind(host="127.0.0.1", port=port))


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("127.0.0.1:8000", "http://localhost:8000/"),
        ("0.0.0.0:8001", "http://localhost:8001/"),
        ("[::1]:8002", "http://[::1]:8002/"),
        ("8003", "http://localhost:8003/"),
        ("costs.example:80", "http://costs.example:80/"),
    ],
)
def test_an_address_becomes_the_url_to_type(text: str, url: str):
    assert parse_bind(text).local_url == url


@pytest.mark.parametrize("text", ["", "localhost", "localhost:", "localhost:0", "localhost:70000"])
def test_an_unreadable_address_says_what_to_write(text: str):
    with pytest.raises(BadBindError, match="write HOST:PORT"):
        parse_bind(text)

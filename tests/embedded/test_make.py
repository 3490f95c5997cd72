"""`make` says in one line what a machine lacks, before it touches anything."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.embedded.launching import CHECKOUT

OLD_PYTHON = '#!/bin/sh\ncase "$*" in *version_info*) exit 1;; -V) echo Python 3.9.2;; esac\n'
WITHOUT_VENV = '#!/bin/sh\ncase "$*" in *ensurepip*) echo Traceback >&2; exit 1;; esac\n'


@pytest.fixture
def empty_checkout(tmp_path: Path) -> Path:
    shutil.copy(CHECKOUT / "Makefile", tmp_path)
    shutil.copy(CHECKOUT / "requirements.lock", tmp_path)
    return tmp_path


def make(folder: Path, *arguments: str) -> list[str]:
    """The lines of a failing make, without make's own last one."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    *said, last = done.stderr.splitlines()
    assert last.startswith("make: ***")
    assert done.stdout == ""
    return said


def program(folder: Path, script: str) -> str:
    path = folder / "a-python"
    path.write_text(script)
    path.chmod(0o755)
    return str(path)


def test_a_machine_without_python_is_told_what_to_install(empty_checkout: Path):
    said = make(empty_checkout, "run", "PYTHON3=no-such-python")
    assert said == ["Python is missing: sudo apt-get install python3 python3-venv"]


def test_an_old_python_is_named_with_a_way_out(empty_checkout: Path):
    old = program(empty_checkout, OLD_PYTHON)
    assert make(empty_checkout, "run", f"PYTHON3={old}") == [
        f"Costwatch needs Python 3.11 or newer, and {old} is Python 3.9.2: "
        "name one, make run PYTHON3=python3.12"
    ]


def test_a_python_without_venv_is_told_what_to_install(empty_checkout: Path):
    said = make(empty_checkout, "run", f"PYTHON3={program(empty_checkout, WITHOUT_VENV)}")
    assert said == ["Python's venv is missing: sudo apt-get install python3-venv"]
    assert not (empty_checkout / ".uv").exists()


def test_a_taken_port_is_said_before_anything_starts():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        arguments = ["run", f"PORT={port}", "--assume-old=.venv/.ok", "--old-file=.uv/.ok"]
        said = make(CHECKOUT, *arguments)
    assert len(said) == 1
    assert said[0].startswith(f"Port {port} is taken; run: make run PORT=")

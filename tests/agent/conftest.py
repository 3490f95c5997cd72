"""What the agent's tests stand on: the fake NVML, a node's folders, a token, the agent itself."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from costwatch_agent.agent import Agent
from costwatch_agent.gpus import Gpus
from costwatch_agent.jobs import JobFinder
from costwatch_agent.options import options_of
from tests.agent.fake_nvml import LIBRARY, FakeNvml, compile_library

ROOT = Path(__file__).resolve().parents[2]
BOOTED_AT = 1_795_000_000


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the compiled fake."""
    folder = compile_library(tmp_path_factory.mktemp("nvml"))
    # Loaded by its path, it is what the name stands for in this process from here on.
    ctypes.CDLL(str(folder / LIBRARY))
    return folder


@pytest.fixture
def nvml(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """One GPU; the test says what else."""
    fake = FakeNvml(tmp_path / "nvml.state")
    monkeypatch.setenv("FAKE_NVML", str(fake.path))
    return fake


@dataclass
class Node:
    """A node's folders, as /proc and /sys would be."""

    root: Path

    def __post_init__(self) -> None:
        self.write("proc/sys/kernel/random/boot_id", "boot-1\n")
        self.write("proc/stat", f"cpu 1 2 3\nbtime {BOOTED_AT}\n")
        (self.root / "sys").mkdir()
        self.token = self.write("token", "cw_agent_secret\n")

    @property
    def proc(self) -> Path:
        return self.root / "proc"

    @property
    def sys(self) -> Path:
        return self.root / "sys"

    @property
    def spool(self) -> Path:
        return self.root / "spool"

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def process(self, pid: int, *, groups: str = "0::/user.slice\n", **environment: str) -> None:
        """A process with a control group and an environment."""
        self.write(f"proc/{pid}/stat", f"{pid} (py (th) on) S " + "0 " * 18 + f"{pid * 10} 0\n")
        self.write(f"proc/{pid}/cgroup", groups)
        pairs = "\0".join(f"{name}={value}" for name, value in environment.items())
        self.write(f"proc/{pid}/environ", f"SECRET=x\0{pairs}\0")

    def arguments(self, server: str, *more: str) -> list[str]:
        folders = ["--spool", self.spool, "--proc", self.proc, "--sys", self.sys]
        given = ["--server", server, "--token-file", self.token, "--name", "node-7", *folders]
        return [*map(str, given), "--listen", "off", *more]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "node")


@pytest.fixture
def gpus(nvml: FakeNvml, node: Node) -> Iterator[Callable[[], Gpus]]:
    """Makes the reader of the node's GPUs, as each start of the agent does."""
    made: list[Gpus] = []

    def make() -> Gpus:
        finder = JobFinder(node.proc, None)
        made.append(Gpus(proc=node.proc, state=node.root / "epochs.json", finder=finder))
        return made[-1]

    yield make
    for reader in made:
        reader.close()


@pytest.fixture
def agent(nvml: FakeNvml, node: Node) -> Callable[..., Agent]:
    """Makes an agent of this process."""
    return lambda server="http://127.0.0.1:9", *more: Agent(
        options_of(node.arguments(server, "--no-bmc", *more))
    )


@pytest.fixture
def command(
    nvml: FakeNvml, node: Node, library: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the agent as a process of its own."""

    def run(server: str, *more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "costwatch_agent", *node.arguments(server, *more)],
            env=agent_environment(nvml, library),
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


def agent_environment(nvml: FakeNvml, library: Path) -> dict[str, str]:
    """What a process needs to find the agent and the fake."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "agent"), **nvml.environment(library)}

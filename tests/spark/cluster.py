"""A real Spark cluster on loopback: a master and two workers of one core each, memory bounded."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from lake.java import java_home

WORKERS = 2
DAEMON_MB = 256
WORKER_MB = 1024
START_S = 90.0
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
HOME = Path(pyspark.__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A running cluster."""

    url: str
    folder: Path

    def executors(self) -> int:
        """How many executors have been started so far, over all workers."""
        return len(list(self.folder.glob("worker-*/work/app-*/*")))


@contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    """Start master and workers on free ports of loopback; stop them afterwards."""
    with ExitStack() as stack:
        master = _start(stack, folder / "master", [MASTER, "--port", "0"])
        url = _said(master, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        workers = []
        for number in range(WORKERS):
            place = folder / f"worker-{number}"
            options = ["--cores", "1", "--memory", f"{WORKER_MB}m", "--work-dir", f"{place}/work"]
            workers.append(_start(stack, place, [WORKER, "--port", "0", *options, url]))
        for worker in workers:
            _said(worker, r"(Successfully registered with master)")
        yield Cluster(url=url, folder=folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Daemon:
    process: "subprocess.Popen[bytes]"
    log: Path


def _start(stack: ExitStack, folder: Path, arguments: list[str]) -> _Daemon:
    folder.mkdir(parents=True)
    java = Path(java_home()) / "bin" / "java"
    environment = {
        **os.environ,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",
        "JAVA_HOME": str(java.parent.parent),
    }
    command = [java, "-cp", f"{HOME}/jars/*", f"-Xmx{DAEMON_MB}m", arguments[0]]
    command += ["--host", "127.0.0.1", "--webui-port", "0", *arguments[1:]]
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd=folder, env=environment)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return _Daemon(process=process, log=log)


def _said(daemon: _Daemon, pattern: str) -> str:
    """What the daemon's log says, once it says it."""
    end = time.monotonic() + START_S
    while time.monotonic() < end and daemon.process.poll() is None:
        if found := re.search(pattern, daemon.log.read_text(errors="replace")):
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"Spark did not start:\n{daemon.log.read_text(errors='replace')[-3000:]}")

"""What does the node agent cost a node with 8 GPUs, beside codecarbon and zeus in the same minutes?

Run: python bench/agent.py [--seconds 120] [--period 10] [--peers VENV]

All three read the same fake NVML every period, at the same time. The agent also writes its spool,
sends batches to a server on loopback (plain HTTP), and answers a Prometheus every 15 s; the others
measure in the mode that is nearest to it. VENV holds codecarbon and zeus; without it a throw-away
one is made, and where that fails the agent is measured alone, and it is said.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.agent.fake_nvml import FakeNvml, compile_library
from tests.agent.server import Oracle, serving

ROOT = Path(__file__).resolve().parent.parent
GPUS = 8
WARM_UP_S = 20
SCRAPE_EVERY_S = 15
PEERS = ("codecarbon", "zeus")
GOAL_FRACTION, GOAL_MB = 0.001, 50
CODECARBON = """
import logging, sys, time
from codecarbon import OfflineEmissionsTracker
from codecarbon.external.hardware import GPU
tracker = OfflineEmissionsTracker(country_iso_code="USA", measure_power_secs=float(sys.argv[1]),
    save_to_file=False, log_level=logging.CRITICAL, allow_multiple_runs=True)
tracker.start()
assert any(isinstance(part, GPU) for part in tracker._hardware), "it sees no GPU"
time.sleep(10_000)
"""
ZEUS = """
import logging, sys, time
from zeus.monitor import ZeusMonitor
logging.disable(logging.CRITICAL)
monitor = ZeusMonitor(gpu_indices=list(range(8)), cpu_indices=[], approx_instant_energy=False)
next_s = time.monotonic()
while True:
    monitor.begin_window("tick", sync_execution=False)
    next_s += float(sys.argv[1])
    time.sleep(max(0.0, next_s - time.monotonic()))
    monitor.end_window("tick", sync_execution=False)
"""


def cpu_s(pid: int) -> float:
    """The processor time that a process and its threads have had so far."""
    return time.clock_gettime((~pid << 3) | 2)  # the kernel's number for another process's clock


def children_s(pid: int) -> float:
    """That of its children that have ended: programs that it starts to measure."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    """The most that it had in memory at once."""
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024


def peers_python(given: Path | None, scratch: Path) -> Path | None:
    """A Python that has the peers; None where they cannot be installed."""
    venv = given or scratch / "peers"
    python = venv / "bin/python"
    try:
        if given is None:
            subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
            install = [str(python), "-m", "pip", "install", "--quiet", *PEERS]
            subprocess.run(install, check=True, capture_output=True)
        subprocess.run([str(python), "-c", "import codecarbon, zeus"], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"codecarbon and zeus are not measured: {error}", file=sys.stderr)
        return None
    return python


def start(command: list[str], environment: dict[str, str], folder: Path) -> subprocess.Popen[bytes]:
    """A reader, its words in a file."""
    folder.mkdir()
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)


def agent_command(url: str, folder: Path, period_s: float) -> list[str]:
    token = folder / "token"
    token.write_text("bench", encoding="utf-8")
    every = [f"--period={period_s}", f"--send-every={period_s * 3}", "--listen=127.0.0.1:9837"]
    files = [f"--token-file={token}", f"--spool={folder / 'spool'}"]
    return [sys.executable, "-m", "costwatch_agent", f"--server={url}", *files, *every]


def watch(
    readers: dict[str, subprocess.Popen[bytes]], seconds: float
) -> dict[str, dict[str, float]]:
    """Each reader's cost over the window, its start left out."""
    time.sleep(WARM_UP_S)
    before = {name: (cpu_s(one.pid), children_s(one.pid)) for name, one in readers.items()}
    started_s = time.monotonic()
    while (left_s := started_s + seconds - time.monotonic()) > 0:
        time.sleep(min(SCRAPE_EVERY_S, left_s))
        urllib.request.urlopen("http://127.0.0.1:9837/metrics", timeout=5).read()
    window_s = time.monotonic() - started_s
    costs = {}
    for name, one in readers.items():
        if one.poll() is not None:
            raise SystemExit(f"{name} ended with status {one.returncode}")
        own, ended = cpu_s(one.pid) - before[name][0], children_s(one.pid) - before[name][1]
        costs[name] = {
            "core_percent": round((own + ended) / window_s * 100, 4),
            "memory_mb": round(memory_mb(one.pid), 1),
        }
    return costs


def main() -> int:
    """Measure and print one JSON document; 1 when the agent misses its goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--period", type=float, default=10)
    parser.add_argument("--peers", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as text, serving(Oracle()) as url:
        folder = Path(text)
        fake = FakeNvml(folder / "nvml", gpus=GPUS)
        for index in range(GPUS):
            fake.rises(index, 500.0 + index)
        library = compile_library(folder / "library")
        # codecarbon takes a machine for NVIDIA's when this program answers, whatever it says.
        (library / "nvidia-smi").write_text("#!/bin/sh\n", encoding="utf-8")
        (library / "nvidia-smi").chmod(0o755)
        path = {"PATH": f"{library}:{os.environ['PATH']}"}
        base = {**os.environ, **fake.environment(library), **path}
        ours = {**base, "PYTHONPATH": str(ROOT / "agent")}
        readers = {
            "agent": start(agent_command(url, folder, options.period), ours, folder / "agent")
        }
        try:
            python = peers_python(options.peers, folder)
            for name, program in (("codecarbon", CODECARBON), ("zeus", ZEUS)) if python else ():
                command = [str(python), "-c", program, str(options.period)]
                readers[name] = start(command, base, folder / name)
            costs = watch(readers, options.seconds)
        finally:
            for one in readers.values():
                one.terminate()
                one.wait()
    fits = costs["agent"]["core_percent"] < GOAL_FRACTION * 100 * 10 / options.period
    fits = fits and costs["agent"]["memory_mb"] < GOAL_MB
    about = {"gpus": GPUS, "period_s": options.period, "window_s": options.seconds, "fits": fits}
    print(json.dumps(about | costs))
    return 0 if fits else 1


if __name__ == "__main__":
    sys.exit(main())

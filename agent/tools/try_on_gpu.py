"""Try the agent on a real GPU, against a server on loopback; needs nothing but nvidia-ml-py.

Run in the checkout, on a machine with a GPU: PYTHONPATH=agent python3 agent/tools/try_on_gpu.py
Loads the GPU with torch or cupy where one is there, idle before and after. Compares the counter's
rise with the power's integral as the agent read them, and with power polled ten times as often.
Prints one JSON document.
"""

import argparse
import gzip
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pynvml

PACKAGE = Path(__file__).resolve().parents[1]
LOAD = """
import sys, time
try:
    import torch
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    step, wait, name = lambda: a @ a, torch.cuda.synchronize, "torch"
except ImportError:
    import cupy
    a = cupy.random.randn(8192, 8192).astype(cupy.float32)
    step, wait, name = lambda: a @ a, cupy.cuda.Device().synchronize, "cupy"
print(name, flush=True)
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    for _ in range(20):
        step()
    wait()
"""
Batches = list[dict[str, Any]]


def serve(batches: Batches) -> ThreadingHTTPServer:
    """A server that takes every batch."""

    class Handler(BaseHTTPRequestHandler):
        """Keeps what comes."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            batches.append(json.loads(gzip.decompress(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def poll(handle: Any, every_s: float, stop: threading.Event, points: list[list[float]]) -> None:
    """Read counter and power of a device by ourselves."""
    while not stop.wait(every_s):
        counter_j = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000
        points.append([time.time(), counter_j, pynvml.nvmlDeviceGetPowerUsage(handle) / 1000])


def compared(points: list[list[float]]) -> dict[str, float | int]:
    """The counter's rise and the power's trapezoids over the same instants."""
    integral_j = sum(
        (after[0] - before[0]) * (before[2] + after[2]) / 2
        for before, after in itertools.pairwise(points)
    )
    counted_j = points[-1][1] - points[0][1]
    return {
        "readings": len(points),
        "seconds": round(points[-1][0] - points[0][0], 3),
        "counter_j": round(counted_j, 1),
        "power_integral_j": round(integral_j, 1),
        "divergence": round((integral_j - counted_j) / max(counted_j, integral_j, 1e-9), 5),
    }


def as_sent(batches: Batches) -> list[list[float]]:
    """The first device's readings that the agent sent."""
    points = []
    for batch in batches:
        readings = batch["readings"]
        columns = (readings[name] for name in ("device", "at_ms", "counter_millijoule", "power_w"))
        for device, at_ms, counter, power_w in zip(*columns, strict=True):
            if device == 0 and counter is not None and power_w is not None:
                points.append([at_ms / 1000, counter / 1000, power_w])
    return sorted(points)


def phase(points: list[list[float]], span: tuple[float, float]) -> dict[str, float | int] | None:
    """The comparison within a span of time."""
    chosen = [point for point in points if span[0] <= point[0] <= span[1]]
    return compared(chosen) if len(chosen) > 2 else None


def load_gpu(seconds: float) -> str:
    """Keep the GPU busy; which library did it."""
    command = [sys.executable, "-c", LOAD, str(seconds)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.stdout.strip() or f"nothing: {run.stderr.strip().splitlines()[-1:]}"


def cpu_s(pid: int) -> float:
    """The processor time of the agent, by the kernel's clock of that process."""
    return time.clock_gettime((~pid << 3) | 2)


def run_agent(url: str, folder: Path, period_s: float) -> subprocess.Popen[bytes]:
    """The agent, as a user starts it."""
    (folder / "token").write_text("none", encoding="ascii")
    given = ["--server", url, "--token-file", folder / "token", "--spool", folder / "spool"]
    every = ["--period", period_s, "--send-every", period_s * 5, "--listen", "off"]
    command = [sys.executable, "-m", "costwatch_agent", *map(str, [*given, *every])]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(PACKAGE)})


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Idle, busy, idle; what the agent sent and what it cost."""
    batches: Batches = []
    own: list[list[float]] = []
    server = serve(batches)
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    agent = run_agent(f"http://127.0.0.1:{server.server_address[1]}", folder, options.period)
    stop = threading.Event()
    poller = threading.Thread(target=poll, args=(handle, options.period / 10, stop, own))
    poller.start()
    time.sleep(options.idle)
    busy_at, cpu_before_s = time.time(), cpu_s(agent.pid)
    load = load_gpu(options.busy)
    rest_at = time.time()
    time.sleep(options.idle)
    used_s, window_s = cpu_s(agent.pid) - cpu_before_s, time.time() - busy_at
    status = Path(f"/proc/{agent.pid}/status").read_text("utf-8")
    stop.set()
    poller.join()
    agent.terminate()
    agent.wait()
    sent = as_sent(batches)
    # Library and context come up first: the busy phase begins when the power has risen.
    busy = (busy_at + options.busy * 0.4, rest_at - 2)
    return {
        "gpu": pynvml.nvmlDeviceGetName(handle),
        "driver": pynvml.nvmlSystemGetDriverVersion(),
        "power_field": batches[0]["readings"].get("power_field") if batches else None,
        "load": load,
        "all": {"agent": compared(sent), "polled": compared(own)},
        "busy": {"agent": phase(sent, busy), "polled": phase(own, busy)},
        "idle": {"agent": phase(sent, (0, busy_at)), "polled": phase(own, (0, busy_at))},
        "agent_core_percent": round(used_s / window_s * 100, 4),
        "agent_memory_kb": status.partition("VmHWM:")[2].split()[0],
        "last": {name: v[-1] for name, v in batches[-1]["readings"].items() if isinstance(v, list)},
        "devices": batches[-1]["devices"],
        "node_readings": batches[-1]["node_readings"][-2:],
        "jobs": [job for batch in batches for job in batch["jobs"]][:4],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--period", type=float, default=1.0)
    parser.add_argument("--idle", type=float, default=30.0, help="seconds before and after")
    parser.add_argument("--busy", type=float, default=60.0, help="seconds of load")
    options = parser.parse_args()
    pynvml.nvmlInit()
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(json.dumps(measure(options, Path(folder)), indent=1) + "\n")


if __name__ == "__main__":
    main()

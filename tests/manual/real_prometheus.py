"""A real Prometheus scrapes made-up GPUs and remote-writes to Costwatch, which is down meanwhile.

    python -m costwatch.embedded -- python -m tests.manual.real_prometheus run
    python -m tests.manual.real_prometheus capture FOLDER

`run` takes about eleven minutes: Costwatch is stopped for a minute in the middle, and at the end
its energy must be within 0.1 % of the truth. `capture` keeps request bodies of a Prometheus.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.power_ingest import Books  # noqa: E402
from bench.power_servers import Target, costwatch, free_port  # noqa: E402
from tests.manual.fake_gpus import FakeGpus  # noqa: E402

CONFIG = """
global: {{scrape_interval: {every_s}s, scrape_timeout: {every_s}s}}
scrape_configs:
  - job_name: dcgm
    static_configs: [{{targets: ["127.0.0.1:{exporter}"]}}]
remote_write:
  - url: http://127.0.0.1:{port}/api/v1/prometheus/write
    authorization: {{credentials: "{token}"}}
    metadata_config: {{send: {metadata}, send_interval: 5s}}
    queue_config: {{retry_on_http_429: true, batch_send_deadline: 2s}}
"""
WITHIN = 0.001


@contextlib.contextmanager
def prometheus(folder: Path, **values: object) -> Iterator[None]:
    program = shutil.which("prometheus")
    if program is None:
        raise SystemExit("prometheus is not installed: apt-get install prometheus")
    config = folder / "prometheus.yml"
    config.write_text(CONFIG.format(**values), encoding="utf-8")
    command = [program, f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}"]
    command += [f"--web.listen-address=127.0.0.1:{free_port()}", "--log.level=warn"]
    child = subprocess.Popen(command)
    try:
        yield
    finally:
        child.terminate()  # it sends what waits before it ends
        child.wait(120)


def run(*, minutes: float, outage_s: float, gpus: int) -> int:
    """Scrape, be down, come back; then compare the energy."""
    with tempfile.TemporaryDirectory() as name:
        os.environ["COSTWATCH_DATA_DIR"] = name
        books = Books()
        site, token = books.site("real")
        port = free_port()
        exporter = FakeGpus(gpus)
        values = {"every_s": 5, "exporter": exporter.port, "port": port, "token": token}
        half_s = (minutes * 60 - outage_s) / 2
        with contextlib.ExitStack() as to_the_end:
            with prometheus(Path(name), metadata="true", **values):
                with _serving(books, token, port):
                    time.sleep(half_s)
                print(f"down for {outage_s:.0f} s", flush=True)
                time.sleep(outage_s)
                to_the_end.enter_context(_serving(books, token, port))
                time.sleep(half_s)
                exporter.stop()  # stale markers follow
                time.sleep(15)
            books.wait_until_booked(site)  # Prometheus has sent what it had when it ended
        after = datetime.now(tz=UTC) + timedelta(hours=2)
        ours, truth = books.energy_j(site, after=after), exporter.truth_j()
        rows = books.one(
            "SELECT count(*) FROM carbon_counterreading c JOIN runs_device d "
            "ON d.id = c.device_id WHERE d.site_id = %s",
            site.site_id,
        )
    scrapes = len(exporter.scraped_s)
    print(f"{scrapes} scrapes of {gpus} GPUs: {rows} of {scrapes * gpus} counters stored")
    error = ours / truth - 1
    print(f"{ours / 3.6e6:.4f} kWh, truth {truth / 3.6e6:.4f} kWh: {error:+.4%}")
    return int(abs(error) > WITHIN or rows != scrapes * gpus)


def _serving(books: Books, token: str, port: int) -> contextlib.AbstractContextManager[Target]:
    return costwatch(web_workers=2, token=token, postmaster_pid=books.postmaster_pid, port=port)


def capture(folder: Path) -> int:
    """Keep what a Prometheus sends: metadata, two GPUs (one sliced, one idle), stale markers."""
    folder.mkdir(parents=True, exist_ok=True)
    bodies: list[bytes] = []
    handler = type("Handler", (_Keeper,), {"bodies": bodies})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    exporter = FakeGpus(16, slices=True)
    port = server.server_address[1]
    values = {"every_s": 2, "exporter": exporter.port, "port": port, "token": "cw_none"}
    with tempfile.TemporaryDirectory() as name, prometheus(Path(name), metadata="true", **values):
        time.sleep(12)
        exporter.stop()
        time.sleep(12)
    server.shutdown()
    for number, body in enumerate(bodies):
        (folder / f"prometheus-{number:02d}.bin").write_bytes(body)
    print(f"{len(bodies)} bodies, {sum(map(len, bodies))} bytes; truth {exporter.truth_j()!r} J")
    return 0


class _Keeper(BaseHTTPRequestHandler):
    bodies: list[bytes]

    def do_POST(self) -> None:  # the name is the library's
        print(dict(self.headers))
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("run", "capture"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--outage", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--gpus", type=int, default=256)
    wanted = parser.parse_args()
    if wanted.what == "capture":
        return capture(wanted.folder or Path("captured"))
    return run(minutes=wanted.minutes, outage_s=wanted.outage, gpus=wanted.gpus)


if __name__ == "__main__":
    sys.exit(main())

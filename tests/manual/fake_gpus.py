"""An exporter of GPUs whose energy is known exactly, as dcgm-exporter would show them."""

import math
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MEAN_W, SWING_W, PERIOD_S = 450.0, 200.0, 97.0


class FakeGpus:
    """GPUs whose power is a sine of their own phase; some idle at exactly 0 W and 0 %."""

    def __init__(self, count: int, *, slices: bool = False) -> None:
        self.count = count
        self.slices = slices
        self.begun_s = time.time()
        self.scraped_s: list[float] = []
        handler = type("Handler", (_Handler,), {"gpus": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def power_w(self, gpu: int, at_s: float) -> float:
        if gpu % 16 == 15:
            return 0.0
        return MEAN_W + SWING_W * math.sin(math.tau * (at_s - self.begun_s) / PERIOD_S + gpu)

    def energy_j(self, gpu: int, at_s: float) -> float:
        """The integral of the power since the exporter began."""
        if gpu % 16 == 15:
            return 0.0
        span_s, turn = at_s - self.begun_s, math.tau / PERIOD_S
        return MEAN_W * span_s + SWING_W / turn * (math.cos(gpu) - math.cos(turn * span_s + gpu))

    def truth_j(self) -> float:
        """All energy between the first and the last scrape."""
        first_s, last_s = self.scraped_s[0], self.scraped_s[-1]
        return sum(
            self.energy_j(gpu, last_s) - self.energy_j(gpu, first_s) for gpu in range(self.count)
        )

    def page(self) -> str:
        """What a scrape reads; it is noted."""
        now_s = time.time()
        self.scraped_s.append(now_s)
        lines = []
        for name, kind, value in (
            ("DCGM_FI_DEV_POWER_USAGE", "gauge", self.power_w),
            ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", self._millijoule),
            ("DCGM_FI_DEV_GPU_UTIL", "gauge", self._percent),
        ):
            lines += [f"# HELP {name} of a made-up GPU", f"# TYPE {name} {kind}"]
            lines += [
                f"{name}{{{labels}}} {value(gpu, now_s)!r}"
                for gpu in range(self.count)
                for labels in self._labels(gpu)
            ]
        return "\n".join(lines) + "\n"

    def _millijoule(self, gpu: int, at_s: float) -> int:
        return round(self.energy_j(gpu, at_s) * 1000)

    def _percent(self, gpu: int, at_s: float) -> int:
        return 0 if gpu % 16 == 15 else 97

    def _labels(self, gpu: int) -> list[str]:
        text = (
            f'gpu="{gpu % 8}",UUID="GPU-{gpu:08x}-0000-4000-8000-000000000000",'
            f'device="nvidia{gpu % 8}",modelName="NVIDIA H100 80GB HBM3",'
            f'Hostname="node-{gpu // 8:03d}"'
        )
        if self.slices and gpu == 0:
            return [f'{text},GPU_I_ID="{one}",GPU_I_PROFILE="3g.40gb"' for one in (1, 2)]
        return [text]


class _Handler(BaseHTTPRequestHandler):
    gpus: FakeGpus

    def do_GET(self) -> None:  # the name is the library's
        content = self.gpus.page().encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Say nothing."""

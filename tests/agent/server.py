"""A server of batches on loopback that judges what arrives; it shares no code with the agent."""

import base64
import hashlib
import json
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CUT = -1  # store the batch, then hang up without an answer
COLUMNS = {
    "device", "at_ms", "counter_millijoule", "power_w", "power_field", "utilisation_fraction",
    "memory_used_bytes", "temperature_c", "sm_clock_hz", "power_limit_w", "throttle_reasons",
    "xid", "ecc_errors",
}  # fmt: skip


@dataclass
class Oracle:
    """What arrived, and how often."""

    answer: Callable[[int], int] = lambda number: 200  # the status of the n-th request
    retry_after: str | None = None
    requests: int = 0
    bodies: dict[tuple[str, int], str] = field(default_factory=dict)  # (boot, sequence): digest
    documents: list[dict[str, Any]] = field(default_factory=list)  # in the order of arrival
    repeats: int = 0
    faults: list[str] = field(default_factory=list)
    rows: Counter[tuple[str, int, int | None]] = field(default_factory=Counter)
    dropped: int = 0
    tokens: set[str] = field(default_factory=set)

    def take(self, headers: Any, body: bytes) -> int:
        """The status; 200 only for what is whole."""
        self.requests += 1
        self.tokens.add(headers.get("Authorization", ""))
        status = self.answer(self.requests)
        if status not in {200, CUT}:
            return status
        digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
        if headers.get("Content-Digest") != f"sha-256=:{digest}:":
            return self._fault(400, f"digest {headers.get('Content-Digest')}")
        document = json.loads(zlib.decompress(body, wbits=31))
        key = (document["boot"], document["sequence"])
        if key in self.bodies:
            if self.bodies[key] != digest:
                return self._fault(409, f"{key} with other bytes")
            self.repeats += 1
            return status
        self.bodies[key] = digest
        self._check(document)
        self._count(document)
        return status

    def _fault(self, status: int, text: str) -> int:
        self.faults.append(text)
        return status

    def _check(self, document: dict[str, Any]) -> None:
        readings = document["readings"]
        if document["format"] != "costwatch-agent/1":
            self._fault(400, document["format"])
        lengths = {len(value) for value in readings.values() if isinstance(value, list)}
        if len(lengths) > 1 or set(readings) - COLUMNS or not {"device", "at_ms"} <= set(readings):
            self._fault(400, f"columns {sorted(readings)} of lengths {lengths}")

    def _count(self, document: dict[str, Any]) -> None:
        self.documents.append(document)
        self.dropped += document["dropped"]
        readings = document["readings"]
        counters = readings.get("counter_millijoule", [None] * len(readings["device"]))
        for device, at_ms, counter in zip(
            readings["device"], readings["at_ms"], counters, strict=True
        ):
            self.rows[document["devices"][device]["uuid"], at_ms, counter] += 1

    @property
    def counters(self) -> Counter[int | None]:
        """Every counter's value that arrived, as a real server keeps it: each reading once."""
        return Counter(counter for _, _, counter in self.rows)


class _Handler(BaseHTTPRequestHandler):
    oracle: Oracle
    lock: threading.Lock

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.lock:
            status = self.oracle.take(self.headers, body)
        if self.path != "/api/v1/power/batches":
            status = 404
        if status == CUT:
            self.close_connection = True
            return
        self.send_response(status)
        if self.oracle.retry_after:
            self.send_header("Retry-After", self.oracle.retry_after)
        self.end_headers()
        self.wfile.write(b'{"code": "x", "message": "said by the test"}')

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def serving(oracle: Oracle, port: int = 0) -> Iterator[str]:
    """The address at which the oracle listens."""
    handler = type("Handler", (_Handler,), {"oracle": oracle, "lock": threading.Lock()})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""A door for progress on loopback, as the wire format says; it shares no code with the agent."""

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CUT = -1  # store the batch, then hang up without an answer
RECORD = {
    "at", "step", "tokens_total", "step_time_s", "world_size", "loss", "grad_norm",
    "learning_rate", "data_s", "communication_s", "checkpoint_s", "reported_mfu_fraction",
    "data_shard",
}  # fmt: skip
EVENT = {"at", "kind", "step", "to_step", "detail", "duration_s"}
KINDS = {"start", "restart", "checkpoint", "rollback", "stop", "note"}


@dataclass
class ProgressDoor:
    """What arrived, each record once, by the path that it came to."""

    answer: Callable[[int], int] = lambda number: 200
    refuse: Callable[[dict[str, Any]], bool] = lambda record: False
    requests: int = 0
    records: dict[tuple[str, str, str, int], dict[str, Any]] = field(default_factory=dict)
    events: dict[tuple[str, str, str, str, int | None], dict[str, Any]] = field(
        default_factory=dict
    )
    known: int = 0
    faults: list[str] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    tokens: set[str] = field(default_factory=set)

    def take(self, path: str, headers: Any, body: bytes) -> tuple[int, dict[str, Any]]:
        self.requests += 1
        self.paths.add(path)
        self.tokens.add(headers.get("Authorization", ""))
        status = self.answer(self.requests)
        if status not in {200, CUT}:
            return status, {"detail": "said by the test"}
        document = json.loads(gzip.decompress(body))
        if document.get("format") != "costwatch-progress/1" or not document.get("source"):
            self.faults.append(f"format {document.get('format')} source {document.get('source')}")
            return 400, {}
        said: dict[str, Any] = {"points_new": 0, "points_known": 0, "events_new": 0, "refused": []}
        for index, record in enumerate(document["records"]):
            self._record(path, document["source"], index, record, said)
        for event in document["events"]:
            self._event(path, document["source"], event, said)
        return status, said

    def _record(
        self, path: str, source: str, index: int, record: dict[str, Any], said: dict[str, Any]
    ) -> None:
        if set(record) - RECORD or not isinstance(record.get("step"), int):
            self.faults.append(f"record {record}")
        if self.refuse(record):
            said["refused"].append({"index": index, "field": "step", "reason": "said by the test"})
            return
        key = (path, source, record["at"], record["step"])
        if key in self.records:
            said["points_known"] += 1
            self.known += 1
            if self.records[key] != record:
                self.faults.append(f"{key} said otherwise")
            return
        said["points_new"] += 1
        self.records[key] = record

    def _event(self, path: str, source: str, event: dict[str, Any], said: dict[str, Any]) -> None:
        if set(event) - EVENT or event.get("kind") not in KINDS:
            self.faults.append(f"event {event}")
        said["events_new"] += 1
        self.events[path, source, event["at"], event["kind"], event.get("step")] = event

    @property
    def steps(self) -> list[int]:
        return [step for _, _, _, step in self.records]

    @property
    def kinds(self) -> list[str]:
        return [event["kind"] for event in self.events.values()]


class _Handler(BaseHTTPRequestHandler):
    door: ProgressDoor
    lock: threading.Lock

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.lock:
            status, said = self.door.take(self.path, self.headers, body)
        if status == CUT:
            self.close_connection = True
            return
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(said).encode())

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def progress_door(door: ProgressDoor, port: int = 0) -> Iterator[str]:
    """The address at which the door is open."""
    handler = type("Handler", (_Handler,), {"door": door, "lock": threading.Lock()})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

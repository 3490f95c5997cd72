"""Senders with a ledger of their own, and a proxy that loses answers. No code of Costwatch.

What was sent, and what was acknowledged, stands in plain Python: the oracle of the fault tests.
"""

import base64
import hashlib
import http.client
import json
import random
import socket
import socketserver
import struct
import threading
import time
import uuid
from collections import Counter
from contextlib import suppress

BATCH_TICKS = 4
DEVICES = 4


class Ledger:
    """Everything that was sent and acknowledged, by all senders."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sent: dict[tuple[str, int], tuple[float, int | None]] = {}  # device, ms: W, mJ
        self.acked: set[tuple[str, int]] = set()
        self.quarantined: set[tuple[str, int]] = set()
        self.answers: Counter[str] = Counter()
        self.requests = 0
        self.resent = 0

    def note(self, answer: str, *, is_again: bool) -> None:
        with self.lock:
            self.answers[answer] += 1
            self.requests += 1
            self.resent += is_again


class Sender(threading.Thread):
    """Sends bodies until told to stop; each again until it is acknowledged."""

    def __init__(self, ledger: Ledger, port: int, token: str, *, seed: int) -> None:
        super().__init__(daemon=True)
        self.ledger, self.port, self.token = ledger, port, token
        self.random = random.Random(seed)
        self.stopping = threading.Event()
        self.given_up = False
        self.made = 0

    def body(self) -> tuple[bytes, dict[str, str], dict[tuple[str, int], tuple[float, int | None]]]:
        raise NotImplementedError

    path = ""
    taken = {200}

    def run(self) -> None:
        while not self.stopping.is_set():
            body, headers, readings = self.body()
            with self.ledger.lock:
                self.ledger.sent |= readings
            self.deliver(body, headers)
            with self.ledger.lock:
                self.ledger.acked |= set(readings)
            self.made += 1
            time.sleep(self.random.uniform(0.02, 0.12))

    def deliver(self, body: bytes, headers: dict[str, str]) -> None:
        is_again = False
        while True:
            answer = self.post(body, headers)
            self.ledger.note(answer, is_again=is_again)
            if answer.isdigit() and int(answer) in self.taken:
                return
            is_again = True
            time.sleep(self.random.uniform(0.05, 0.2))

    def post(self, body: bytes, headers: dict[str, str]) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=15)
        try:
            headers = {**headers, "Authorization": f"Bearer {self.token}"}
            connection.request("POST", self.path, body, headers)
            return str(connection.getresponse().status)
        except (OSError, http.client.HTTPException) as error:
            return type(error).__name__
        finally:
            connection.close()


class Agent(Sender):
    """An agent with four devices; its clock may be off."""

    path = "/api/v1/power/batches"

    def __init__(self, *args, name: str, start_ms: int, **more) -> None:
        super().__init__(*args, **more)
        self.agent, self.boot, self.at_ms = (
            name,
            str(uuid.UUID(int=self.random.getrandbits(128))),
            start_ms,
        )
        self.sequence = 0
        self.counter = [self.random.randrange(10**12) for _ in range(DEVICES)]
        self.first_counter = list(self.counter)

    def body(self):
        self.sequence += 1
        columns: dict[str, list] = {
            "device": [],
            "at_ms": [],
            "counter_millijoule": [],
            "power_w": [],
        }
        readings: dict[tuple[str, int], tuple[float, int | None]] = {}
        for _ in range(BATCH_TICKS):
            self.at_ms += 10_000
            for device in range(DEVICES):
                power_w = round(self.random.uniform(80, 690), 3)
                self.counter[device] += self.random.randrange(800_000, 6_900_000)
                row = (device, self.at_ms, self.counter[device], power_w)
                for column, value in zip(columns.values(), row, strict=True):
                    column.append(value)
                readings[self.uuid(device), self.at_ms] = (power_w, self.counter[device])
        document = {
            "format": "costwatch-agent/1",
            "agent": {"name": self.agent, "version": "0.0.1"},
            "boot": self.boot,
            "sequence": self.sequence,
            "node": self.agent,
            "devices": [
                {"uuid": self.uuid(device), "power_limit_w": 700.0, "epoch": 1}
                for device in range(DEVICES)
            ],
            "readings": {**columns, "power_field": "instant"},
        }
        body = json.dumps(document).encode()
        digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
        headers = {"Content-Type": "application/json", "Content-Digest": f"sha-256=:{digest}:"}
        return body, headers, readings

    def uuid(self, device: int) -> str:
        return f"GPU-{self.agent}-{device}"


class ClockAhead(Agent):
    """An agent whose clock is a year ahead: its readings are taken into quarantine."""

    taken = {202}


class Prometheus(Sender):
    """A Prometheus with four devices, power only; 204 is taken."""

    path = "/api/v1/prometheus/write"
    taken = {204}

    def __init__(self, *args, start_ms: int, **more) -> None:
        super().__init__(*args, **more)
        self.at_ms = start_ms

    def body(self):
        series, readings = b"", {}
        times = [self.at_ms + 5_000 * (tick + 1) for tick in range(BATCH_TICKS)]
        self.at_ms = times[-1]
        for device in range(DEVICES):
            samples = b""
            for at_ms in times:
                power_w = round(self.random.uniform(80, 690), 3)
                sample = b"\x09" + struct.pack("<d", power_w) + b"\x10" + varint(at_ms)
                samples += b"\x12" + varint(len(sample)) + sample
                readings[f"GPU-prom-{device}", at_ms] = (power_w, None)
            labels = {
                "UUID": f"GPU-prom-{device}",
                "__name__": "DCGM_FI_DEV_POWER_USAGE",
                "gpu": str(device),
                "instance": "n1:9400",
                "job": "dcgm",
            }
            one = b"".join(label(name, labels[name]) for name in sorted(labels)) + samples
            series += b"\x0a" + varint(len(one)) + one
        headers = {
            "Content-Type": "application/x-protobuf",
            "Content-Encoding": "snappy",
            "X-Prometheus-Remote-Write-Version": "0.1.0",
        }
        return snappy(series), headers, readings


def varint(number: int) -> bytes:
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def label(name: str, value: str) -> bytes:
    parts = b""
    for tag, text in ((b"\x0a", name), (b"\x12", value)):
        parts += tag + varint(len(text)) + text.encode()
    return b"\x0a" + varint(len(parts)) + parts


def snappy(plain: bytes) -> bytes:
    """A valid snappy block of literals alone."""
    packed = varint(len(plain))
    for start in range(0, len(plain), 60):
        chunk = plain[start : start + 60]
        packed += bytes([(len(chunk) - 1) << 2]) + chunk
    return packed


class Proxy(socketserver.ThreadingTCPServer):
    """Between senders and the web: loses answers after they were given, repeats a fifth."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, to_port: int, *, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), _Carry)
        self.to_port = to_port
        self.random = random.Random(seed)
        self.cut = self.replayed = 0
        self.replay_answers: Counter[str] = Counter()

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Carry(socketserver.BaseRequestHandler):
    server: Proxy

    def handle(self) -> None:
        with suppress(OSError):
            request = self._request()
            answer = self._pass_on(request)
            chance = self.server.random.random()
            if chance < 0.2:
                self.server.replayed += 1
                again = self._pass_on(request)
                self.server.replay_answers[again[9:12].decode() or "cut"] += 1
            if 0.15 < chance < 0.3:  # some of them after a repeat
                self.server.cut += 1
                return
            self.request.sendall(answer)

    def _request(self) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, rest = data.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next(int(one[15:]) for one in lines if one.startswith(b"content-length:"))
        while len(rest) < length:
            rest += self._more()
        return head + b"\r\nConnection: close\r\n\r\n" + rest

    def _more(self) -> bytes:
        data = self.request.recv(65536)
        if not data:
            raise OSError("the sender went away")
        return bytes(data)

    def _pass_on(self, request: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.server.to_port), 15) as web:
            web.sendall(request)
            answer = b""
            while data := web.recv(65536):
                answer += data
        return answer

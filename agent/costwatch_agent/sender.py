"""Sends waiting batches in their order, and does with each answer what the contract says.

200 the batch leaves the spool. 400, 409, 413, 415, 422 it never will be taken: it is set aside,
with the reason, and the next follows. 401, 403 and 404 the token or the address is wrong: the
spool is kept and the agent says so. All else (429, 5xx, no answer) is tried again, ever slower.
"""

import base64
import email.utils
import hashlib
import http.client
import logging
import random
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from costwatch_agent import VERSION
from costwatch_agent.spool import Spool, Waiting

log = logging.getLogger(__name__)
PATH: Final = "/api/v1/power/batches"
TIMEOUT_S: Final = 30.0
FIRST_WAIT_S: Final = 1.0
LONGEST_WAIT_S: Final = 300.0
REFUSED_WAIT_S: Final = 60.0  # between two tries while the token or the address is wrong
MAX_ANSWER_BYTES: Final = 64 * 1024
SKEW_WARNING_S: Final = 60.0
NEVER: Final = frozenset({400, 409, 413, 415, 422})
KEEP: Final = frozenset({301, 302, 303, 307, 308, 401, 403, 404, 405})
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class Fate(Enum):
    """What becomes of a batch."""

    TAKEN = "taken"
    SET_ASIDE = "set aside"
    KEPT = "kept"  # until somebody mends the token or the address
    AGAIN = "again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the server said; status 0: nothing at all."""

    status: int
    text: str = ""
    retry_after_s: float | None = None
    date_s: float | None = None


@dataclass(slots=True, kw_only=True)
class SendTally:
    """How sending goes, for the endpoint."""

    taken: int = 0
    failures: dict[str, int] = field(default_factory=dict)  # by status, or "no answer"
    last_taken_s: float | None = None
    refused: int = 0  # the status while the server refuses the token or the address
    skew_s: float | None = None  # the node's clock minus the server's


def fate_of(status: int) -> Fate:
    """The published contract."""
    if 200 <= status < 300:
        return Fate.TAKEN
    if status in NEVER:
        return Fate.SET_ASIDE
    return Fate.KEPT if status in KEEP else Fate.AGAIN


class AddressError(ValueError):
    """The server's address cannot be used; the text says why."""


def address(url: str, *, allow_plain_http: bool) -> SplitResult:
    """The parts of the server's address. AddressError: it is none, or would show the token."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise AddressError(f"{url!r} is no address: write https://host or https://host/path")
    if parts.username or parts.password:
        raise AddressError("the address holds a password: the token belongs in --token-file")
    plain = parts.scheme == "http" and parts.hostname not in LOOPBACK
    if plain and not allow_plain_http:
        raise AddressError(
            f"{url} would send the token in the clear: use https, or --allow-plain-http"
        )
    return parts


class Door:
    """The server's address and the token: one request at a time."""

    def __init__(
        self, parts: SplitResult, token: Path | str, *, ca_file: Path | None, path: str = PATH
    ) -> None:
        """`token`: the file that holds it, read anew for each request, or the token itself."""
        self._parts = parts
        self._path = path
        self._token = token
        self._context: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._context = ssl.create_default_context(cafile=ca_file)

    def post(self, body: bytes) -> Answer:
        """Send a batch. OSError, http.client.HTTPException: no answer."""
        token = self._token.read_text("ascii") if isinstance(self._token, Path) else self._token
        digest = base64.b64encode(hashlib.sha256(body).digest()).decode("ascii")
        headers = {
            "Authorization": f"Bearer {token.strip()}",
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
            "Content-Digest": f"sha-256=:{digest}:",
            "User-Agent": f"costwatch-agent/{VERSION}",
            "Connection": "close",
        }
        connection = self._connection()
        try:
            connection.request("POST", self._parts.path.rstrip("/") + self._path, body, headers)
            response = connection.getresponse()
            text = response.read(MAX_ANSWER_BYTES).decode("utf-8", "replace")
            return Answer(
                status=response.status,
                text=text,
                retry_after_s=_seconds(response.getheader("Retry-After")),
                date_s=_instant(response.getheader("Date")),
            )
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._context is not None:
            return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=self._context)
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)


def _seconds(value: str | None) -> float | None:
    return float(value) if value and value.isdecimal() and len(value) < 7 else None


def _instant(value: str | None) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(value).timestamp() if value else None
    except (TypeError, ValueError):
        return None


class Sender:
    """Empties the spool. `run` is for a thread of its own."""

    def __init__(
        self,
        spool: Spool,
        post: Callable[[bytes], Answer],
        *,
        first_wait_s: float = FIRST_WAIT_S,
        refused_wait_s: float = REFUSED_WAIT_S,
    ) -> None:
        self._spool = spool
        self._post = post
        self._first_wait_s = first_wait_s
        self._refused_wait_s = refused_wait_s
        self._failures = 0  # one after another
        self._stop = threading.Event()
        self.tally = SendTally()

    def run(self) -> None:
        """Send until told to stop."""
        while not self._stop.is_set():
            waiting = self._spool.first()
            if waiting is None:
                with self._spool.arrived:
                    if not self._spool.waiting and not self._stop.is_set():
                        self._spool.arrived.wait()
                continue
            fate, wait_s = self.send(waiting)
            if fate in {Fate.KEPT, Fate.AGAIN}:
                self._stop.wait(wait_s)

    def stop(self) -> None:
        """Let `run` return after the request that is under way."""
        self._stop.set()
        with self._spool.arrived:
            self._spool.arrived.notify_all()

    def empty(self, *, tries: int, until: float) -> bool:
        """Send everything here and now; False where the server does not take it."""
        failed = 0
        while (waiting := self._spool.first()) is not None:
            fate, wait_s = self.send(waiting)
            if fate is Fate.KEPT:
                return False
            if fate is Fate.AGAIN:
                failed += 1
                if failed >= tries or time.monotonic() + wait_s > until:
                    return False
                time.sleep(wait_s)
            else:
                failed = 0
        return True

    def send(self, waiting: Waiting) -> tuple[Fate, float]:
        """One try of one batch: what became of it, and how long to wait before the next try."""
        try:
            answer = self._post(waiting.body)
        except (OSError, http.client.HTTPException) as error:
            answer = Answer(status=0, text=f"{type(error).__name__}: {error}")
        self._note_clock(answer)
        fate = fate_of(answer.status)
        if fate is Fate.TAKEN:
            self._spool.done(waiting)
            self.tally.taken += 1
            self.tally.last_taken_s = time.time()
            if self._failures or self.tally.refused:
                log.info("the server takes batches again")
            self._failures = self.tally.refused = 0
            return fate, 0.0
        cause = str(answer.status) if answer.status else "no answer"
        self.tally.failures[cause] = self.tally.failures.get(cause, 0) + 1
        if fate is Fate.SET_ASIDE:
            log.error("%s: the server refuses it for good: %s", _name(waiting), _said(answer))
            self._spool.set_aside(waiting, status=answer.status, reason=answer.text)
            return fate, 0.0
        return fate, self._wait(fate, answer)

    def _wait(self, fate: Fate, answer: Answer) -> float:
        self._failures += 1
        if fate is Fate.KEPT:
            self.tally.refused = answer.status
            log.error(
                "the server refuses the token or the address (%s): readings are kept in the spool "
                "until it takes them. Check --token-file and --server",
                _said(answer),
            )
            return max(answer.retry_after_s or 0.0, self._refused_wait_s)
        self.tally.refused = 0
        longest_s = min(LONGEST_WAIT_S, self._first_wait_s * 2 ** min(self._failures - 1, 16))
        wait_s = random.uniform(longest_s / 2, longest_s)  # noqa: S311 - spreads a fleet's tries
        wait_s = max(wait_s, min(answer.retry_after_s or 0.0, LONGEST_WAIT_S))
        log.warning("not sent (%s): the next try is in %.0f s", _said(answer), wait_s)
        return wait_s

    def _note_clock(self, answer: Answer) -> None:
        if answer.date_s is None:
            return
        skew_s = time.time() - answer.date_s
        if abs(skew_s) > SKEW_WARNING_S and abs(self.tally.skew_s or 0.0) <= SKEW_WARNING_S:
            log.warning("the node's clock is %.0f s ahead of the server's", skew_s)
        self.tally.skew_s = skew_s


def _name(waiting: Waiting) -> str:
    return f"batch {waiting.sequence} of start {waiting.boot}"


def _said(answer: Answer) -> str:
    text = " ".join(answer.text.split())[:300]
    return f"{answer.status} {text}" if answer.status else text

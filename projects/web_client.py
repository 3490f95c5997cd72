"""The one client for JSON services of others: guarded addresses, bounds, retries in one place."""

import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

import urllib3
from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError, TimeoutError

from projects.network import AddressRefusedError, guard_url, guarded

CONNECT_TIMEOUT_S: Final = 10.0
READ_TIMEOUT_S: Final = 60.0
MAX_BYTES: Final = 64 * 2**20
TRIES: Final = 4
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 8.0
SHOWN: Final = 300
CODES: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "unauthorised",
    HTTPStatus.FORBIDDEN: "forbidden",
    HTTPStatus.NOT_FOUND: "not_found",
}


class WebError(Exception):
    """A service that did not answer as it should; the message is for people, without secrets.

    Codes: address, unauthorised, forbidden, not_found, refused, unreadable, too_large (permanent);
    throttled, unavailable, timeout (waiting may help, `retry_after_s` says how long when known).
    """

    def __init__(self, code: str, message: str, *, retry_after_s: float | None = None) -> None:
        self.code, self.message, self.retry_after_s = code, message, retry_after_s
        super().__init__(message)

    @property
    def permanent(self) -> bool:
        """Whether asking again later would change nothing."""
        return self.code not in ("throttled", "unavailable", "timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long and how much is waited for."""

    connect_timeout_s: float = CONNECT_TIMEOUT_S
    read_timeout_s: float = READ_TIMEOUT_S
    max_bytes: int = MAX_BYTES
    tries: int = TRIES
    first_pause_s: float = FIRST_PAUSE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A question to a service."""

    url: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] | None = None  # posted when given


def ask(request: Request, limits: Limits | None = None) -> Any:
    """The JSON document that a service answers.

    What may pass by waiting (5xx, timeouts, broken connections) is tried again, with pauses that
    double; 429 is not: the caller is told how long to wait. Redirects are refused.

    Raises:
        WebError: the address is refused, or the service did not answer with a JSON document.
    """
    bounds = limits or Limits()
    listed = frozenset(settings.PRIVATE_HOSTS)
    try:
        guard_url(request.url, listed)
        pool = _pool(listed)
        for turn in range(1, bounds.tries + 1):
            try:
                return _asked(pool, request, bounds)
            except WebError as error:
                if error.permanent or error.code == "throttled" or turn == bounds.tries:
                    raise
                pause_s = min(bounds.first_pause_s * 2 ** (turn - 1), LONGEST_PAUSE_S)
                time.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - no secret in a pause
    except AddressRefusedError as error:
        raise WebError("address", str(error)) from error
    raise AssertionError("the last turn returns or raises")


def _pool(listed: frozenset[str]) -> urllib3.PoolManager:
    """A pool whose every connection is looked at once it is made."""
    manager = urllib3.PoolManager(retries=False)
    manager.pool_classes_by_scheme = {
        scheme: type(
            f"Guarded{pool.__name__}",
            (pool,),
            {"ConnectionCls": guarded(pool.ConnectionCls, listed)},  # type: ignore[arg-type]
        )
        for scheme, pool in (("http", HTTPConnectionPool), ("https", HTTPSConnectionPool))
    }
    return manager


def _asked(pool: urllib3.PoolManager, request: Request, bounds: Limits) -> Any:
    """One question, one answer."""
    url = f"{request.url}?{urlencode(request.query)}" if request.query else request.url
    timeout = urllib3.Timeout(connect=bounds.connect_timeout_s, read=bounds.read_timeout_s)
    is_post = request.form is not None
    headers = {"Accept": "application/json", **request.headers}
    if is_post:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    try:
        answer = pool.request(
            "POST" if is_post else "GET",
            url,
            body=urlencode(request.form) if request.form is not None else None,
            headers=headers,
            timeout=timeout,
            redirect=False,
            preload_content=False,
        )
        body = answer.read(bounds.max_bytes + 1, decode_content=True)
    except TimeoutError as error:
        raise WebError("timeout", _("The service did not answer in time.")) from error
    except HTTPError as error:
        raise WebError(
            "unavailable", _("The service cannot be reached: {why}").format(why=_reason(error))
        ) from error
    finally:
        pool.clear()
    if len(body) > bounds.max_bytes:
        raise WebError("too_large", _("The answer is larger than it may be."))
    _check_status(answer.status, answer.headers, body)
    try:
        return json.loads(body)
    except ValueError as error:
        raise WebError("unreadable", _("The answer is no JSON document.")) from error


def _reason(error: HTTPError) -> str:
    """What went wrong, without the address that urllib3 puts into its message."""
    inner = getattr(error, "reason", None) or error
    return type(inner).__name__


def _check_status(status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Raise for every answer but 200."""
    if status == HTTPStatus.OK:
        return
    said = body[:SHOWN].decode("utf-8", "replace")
    words = _("The service answered {status}: {said}").format(status=status, said=said)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        raise WebError("throttled", words, retry_after_s=_retry_after_s(headers))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise WebError("unavailable", words, retry_after_s=_retry_after_s(headers))
    raise WebError(CODES.get(status, "refused"), words)


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Retry-After as seconds, whichever of its two forms it has."""
    text = headers.get("Retry-After", "").strip()
    if not text:
        return None
    if text.isdigit():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (at - timezone.now()).total_seconds())

"""What the client for services of others promises: bounds, retries, no private address."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from projects.web_client import Limits, Request, WebError, ask

QUICK = Limits(read_timeout_s=0.5, max_bytes=1_000, first_pause_s=0.01)


class Service:
    """A loopback server that gives the planned answers in order, the last one again and again."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        self.asked: list[tuple[str, str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length).decode()
                outer.asked.append((self.command, self.path, body))
                answers = outer.answers
                status, headers, data = answers.pop(0) if len(answers) > 1 else answers[0]
                if status == 0:  # say nothing
                    threading.Event().wait(2)
                    return
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = _answer  # noqa: N815 - names that the base class calls

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/q"


@pytest.fixture
def service(settings: Any) -> Iterator[Service]:
    settings.PRIVATE_HOSTS = ["127.0.0.1"]
    one = Service()
    thread = threading.Thread(target=one.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield one
    one.server.shutdown()
    one.server.server_close()


def test_a_document_is_read_and_the_question_carries_query_and_form(service):
    service.answers = [(200, {}, b'{"a": 1}')]

    assert ask(Request(url=service.url, query={"zone": "DE"}), QUICK) == {"a": 1}
    assert ask(Request(url=service.url, form={"query": "up"}), QUICK) == {"a": 1}
    assert service.asked == [("GET", "/q?zone=DE", ""), ("POST", "/q", "query=up")]


def test_what_may_pass_by_waiting_is_tried_again(service):
    service.answers = [(500, {}, b"oops"), (503, {}, b""), (200, {}, b"[]")]

    assert ask(Request(url=service.url), QUICK) == []
    assert len(service.asked) == 3


@pytest.mark.parametrize(
    ("answer", "code", "asked"),
    [
        ((401, {}, b'{"error":"Invalid token"}'), "unauthorised", 1),
        ((403, {}, b""), "forbidden", 1),
        ((404, {}, b""), "not_found", 1),
        ((302, {"Location": "http://127.0.0.1/"}, b""), "refused", 1),
        ((499, {}, b""), "refused", 1),
        ((429, {"Retry-After": "7"}, b""), "throttled", 1),
        ((500, {}, b""), "unavailable", 4),
        ((200, {}, b"<html>"), "unreadable", 1),
        ((200, {}, b"[" + b"1," * 600 + b"1]"), "too_large", 1),
        ((0, {}, b""), "timeout", 4),
    ],
)
def test_every_other_answer_has_its_code(service, answer, code, asked):
    service.answers = [answer]

    with pytest.raises(WebError) as refused:
        ask(Request(url=service.url), QUICK)

    assert refused.value.code == code
    assert len(service.asked) == asked
    if code == "throttled":
        assert refused.value.retry_after_s == 7


def test_a_private_address_is_asked_only_where_the_operator_lists_it(service, settings):
    service.answers = [(200, {}, b"{}")]
    settings.PRIVATE_HOSTS = []

    with pytest.raises(WebError) as refused:
        ask(Request(url=service.url), QUICK)

    assert refused.value.code == "address"
    assert service.asked == []

"""Energy from a Prometheus-like server: what its answers become, and what is said when it fails."""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest

from carbon.adapters import promql
from carbon.adapters.promql import EXPORTERS
from carbon.models import IntakeBody, PromqlPull
from carbon.packed import Brought, unpack
from carbon.promql_pulls import NewPull, PullError, pull_now, save_pull, try_pull
from tests.carbon.builders import operator, site

START = datetime(2026, 11, 1, tzinfo=UTC)
NOW = START + timedelta(hours=2, seconds=60)
DCGM = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
POWER = "DCGM_FI_DEV_POWER_USAGE"
LOOKBACK_S = 300
database = pytest.mark.django_db(transaction=True)
Labels = tuple[tuple[str, str], ...]


class FakePrometheus:
    """Answers the few kinds of questions that are asked, from samples at their own times."""

    def __init__(self) -> None:
        self.samples: dict[str, dict[Labels, list[tuple[float, float]]]] = {}
        self.status = 200
        self.tokens: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                outer.tokens.append(self.headers.get("Authorization", ""))
                given = {name: values[0] for name, values in form.items()}
                data = json.dumps(outer.answer(self.path, given)).encode()
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_POST = _answer  # noqa: N815 - the name that the base class calls

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def add(self, metric: str, labels: Mapping[str, str], rows: list[tuple[float, float]]) -> None:
        self.samples.setdefault(metric, {})[tuple(sorted(labels.items()))] = rows

    def answer(self, path: str, given: Mapping[str, str]) -> dict[str, Any]:
        if self.status != 200:
            return {"status": "error", "error": "no such token"}
        query = given["query"]
        metric = next((name for name in self.samples if name in query), "")
        lines = self.samples.get(metric, {})
        if path.endswith("/query"):
            at = float(given.get("time", "0"))
            window = re.search(r"\[(\d+)s\]", query)
            value = (
                sum(self._risen(rows, at - float(window[1]), at) for rows in lines.values())
                if window
                else len(lines)
            )
            result = [{"metric": {}, "value": [at, str(value)]}] if lines else []
            return {"status": "success", "data": {"resultType": "vector", "result": result}}
        start, end, step = (float(given[name]) for name in ("start", "end", "step"))
        times = [start + step * turn for turn in range(int((end - start) / step) + 1)]
        result = []
        for labels, rows in lines.items():
            values = [
                [at, repr(found[0] if "timestamp(" in query else found[1])]
                for at in times
                if (found := self._newest(rows, at)) is not None
            ]
            result.append({"metric": dict(labels), "values": values})
        return {"status": "success", "data": {"resultType": "matrix", "result": result}}

    @staticmethod
    def _newest(rows: list[tuple[float, float]], at: float) -> tuple[float, float] | None:
        return max((row for row in rows if at - LOOKBACK_S < row[0] <= at), default=None)

    @staticmethod
    def _risen(rows: list[tuple[float, float]], start: float, end: float) -> float:
        """As `increase`: within the window, stretched to its whole length."""
        inside = [row for row in rows if start <= row[0] <= end]
        if len(inside) < 2:
            return 0.0
        seen_s = inside[-1][0] - inside[0][0]
        return (inside[-1][1] - inside[0][1]) * (end - start) / seen_s


@pytest.fixture
def prometheus(settings: Any) -> Iterator[FakePrometheus]:
    settings.PRIVATE_HOSTS = ["127.0.0.1"]
    one = FakePrometheus()
    thread = threading.Thread(target=one.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield one
    one.server.shutdown()
    one.server.server_close()


def gpu(number: int) -> dict[str, str]:
    return {"UUID": f"GPU-{number}", "Hostname": "node-1", "modelName": "NVIDIA H100"}


def counter_rows(power_w: float, *, every_s: float = 15.2) -> list[tuple[float, float]]:
    """A counter in millijoules at odd times, from an hour before the start to two hours after."""
    first = START.timestamp() - 3_600
    return [
        (round(first + turn * every_s, 3), round(turn * every_s * power_w * 1_000))
        for turn in range(int(3 * 3_600 / every_s))
    ]


def connected(server: FakePrometheus, *, exporter: str = "dcgm", token: str = "") -> PromqlPull:
    wanted = NewPull(
        name="cluster", url=server.url, exporter=exporter, token=token, pull_from=START
    )
    return save_pull(operator(), site(), wanted, now=NOW)


def waiting() -> list[Brought]:
    return [unpack(row.body) for row in IntakeBody.objects.order_by("id")]


@database
def test_counters_come_at_their_own_times_and_rise_by_what_was_used(prometheus):
    prometheus.add(DCGM, gpu(1), counter_rows(500))
    prometheus.add(DCGM, gpu(2), counter_rows(250))
    pull = connected(prometheus)

    result = pull_now(pull, site(), now=NOW)

    bodies = waiting()
    assert [one.uuid for one in bodies[0].devices] == ["GPU-1", "GPU-2"]
    assert bodies[0].devices[0].node == "node-1"
    true_times = {round(at * 1_000) * 1_000 for at, _value in counter_rows(500)}
    for body in bodies:
        assert set(body.counters.at.tolist()) <= true_times
    rows = {
        (int(at), int(value))
        for body in bodies
        for at, value, device in zip(
            body.counters.at, body.counters.counter_millijoule, body.counters.device, strict=True
        )
        if body.devices[device].uuid == "GPU-1"
    }
    first, last = min(rows), max(rows)
    used_j = (last[1] - first[1]) / 1_000
    assert used_j == pytest.approx(500 * (last[0] - first[0]) / 1e6, rel=1e-9)
    assert (last[0] - first[0]) / 1e6 > 2 * 3_600
    assert result["readings"] > 0
    pull.refresh_from_db()
    assert pull.pulled_until == NOW - timedelta(seconds=60)
    assert pull.last_error == ""


@database
def test_the_servers_increase_stands_beside_last_minus_first(prometheus):
    rows = counter_rows(500)
    hole = [row for row in rows if not START.timestamp() + 900 < row[0] < START.timestamp() + 5_000]
    prometheus.add(DCGM, gpu(1), rows)
    pull = connected(prometheus)
    assert "warning" not in pull_now(pull, site(), now=START + timedelta(hours=1, seconds=60))

    prometheus.add(DCGM, gpu(1), hole)
    PromqlPull.objects.update(pulled_until=START)
    pull.refresh_from_db()
    pull_now(pull, site(), now=START + timedelta(minutes=46))
    pull.refresh_from_db()

    assert "increase()" in pull.last_error


@database
def test_power_fills_in_where_a_device_has_no_counter(prometheus):
    prometheus.add(DCGM, gpu(1), counter_rows(500))
    watts = [(START.timestamp() + 10.5 * turn, 400.0) for turn in range(600)]
    prometheus.add(POWER, gpu(1), watts)
    prometheus.add(POWER, gpu(2), watts)
    pull_now(connected(prometheus), site(), now=START + timedelta(minutes=31))

    for body in waiting():
        by_device = {
            uuid: sum(body.devices[one].uuid == uuid for one in body.power.device)
            for uuid in ("GPU-1", "GPU-2")
        }
        assert by_device["GPU-1"] == 1  # the newest, for what is now
        assert by_device["GPU-2"] > 20


@database
def test_a_repeat_of_the_same_answer_is_stored_once(prometheus):
    prometheus.add(DCGM, gpu(1), counter_rows(500))
    pull = connected(prometheus)
    pull_now(pull, site(), now=NOW)
    before = IntakeBody.objects.count()

    PromqlPull.objects.update(pulled_until=START)
    pull.refresh_from_db()
    pull_now(pull, site(), now=NOW)

    assert IntakeBody.objects.count() == before


@database
def test_power_of_nodes_says_whether_the_gpus_are_in_it(prometheus):
    rows = [(START.timestamp() + 30 * turn, 6_000.0) for turn in range(200)]
    prometheus.add("ipmi_dcmi_power_consumption_watts", {"instance": "node-1:9290"}, rows)
    pull_now(connected(prometheus, exporter="ipmi"), site(), now=START + timedelta(minutes=31))

    body = waiting()[0]
    assert body.nodes.names == ("node-1:9290",)
    assert body.nodes.includes_accelerators.all()
    assert set(body.nodes.power_w.tolist()) == {6_000.0}


@database
def test_the_test_says_what_is_there_and_what_is_wrong(prometheus):
    pull = connected(prometheus, token="a-token-nobody-may-read")
    with pytest.raises(PullError, match=DCGM):
        try_pull(pull)

    prometheus.add(DCGM, gpu(1), counter_rows(500))
    assert "1" in try_pull(pull)
    assert prometheus.tokens[-1] == "Bearer a-token-nobody-may-read"
    assert "a-token" not in PromqlPull.objects.get().sealed

    prometheus.status = 401
    with pytest.raises(PullError, match="401"):
        try_pull(pull)


@database
def test_a_stored_token_goes_to_no_other_address(prometheus):
    connected(prometheus, token="a-token-nobody-may-read")
    moved = NewPull(name="cluster", url="https://elsewhere.example.com", exporter="dcgm")
    with pytest.raises(PullError, match="again"):
        save_pull(operator(), site(), moved, now=NOW)
    assert PromqlPull.objects.get().url == prometheus.url


@database
def test_a_changed_pull_goes_on_where_it_stopped(prometheus):
    pull = connected(prometheus)
    PromqlPull.objects.update(pulled_until=START)
    same = NewPull(name="cluster", url=prometheus.url, exporter="dcgm", matchers='job="d"')

    save_pull(operator(), site(), same, now=START + timedelta(days=5))

    pull.refresh_from_db()
    assert pull.pulled_until == START


@database
def test_an_increase_that_is_no_number_stops_no_pull(prometheus, monkeypatch):
    prometheus.add(DCGM, gpu(1), counter_rows(500))
    monkeypatch.setattr(prometheus, "_risen", lambda *_: float("nan"))
    pull = connected(prometheus)

    assert pull_now(pull, site(), now=NOW)["readings"] > 0

    pull.refresh_from_db()
    assert pull.pulled_until == NOW - timedelta(seconds=60)


@database
def test_odd_matchers_and_exporters_are_refused(prometheus):
    wanted = NewPull(name="x", url=prometheus.url, exporter="dcgm", matchers='a="b"} or up{x="y"')
    with pytest.raises(PullError, match="cluster"):
        save_pull(operator(), site(), wanted, now=NOW)
    with pytest.raises(PullError, match="dcgm"):
        save_pull(operator(), site(), NewPull(name="x", url="x", exporter="no"), now=NOW)


def test_each_exporter_is_asked_in_its_own_words():
    node = promql.node_query(EXPORTERS["node"], 'cluster="a"')
    assert node == 'sum by (instance) (rate(node_rapl_package_joules_total{cluster="a"}[5m]))'
    kepler = promql.node_query(EXPORTERS["kepler"], 'cluster="a"')
    assert 'kepler_node_cpu_watts{zone="package",cluster="a"}' in kepler
    assert 'kepler_node_cpu_watts{zone="package"}' in promql.node_query(EXPORTERS["kepler"], "")
    ceems = promql.node_query(EXPORTERS["ceems"], "")
    assert ceems.count(" or ") == 2
    gpus = promql.device_query(EXPORTERS["dcgm"], DCGM, 'job="d"', of_time=True)
    assert gpus == (
        "max by (UUID, Hostname, instance, modelName) "
        '(timestamp(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{job="d"}))'
    )


@pytest.mark.parametrize(
    "document",
    [
        {"status": "error", "error": "bad_data: parse error"},
        [],
        {"status": "success", "data": {}},
        {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}}]}},
    ],
)
def test_an_answer_that_is_none_is_refused(document):
    with pytest.raises(promql.PromqlAnswerError):
        promql.read_series(document)


@database
def test_a_pull_stops_where_too_much_waits_and_goes_on_from_there(prometheus, settings):
    prometheus.add(DCGM, gpu(1), counter_rows(500))
    pull = connected(prometheus)
    settings.INTAKE_WAITING_MB = 0
    with pytest.raises(PullError, match="wait to be booked"):
        pull_now(pull, site(), now=NOW)
    assert waiting() == []

    settings.INTAKE_WAITING_MB = 100
    pull.refresh_from_db()
    pull_now(pull, site(), now=NOW)
    pull.refresh_from_db()
    assert pull.pulled_until == NOW - timedelta(seconds=60)
    assert waiting()[0].counters.at.min() <= START.timestamp() * 1e6

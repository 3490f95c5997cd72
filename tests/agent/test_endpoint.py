"""The agent's own metrics: what a Prometheus reads from it, also under the article's names."""

import http.client
import re
import socket
from dataclasses import dataclass

import pytest

from costwatch_agent.endpoint import Endpoint
from tests.agent.conftest import BOOTED_AT

ARTICLE = {
    "gpu_utilization_percent": 97.0,
    "gpu_memory_used_bytes": float(1 << 30),
    "gpu_memory_total_bytes": float(80 << 30),
    "gpu_temperature_celsius": 61.0,
    "gpu_power_usage_watts": 512.3,
}


@pytest.fixture
def scrape(nvml, agent, node):
    nvml.state.gpus = 2
    nvml.splits(1, [("3g.40gb", 60)])
    one = agent()
    one.tick()
    endpoint = Endpoint("127.0.0.1", 0, one.metrics)
    endpoint.start()

    def ask(path="/metrics", method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=5)
        connection.request(method, path)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text

    ask.port = endpoint.port
    yield ask
    one.close()


@dataclass
class Sample:
    labels: dict[str, str]
    value: float


def samples(text):
    """Every sample by name and GPU, read by the grammar of the text format 0.0.4."""
    found = {}
    typed = set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            assert name not in typed
            assert kind in {"counter", "gauge"}
            typed.add(name)
        elif not line.startswith("# HELP "):
            whole = re.fullmatch(r'([a-z_]+)(?:\{((?:[a-z_]+="[^"\\]*",?)+)\})? (\S+)', line)
            assert whole, line
            labels = dict(re.findall(r'([a-z_]+)="([^"]*)"', whole[2] or ""))
            assert whole[1] in typed
            found[whole[1], labels.get("gpu_id", "")] = Sample(labels, float(whole[3]))
    return found


def test_prometheus_reads_it_under_our_names_and_the_articles(scrape):
    answer, text = scrape()
    assert answer.getheader("Content-Type").startswith("text/plain; version=0.0.4")
    found = samples(text)
    for name, value in ARTICLE.items():
        assert found[name, "0"].value == value
        assert found[name, "0"].labels == {"gpu_id": "0", "gpu_name": "NVIDIA H100 80GB HBM3"}
    energy = found["costwatch_gpu_energy_joules_total", "0"]
    assert energy.value == 5_000_001.0
    assert energy.labels["uuid"] == "GPU-00000000-0000-0000-0000-000000000000"
    assert energy.labels["power_field"] == "average"
    assert found["costwatch_gpu_energy_epoch", "1"].value == BOOTED_AT
    assert found["costwatch_gpu_mig_sm_ratio", "1"].labels["mig_profile"] == "3g.40gb"
    assert found["costwatch_agent_spool_bytes", ""].value > 0


def test_what_was_not_read_is_left_out_and_is_not_zero(scrape):
    found = samples(scrape()[1])
    assert ("gpu_utilization_percent", "1") not in found
    assert ("costwatch_gpu_divergence_ratio", "0") not in found
    assert ("costwatch_agent_last_taken_timestamp_seconds", "") not in found


def test_nothing_else_is_answered(scrape):
    assert scrape("/healthz")[0].status == 200
    assert scrape("/")[0].status == 404
    assert scrape("/metrics", "POST")[0].status == 405
    assert scrape("/metrics", "HEAD")[1] == ""


def test_a_caller_that_says_nothing_does_not_stop_the_agent(scrape, monkeypatch):
    monkeypatch.setattr("costwatch_agent.endpoint.TIMEOUT_S", 0.05)
    with socket.create_connection(("127.0.0.1", scrape.port)):
        assert scrape()[0].status == 200

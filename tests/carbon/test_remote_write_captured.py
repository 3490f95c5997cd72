"""Bodies that Prometheus 2.42 really sent, replayed: 16 GPUs, one sliced, one idle, then gone.

They were kept by `python -m tests.manual.real_prometheus capture`.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import cramjam
import pytest

from carbon import remote_write_api
from carbon.booking import book_site
from carbon.models import CounterReading, PowerSample, Sender, UseReading
from projects.records import Scope, TokenReach
from runs.selectors import devices_of
from tests.builders import token, with_token
from tests.carbon.builders import site
from tests.carbon.remote_write_bodies import COUNTER, POWER, read

pytestmark = pytest.mark.django_db
URL = "/api/v1/prometheus/write"
BODIES = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("captured/*.bin"))]
NEWEST_MS = 1_795_267_981_179
NOW = datetime.fromtimestamp(NEWEST_MS / 1000, tz=UTC) + timedelta(seconds=1)


def by_oracle(metric: str) -> dict[tuple[str, int], float]:
    """What was sent of a metric, stale markers and repeats left out."""
    return {
        (labels["UUID"], at): value
        for body in BODIES
        for labels, samples in read(bytes(cramjam.snappy.decompress_raw(body)))
        for at, value in samples
        if labels["__name__"] == metric and value == value
    }


@pytest.fixture
def answers(monkeypatch):
    clock = SimpleNamespace(now=lambda: NOW)
    monkeypatch.setattr(remote_write_api, "timezone", clock)
    client = with_token(token(Scope.INGEST_POWER, reach=TokenReach(site_id=site().site_id)))
    found = [
        client.post(
            URL,
            body,
            content_type="application/x-protobuf",
            headers={"content-encoding": "snappy", "user-agent": "Prometheus/2.42.0+ds"},
        )
        for body in BODIES
    ]
    book_site(site(), now=NOW)
    return found


def stored(model, column: str) -> dict[tuple[str, int], float]:
    uuids = {one.device_id: one.device_uuid for one in devices_of(site().site_id)}
    return {
        (uuids[row.device_id], round(row.at.timestamp() * 1000)): getattr(row, column)
        for row in model.objects.all()
    }


def test_every_body_is_answered_204(answers):
    assert len(BODIES) == 12
    assert [one.status_code for one in answers] == [204] * len(BODIES)
    assert all(one.content == b"" for one in answers)


def test_every_reading_is_stored_once_with_its_value_and_instant(answers):
    assert stored(PowerSample, "power_w") == by_oracle(POWER)
    assert stored(CounterReading, "counter_millijoule") == by_oracle(COUNTER)


def test_an_idle_gpu_reads_0_and_a_sliced_one_counts_once(answers):
    powers = stored(PowerSample, "power_w")
    idle = [watt for (uuid, _at), watt in powers.items() if uuid.startswith("GPU-0000000f")]
    sliced = [watt for (uuid, _at), watt in powers.items() if uuid.startswith("GPU-00000000")]
    assert idle == [0.0] * 3
    assert len(sliced) == 3
    use = stored(UseReading, "utilisation_fraction")
    assert {value for (uuid, _at), value in use.items() if uuid.startswith("GPU-0000000f")} == {0.0}
    assert not any(uuid.startswith("GPU-00000000") for uuid, _at in use)


def test_the_markers_of_a_dead_exporter_are_no_readings(answers):
    last = cramjam.snappy.decompress_raw(BODIES[4])
    values = [value for _labels, samples in read(bytes(last)) for _at, value in samples]
    assert sum(value != value for value in values) > 50
    assert len({at for _uuid, at in stored(PowerSample, "power_w")}) == 3


def test_the_rest_is_counted_as_ignored(answers):
    senders = {one.name: one for one in Sender.objects.all()}
    assert set(senders) == {"test", "test · dcgm-exporter"}
    assert sum(one.ignored for one in senders.values()) > 0
    assert senders["test · dcgm-exporter"].version == "Prometheus/2.42.0+ds"

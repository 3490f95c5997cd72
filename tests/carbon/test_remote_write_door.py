"""The contract with senders: 204 is durable, a refusal is told to people."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from carbon import doors
from carbon.booking import book_site
from carbon.models import CounterReading, DeviceNow, IntakeBody, JobSighting, PowerSample, Sender
from carbon.packed import unpack
from jobs.models import Job
from projects.models import ApiToken
from projects.records import Scope, TokenReach
from tests.builders import token, with_token
from tests.carbon.builders import site
from tests.carbon.remote_write_bodies import COUNTER, Ts, body, gpu, power

pytestmark = pytest.mark.django_db
URL = "/api/v1/prometheus/write"


@pytest.fixture
def prometheus():
    return with_token(token(Scope.INGEST_POWER, reach=TokenReach(site_id=site().site_id)))


def now_ms() -> int:
    return int(timezone.now().timestamp() * 1000) - 60_000


def post(client, content: bytes, agent: str = "Prometheus/2.42.0+ds"):
    return client.post(
        URL,
        content,
        content_type="application/x-protobuf",
        headers={
            "content-encoding": "snappy",
            "user-agent": agent,
            "x-prometheus-remote-write-version": "0.1.0",
        },
    )


def test_what_is_answered_204_waits_in_the_database(prometheus):
    answer = post(prometheus, body(*power([1.0, 2.0], at_ms=now_ms())))
    assert (answer.status_code, answer.content) == (204, b"")
    (waiting,) = IntakeBody.objects.all()
    assert (waiting.site_id, waiting.rows) == (site().site_id, 2)
    assert unpack(waiting.body).power.power_w.tolist() == [1.0, 2.0]


@pytest.mark.django_db(transaction=True)
def test_a_worker_is_rung_when_it_is_committed(prometheus):
    doors._rung.clear()
    assert post(prometheus, body(*power([1.0], at_ms=now_ms()))).status_code == 204
    assert Job.objects.filter(kind="carbon.book_readings").count() == 1


def test_the_sender_is_the_token_and_the_exporter(prometheus):
    sent = body(*power([1.0], at_ms=now_ms()), Ts(labels=gpu(COUNTER), samples=[(now_ms(), 5e9)]))
    post(prometheus, sent)
    book_site(site(), now=timezone.now())
    (sender,) = Sender.objects.all()
    assert (sender.kind, sender.name) == ("remote_write", "test · dcgm-exporter")
    assert sender.version == "Prometheus/2.42.0+ds"
    assert sender.rows == 2
    assert CounterReading.objects.get().counter_millijoule == 5_000_000_000


def test_what_is_ignored_is_counted(prometheus):
    post(prometheus, body(Ts(labels=[("__name__", "up")], samples=[(now_ms(), 1.0)])))
    book_site(site(), now=timezone.now())
    assert Sender.objects.get().ignored == 1


def test_a_job_seen_beside_a_device_is_kept(prometheus):
    pod = gpu(exported_namespace="llm", exported_pod="train-0", pod="dcgm-exporter-1")
    post(prometheus, body(Ts(labels=pod, samples=[(now_ms(), 1.0)])))
    book_site(site(), now=timezone.now())
    assert JobSighting.objects.get().job == "llm/train-0"


def test_a_revoked_token_is_told_to_the_sites_people(prometheus):
    sent = body(*power([1.0], at_ms=now_ms()))
    post(prometheus, sent)
    ApiToken.objects.update(revoked_at=timezone.now())
    assert post(prometheus, sent).status_code == 401
    first = Sender.objects.get().refused_since
    assert first is not None
    assert post(prometheus, sent).status_code == 401
    assert Sender.objects.get().refused_since == first
    ApiToken.objects.update(revoked_at=None)
    assert post(prometheus, sent).status_code == 204
    assert Sender.objects.get().refused_since is None


def test_a_token_that_was_never_right_is_told_too():
    sent = body(*power([1.0], at_ms=now_ms()))
    client = with_token(token(Scope.READ_COSTS, reach=TokenReach(site_id=site().site_id)))
    assert post(client, sent).status_code == 403
    sender = Sender.objects.get()
    assert sender.refused_since is not None
    assert "ingest:power" in sender.last_error


def test_a_guessed_token_marks_no_site(prometheus):
    real = ApiToken.objects.get()
    guess = with_token(f"cw_ingest_{real.pk.hex}_guessed")
    assert post(guess, body(*power([1.0], at_ms=now_ms()))).status_code == 401
    assert not Sender.objects.exists()


def test_a_site_in_the_address_is_not_heard(prometheus):
    other = site("hall-2")
    content = body(*power([1.0], at_ms=now_ms()))
    prometheus.post(
        f"{URL}?site=hall-2",
        content,
        content_type="application/x-protobuf",
        headers={"content-encoding": "snappy"},
    )
    assert not IntakeBody.objects.filter(site_id=other.site_id).exists()
    assert IntakeBody.objects.filter(site_id=site().site_id).count() == 1


def test_a_session_opens_nothing(client, admin_client):
    content = body(*power([1.0], at_ms=now_ms()))
    for one in (client, admin_client):
        assert post(one, content).status_code == 401


def test_a_body_over_the_limit_is_refused_before_it_is_read(prometheus, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    answer = post(prometheus, body(*power([1.0] * 50, at_ms=now_ms())))
    assert answer.status_code == 413
    assert answer.json()["code"] == "too_large"


def test_a_refused_part_is_named_and_the_sender_shows_it(prometheus):
    answer = post(prometheus, body(*power([1.0, -3.0], at_ms=now_ms())))
    document = answer.json()
    assert document["reasons"] == {"negative": 1}
    assert "DCGM_FI_DEV_POWER_USAGE of GPU-0000" in document["message"]
    assert "1 kept" in document["message"]
    assert "negative" in Sender.objects.get().last_error


def test_replays_and_late_parts_change_nothing_that_is_booked(prometheus):
    start = now_ms() - 600_000
    ticks = [body(*power([500.0], at_ms=start + 10_000 * one)) for one in range(30)]
    for one in [*ticks[::2], *ticks[1::2], *ticks[::5]]:
        assert post(prometheus, one).status_code == 204
    book_site(site(), now=timezone.now())
    for one in ticks[::3]:
        post(prometheus, one)
    book_site(site(), now=timezone.now())
    assert PowerSample.objects.count() == 30
    assert json.loads(json.dumps(Sender.objects.get().duplicates)) >= 10


def test_repeats_are_found_though_nothing_is_at_hand_of_their_devices(prometheus):
    start = now_ms() - 60_000
    first = body(*power([500.0, 510.0], at_ms=start))
    more = body(*power([500.0, 510.0, 520.0], at_ms=start))
    for sent in (first, more):
        assert post(prometheus, sent).status_code == 204
        book_site(site(), now=timezone.now())
        DeviceNow.objects.all().delete()
    assert sorted(PowerSample.objects.values_list("power_w", flat=True)) == [500.0, 510.0, 520.0]
    assert Sender.objects.get().duplicates == 2


def test_the_clock_of_a_sender_may_be_minutes_ahead(prometheus):
    ahead = int((timezone.now() + timedelta(minutes=4)).timestamp() * 1000)
    assert post(prometheus, body(*power([1.0], at_ms=ahead))).status_code == 204

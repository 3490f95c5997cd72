"""When nobody books, the doors close before the disk is full; nothing acknowledged is lost."""

from datetime import timedelta

import numpy as np
import pytest
from django.utils import timezone

from carbon import backlog
from carbon.models import IntakeBody, PowerSample
from carbon.packed import Brought, PowerColumns
from projects.records import OrganisationRole, Scope, TokenReach
from tests.builders import person, signed_in, token, with_token
from tests.carbon.batch_builders import agent, batch, booked, brought, devices, sent
from tests.carbon.builders import site
from tests.carbon.remote_write_bodies import body, power

pytestmark = pytest.mark.django_db
READINGS = 140_000


@pytest.fixture(autouse=True)
def _small(settings, monkeypatch):
    settings.INTAKE_WAITING_MB = 1
    monkeypatch.setattr(backlog, "MEASURED_EVERY_S", 0.0)  # each request looks


def large():
    """A body of more than a megabyte: a device's readings, each second another."""
    first = int((timezone.now() - timedelta(days=2)).timestamp()) * 1_000_000
    return Brought(
        devices=devices("GPU-0"),
        power=PowerColumns(
            device=np.zeros(READINGS, dtype=np.int32),
            at=first + np.arange(READINGS, dtype=np.int64) * 1_000_000,
            power_w=np.random.default_rng(7).uniform(100, 700, READINGS),
        ),
    )


def prometheus():
    return with_token(token(Scope.INGEST_POWER, reach=TokenReach(site_id=site().site_id)))


def written(client, watts):
    at_ms = int(timezone.now().timestamp() * 1000) - 60_000
    return client.post(
        "/api/v1/prometheus/write",
        body(*power(watts, at_ms=at_ms)),
        content_type="application/x-protobuf",
        headers={"content-encoding": "snappy"},
    )


def test_doors_close_while_too_much_waits_and_open_once_it_is_booked():
    senders, document = (prometheus(), agent()), batch()
    assert brought(site(), large())
    acknowledged = IntakeBody.objects.count()
    for refused in (written(senders[0], [1.0, 2.0]), sent(senders[1], document)):
        assert refused.status_code == 503
        assert int(refused["Retry-After"]) > 0
        assert refused.json()["code"] == "too_much_waits"
    assert IntakeBody.objects.count() == acknowledged  # what was refused left nothing behind

    booked(site())

    assert PowerSample.objects.count() == READINGS
    assert written(senders[0], [1.0, 2.0]).status_code == 204
    assert sent(senders[1], document).status_code == 200
    booked(site())
    assert PowerSample.objects.count() == READINGS + 2 + 2
    assert not IntakeBody.objects.exists()


def test_an_answer_that_was_lost_is_given_again_while_the_door_is_shut():
    client, document = agent(), batch()
    first = sent(client, document)
    brought(site(), large())
    again = sent(client, document)
    assert (again.status_code, again.json()) == (200, first.json())
    assert sent(client, batch(sequence=2)).status_code == 503


def test_another_site_is_still_taken():
    brought(site(), large())
    assert sent(agent(site("hall-2")), batch()).status_code == 200


def test_a_process_counts_what_it_took_itself_between_two_looks(monkeypatch):
    place = site()
    assert brought(place, Brought(devices=devices()))
    monkeypatch.setattr(backlog, "MEASURED_EVERY_S", 3_600.0)
    assert brought(place, large())
    with pytest.raises(backlog.IntakeFullError):
        brought(place, Brought(devices=devices("GPU-9")))


def test_the_page_and_the_metrics_say_that_the_doors_are_shut():
    admin = signed_in(person("ada", role=OrganisationRole.ADMIN))
    brought(site(), Brought(devices=devices()))
    assert "doors answer 503" not in admin.get("/senders/").content.decode()
    brought(site(), large())
    text = admin.get("/senders/").content.decode()
    assert "doors answer 503" in text
    assert "hall-1" in text
    scrape = with_token(token(Scope.READ_COSTS)).get("/metrics").content.decode()
    values = dict(line.rsplit(" ", 1) for line in scrape.splitlines() if line[0] != "#")
    assert float(values["costwatch_intake_bodies_waiting"]) == 2
    assert float(values['costwatch_intake_bytes_waiting{site="hall-1"}']) > 1_000_000
    assert float(values["costwatch_intake_bytes_limit"]) == 1_000_000


def test_half_full_is_said_before_the_doors_shut(settings):
    settings.INTAKE_WAITING_MB = 2
    admin = signed_in(person("ada", role=OrganisationRole.ADMIN))
    brought(site(), large())
    text = admin.get("/senders/").content.decode()
    assert "wait to be booked" in text
    assert "doors answer 503" not in text

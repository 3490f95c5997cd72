"""Every request of corpus_b gets its answer, and leaves in the tables what expect.csv says."""

from types import SimpleNamespace

import pytest
from django.db import OperationalError
from django.test import Client

from carbon import remote_write_api
from carbon.booking import book_site
from carbon.models import IntakeBody, PowerSample, QuarantinedPower
from projects.models import ApiToken
from projects.records import Scope, TokenReach
from tests.builders import token, with_token
from tests.carbon.builders import site
from tests.carbon.remote_write_corpus import FOLDER, NOW, Step, expected, items

pytestmark = pytest.mark.django_db
URL = "/api/v1/prometheus/write"
ITEMS = expected()


def client(kind: str) -> Client:
    if kind == "none":
        return Client()
    if kind == "unknown":
        return with_token("cw_ingest_" + "0" * 32 + "_nobody")
    if kind == "no_site":
        return with_token(token(Scope.INGEST_POWER))
    scope = Scope.READ_COSTS if kind == "no_scope" else Scope.INGEST_POWER
    made = with_token(token(scope, reach=TokenReach(site_id=site().site_id)))
    if kind == "revoked":
        ApiToken.objects.update(revoked_at=NOW)
    return made


@pytest.fixture
def at_the_hour(monkeypatch):
    """The clock of the door."""
    clock = SimpleNamespace(now=lambda: NOW)
    monkeypatch.setattr(remote_write_api, "timezone", clock)


def send(sender: Client, step: Step):
    more = {"headers": {"content-encoding": step.encoding}} if step.encoding else {}
    return sender.post(
        URL, (FOLDER / step.file).read_bytes(), content_type=step.content_type, **more
    )


@pytest.mark.parametrize("item", ITEMS)
def test_each_request_gets_its_answer_and_leaves_what_it_should(item, at_the_hour, monkeypatch):
    sender = client(ITEMS[item][0].token)
    for step in ITEMS[item]:
        if step.code == "unavailable":
            monkeypatch.setattr(remote_write_api, "accept", out_of_order)
        answer = send(sender, step)
        assert answer.status_code == step.status, answer.content
        assert answer.get("X-Prometheus-Remote-Write-Samples-Written", "") == step.written
        if step.status == 204:
            assert answer.content == b""
        else:
            assert answer.json()["code"] == step.code
        book_site(site(), now=NOW)
        assert IntakeBody.objects.count() == 0
        assert PowerSample.objects.count() == step.power
        assert QuarantinedPower.objects.count() == step.quarantined


def out_of_order(*args, **kwargs):
    raise OperationalError("could not extend file: No space left on device")


def test_a_database_that_fails_asks_for_the_same_again(at_the_hour, monkeypatch):
    monkeypatch.setattr(remote_write_api, "accept", out_of_order)
    answer = send(client("good"), ITEMS["B19"][0])
    assert int(answer["Retry-After"]) > 0
    assert b"No space" not in answer.content


def test_the_files_are_those_that_their_maker_makes():
    made = {f"{step.item}-{step.step}.bin": content for step, content in items()}
    assert {path.name: path.read_bytes() for path in FOLDER.glob("*.bin")} == made

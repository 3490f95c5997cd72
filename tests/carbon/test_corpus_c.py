"""Corpus C: what agents may send, and what each is answered; through HTTP, then booked."""

import base64
import csv
import gzip
import hashlib
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from carbon.models import (
    CounterReading,
    IntakeBody,
    PowerSample,
    QuarantinedPower,
    Sender,
    SenderBatch,
    SenderGap,
)
from projects.access import system_actor
from projects.models import ApiToken
from projects.records import Scope, TokenReach
from runs.selectors import devices_of, site_by_slug
from runs.services import ensure_devices, ensure_site
from tests.builders import organisation, token, with_token
from tests.carbon.batch_builders import URL, booked
from tests.carbon.builders import site

pytestmark = pytest.mark.django_db
FOLDER = Path(__file__).parent / "corpus_c"


@dataclass(frozen=True)
class Item:
    item: str
    file: str
    before: str
    how: str
    status: str
    says: str
    rows: str
    rejected: str
    stored: str
    meaning: str


def items() -> list[Item]:
    with (FOLDER / "expect.csv").open(encoding="utf-8", newline="") as file:
        return [Item(**row) for row in csv.DictReader(file)]


def sender(how: str) -> Client:
    kind = how.removeprefix("token=") if how.startswith("token=") else ""
    if kind == "none":
        return Client()
    scope = Scope.READ_COSTS if kind == "other-scope" else Scope.INGEST_POWER
    reach = TokenReach() if how == "site=theirs" else TokenReach(site_id=site().site_id)
    client = with_token(token(scope, reach=reach))
    now = timezone.now()
    if kind == "revoked":
        ApiToken.objects.update(revoked_at=now)
    if kind == "expired":
        ApiToken.objects.update(expires_at=now - timedelta(seconds=1))
    return client


def body_of(item: Item) -> tuple[bytes, dict[str, str]]:
    """The bytes as sent and their headers."""
    if item.how == "size=100MB":
        return b" " * (100 << 20), {"Content-Digest": "sha-256=:AAAA:"}
    plain = (FOLDER / item.file).read_bytes()
    sent, headers = plain, {}
    if "gzip" in item.how:
        sent = gzip.compress(plain)
    if "gzip" in item.how or item.how == "packed":
        headers["Content-Encoding"] = "gzip"
    digested = {"digest=wrong": plain + b" ", "digest=of-unpacked gzip": plain}.get(item.how, sent)
    if item.how != "digest=none":
        digest = base64.b64encode(hashlib.sha256(digested).digest()).decode()
        headers["Content-Digest"] = f"sha-256=:{digest}:"
    return sent, headers


def post(client: Client, item: Item) -> Any:
    sent, headers = body_of(item)
    url = f"{URL}?site=theirs" if item.how == "site=theirs" else URL
    return client.post(url, sent, content_type="application/json", headers=headers)


def first_then(item: Item) -> None:
    """Send what goes before, in order."""
    client = sender("")
    for name in item.before.split():
        answer = post(client, Item(**{**vars(item), "file": name, "how": ""}))
        assert answer.status_code == 200, answer.content


def other_organisation(item: Item) -> Any:
    others = organisation("others")
    theirs = ensure_site(system_actor(others.pk, "tests"), slug="theirs")
    if item.how == "device-of-others":
        ensure_devices(theirs, [("GPU-c0de0000", "n9", "Their GPU")])
    return theirs


@pytest.mark.parametrize("item", items(), ids=lambda one: f"{one.item}-{one.meaning[:40]}")
def test_each_item_gets_its_answer(item):
    theirs = other_organisation(item)
    first_then(item)
    before = list(SenderBatch.objects.order_by("id").values_list("answer", flat=True))
    answer = post(sender(item.how), item)
    document = answer.json()
    assert answer.status_code == int(item.status), document
    if answer.status_code < 300:
        expected = (site().slug, int(item.rows), int(item.rejected))
        assert (document["site"], document["rows"], document["rejected"]) == expected
        if item.item == "C03" and before:
            assert document == before[0]
    says_gap = item.says.startswith("gap ")
    if item.says and not says_gap:
        assert item.says in str(document), document
    if item.status == "409":
        assert document["code"] == item.says
    open_gaps = SenderGap.objects.filter(filled_at__isnull=True).order_by("first_sequence")
    noted = [f"{gap.first_sequence}-{gap.last_sequence}" for gap in open_gaps]
    assert noted == (item.says.split()[1:] if says_gap else [])
    for _ in range(2):
        booked(site())
    stored = PowerSample.objects.count() + CounterReading.objects.count()
    assert stored == int(item.stored)
    assert not IntakeBody.objects.exists()
    assert QuarantinedPower.objects.count() == int(item.rejected or 0)
    if theirs is not None and item.how == "device-of-others":
        (kept,) = devices_of(theirs.site_id)
        assert (kept.node, kept.model) == ("n9", "Their GPU")
        assert {one.device_uuid for one in devices_of(site().site_id)} >= {"GPU-c0de0000"}


def test_the_corpus_has_every_item_of_agents():
    assert {f"C{number:02d}" for number in range(1, 15)} <= {one.item for one in items()}


def test_a_refused_agent_shows_on_its_site_since_when():
    first = next(one for one in items() if one.item == "C03")
    post(sender(""), first)
    revoked = next(one for one in items() if one.how == "token=revoked")
    post(sender("token=revoked"), revoked)
    row = Sender.objects.get()
    assert row.refused_since is not None
    assert "revoked" in row.last_error


def test_two_live_boots_show_on_the_agent():
    item = next(one for one in items() if one.says == "two_boots")
    first_then(item)
    post(sender(""), item)
    row = Sender.objects.get()
    assert "Two agents send as node-7" in row.last_error
    assert row.refused_since is not None


def test_the_agents_row_tells_where_it_stands():
    first_then(Item(**{**vars(items()[0]), "before": "first.json second.json"}))
    booked(site())
    row = Sender.objects.get()
    assert (row.kind, row.name, row.version) == ("agent", "node-7", "1.0.0")
    assert (row.last_sequence, row.rows, row.duplicates) == (2, 36, 0)
    assert row.last_reading_at is not None
    assert site_by_slug(organisation().pk, "hall-1") is not None

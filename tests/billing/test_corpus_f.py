"""Every upload of the corpus gets its clear answer by both doors, and what is refused leaves none.

The files and their answers stand in tests/billing/corpus_f.py.
"""

import errno
import gzip
import resource
import threading
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.urls import reverse

from billing.models import BillingPeriod, ChargeSlice, DailyCost, Delivery
from billing.records import ChargesRefusedError
from billing.services import TooManyUploadsError, locking, upload_slot
from jobs.services import run_job
from lake import blobs
from projects.records import OrganisationRole, Scope
from tests.billing import corpus_f
from tests.billing.builders import charge, costing, focus_csv, hand_in, imported, total
from tests.billing.corpus_f import GOOD, REFUSED, Bad
from tests.builders import organisation, person, token, with_token

pytestmark = pytest.mark.django_db(transaction=True)
LONGEST_CPU_S = 10
MOST_WORKER_KIB = 200 * 1024
MOST_CHILD_KIB = 1024 * 1024


@pytest.fixture(params=REFUSED)
def bad(request, settings) -> Bad:
    case = REFUSED[request.param]
    for name, value in case.settings.items():
        setattr(settings, name, value)
    return case


def nothing_is_kept() -> bool:
    root = Path(django_settings.LAKE_URL)
    return not any(
        (
            [path for path in root.rglob("*") if path.is_file()],
            ChargeSlice.objects.exists(),
            DailyCost.objects.exists(),
            BillingPeriod.objects.exists(),
        )
    )


def used() -> tuple[float, int, int]:
    """Processor seconds of us and our children; the most memory of each, in KiB."""
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    cpu_s = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    return cpu_s, own.ru_maxrss, children.ru_maxrss


def test_the_command_refuses_it_within_bounds_and_keeps_nothing(bad):
    content = bad.make()
    before_s, before_kib, _ = used()

    try:
        delivery = Delivery.objects.get(pk=hand_in((bad.name, content)).delivery_id)
    except ChargesRefusedError as refusal:
        found = {"code": refusal.code, "row": refusal.row, "column": refusal.column}
        said = refusal.reason
    else:
        assert delivery.state == Delivery.State.REFUSED
        found, said = delivery.refusal, delivery.refusal["reason"]

    assert found["code"] == bad.code
    assert found["row"] == bad.row
    assert bad.column in (found["column"] or "")
    assert said
    assert django_settings.LAKE_URL not in said
    assert nothing_is_kept()
    after_s, after_kib, child_kib = used()
    assert after_s - before_s < LONGEST_CPU_S
    assert after_kib - before_kib < MOST_WORKER_KIB
    assert child_kib < MOST_CHILD_KIB


def test_the_web_door_refuses_it_and_keeps_nothing(bad):
    client = with_token(token(Scope.UPLOAD_BILLING))
    body = {"file": SimpleUploadedFile(bad.name, bad.make()), "source": "aws"}

    answer = client.post("/api/v1/charges/imports", body)

    assert answer.status_code == bad.status
    if answer.status_code == 202:
        run_job(Delivery.objects.get().job_id)
        document = client.get(answer.headers["Location"]).json()
        assert document["state"] == "refused"
        assert document["refusal"]["code"] == bad.code
        assert document["refusal"]["row"] == bad.row
    else:
        assert answer.json()["code"] == bad.code
        assert answer.json()["message"]
    assert nothing_is_kept()


ACCEPTED = {
    "F15 more than 18 decimals": (focus_csv([costing("1.1000000000000000001")]), "1.1"),
    "F16 BOM, CRLF, another column": (
        b"\xef\xbb\xbf" + focus_csv([charge(BilledCost="2", x_own="y")], newline="\r\n"),
        "2",
    ),
    "F17 credit": (focus_csv([costing("5"), costing("-2.5", ChargeCategory="Credit")]), "2.5"),
    "F18 zero": (focus_csv([costing("0"), costing("1")]), "1"),
    "F25 two gzip members": (gzip.compress(GOOD[:100]) + gzip.compress(GOOD[100:]), "1.1"),
    "F51 formula in a tag": (
        focus_csv([charge(Tags='{"a": "=cmd|\' /C calc\'!A0", "b": "@x", "c": "\\t=1"}')]),
        "1.1",
    ),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_is_only_unusual_is_taken(case):
    content, expected = ACCEPTED[case]

    delivery = imported(content)

    assert delivery.state == Delivery.State.PUBLISHED
    assert str(total().normalize()) == expected


def test_f16_another_column_is_reported():
    delivery = imported(focus_csv([charge(x_own="y")]))

    assert "x_own" in delivery.report["unknown_columns"]


def test_f19_a_line_that_sums_up_others_is_set_aside():
    empty = dict.fromkeys(charge(), "")
    sum_line = {**empty, "BilledCost": "1.10", "BillingCurrency": "USD"}
    delivery = imported(focus_csv([charge(), sum_line]))

    assert delivery.state == Delivery.State.PUBLISHED
    assert [line["row"] for line in delivery.report["set_aside"]] == [3]
    assert str(total()) == "1.100000000000000000"


@pytest.mark.parametrize("name", ["bill.csv", "other name.csv"])
def test_f20_f21_the_same_bytes_again_are_known(name):
    imported(("bill.csv", GOOD))
    client = with_token(token(Scope.UPLOAD_BILLING))
    body = {"file": SimpleUploadedFile(name, GOOD), "source": "aws"}

    answer = client.post("/api/v1/charges/imports", body)

    assert (answer.status_code, answer.json()["already_imported"]) == (200, True)


HOSTILE_NAMES = ["../../x", "a';--", "*.parquet", "a\nb.csv", "x" * 300, "\u202egpj.csv", "<b>.csv"]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_f47_a_hostile_name_is_only_shown(client, name):
    content = corpus_f.bill_parquet() if name.endswith(".parquet") else GOOD
    delivery = imported((name, content))
    client.force_login(person("admin", role=OrganisationRole.ADMIN))

    page = client.get(reverse("import_detail", args=[delivery.pk])).content.decode()

    assert delivery.state == Delivery.State.PUBLISHED
    assert "<b>.csv" not in page
    assert "\u202e" not in page
    stored = [path.name for path in Path(django_settings.LAKE_URL).rglob("*") if path.is_file()]
    assert not [one for one in stored if one in name]


def test_f48_a_body_that_is_cut_keeps_nothing():
    client = with_token(token(Scope.UPLOAD_BILLING))
    body = (
        b'--cut\r\nContent-Disposition: form-data; name="source"\r\n\r\naws\r\n'
        b'--cut\r\nContent-Disposition: form-data; name="file"; filename="bill.csv"\r\n\r\n'
    ) + GOOD[:300]

    answer = client.generic(
        "POST", "/api/v1/charges/imports", body, content_type="multipart/form-data; boundary=cut"
    )

    assert answer.status_code in (202, 400)
    if answer.status_code == 202:
        run_job(Delivery.objects.get().job_id)
        assert Delivery.objects.get().state == Delivery.State.REFUSED
    assert nothing_is_kept()


def test_f49_a_full_disk_is_said_and_nothing_kept(monkeypatch):
    def full(*_args, **_more):
        raise OSError(errno.ENOSPC, "No space left on device: /somewhere")

    monkeypatch.setattr(blobs.files, "publish", full)
    body = {"source": "aws", "file": SimpleUploadedFile("bill.csv", GOOD)}

    answer = with_token(token(Scope.UPLOAD_BILLING)).post("/api/v1/charges/imports", body)

    assert (answer.status_code, answer.json()["code"]) == (507, "disk_full")
    assert "somewhere" not in answer.content.decode()
    assert nothing_is_kept()
    assert not Delivery.objects.exists()


def hold_slot(organisation_id, taken: threading.Barrier, done: threading.Event) -> None:
    """Upload for as long as nobody says that it is done, on a connection of one's own."""
    try:
        with upload_slot(organisation_id):
            taken.wait(timeout=20)
            done.wait(timeout=20)
    finally:
        connection.close()


def test_f50_the_eleventh_upload_at_once_waits_for_its_turn():
    client = with_token(token(Scope.UPLOAD_BILLING))
    own, done = organisation().pk, threading.Event()
    taken = threading.Barrier(locking.UPLOADS_AT_ONCE + 1)
    running = [
        threading.Thread(target=hold_slot, args=(own, taken, done))
        for _ in range(locking.UPLOADS_AT_ONCE)
    ]
    for thread in running:
        thread.start()
    taken.wait(timeout=20)
    try:
        body = {"file": SimpleUploadedFile("bill.csv", GOOD), "source": "aws"}
        answer = client.post("/api/v1/charges/imports", body)
        with pytest.raises(TooManyUploadsError), upload_slot(own):
            pass
    finally:
        done.set()
        for thread in running:
            thread.join()

    assert answer.status_code == 429
    assert int(answer["Retry-After"]) > 0
    assert not Delivery.objects.exists()
    body = {"file": SimpleUploadedFile("bill.csv", GOOD), "source": "aws"}
    assert client.post("/api/v1/charges/imports", body).status_code == 202

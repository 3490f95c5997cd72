"""Bills pulled from a bucket: whole or not at all, newest state wins, faults end as promised."""

import json
from decimal import Decimal
from uuid import uuid4

import pytest

from audit.models import AuditEntry
from billing.checks import verify
from billing.connectors import s3 as s3_module
from billing.connectors import s3_client
from billing.models import Delivery, InvoiceTotal, PeriodVersion, Pull, PulledUnit, Source
from billing.services import connection_of, pull_source, set_secret
from jobs.models import Job
from jobs.records import JobContext
from jobs.services import run_job
from tests.billing.builders import by, focus_csv, in_month, operator, organisation, total
from tests.billing.pull_builders import (
    MONTH,
    REPORT,
    bill,
    codes,
    cur_manifest,
    export_manifest,
    pulled,
    s3_source,
)
from tests.billing.stores import BUCKET, KEYS, Answer, Asked, s3_error, times

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def source(s3):
    return keyed(s3_source(s3.url, prefix="exports/"))


@pytest.fixture
def through(s3, proxy, monkeypatch):
    """A source behind the proxy, with few and quick tries."""
    monkeypatch.setattr(s3_client, "TRIES", 2)
    return keyed(s3_source(proxy.url, prefix="exports/"))


def keyed(source):
    set_secret(operator(), source, KEYS)
    return source


def assembly(s3, name, *parts, month="2026-05", listed=None):
    """Put an assembly of a report: its parts in a folder of its own, then the manifest."""
    keys = [f"{REPORT}/{MONTH}/{name}/costs-{number}.csv" for number in range(1, len(parts) + 1)]
    for key, part in zip(keys, parts, strict=True):
        s3.put(key, part)
    manifest = cur_manifest(name, listed if listed is not None else keys, month=month)
    s3.put(f"{REPORT}/{MONTH}/costs-Manifest.json", manifest)
    return keys


def test_the_parts_of_a_manifest_are_one_delivery_of_its_month(s3, source):
    assembly(s3, "a1", bill("2026-05", "1.10", "2.20"), bill("2026-05", "3.30"))

    pull = pulled(source)

    delivery = Delivery.objects.get()
    assert pull.state == Pull.State.OK
    assert (pull.objects_listed, pull.objects_fetched) == (2, 2)
    assert delivery.declared_periods == ["2026-05"]
    assert delivery.origin["assembly_id"] == "a1"
    assert delivery.version_at is not None
    assert total() == Decimal("6.60")
    assert (source.state, source.last_error) == (Source.State.OK, None)
    assert source.succeeded_at is not None
    assert verify(organisation().pk) == []


def test_s05_the_same_assembly_again_is_nothing_new(s3, source):
    assembly(s3, "a1", bill("2026-05", "1"))
    pulled(source)

    again = pulled(source)

    assert again.state == Pull.State.NOTHING_NEW
    assert again.bytes_fetched == 0
    assert PeriodVersion.objects.count() == 1


def test_s05_the_same_bytes_under_a_new_assembly_are_nothing_new(s3, source):
    content = bill("2026-05", "1")
    assembly(s3, "a1", content)
    pulled(source)
    assembly(s3, "a2", content)

    again = pulled(source)

    assert again.state == Pull.State.NOTHING_NEW
    assert again.report["units"][0]["already_imported"]
    assert PeriodVersion.objects.count() == 1


def test_a_new_assembly_replaces_the_month_whole(s3, source):
    assembly(s3, "a1", bill("2026-05", "1"), bill("2026-05", "2"))
    pulled(source)
    assembly(s3, "a2", bill("2026-05", "10"), bill("2026-05", "20"), bill("2026-05", "30"))

    pulled(source)

    assert total() == Decimal(60)
    assert verify(organisation().pk) == []


def test_a_provider_that_goes_back_to_older_bytes_is_followed(s3, source):
    first = bill("2026-05", "1")
    for name, content in (("a1", first), ("a2", bill("2026-05", "2")), ("a3", first)):
        # moto's clock has full seconds only: the time stands in the folder's name
        key = f"exports/x/data/BILLING_PERIOD=2026-05/2026051{name[1]}T000000Z-{name}/x-1.csv"
        s3.put(key, content)
        s3.put(
            "exports/x/metadata/BILLING_PERIOD=2026-05/x-Manifest.json",
            export_manifest(name, [key]),
        )
        pulled(source)

    assert total() == Decimal(1)
    assert Delivery.objects.count() == 2
    assert verify(organisation().pk) == []


def test_s04_an_older_assembly_after_a_newer_one_changes_nothing(s3, source):
    folder = "exports/x/data/BILLING_PERIOD=2026-05"
    for day, cost in (("12", "2"), ("11", "1")):
        key = f"{folder}/202605{day}T000000Z-e{day}/x-1.csv"
        s3.put(key, bill("2026-05", cost))
        s3.put(
            "exports/x/metadata/BILLING_PERIOD=2026-05/x-Manifest.json",
            export_manifest(f"e{day}", [key]),
        )
        pulled(source)

    assert Delivery.objects.count() == 2
    assert total() == Decimal(2)
    assert PeriodVersion.objects.count() == 1


def test_s01_a_missing_part_leaves_the_month_as_it_is_until_it_arrives(s3, source):
    assembly(s3, "a1", bill("2026-05", "1"))
    pulled(source)
    keys = assembly(s3, "a2", bill("2026-05", "5"), late := bill("2026-05", "6"))
    s3.delete(keys[1])

    incomplete = pulled(source)

    assert (incomplete.state, codes(incomplete)) == (Pull.State.INCOMPLETE, ["missing"])
    assert incomplete.error["object"] == keys[1]
    assert (source.state, source.last_error["code"]) == (Source.State.INCOMPLETE, "missing")
    assert total() == Decimal(1)

    s3.put(keys[1], late)
    assert pulled(source).state == Pull.State.OK
    assert (source.state, total()) == (Source.State.OK, Decimal(11))


def test_i05_a_file_of_the_assembly_that_the_manifest_does_not_name_stops_it(s3, source):
    keys = assembly(s3, "a1", bill("2026-05", "1"), bill("2026-05", "2"))
    manifest = cur_manifest("a1", keys[:1])
    s3.put(f"{REPORT}/{MONTH}/costs-Manifest.json", manifest)

    pull = pulled(source)

    assert codes(pull) == ["extra"]
    assert Delivery.objects.count() == 0


def test_s02_a_size_that_differs_from_the_manifest_stops_it(s3, source):
    s3.put("exports/own/2026-05/a.csv", content := bill("2026-05", "1"))
    manifest = {"files": [{"key": "a.csv", "size": len(content) + 1}], "period": "2026-05"}
    s3.put("exports/own/2026-05/manifest.json", json.dumps(manifest).encode())

    assert codes(pulled(source)) == ["size"]
    assert Delivery.objects.count() == 0


@pytest.mark.parametrize(
    "content",
    [
        cur_manifest("a2", ["exports/x.csv"])[:-40],
        b"",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"assemblyId": "a", "reportKeys": ["x"], "billingPeriod": {}}',
        b'{"assemblyId": "a", "reportKeys": [1], "billingPeriod": {"start": "20260501"}}',
        b'{"assemblyId": "a", "reportKeys": [], "billingPeriod": {"start": "20260501"}}',
        b"\xff\xfe{}",
    ],
)
def test_s03_a_broken_manifest_leaves_the_month_as_it_is(s3, source, content):
    assembly(s3, "a1", bill("2026-05", "1"))
    pulled(source)
    s3.put(f"{REPORT}/{MONTH}/costs-Manifest.json", content)

    pull = pulled(source)

    assert codes(pull) == ["manifest"]
    assert source.state == Source.State.INCOMPLETE
    assert total() == Decimal(1)


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("exports/../secret.csv", "key"),
        ("exports/%2e%2e/secret.csv", "key"),
        ("exports/%252e%252e/secret.csv", "key"),
        ("s3://elsewhere/exports/a.csv", "key"),
        ("secret.csv", "missing"),
        ("other/secret.csv", "missing"),
    ],
)
def test_s06_a_key_that_leads_elsewhere_is_refused(s3, source, key, code):
    for name in ("secret.csv", "other/secret.csv"):
        s3.put(name, bill("2026-05", "1"))
    assembly(s3, "a1", listed=[key])

    assert codes(pulled(source)) == [code]
    assert Delivery.objects.count() == 0


@pytest.mark.parametrize("name", ["a'; --.csv", "a*.csv", "a?[1].csv", 'a".csv', "ä 中.csv"])
def test_s07_quotes_and_globs_in_keys_mean_themselves(s3, source, name):
    folder = f"{REPORT}/{MONTH}"
    s3.put(f"{folder}/{name}", bill("2026-05", "1"))
    s3.put(f"{folder}/costs-Manifest.json", cur_manifest("a1", [f"{folder}/{name}"]))

    assert pulled(source).state == Pull.State.OK
    assert total() == Decimal(1)


def test_s08_an_object_that_is_replaced_between_listing_and_reading_is_listed_anew(
    s3, proxy, through
):
    keys = assembly(s3, "a1", bill("2026-05", "1"))
    replaced = []

    def replace(asked: Asked) -> Answer | None:
        if asked.is_get_of(".csv") and not replaced:
            replaced.append(asked.headers["If-Match"])
            s3.put(keys[0], bill("2026-05", "77"))
            s3.put(f"{REPORT}/{MONTH}/costs-Manifest.json", cur_manifest("a1", keys))
        return None

    proxy.rules.append(replace)

    assert pulled(through).state == Pull.State.OK
    assert replaced
    assert total() == Decimal(77)


def test_s08_an_object_that_never_stands_still_is_incomplete(s3, proxy, through):
    keys = assembly(s3, "a1", bill("2026-05", "1"))

    def replace(asked: Asked) -> Answer | None:
        if asked.is_get_of(".csv"):
            s3.put(keys[0], bill("2026-05", "77"))
            s3.put(f"{REPORT}/{MONTH}/costs-Manifest.json", cur_manifest("a1", keys))
        return None

    proxy.rules.append(replace)
    pull = pulled(through)

    assert codes(pull) == ["changed"]
    assert proxy.count(lambda asked: asked.is_get_of(".csv")) == 3
    assert Delivery.objects.count() == 0


@pytest.mark.parametrize(
    ("code", "status", "ours"),
    [
        ("AccessDenied", 403, "access_denied"),
        ("ExpiredToken", 400, "expired"),
        ("InvalidAccessKeyId", 403, "credentials"),
        ("NoSuchBucket", 404, "not_found"),
    ],
)
def test_s09_a_source_that_may_not_be_read_is_broken_and_its_data_stays(
    s3, proxy, through, code, status, ours
):
    assembly(s3, "a1", bill("2026-05", "1"))
    pulled(through)
    proxy.rules.append(lambda asked: s3_error(status, code) if asked.is_listing() else None)

    pull = pulled(through)

    assert (pull.state, pull.error["code"]) == (Pull.State.FAILED, ours)
    assert (through.state, through.last_error["code"]) == (Source.State.BROKEN, ours)
    assert Job.objects.get(pk=pull.job_id).attempts == 1, "trying again would not help"
    assert total() == Decimal(1)
    assert AuditEntry.objects.filter(action="source.state").count() == 2

    proxy.rules.clear()
    assert pulled(through).state == Pull.State.NOTHING_NEW
    assert through.state == Source.State.OK


def test_s10_a_store_that_asks_to_slow_down_is_asked_again(s3, proxy, through):
    assembly(s3, "a1", bill("2026-05", "1"))
    proxy.rules.append(times(1, lambda asked: asked.is_listing(), s3_error(503, "SlowDown")))
    proxy.rules.append(times(1, lambda asked: asked.is_get_of(".csv"), s3_error(500, "Internal")))

    assert pulled(through).state == Pull.State.OK
    assert total() == Decimal(1)


def test_s10_a_store_that_never_recovers_is_asked_a_bounded_number_of_times(
    s3, proxy, through, settings
):
    settings.JOB_BACKOFF_S = 0
    proxy.rules.append(lambda asked: s3_error(503, "SlowDown"))

    pull = pulled(through)
    assert (pull.state, through.state) == (Pull.State.RUNNING, Source.State.NEW)
    for _again in range(4):
        run_job(pull.job_id)

    pull.refresh_from_db()
    through.refresh_from_db()
    assert (pull.state, pull.error["code"]) == (Pull.State.FAILED, "throttled")
    assert through.state == Source.State.BROKEN
    assert len(proxy.asked) == 2 * settings.JOB_MAX_ATTEMPTS


def test_s12_a_column_that_appears_in_the_middle_of_a_month_is_kept(s3, source):
    assembly(s3, "a1", bill("2026-05", "1"))
    pulled(source)
    assembly(s3, "a2", bill("2026-05", "1", "2", Brand_New="x"))

    pulled(source)

    assert total() == Decimal(3)
    newest = Delivery.objects.order_by("received_at").last()
    assert newest.report["unknown_columns"] == ["Brand_New"]


def test_s13_a_month_in_two_currencies_is_never_one_sum(s3, source):
    assembly(s3, "a1", bill("2026-05", "1"), bill("2026-05", "2", "3", BillingCurrency="EUR"))

    pulled(source)

    assert (total(), total(currency="EUR")) == (Decimal(1), Decimal(5))


def test_s14_a_line_outside_the_bill_period_is_shown(s3, source):
    rows = [in_month("2026-05", BilledCost="1") for _ in range(3)]
    stray = in_month("2026-04", BilledCost="9")
    assembly(s3, "a1", focus_csv([*rows, stray]))

    pulled(source)

    periods = {one["period"]: one for one in Delivery.objects.get().report["periods"]}
    assert periods["2026-04"]["is_main"] is False
    assert by("month") == {"2026-04": Decimal(9), "2026-05": Decimal(3)}


def test_s15_a_listing_that_breaks_at_its_second_page_publishes_nothing(
    s3, proxy, through, monkeypatch
):
    monkeypatch.setattr(s3_module, "PAGE_KEYS", 1)
    assembly(s3, "a1", bill("2026-05", "1"))
    proxy.rules.append(
        lambda asked: (
            s3_error(500, "InternalError")
            if asked.is_listing() and "continuation-token" in asked.query
            else None
        )
    )

    pull = pulled(through)

    assert pull.error["code"] == "unavailable"
    assert Delivery.objects.count() == 0


def test_a_connection_that_breaks_is_taken_up_where_it_broke(s3, proxy, through, monkeypatch):
    monkeypatch.setattr(s3_module, "CHUNK_BYTES", 200)
    content = bill("2026-05", *["1"] * 40)
    assembly(s3, "a1", content)
    proxy.rules.append(times(2, lambda asked: asked.is_get_of(".csv"), Answer(cut_at=1500)))

    pull = pulled(through)

    ranges = [asked.headers.get("Range") for asked in proxy.asked if asked.is_get_of(".csv")]
    assert ranges[0] is None
    assert all(one.startswith("bytes=") for one in ranges[1:])
    assert pull.bytes_fetched == len(content)
    assert total() == Decimal(40)


def test_a_pull_that_was_killed_after_it_handed_in_does_not_hand_in_twice(s3, source):
    assembly(s3, "a1", bill("2026-05", "1"))
    pulled(source)
    PulledUnit.objects.all().delete()  # what the transaction after the hand-in writes

    assert pulled(source).state == Pull.State.NOTHING_NEW
    assert Delivery.objects.count() == 1
    assert PulledUnit.objects.count() == 1


def test_progress_is_told_in_bytes(s3, source):
    content = bill("2026-05", *["1"] * 50)
    assembly(s3, "a1", content)
    told = []
    context = JobContext(
        job_id=uuid4(),
        organisation_id=organisation().pk,
        payload={"source_id": str(source.pk)},
        on_report=lambda done, total, message: told.append((done, total)),
    )

    pull_source(context)

    assert told[-1] == (len(content), len(content))


def test_a_refused_bill_is_not_fetched_again_unless_somebody_asks(s3, source):
    assembly(s3, "a1", b"no,such\nbill,here\n")
    pulled(source)
    assert Delivery.objects.get().state == Delivery.State.REFUSED
    source.refresh_from_db()
    assert (source.state, source.last_error["code"]) == (Source.State.INCOMPLETE, "refused")

    by_schedule = pulled(source)
    assert (by_schedule.bytes_fetched, codes(by_schedule)) == (0, ["refused"])
    assert source.state == Source.State.INCOMPLETE

    assert pulled(source, again=True).bytes_fetched > 0


def test_a_manifest_s_total_becomes_an_invoice_total(s3, source):
    def put(amount: str) -> None:
        s3.put("exports/own/2026-05/a.csv", bill("2026-05", amount))
        manifest = {
            "files": ["a.csv"],
            "period": "2026-05",
            "total": {"amount": amount, "currency": "USD"},
        }
        s3.put("exports/own/2026-05/manifest.json", json.dumps(manifest).encode())
        pulled(source)

    put("1.10")
    put("2.20")

    in_force = InvoiceTotal.objects.get(withdrawn_at=None)
    assert (in_force.amount, in_force.origin) == (Decimal("2.20"), InvoiceTotal.Origin.MANIFEST)
    assert InvoiceTotal.objects.count() == 2


def test_secrets_are_not_part_of_what_a_pull_leaves_behind(s3, proxy):
    source = s3_source(proxy.url, prefix="exports/")
    canary = "canary-7d1f0a"
    set_secret(operator(), source, {**KEYS, "secret_access_key": canary})
    proxy.rules.append(lambda asked: s3_error(403, "SignatureDoesNotMatch"))

    pull = pulled(source)

    assert connection_of(source).secret["secret_access_key"] == canary
    left = [pull.error, pull.report, source.last_error, Job.objects.get(pk=pull.job_id).error]
    assert canary not in json.dumps(left)


def test_access_by_an_assumed_role(s3):
    s3.put("exports/2026-05/a.csv", bill("2026-05", "1"))
    source = keyed(
        s3_source(
            s3.url,
            prefix="exports/",
            role_arn="arn:aws:iam::123456789012:role/bills",
            external_id="costwatch-1",
        )
    )

    assert pulled(source).state == Pull.State.OK
    assert total() == Decimal(1)
    assert Delivery.objects.get().origin["place"] == BUCKET

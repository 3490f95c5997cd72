"""Connecting, testing, pulling and reading sources through their pages, and as configuration."""

from datetime import UTC, date, datetime, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.urls import reverse

from audit.models import AuditEntry
from billing.models import Delivery, Pull, Source
from billing.services import (
    SourceWish,
    ask_for_pull,
    ask_for_test,
    change_source,
    connect_source,
    pause_source,
)
from billing.source_coverage import DayState, coverage_of
from billing.source_policies import policies_for
from billing.source_selectors import next_pull_at
from costwatch.configuration import apply_document, dump_document
from jobs.selectors import job_progress
from jobs.services import run_job
from projects.records import OrganisationRole, Role
from tests.billing.builders import charge, focus_csv, imported, in_month, operator, total
from tests.builders import organisation, person, project, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path, settings):
    """A folder that the operator lists."""
    settings.WATCHED_FOLDERS = [tmp_path]
    made = tmp_path / "exports"
    made.mkdir()
    return made


@pytest.fixture
def admin():
    return signed_in(person("admin", role=OrganisationRole.ADMIN))


def folder_wish(folder, **changed) -> SourceWish:
    return SourceWish(
        **{
            "name": "exports",
            "kind": "folder",
            "connection": {"path": str(folder), "settle_s": 0},
            "every_h": 6,
            **changed,
        }
    )


def posted(folder, **changed) -> dict:
    return {
        "name": "exports",
        "bill_format": "auto",
        "every_h": "6",
        "place_path": str(folder),
        "place_settle_s": "0",
        **changed,
    }


def page(client, name: str, *args, **query) -> str:
    answer = client.get(reverse(name, args=args), query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_source_is_connected_tested_and_pulled_from_its_pages(admin, folder):
    (folder / "2026-05.csv").write_bytes(focus_csv([charge(BilledCost="1.25")]))
    for kind in ("Amazon S3", "Google BigQuery", "Azure Blob", "Watched folder"):
        assert kind in page(admin, "source_new")

    answer = admin.post(reverse("source_connect", args=["folder"]), posted(folder))
    source = Source.objects.get()
    assert answer["Location"] == reverse("source_test", args=[source.pk])
    answer = admin.post(answer["Location"])
    run_job(answer["Location"].rpartition("=")[2])
    shown = admin.get(answer["Location"]).content.decode()
    assert "Everything works" in shown
    assert "2026-05.csv can be read" in shown

    answer = admin.post(reverse("source_pull", args=[source.pk]))
    run_job(answer["Location"].rpartition("=")[2])
    run_job(Delivery.objects.get().job_id)
    shown = page(admin, "source_detail", source.pk)
    assert "working" in shown
    assert reverse("import_detail", args=[Delivery.objects.get().pk]) in shown
    assert str(total()) == "1.250000000000000000"


def test_a_test_says_which_step_fails_and_what_is_missing(admin, folder):
    source = connect_source(operator(), folder_wish(folder / "gone"))
    job_id = ask_for_test(operator(), source)
    run_job(job_id)

    shown = page(admin, "source_test", source.pk, job=str(job_id))

    assert "Something is missing" in shown
    assert "it is not there" in shown
    assert shown.count("not tried") == 2 or shown.count("not tried") == 3
    listed = page(admin, "sources")
    assert "test failed" in listed
    assert "it is not there" in listed
    assert "not tried yet" not in listed


def test_the_steps_of_another_source_or_organisation_are_not_shown(admin, folder):
    mine = connect_source(operator(), folder_wish(folder))
    other = connect_source(operator(), folder_wish(folder, name="other"))
    job_id = ask_for_test(operator(), other)
    run_job(job_id)

    shown = page(admin, "source_test", mine.pk, job=str(job_id))

    assert "Something is missing" not in shown


def test_what_cannot_be_is_refused_beside_its_field(admin, folder):
    shown = admin.post(
        reverse("source_connect", args=["folder"]), posted("/etc", name="x")
    ).content.decode()
    assert "COSTWATCH_WATCHED_FOLDERS" in shown

    connect_source(operator(), folder_wish(folder))
    shown = admin.post(reverse("source_connect", args=["folder"]), posted(folder)).content.decode()
    assert "There is a source named exports." in shown
    assert Source.objects.count() == 1
    assert admin.get(reverse("source_connect", args=["carrier-pigeon"])).status_code == 404


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"name": " "}, "name"),
        ({"kind": "carrier-pigeon"}, "kind"),
        ({"every_h": 5}, "every_h"),
        ({"bill_format": "papyrus"}, "bill_format"),
        ({"connection": {}}, "path"),
        ({"connection": {"path": "/tmp", "password": "x"}}, "connection"),
    ],
)
def test_a_wish_that_cannot_be_names_its_key(folder, changed, key):
    with pytest.raises(ValidationError) as refusal:
        connect_source(operator(), folder_wish(folder, **changed))
    assert key in refusal.value.message_dict


def test_administrators_see_all_owners_and_auditors_names_and_states_others_nothing(folder):
    source = connect_source(operator(), folder_wish(folder))
    Source.objects.filter(pk=source.pk).update(
        state="broken", last_error={"code": "missing", "message": "a secret path", "object": ""}
    )
    owner, viewer, analyst = person("owner"), person("viewer"), person("analyst")
    project(members=[(owner, Role.OWNER), (viewer, Role.VIEWER), (analyst, Role.ANALYST)])
    auditor = person("auditor", role=OrganisationRole.AUDITOR)
    for somebody in (owner, auditor):
        client = signed_in(somebody)
        shown = page(client, "sources")
        assert 'href="/sources/"' in shown
        assert "exports" in shown
        assert "broken" in shown
        assert "a secret path" not in shown
        assert str(folder) not in shown
        assert client.get(reverse("source_detail", args=[source.pk])).status_code == 403
    for somebody in (viewer, analyst):
        client = signed_in(somebody)
        assert client.get(reverse("sources")).status_code == 403
        assert 'href="/sources/"' not in page(client, "charges")
    for name in ("source_pull", "source_pause", "source_forget_secret", "source_test"):
        answer = signed_in(auditor).post(reverse(name, args=[source.pk]))
        assert answer.status_code == 403
    assert signed_in(owner).get(reverse("source_new")).status_code == 403


def test_a_paused_source_is_not_pulled_by_itself_and_goes_on(admin, folder):
    source = connect_source(operator(), folder_wish(folder))
    assert next_pull_at(source) is not None

    admin.post(reverse("source_pause", args=[source.pk]), {"pause": "1"})
    source.refresh_from_db()
    assert source.is_paused
    assert next_pull_at(source) is None
    assert "paused" in page(admin, "sources")

    pause_source(operator(), source, pause=False)
    assert not source.is_paused


def test_every_change_stands_in_the_trail(admin, folder):
    source = connect_source(operator(), folder_wish(folder))
    admin.post(
        reverse("source_change", args=[source.pk]), posted(folder, every_h="24", name="daily")
    )
    pause_source(operator(), source, pause=True)

    actions = list(
        AuditEntry.objects.filter(object_id=str(source.pk))
        .order_by("position")
        .values_list("action", flat=True)
    )
    assert actions == ["source.create", "source.change", "source.pause"]
    entry = AuditEntry.objects.get(action="source.change")
    assert (entry.before["every_h"], entry.after["every_h"]) == (6, 24)
    assert (entry.before["name"], entry.after["name"]) == ("exports", "daily")


def test_a_source_of_uploads_may_become_a_pulled_one_and_keeps_its_months(folder):
    imported(focus_csv([charge(BilledCost="3")]), source="exports")
    source = Source.objects.get()

    change_source(operator(), source, folder_wish(folder))

    assert source.kind == "folder"
    assert str(total()) == "3.000000000000000000"
    with pytest.raises(ValidationError, match="keeps its kind"):
        change_source(
            operator(), source, folder_wish(folder, kind="gcs", connection={"bucket": "abc"})
        )


def test_the_calendar_names_gaps_and_what_is_late(admin):
    rows = [
        charge(
            ChargePeriodStart=f"2026-05-{day:02}T00:00:00Z",
            ChargePeriodEnd=f"2026-05-{day:02}T01:00:00Z",
        )
        for day in (1, 2, 3, 7, 8, 10)
    ]
    imported(focus_csv(rows), source="aws")

    shown = page(admin, "source_detail", Source.objects.get().pk)

    assert "4 May 2026" in shown
    assert "(3 days)" in shown
    assert "(1 day)" in shown
    assert "late" in shown


def test_a_calendar_tells_gaps_late_days_and_days_that_may_still_come():
    through = date(2026, 5, 20)
    days = {through - timedelta(days=number) for number in range(40)} - {date(2026, 5, 5)}

    covered = coverage_of(days, as_of=date(2026, 5, 26))

    states = {one.day: one.state for month in covered.months for one in month.days}
    assert states[date(2026, 5, 5)] == DayState.GAP
    assert states[date(2026, 5, 21)] == DayState.LATE
    assert states[date(2026, 5, 23)] == DayState.DUE
    assert states[date(2026, 5, 26)] == DayState.OUTSIDE
    assert [month.month for month in covered.months] == ["2026-05", "2026-04"]
    assert [(one.first, one.last, one.is_late) for one in covered.stretches] == [
        (date(2026, 5, 5), date(2026, 5, 5), False),
        (date(2026, 5, 21), date(2026, 5, 22), True),
    ]
    assert coverage_of([], as_of=through).months == ()


def test_policies_grant_the_bucket_the_prefix_and_no_more():
    found = {
        one.key: one.text
        for one in policies_for(
            "s3",
            {
                "bucket": "bills",
                "prefix": "cur",
                "role_arn": "arn:aws:iam::123456789012:role/c",
                "external_id": "e1",
            },
        )
    }
    assert '"arn:aws:s3:::bills/cur/*"' in found["s3-read"]
    assert '"cur/*"' in found["s3-read"]
    assert '"e1"' in found["s3-trust"]
    for text in found.values():
        assert "s3:*" not in text
        assert "Put" not in text
    google = "\n".join(
        one.text
        for one in policies_for("bigquery", {"project": "p", "dataset": "q.d", "table": "t"})
    )
    assert "roles/bigquery.jobUser" in google
    assert "ON TABLE `q.d.t`" in google
    assert (
        'startsWith("projects/_/buckets/b/objects/x/")'
        in policies_for("gcs", {"bucket": "b", "prefix": "x"})[0].text
    )
    assert "containers/c" in policies_for("azure_blob", {"container": "c"})[0].text


def test_sources_are_written_and_read_as_configuration_without_any_credential(folder):
    connect_source(operator(), folder_wish(folder))
    imported(focus_csv([charge()]), source="by hand")
    document = dump_document(organisation().pk)

    assert document["sources"] == [
        {"name": "by hand", "format": "auto"},
        {
            "name": "exports",
            "kind": "folder",
            "connection": {"path": str(folder), "settle_s": 0},
            "format": "auto",
            "every_h": 6,
        },
    ]
    assert apply_document(operator(), document, dry_run=False) == []
    wanted = {"name": "exports", "every_h": 24, "paused": True}
    apply_document(operator(), {"sources": [wanted]}, dry_run=False)
    source = Source.objects.get(name="exports")
    assert (source.every_h, source.is_paused, source.kind) == (24, True, "folder")


def test_a_configuration_that_cannot_be_names_the_source_and_its_key(folder):
    for wrong, words in (
        ({"kind": "folder", "connection": {"path": "/etc"}}, "WATCHED_FOLDERS"),
        ({"kind": "s3", "connection": {"bucket": "b-b", "secret_access_key": "x"}}, "no setting"),
        ({"every_h": 5}, "every_h"),
        ({"format": "papyrus"}, "format"),
    ):
        with pytest.raises(Exception, match=words) as refusal:
            apply_document(operator(), {"sources": [{"name": "new", **wrong}]}, dry_run=False)
        assert "new" in str(refusal.value)
    assert not Source.objects.exists()


def test_a_running_pull_shows_its_progress_and_another_wish_joins_it(admin, folder):
    source = connect_source(operator(), folder_wish(folder))
    job_id = ask_for_pull(source)
    Pull.objects.create(organisation_id=source.organisation_id, source=source, job_id=job_id)

    shown = page(admin, "source_detail", source.pk)

    assert "A pull is on its way" in shown
    assert f"progress-{job_id}" in shown
    assert ask_for_pull(source) == job_id
    assert not job_progress(job_id, source.organisation_id).is_over


def test_the_last_error_is_told_in_words_with_the_missing_permission(admin, folder):
    source = connect_source(operator(), folder_wish(folder))
    at = datetime(2026, 5, 1, tzinfo=UTC).isoformat()
    Source.objects.filter(pk=source.pk).update(
        state="broken",
        last_error={
            "code": "access_denied",
            "message": "refused",
            "object": "a.csv",
            "missing_permission": "s3:GetObject on arn:aws:s3:::b/*",
            "at": at,
        },
    )

    for shown in (page(admin, "sources"), page(admin, "source_detail", source.pk)):
        assert "a.csv: refused; missing permission: s3:GetObject on arn:aws:s3:::b/*" in shown


def test_months_of_several_deliveries_are_counted_once(admin):
    imported(focus_csv([in_month("2026-05"), in_month("2026-06")]), source="aws")

    assert "Published months" in page(admin, "source_detail", Source.objects.get().pk)

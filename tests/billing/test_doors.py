"""Pages and REST doors of bills: who may, what they see, what they are told."""

import errno
import io
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from billing.models import Delivery
from jobs.services import run_job
from lake import blobs
from projects.records import OrganisationRole, Role, Scope, TokenReach
from tests.billing.builders import charge, focus_csv, imported
from tests.builders import organisation, person, project, token, with_token

pytestmark = pytest.mark.django_db(transaction=True)
BILL = focus_csv([charge(BilledCost="1.50")])


@pytest.fixture
def admin(client):
    client.force_login(person("admin", role=OrganisationRole.ADMIN))
    return client


def upload(client, content: bytes = BILL, **fields: str):
    file = SimpleUploadedFile(fields.pop("name", "bill.csv"), content)
    data = {"file": [file], "source": "aws", "period": "", **fields}
    return client.post(reverse("import_upload"), data)


def test_an_upload_leads_to_its_report(admin):
    answer = upload(admin)

    assert answer.status_code == 303
    delivery = Delivery.objects.get()
    assert "hx-get" in admin.get(answer.url).content.decode()
    run_job(delivery.job_id)
    page = admin.get(answer.url).content.decode()
    assert "$1.50" in page
    assert "Other compute" in page
    assert str(delivery.pk) in admin.get(reverse("imports")).content.decode()


def test_a_refused_delivery_says_where_and_why(admin):
    answer = upload(admin, focus_csv([charge(), charge(BilledCost="free")]))
    run_job(Delivery.objects.get().job_id)

    page = admin.get(answer.url).content.decode()

    for words in ("bill.csv", "BilledCost", "free", "<dd>3</dd>"):
        assert words in page.replace("\n", "")


def test_a_file_that_is_no_csv_is_refused_in_the_form(admin):
    answer = upload(admin, b"PK\x03\x04")

    assert answer.status_code == 200
    assert "zip" in answer.content.decode()
    assert not Delivery.objects.exists()


def test_a_month_that_is_none_is_refused_in_the_form(admin):
    answer = upload(admin, period="2026-13")

    assert answer.status_code == 200
    assert "period" in answer.context["form"].errors
    assert not Delivery.objects.exists()


def test_a_shrinking_month_is_confirmed_on_its_page(admin):
    imported(focus_csv([charge(), charge(Tags="{}")]))
    answer = upload(admin)
    delivery = Delivery.objects.latest("received_at")
    run_job(delivery.job_id)
    assert "Replace the months" in admin.get(answer.url).content.decode()

    admin.post(reverse("import_decide", args=[delivery.pk]), {"decision": "confirm"})
    delivery.refresh_from_db()
    run_job(delivery.job_id)

    delivery.refresh_from_db()
    assert delivery.state == Delivery.State.PUBLISHED


def test_hostile_text_of_a_bill_stays_text(admin):
    hostile = "<img src=x onerror=alert(1)>"
    delivery = imported(focus_csv([charge(ChargeClass=hostile, **{hostile: "x"})]))

    page = admin.get(reverse("import_detail", args=[delivery.pk])).content.decode()

    assert "<img" not in page
    assert "&lt;img" in page


def test_an_analyst_uploads_but_does_not_see_other_peoples_totals(client):
    analyst = person("ana")
    project("moe", members=[(analyst, Role.ANALYST)])
    foreign = imported(BILL)
    client.force_login(analyst)

    assert "$1.50" not in client.get(reverse("imports")).content.decode()
    assert "$1.50" not in client.get(reverse("import_detail", args=[foreign.pk])).content.decode()
    assert upload(client, focus_csv([charge(BilledCost="2")])).status_code == 303
    assert client.get(reverse("allocation")).status_code == 403


def test_a_viewer_neither_uploads_nor_sees_deliveries(client):
    viewer = person("vic")
    project("moe", members=[(viewer, Role.VIEWER)])
    delivery = imported(BILL)
    client.force_login(viewer)

    assert client.get(reverse("imports")).status_code == 200
    assert str(delivery.pk) not in client.get(reverse("imports")).content.decode()
    assert client.get(reverse("import_upload")).status_code == 403
    assert client.get(reverse("import_detail", args=[delivery.pk])).status_code == 404


def test_another_organisations_delivery_does_not_exist(client):
    delivery = imported(BILL)
    other = organisation("other")
    client.force_login(person("eve", role=OrganisationRole.ADMIN, of=other))

    assert client.get(reverse("import_detail", args=[delivery.pk])).status_code == 404
    decision = client.post(reverse("import_decide", args=[delivery.pk]), {"decision": "decline"})
    assert decision.status_code == 404


def send(client, content: bytes = BILL, *, key: str | None = None, **fields):
    headers = {"Idempotency-Key": key} if key else {}
    data = {"file": SimpleUploadedFile("bill.csv", content), "source": "aws", **fields}
    return client.post("/api/v1/charges/imports", data, headers=headers)


def test_the_api_takes_a_bill_and_tells_how_it_went():
    client = with_token(token(Scope.UPLOAD_BILLING))

    answer = send(client)

    assert answer.status_code == 202
    assert answer.json()["batches"][0]["already_imported"] is False
    run_job(Delivery.objects.get().job_id)
    read = client.get(answer.headers["Location"]).json()
    assert (read["state"], read["rows"]) == ("published", 1)
    assert read["totals"][0]["billed_cost"] == "1.5"


def test_the_api_answers_the_same_bytes_with_200():
    client = with_token(token(Scope.UPLOAD_BILLING))
    send(client)
    run_job(Delivery.objects.get().job_id)

    answer = send(client)

    assert answer.status_code == 200
    assert answer.json()["already_imported"] is True


def test_the_api_replays_an_answer_under_its_key():
    client = with_token(token(Scope.UPLOAD_BILLING))

    first, again = send(client, key="k1"), send(client, key="k1")

    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    assert send(client, focus_csv([charge(Tags="{}")]), key="k1").status_code == 422
    assert Delivery.objects.count() == 1


@pytest.mark.parametrize(
    ("content", "status"), [(b"PK\x03\x04", 415), ("a,b".encode("utf-16"), 400)]
)
def test_the_api_refuses_what_is_no_csv(content, status):
    answer = send(with_token(token(Scope.UPLOAD_BILLING)), content)

    assert answer.status_code == status
    assert set(answer.json()) >= {"code", "message"}
    assert not Delivery.objects.exists()


def test_the_api_needs_a_token_for_uploads():
    assert send(with_token(token(Scope.READ_COSTS))).status_code == 403


def test_a_projects_costs_are_read_over_the_api():
    project("moe")
    client = with_token(token(Scope.READ_COSTS))

    answer = client.get("/api/v1/projects/moe/costs?group_by=day,x_cost_class&basis=effective")

    assert answer.status_code == 200
    assert answer.json() == {
        "basis": "effective",
        "from": None,
        "to": None,
        "rows": [],
        "total": [],
    }
    assert client.get("/api/v1/projects/moe/costs?group_by=colour").status_code == 400
    assert client.get("/api/v1/projects/moe/costs?from=31.05.2026").status_code == 400
    assert client.get("/api/v1/projects/nobody/costs").status_code == 404


def test_a_full_disk_says_so_without_its_place(monkeypatch):
    def full(*_args, **_more):
        raise OSError(errno.ENOSPC, "No space left on device: /somewhere")

    monkeypatch.setattr(blobs, "receive", full)
    body = {"source": "aws", "file": SimpleUploadedFile("a.csv", BILL)}

    answer = with_token(token(Scope.UPLOAD_BILLING)).post("/api/v1/charges/imports", body)

    assert (answer.status_code, answer.json()["code"]) == (507, "disk_full")
    assert "somewhere" not in answer.content.decode()


def test_a_project_does_not_learn_from_when_to_when_others_have_charges():
    project("moe")
    imported(BILL)
    own = with_token(token(Scope.READ_COSTS, reach=TokenReach(project_slug="moe")))

    document = own.get("/api/v1/projects/moe/costs").json()

    assert (document["from"], document["to"]) == (None, None)


def test_a_report_leads_to_its_charges_its_months_and_whether_they_tie(admin):
    delivery = imported(BILL)
    page = admin.get(reverse("import_detail", args=[delivery.pk])).content.decode()

    assert "Import of aws, " in page
    period = delivery.slices.get().period
    assert reverse("period_versions", args=[period.pk]) in page
    assert "not stated" in page
    charges_url = admin.get(reverse("import_detail", args=[delivery.pk])).context["charges_url"]
    assert "$1.50" in admin.get(charges_url).content.decode()


def test_a_file_of_an_archive_says_whose_hash_is_shown(admin):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("inner.csv", BILL)
    answer = upload(admin, packed.getvalue(), name="may.zip")
    run_job(Delivery.objects.get().job_id)

    page = admin.get(answer.url).content.decode()
    assert "inner.csv" in page
    assert "in may.zip, whose SHA-256 is" in page


def test_a_refused_delivery_keeps_its_source_for_the_next_try_but_not_in_the_hints(admin):
    answer = upload(admin, b"not,a\nbill,1\n", source="mistyped")
    run_job(Delivery.objects.get().job_id)

    again = f"{reverse('import_upload')}?source=mistyped"
    assert again in admin.get(answer.url).content.decode()
    assert ">mistyped<" not in admin.get(reverse("import_upload")).content.decode()


def test_the_money_of_a_shrinking_month_is_for_organisation_wide_roles(admin):
    imported(focus_csv([charge(BilledCost="40"), charge(BilledCost="2", Tags="{}")]))
    analyst = person("ana")
    project("moe", members=[(analyst, Role.ANALYST)])
    answer = upload(admin)
    run_job(Delivery.objects.latest("received_at").job_id)

    page = admin.get(answer.url).content.decode()
    assert "$42.00" in page
    assert "button-primary" not in page[page.index("decision") - 200 :]
    admin.force_login(analyst)
    assert "$42.00" not in admin.get(answer.url).content.decode()

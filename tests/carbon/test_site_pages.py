"""The pages of sites and power: what is unknown says so, factors and uploads go through them."""

from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from carbon.models import PowerSample, SiteFactor
from carbon.services import close_hours_job, store_power_delivery
from jobs.models import Job
from jobs.records import JobContext
from projects.records import OrganisationRole
from runs.models import Assignment, Site
from tests.builders import organisation, person, project, signed_in
from tests.carbon.builders import SAMPLES, START, imported, samples, site, write_csv

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin():
    return signed_in(person("ada", role=OrganisationRole.ADMIN))


@pytest.fixture
def hall(tmp_path):
    imported(write_csv(tmp_path / "hour.csv", SAMPLES, samples(devices=2)))
    return site()


def run(kind, function):
    job = Job.objects.get(kind=kind)
    context = JobContext(job_id=job.pk, organisation_id=job.organisation_id, payload=job.payload)
    return function(context)


def test_without_sites_the_list_offers_to_make_one(admin):
    answer = admin.get("/sites/")
    assert answer.status_code == 200
    assert "/sites/new/" in answer.content.decode()


def test_a_site_without_host_factor_offers_one_and_shows_unknown(admin, hall):
    text = admin.get("/sites/hall-1/").content.decode()
    assert "1.3" in text
    assert "1.8" in text
    assert 'value="1.5"' in text
    assert "n/a" in text


def test_taking_the_offer_sets_the_factor_marked_estimated_and_reposts(admin, hall):
    data = {"kind": "host_factor", "value": "1.5", "tier": "estimated", "source": "range 1.3-1.8"}
    assert admin.post("/sites/hall-1/factors/", data).status_code == 302
    row = SiteFactor.objects.get(kind="host_factor")
    assert (row.value, row.tier) == (1.5, "estimated")
    assert run("carbon.close_hours", close_hours_job)["entries"] == 1
    assert "n/a" not in admin.get("/sites/").content.decode()


def test_a_factor_out_of_range_is_refused_on_the_page(admin, hall):
    data = {"kind": "pue", "value": "0.9", "tier": "estimated"}
    answer = admin.post("/sites/hall-1/factors/", data)
    assert answer.status_code == 200
    assert "pue is 0.9" in answer.content.decode()


def test_a_factor_can_be_withdrawn(admin, hall):
    admin.post("/sites/hall-1/factors/", {"kind": "pue", "value": "1.2", "tier": "measured"})
    row = SiteFactor.objects.get()
    assert admin.post(f"/sites/hall-1/factors/{row.pk}/withdraw/").status_code == 302
    assert SiteFactor.objects.filter(superseded_at__isnull=True).count() == 0


def test_devices_are_assigned_from_the_page(admin, hall):
    project("moe")
    data = {"project": "moe", "start_on": START.date().isoformat(), "end_on": "", "node": ""}
    assert admin.post("/sites/hall-1/assign/", data).status_code == 302
    assert Assignment.objects.count() == 2
    clash = {**data, "start_on": (START + timedelta(days=1)).date().isoformat()}
    answer = admin.post("/sites/hall-1/assign/", clash)
    assert answer.status_code == 200
    assert answer.context["assign_form"].errors
    assert Assignment.objects.count() == 2


def test_a_site_is_created_and_edited(admin):
    new = {
        "name": "Iowa",
        "slug": "iowa",
        "provider": "gcp",
        "region": "us-central1",
        "time_zone": "UTC",
    }
    assert admin.post("/sites/new/", new).status_code == 302
    assert "431.95" in admin.get("/sites/iowa/").content.decode()
    assert admin.post("/sites/iowa/edit/", {**new, "name": "Iowa 2"}).status_code == 302
    assert Site.objects.get(slug="iowa").name == "Iowa 2"
    assert admin.post("/sites/new/", new).status_code == 200
    moon = {**new, "slug": "moon", "region": "moon-1"}
    assert "not in our table" in admin.post("/sites/new/", moon).content.decode()


def test_a_file_is_uploaded_and_its_report_shown(admin, tmp_path):
    site()
    path = write_csv(tmp_path / "hour.csv", SAMPLES, samples())
    upload = SimpleUploadedFile("hour.csv", path.read_bytes())
    answer = admin.post("/power/", {"site": "hall-1", "file": upload})
    assert answer.status_code == 302
    assert admin.get(answer["Location"]).status_code == 200
    result = run("carbon.store_power_delivery", store_power_delivery)
    assert result["rows"] == 241
    assert PowerSample.objects.count() == 241
    Job.objects.update(state=Job.State.SUCCEEDED, result=result)
    assert "241" in admin.get(answer["Location"]).content.decode()
    assert "hour.csv" in admin.get("/power/").content.decode()


def test_members_without_an_organisation_wide_role_see_no_sites(hall):
    client = signed_in(person("mia"))
    assert client.get("/sites/").status_code == 403
    assert client.get("/power/").status_code == 403
    assert client.post("/sites/hall-1/factors/", {}).status_code == 403


def test_auditors_read_but_do_not_write(hall):
    client = signed_in(person("rita", role=OrganisationRole.AUDITOR))
    text = client.get("/sites/hall-1/").content.decode()
    assert "/sites/hall-1/factors/" not in text
    assert client.post("/sites/hall-1/factors/", {"kind": "pue"}).status_code == 403


def test_a_foreign_site_is_not_there(admin):
    assert admin.get("/sites/other/").status_code == 404
    assert organisation().slug

"""The pages of instruments, periods, hardware and boundaries: what they say, who may do what."""

import hashlib
from datetime import date

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from carbon.models import (
    EmbodiedAsset,
    Instrument,
    InstrumentHour,
    PeriodLock,
    ResidualMix,
    SiteBoundary,
)
from carbon.restating import repost_site
from carbon.sign_off import approve_period, prepare_period
from jobs.models import Job
from projects.access import system_actor
from projects.records import OrganisationRole
from tests.builders import organisation, person, signed_in
from tests.carbon.book_builders import certificate, hall, residual_mix, used
from tests.carbon.builders import NOW, START, factor, site
from tests.carbon.test_period_locks import DAY

pytestmark = pytest.mark.django_db
FORM = {
    "kind": "certificate",
    "name": "Wind 2025",
    "market_zone": "DEU",
    "start_on": "2025-01-01",
    "end_on": "2025-12-31",
    "energy_kwh": "600000",
    "g_per_kwh": "0",
    "registry": "AIB",
    "serials": "GO-1 to GO-600",
    "retired_on": "2025-12-31",
}


@pytest.fixture
def admin():
    return signed_in(person("ada", role=OrganisationRole.ADMIN))


@pytest.fixture
def auditor():
    return signed_in(person("rita", role=OrganisationRole.AUDITOR))


def text_of(client, address):
    answer = client.get(address)
    assert answer.status_code == 200, answer
    return answer.content.decode()


def test_empty_pages_say_what_to_do(admin):
    site()
    assert "/instruments/new/" in text_of(admin, "/instruments/")
    assert "No period is prepared yet" in text_of(admin, "/books/")
    assert "embodied carbon of this site is unknown" in text_of(admin, "/sites/hall-1/assets/")
    assert "taken for a cloud" in text_of(admin, "/sites/hall-1/boundary/")


def test_a_certificate_is_entered_with_its_evidence_and_shown_with_its_use(admin, tmp_path):
    hall(grid_g_per_kwh=400)
    residual_mix(460)
    used(tmp_path, *[100_000] * 10)
    proof = SimpleUploadedFile("retired.pdf", b"%PDF-1.7 retired")

    answer = admin.post("/instruments/new/", {**FORM, "evidence": proof})

    assert answer.status_code == 302
    row = Instrument.objects.get()
    assert row.evidence_sha256 == hashlib.sha256(b"%PDF-1.7 retired").hexdigest()
    page = text_of(admin, answer["Location"])
    assert row.evidence_sha256 in page
    evidence = admin.get(f"{answer['Location']}evidence/")
    assert b"".join(evidence.streaming_content) == b"%PDF-1.7 retired"
    overview = text_of(admin, "/instruments/")
    assert '<data class="quantity" value="600000' in overview
    assert "60" in overview
    assert "last resort" not in overview


def test_a_profile_of_hours_comes_by_file_and_a_bad_one_names_its_row(admin):
    good = SimpleUploadedFile("h.csv", b"hour,energy_kwh\n2025-06-01T10:00Z,600000\n")
    assert admin.post("/instruments/new/", {**FORM, "hours": good}).status_code == 302
    assert InstrumentHour.objects.count() == 1
    bad = SimpleUploadedFile("h.csv", b"hour,energy_kwh\nnoon,5\n")
    answer = admin.post("/instruments/new/", {**FORM, "serials": "", "hours": bad})
    assert answer.status_code == 200
    assert "Row 2" in answer.content.decode()
    again = admin.post("/instruments/new/", FORM)
    assert "count already" in again.content.decode()


def test_an_instrument_is_withdrawn_with_a_reason(admin):
    made = certificate()
    assert admin.post(f"/instruments/{made}/withdraw/", {"reason": ""}).status_code == 200
    assert Instrument.objects.get().superseded_at is None
    answer = admin.post(f"/instruments/{made}/withdraw/", {"reason": "wrong year"})
    assert answer.status_code == 302
    assert Instrument.objects.get().superseded_at is not None
    assert admin.get(f"/instruments/{made}/").status_code == 404


def test_a_certificate_that_waits_for_its_retirement_says_so(admin, tmp_path):
    hall(grid_g_per_kwh=400)
    used(tmp_path, 100)
    made = certificate(retired_on=None)
    assert "does not count" in text_of(admin, "/instruments/")
    assert "not retired yet" in text_of(admin, f"/instruments/{made}/")


def test_a_residual_mix_is_stated_and_reposts_from_its_year_on(admin):
    hall()
    Job.objects.all().delete()
    data = {"market_zone": "DEU", "year": "2025", "g_per_kwh": "460", "source": "AIB"}
    assert admin.post("/instruments/residual-mix/", data).status_code == 302
    assert ResidualMix.objects.get().g_per_kwh == 460
    (job,) = Job.objects.filter(kind="carbon.close_hours")
    assert job.payload["start"].startswith("2025-01-01")
    wrong = admin.post("/instruments/residual-mix/", {**data, "g_per_kwh": "9000"})
    assert "must lie between" in wrong.content.decode()


def test_a_month_goes_from_prepared_to_locked_to_released_on_the_pages(admin, tmp_path):
    place = hall(grid_g_per_kwh=400)
    used(tmp_path, *[10.0] * 24)
    data = {"start_on": "2025-10-01", "end_on": "2025-10-01"}
    answer = admin.post("/books/prepare/", data)
    assert answer.status_code == 302
    address = answer["Location"]
    own = text_of(admin, address)
    assert "another administrator approves it" in own
    assert "Approve and lock" not in own
    assert "Somebody else" in admin.post(f"{address}approve/").content.decode()

    other = signed_in(person("grace", role=OrganisationRole.ADMIN))
    assert "Approve and lock" in text_of(other, address)
    assert other.post(f"{address}approve/").status_code == 302
    assert PeriodLock.objects.get().approved_by == "grace"

    factor(place, "grid_g_per_kwh", 500)
    repost_site(place, now=NOW + DAY)
    assert "changes wait" in text_of(admin, "/books/")
    waiting = text_of(admin, address)
    assert "What waits" in waiting
    assert other.post(f"{address}release/", {"reason": ""}).status_code == 200
    assert other.post(f"{address}release/", {"reason": "new meter"}).status_code == 302
    released = text_of(admin, address)
    assert "What waits" not in released
    assert "badge-warn" in released
    log = text_of(admin, "/books/?cause=factors")
    assert "released: new meter" in log
    assert "material" in log

    assert other.post(f"{address}reopen/", {"reason": "audit"}).status_code == 302
    assert "reopened" in text_of(admin, "/books/")
    assert other.post(f"{address}explode/").status_code == 404


def test_hardware_is_stated_shown_in_two_views_and_withdrawn(admin, tmp_path):
    hall()
    used(tmp_path, 1.0, 1.0)
    data = {
        "name": "DGX H100",
        "devices": "8",
        "kgco2e": "3504",
        "kgco2e_low": "3000",
        "kgco2e_high": "7000",
        "purchased_on": "2025-01-01",
        "lifetime_h": "35040",
        "source": "maker's report",
    }
    assert admin.post("/sites/hall-1/assets/", data).status_code == 302
    repost_site(site(), now=NOW)
    page = text_of(admin, "/sites/hall-1/assets/")
    assert 'value="0.025"' in page  # 2 accelerator-hours at 12.5 g
    assert 'value="3504"' in page
    asset = EmbodiedAsset.objects.get()
    assert admin.post(f"/sites/hall-1/assets/{asset.pk}/withdraw/").status_code == 302
    assert admin.post(f"/sites/hall-1/assets/{asset.pk}/withdraw/").status_code == 404
    wrong = admin.post("/sites/hall-1/assets/", {**data, "kgco2e_low": "9000"})
    assert "within its own range" in wrong.content.decode()


def test_a_boundary_is_stated_from_a_day_on(admin):
    hall()
    data = {"ownership": "leased", "market_zone": "", "valid_from": "2025-10-02"}
    assert admin.post("/sites/hall-1/boundary/", data).status_code == 302
    row = SiteBoundary.objects.get()
    assert (row.ownership, row.valid_from) == ("leased", date(2025, 10, 2))
    assert "Leased hardware" in text_of(admin, "/sites/hall-1/boundary/")
    assert "/sites/hall-1/boundary/" in text_of(admin, "/sites/hall-1/")


def test_auditors_read_everything_and_change_nothing(auditor, tmp_path):
    hall(grid_g_per_kwh=400)
    used(tmp_path, *[10.0] * 24)
    made = certificate(start=START, end=START + DAY)
    lock_id = prepare_period(system_actor(organisation().pk, "ada"), START, START + DAY, now=NOW)
    approve_period(system_actor(organisation().pk, "eve"), lock_id, now=NOW)
    for address in (
        "/instruments/",
        f"/instruments/{made}/",
        "/books/",
        f"/books/{lock_id}/",
        "/sites/hall-1/assets/",
        "/sites/hall-1/boundary/",
    ):
        assert 'method="post"' not in text_of(auditor, address).split("<main")[1]
    for address in (
        "/instruments/new/",
        "/instruments/residual-mix/",
        f"/instruments/{made}/withdraw/",
        "/books/prepare/",
        f"/books/{lock_id}/reopen/",
        "/sites/hall-1/assets/",
        "/sites/hall-1/boundary/",
    ):
        assert auditor.post(address).status_code == 403, address


def test_members_see_no_books():
    client = signed_in(person("mia"))
    for address in ("/instruments/", "/books/", "/instruments/new/"):
        assert client.get(address).status_code == 403


def test_days_at_the_end_of_time_are_refused_on_the_form(admin):
    last = {"start_on": "9999-12-30", "end_on": "9999-12-31"}
    for address in ("/instruments/new/", "/books/prepare/"):
        answer = admin.post(address, {**FORM, **last})
        assert (answer.status_code, b"2999-12-31" in answer.content) == (200, True)
    place = site()
    many = {"name": "x", "devices": 10**11, "kgco2e": 1, "lifetime_years": 4, "source": "s"}
    answer = admin.post(f"/sites/{place.slug}/assets/", {**many, "purchased_on": "2025-01-01"})
    assert (answer.status_code, EmbodiedAsset.objects.count()) == (200, 0)


def test_a_factor_named_by_a_nul_is_not_found(admin):
    assert admin.post("/factors/approve/", {"factor_id": "\0"}).status_code == 404

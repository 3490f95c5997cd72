"""The pages of grid intensity and of factors: connect, test, calendar, approve, export."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.fernet import Fernet
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from carbon.factor_registry import registry
from carbon.models import FactorApproval, HourlyIntensity, IntensitySource, SiteZone
from carbon.services import repost_site
from jobs.models import Job
from projects.records import OrganisationRole
from runs.services import save_site
from tests.builders import organisation, person, signed_in
from tests.carbon.builders import NOW as BOOKED
from tests.carbon.builders import SAMPLES, factor, imported, operator, samples, site, write_csv
from tests.carbon.intensity_servers import HOUR, Grid, serving

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(settings):
    settings.PRIVATE_HOSTS = ["127.0.0.1"]
    settings.SECRETS_KEY = Fernet.generate_key().decode()
    return signed_in(person("ada", role=OrganisationRole.ADMIN))


@pytest.fixture
def hour():
    return timezone.now().astimezone(UTC).replace(minute=0, second=0, microsecond=0)


@pytest.fixture
def grid(hour):
    one = Grid(now=hour + timedelta(minutes=30))
    one.fill("DE", hour - 5 * HOUR, [300.0] * 5)
    return one


@pytest.fixture
def url(grid):
    with serving(grid) as found:
        yield found


def connect(client, url, **more):
    site()
    data = {
        "name": "Maps",
        "basis": "direct",
        "position": "1",
        "token": "em-token",
        "base_url": f"{url}/em",
        "zone_hall-1": "DE",
        **more,
    }
    answer = client.post("/intensity/new/?provider=electricitymaps", data)
    return answer, IntensitySource.objects.filter(name=data["name"]).first()


def text_of(answer):
    return answer.content.decode()


def test_a_source_is_connected_and_its_token_is_never_shown(admin, url):
    answer, source = connect(admin, url)
    assert answer.status_code == 302
    assert SiteZone.objects.get().zone == "DE"
    for address in ("/intensity/", f"/intensity/{source.pk}/"):
        page = text_of(admin.get(address))
        assert "Maps" in page
        assert "em-token" not in page
        assert source.sealed not in page


def test_changing_a_source_without_a_token_keeps_the_stored_one(admin, url):
    _answer, source = connect(admin, url)
    data = {"name": "Maps 2", "basis": "both", "position": "2", "token": "", "zone_hall-1": "FR"}
    data["base_url"] = source.base_url
    assert admin.post(f"/intensity/{source.pk}/", data).status_code == 302
    changed = IntensitySource.objects.get()
    assert (changed.name, changed.sealed, changed.basis) == ("Maps 2", source.sealed, "both")
    assert SiteZone.objects.get().zone == "FR"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("token", "", "required"),
        ("basis", "both ways", "valid choice"),
        ("base_url", "http://10.1.2.3/em", "private address"),
        ("name", "", "required"),
    ],
)
def test_what_cannot_be_is_said_beside_the_field(admin, url, field, value, words):
    answer, source = connect(admin, url, **{field: value})
    assert answer.status_code == 200
    assert source is None
    assert words in text_of(answer)


def test_a_likely_zone_is_suggested(admin):
    place = site()
    save_site(operator(), replace(place, provider="aws", region="us-east-1"))
    page = text_of(admin.get("/intensity/new/?provider=electricitymaps"))
    assert "US-MIDA-PJM" in page


def test_the_test_says_what_works(admin, url):
    _answer, source = connect(admin, url)
    page = text_of(admin.post(f"/intensity/{source.pk}/test/"))
    assert "300.0 g/kWh" in page
    assert "Everything works" in page


def test_the_test_says_exactly_what_is_wrong(admin, url, grid):
    _answer, source = connect(admin, url)
    grid.token = "another"
    page = text_of(admin.post(f"/intensity/{source.pk}/test/"))
    assert "The token is not accepted" in page
    assert "em-token" not in page


def test_asking_now_and_again_is_a_workers_job(admin, url):
    _answer, source = connect(admin, url)
    SiteZone.objects.update(backfilled_from=timezone.now())
    assert admin.post(f"/intensity/{source.pk}/pull/").status_code == 302
    assert Job.objects.filter(kind="carbon.pull_intensity").count() == 1
    admin.post(f"/intensity/{source.pk}/pull/", {"again": "1"})
    assert SiteZone.objects.get().backfilled_from is None
    admin.post(f"/intensity/{source.pk}/pause/")
    assert not IntensitySource.objects.get().enabled


def test_a_file_of_hours_is_imported_on_the_page(admin, hour):
    place = site()
    data = {"name": "Meter", "basis": "direct", "position": "1", "zone_hall-1": "HALL"}
    assert admin.post("/intensity/new/?provider=csv", data).status_code == 302
    source = IntensitySource.objects.get()
    address = f"/intensity/{source.pk}/import/"
    bad = SimpleUploadedFile("h.csv", b"zone,hour,g_per_kwh\nHALL,2025-10-01T00:00Z,9000\n")
    page = text_of(admin.post(address, {"file": bad}))
    assert "h.csv, row 2, field g_per_kwh (gCO2e/kWh)" in page
    rows = "\n".join(f"HALL,{(hour - step * HOUR).isoformat()},30" for step in range(1, 4))
    good = SimpleUploadedFile("h.csv", f"zone,hour,g_per_kwh\n{rows}\n".encode())
    assert admin.post(address, {"file": good}).status_code == 302
    assert HourlyIntensity.objects.count() == 3
    page = text_of(admin.get(f"/sites/{place.slug}/intensity/"))
    assert "3 h measured" in page or "2 h measured" in page or "1 h measured" in page


def test_auditors_read_and_members_do_not(admin, url):
    _answer, source = connect(admin, url)
    rita = signed_in(person("rita", role=OrganisationRole.AUDITOR))
    addresses = ("/intensity/", f"/intensity/{source.pk}/", "/sites/hall-1/intensity/", "/factors/")
    for address in addresses:
        assert rita.get(address).status_code == 200
    for name in ("test", "pull", "pause", "import"):
        assert rita.post(f"/intensity/{source.pk}/{name}/").status_code == 403
    assert rita.post("/factors/approve/", {"factor_id": "x"}).status_code == 403
    mia = signed_in(person("mia"))
    for address in addresses:
        assert mia.get(address).status_code == 403


def test_the_registry_shows_what_the_books_used_and_what_is_at_hand(admin, tmp_path):
    imported(write_csv(tmp_path / "p.csv", SAMPLES, samples()))
    factor(site(), "host_factor", 1.5, tier="estimated", source="range 1.3 to 1.8")
    rows = {row.factor_id: row for row in registry(organisation().pk)}
    world = next(row for row in rows.values() if row.entries and row.kind == "grid_intensity")
    assert world.licence == "CC-BY-4.0"
    assert (world.level, world.basis) == ("world", "lifecycle, production average")
    assert "pue/not-set" in rows
    own = next(row for name, row in rows.items() if name.startswith("site-factor/"))
    assert (own.low, own.entered_by, own.entries) == (1.5, "tests", 0)
    page = text_of(admin.get("/factors/"))
    assert "CC-BY-4.0" in page
    france = text_of(admin.get("/factors/?q=France"))
    assert "owid-2025-07/FRA" in france
    answer = admin.get("/factors/factors.csv")
    assert answer["Content-Type"].startswith("text/csv")
    assert "pue/not-set" in text_of(answer)


def test_a_factor_is_approved_once_by_somebody_else(admin, tmp_path):
    place = site()
    data = {"kind": "pue", "value": "1.2", "tier": "measured", "source": "meter"}
    admin.post(f"/sites/{place.slug}/factors/", data)
    (row,) = (one for one in registry(organisation().pk) if one.factor_id.startswith("site-factor"))
    assert row.entered_by == "ada"
    wish = {"factor_id": row.factor_id, "version": row.version}
    page = text_of(admin.post("/factors/approve/", wish, follow=True))
    assert "somebody else has to approve it" in page
    assert FactorApproval.objects.count() == 0
    bob = signed_in(person("bob", role=OrganisationRole.ADMIN))
    bob.post("/factors/approve/", wish)
    approval = FactorApproval.objects.get()
    assert (approval.approved_by, approval.value) == ("bob", 1.2)
    assert "approved already" in text_of(bob.post("/factors/approve/", wish, follow=True))
    assert bob.post("/factors/approve/", {"factor_id": "no/such"}).status_code == 404


def test_a_series_by_the_hour_is_one_line_with_its_use(admin, url, tmp_path):
    start = datetime(2025, 10, 1, tzinfo=UTC)
    rows = "HALL,2025-10-01T00:00Z,30\n"
    imported(write_csv(tmp_path / "p.csv", SAMPLES, samples(start=start)))
    data = {"name": "Meter", "basis": "direct", "position": "1", "zone_hall-1": "HALL"}
    admin.post("/intensity/new/?provider=csv", data)
    source = IntensitySource.objects.get()
    upload = SimpleUploadedFile("h.csv", f"zone,hour,g_per_kwh\n{rows}".encode())
    admin.post(f"/intensity/{source.pk}/import/", {"file": upload})
    repost_site(site(), now=BOOKED + HOUR)
    found = registry(organisation().pk)
    (line,) = (row for row in found if row.factor_id == f"intensity/{source.pk}/HALL")
    assert (line.low, line.high, line.level, line.is_series) == (30.0, 30.0, "hour", True)
    assert line.entries == 1
    assert line.licence == "own data"


def test_units_of_factors_are_spelled_as_on_the_other_pages(admin, tmp_path):
    imported(write_csv(tmp_path / "p.csv", SAMPLES, samples()))
    page = text_of(admin.get("/factors/"))
    assert "gCO₂e/kWh" in page
    assert "CO2e/" not in page


def test_the_intensity_of_a_site_belongs_to_energy_and_carbon(admin):
    page = text_of(admin.get(f"/sites/{site().slug}/intensity/"))
    current = re.findall(r'class="nav-link"\s+href="([^"]+)" aria-current="page"', page)
    assert current == ["/energy/"]
    of_site = text_of(admin.get(f"/sites/{site().slug}/"))
    assert re.findall(r'class="nav-link"\s+href="([^"]+)" aria-current="page"', of_site) == [
        "/sites/"
    ]

"""Energy and carbon on pages, in files and as JSON: every level sums to the one above it."""

import csv
import io
import json
from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest
from django.core.management import call_command

from carbon.device_energy import device_hours
from carbon.energy_answers import energy_table
from carbon.energy_questions import question_in
from carbon.models import EnergyHour
from projects.records import OrganisationRole, Role, Scope
from tests.builders import person, signed_in, token, with_token
from tests.carbon.builders import START, operator, site
from tests.carbon.energy_builders import HOUR, hall

pytestmark = pytest.mark.django_db

DAY_1 = {"from": "2025-10-01", "to": "2025-10-02"}


@pytest.fixture
def admin():
    return signed_in(person("ada", role=OrganisationRole.ADMIN))


def asked(**parameters):
    return question_in({name: str(value) for name, value in parameters.items()}, operator())


def table(**parameters):
    return energy_table(asked(**parameters))


def test_every_grouping_sums_to_the_books_for_every_owner(tmp_path):
    hall(tmp_path)
    for whose in ("", "moe", "dense", "-"):
        whole = table(by="day", project=whose).total
        for by in ("hour", "day", "month", "project", "run", "site", "node", "device"):
            found = table(by=by, project=whose, **{"from": "2025-10-01", "to": "2025-10-03"})
            assert found.adds_up, (by, whose)
            assert found.rows, (by, whose)
            assert found.total.accelerator_millijoule == whole.accelerator_millijoule
            assert found.total.scope_2_location_kgco2e == pytest.approx(
                whole.scope_2_location_kgco2e, rel=1e-12
            )


def test_the_owners_of_an_hour_that_changes_hands_sum_to_its_devices(tmp_path):
    hall(tmp_path)
    hour = {"from": "2025-10-01T05", "to": "2025-10-01T06"}
    whole = table(by="device", **hour).total.accelerator_millijoule
    parts = [table(by="device", project=one, **hour) for one in ("moe", "dense", "-")]
    assert sum(one.total.accelerator_millijoule for one in parts) == whole
    assert all(one.adds_up for one in parts)
    shared, _devices = device_hours(asked(project="dense", **hour))
    assert [one.accelerator_millijoule for one in shared] == [pytest.approx(1_800_000_009, abs=1)]


def test_a_page_shows_total_and_that_rows_sum_to_it(tmp_path, admin):
    hall(tmp_path)
    text = admin.get("/energy/?by=day").content.decode()
    assert "The sum of 2 rows is this figure." in text
    assert "2025-10-01" in text
    by_hour = admin.get("/energy/?by=hour&from=2025-10-01&to=2025-10-02").content.decode()
    assert "The sum of 24 rows is this figure." in by_hour
    assert "/energy/hours/2025-10-01T05/" in by_hour


def test_an_hour_shows_its_devices_and_factors_with_source_and_level(tmp_path, admin):
    hall(tmp_path)
    text = admin.get("/energy/hours/2025-10-01T05/?project=moe").content.decode()
    assert "The sum of 3 rows is this figure." in text
    for word in ("GPU-0000", "GPU-0002", "Host factor", "PUE", "Grid intensity", "set on the site"):
        assert word in text


def test_a_device_hour_shows_versions_pieces_and_the_file_with_its_digest(tmp_path, admin):
    hall(tmp_path)
    device_id = EnergyHour.objects.filter(hour=START + 5 * HOUR).order_by("device_id")[2].device_id
    address = f"/energy/hours/2025-10-01T05/devices/{device_id}/?project=moe"
    text = admin.get(address).content.decode()
    assert "The sum of 1 piece is what the newest version calls measured and spread." in text
    assert "all.csv" in text
    assert "metered interval" in text


def test_unknown_stays_unknown_on_the_page_and_in_the_document(tmp_path, admin):
    hall(tmp_path)
    from carbon.models import SiteFactor
    from tests.carbon.energy_builders import close

    SiteFactor.objects.filter(kind="host_factor").update(superseded_at=datetime.now(UTC))
    close(site())
    text = admin.get("/energy/?by=day").content.decode()
    assert "n/a" in text
    found = table(by="day")
    assert found.total.facility_energy_kwh is None
    assert found.adds_up


@pytest.mark.parametrize(
    "query",
    [
        "by=week",
        "from=yesterday",
        "from=2025-10-02&to=2025-10-01",
        "boundary=moon",
        "method=hope",
        "as_of=now",
        "run=main",
        "by=hour&from=2025-01-01&to=2025-12-31",
        "by=node&from=2025-01-01&to=2025-12-31",
        "from=9999-12-30&to=9999-12-31",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_in_words(admin, query):
    answer = admin.get(f"/energy/?{query}")
    assert answer.status_code == 400
    assert "This cannot be shown" in answer.content.decode()


@pytest.mark.parametrize(
    "address",
    [
        "?project=nosuch",
        "?site=nosuch",
        "hours/x/",
        "hours/9999-12-31T23/",
        "hours/2025-10-01T05/devices/987/",
    ],
)
def test_what_is_not_there_is_not_found(admin, address):
    assert admin.get(f"/energy/{address}").status_code == 404


def test_a_member_sees_the_energy_of_own_projects_only(tmp_path):
    made = hall(tmp_path)
    bob = person("bob")
    made.moe.memberships.create(user=bob, role=Role.VIEWER)
    client = signed_in(bob)
    text = client.get("/energy/?by=project").content.decode()
    assert "Moe" in text
    assert "Dense" not in text
    assert client.get("/energy/?project=dense").status_code == 404
    assert client.get("/energy/?project=-").status_code == 404
    ids = list(
        EnergyHour.objects.filter(hour=START + 5 * HOUR)
        .order_by("device_id")
        .values_list("device_id", flat=True)
    )
    assert client.get(f"/energy/hours/2025-10-01T05/devices/{ids[0]}/").status_code == 200
    assert client.get(f"/energy/hours/2025-10-01T05/devices/{ids[3]}/").status_code == 404


def test_the_file_of_a_page_has_its_rows_and_total(tmp_path, admin):
    hall(tmp_path)
    answer = admin.get("/energy/export/?by=device&project=moe&from=2025-10-01&to=2025-10-02")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    total = table(by="device", project="moe", **DAY_1).total
    assert sum(float(row["accelerator_energy_kwh"]) for row in rows) == pytest.approx(
        total.accelerator_energy_kwh, rel=1e-12
    )
    assert sum(float(row["scope_2_location_kgco2e"]) for row in rows) == pytest.approx(
        total.scope_2_location_kgco2e, rel=1e-12
    )
    parquet = admin.get("/energy/export/?by=day&format=parquet")
    assert pq.read_table(io.BytesIO(parquet.content)).num_rows == 2


def test_the_command_prints_a_table_that_adds_up(tmp_path, capsys):
    hall(tmp_path)
    call_command("energy", "--project", "moe", "--group-by", "day", "--json")
    document = json.loads(capsys.readouterr().out)
    assert document["adds_up"] is True
    assert [row["key"] for row in document["rows"]] == ["2025-10-01", "2025-10-02"]
    assert document["total"]["scope_2_location_kgco2e"] == pytest.approx(
        sum(row["scope_2_location_kgco2e"] for row in document["rows"])
    )


def test_an_export_of_entries_sums_to_the_books(tmp_path):
    hall(tmp_path)
    total = table(by="day", project="moe").total
    for what in ("energy", "emissions"):
        for kind in ("csv", "parquet"):
            path = tmp_path / f"{what}.{kind}"
            options = ["--format", kind, "--out", str(path), "--project", "moe"]
            call_command("export", what, *options)
            rows = (
                list(csv.DictReader(path.open(encoding="utf-8")))
                if kind == "csv"
                else pq.read_table(path).to_pylist()
            )
            assert sum(float(row["facility_energy_kwh"]) for row in rows) == pytest.approx(
                total.facility_energy_kwh, rel=1e-12
            )
    assert sum(float(row["scope_2_location_kgco2e"]) for row in rows) == pytest.approx(
        total.scope_2_location_kgco2e, rel=1e-12
    )
    assert all(row["grid_intensity_id"].startswith("site-factor/") for row in rows)


def test_a_formula_in_a_name_is_text_in_the_file():
    from carbon.exporting import neutral

    assert neutral("=1+1") == "'=1+1"
    assert neutral("GPU-1") == "GPU-1"


def test_the_door_of_a_project_answers_by_hour_day_and_run(tmp_path):
    hall(tmp_path)
    client = with_token(token(Scope.READ_COSTS))
    for by, rows in (("hour", 24), ("day", 1), ("run", 1)):
        answer = client.get(f"/api/v1/projects/moe/energy?by={by}&from=2025-10-01&to=2025-10-02")
        assert answer.status_code == 200
        assert len(answer.json()["rows"]) == rows
        assert answer.json()["adds_up"] is True
    assert client.get("/api/v1/projects/moe/energy?by=week").status_code == 400


def test_the_door_of_a_site_is_for_the_organisation(tmp_path):
    made = hall(tmp_path)
    client = with_token(token(Scope.READ_COSTS, Scope.ADMIN_ORG))
    answer = client.get("/api/v1/sites/hall-1/energy?by=device&from=2025-10-01&to=2025-10-02")
    assert answer.status_code == 200
    assert len(answer.json()["rows"]) == 4
    bob = person("bob")
    made.moe.memberships.create(user=bob, role=Role.VIEWER)
    assert signed_in(bob).get("/api/v1/sites/hall-1/energy").status_code in {403, 404}

"""What the page of GPUs now promises of many devices: dense, silent said once, by node beyond."""

from datetime import UTC, datetime

import pytest

from carbon.now_records import DeviceReading, NodeReadings
from carbon.views import now as now_pages
from projects.records import OrganisationRole
from tests.builders import person, signed_in
from tests.carbon.energy_builders import hall
from tests.carbon.test_gpus_now import report

pytestmark = pytest.mark.django_db

AT = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def admin():
    return signed_in(person("ada", role=OrganisationRole.ADMIN))


def reading(*, power_w: float | None, is_stale: bool = False) -> DeviceReading:
    return DeviceReading(
        device_id=1,
        device_uuid="GPU-1",
        model="H100",
        node="node-1",
        power_w=power_w,
        limit_w=700.0,
        power_field="average",
        utilisation_fraction=None,
        temperature_c=None,
        job="",
        owner="",
        at=AT,
        age_s=0.0,
        is_stale=is_stale,
    )


def test_a_cell_is_shaded_by_fifths_of_the_limit_and_not_at_all_where_unknown():
    assert [reading(power_w=watts).load_band for watts in (0.0, 139.9, 140.1, 699.0, 740.0)] == [
        "0",
        "0",
        "1",
        "4",
        "4",
    ]
    assert reading(power_w=None).load_band == ""


def test_a_silent_node_says_what_it_drew_when_it_last_reported():
    node = NodeReadings(
        name="node-1",
        devices=(reading(power_w=300.0, is_stale=True), reading(power_w=None, is_stale=True)),
    )
    assert node.power_w is None
    assert node.last_power_w == 300.0
    assert node.last_at == AT


def test_many_devices_are_cells_that_lead_to_their_node_and_a_node_shows_cards(
    tmp_path, admin, monkeypatch
):
    made = hall(tmp_path)
    report(made.site, ages_s=[5] * 4)
    assert 'class="gpu-grid"' in admin.get("/power/now/").content.decode()
    monkeypatch.setattr(now_pages, "MAX_CARDS", 2)
    text = admin.get("/power/now/").content.decode()
    assert text.count('role="tooltip"') == 4
    assert "#gpu-" in text


def test_more_devices_than_a_page_holds_are_shown_by_node(tmp_path, admin, monkeypatch):
    made = hall(tmp_path)
    report(made.site, ages_s=[5] * 4)
    monkeypatch.setattr(now_pages, "MAX_CARDS", 1)
    monkeypatch.setattr(now_pages, "MAX_CELLS", 2)
    text = admin.get("/power/now/").content.decode()
    assert 'class="node-cells"' in text
    assert 'role="tooltip"' not in text


def test_a_node_whose_devices_are_all_silent_says_so_once(tmp_path, admin):
    made = hall(tmp_path)
    report(made.site, ages_s=[900] * 4)
    text = admin.get("/power/now/").content.decode()
    assert text.count("not known now") == 1
    assert "gpu-grid" not in text

"""Advice: what idle and throttled energy was, and what other grids, hours and caps would change."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command

from carbon.models import HourlyIntensity, IntensitySource, UseReading
from carbon.services import repost_site
from carbon.use_hours import sum_use
from projects.models import Project
from reports.advice import AdvicePage, advice_of
from runs.models import Device
from runs.records import SiteRecord
from runs.selectors import devices_of
from runs.services import assign_devices, save_site
from tests.builders import organisation, person, project, signed_in
from tests.carbon.builders import (
    NOW,
    SAMPLES,
    START,
    factor,
    imported,
    operator,
    samples,
    site,
    write_csv,
)

pytestmark = pytest.mark.django_db
EVERY_S = 15
END = START + timedelta(hours=1)
THERMAL, POWER_CAP = 0x20, 0x4


@pytest.fixture
def trained(tmp_path) -> Project:
    """One device at 600 W for an hour: a quarter idle, a quarter throttled by heat."""
    factor(site(), "host_factor", 1.5)
    factor(site(), "pue", 1.2)
    factor(site(), "grid_g_per_kwh", 400)
    rows = samples(count=241, every_s=EVERY_S, power_w=600)
    imported(write_csv(tmp_path / "hour.csv", SAMPLES, rows))
    mine = project()
    device_ids = [one.device_id for one in devices_of(site().site_id)]
    assign_devices(operator(), device_ids=device_ids, project_id=mine.pk, start=START, end=END)
    repost_site(site(), now=NOW)
    read(device_ids[0])
    sum_use(device_ids, start=START, end=END, gap_s=120)
    return mine


def read(device_id: int) -> None:
    """Readings of use beside the samples of power: idle, then throttled, then capped work."""
    UseReading.objects.bulk_create(
        UseReading(
            organisation_id=organisation().pk,
            device_id=device_id,
            at=START + timedelta(seconds=EVERY_S * turn),
            utilisation_fraction=0.0 if turn < 60 else 0.9,
            throttle_reasons=THERMAL if 60 <= turn < 120 else POWER_CAP,
            power_limit_w=600.0,
            sm_clock_hz=1_500_000_000,
            received_at=NOW,
        )
        for turn in range(241)
    )


def advised(mine: Project) -> AdvicePage:
    return advice_of(mine, start_on=START.date(), end_on=(START + timedelta(days=1)).date())


def test_idle_and_throttled_time_carries_its_energy_through_all_boundaries(trained):
    rows = {row.kind: row for row in advised(trained).waste}

    assert rows["idle"].spent.device_h == pytest.approx(0.25)
    assert rows["idle"].time_fraction == pytest.approx(0.25)
    assert rows["idle"].spent.accelerator_energy_kwh == pytest.approx(0.15)
    assert rows["idle"].spent.facility_energy_kwh == pytest.approx(0.15 * 1.5 * 1.2)
    assert rows["idle"].spent.kgco2e == pytest.approx(0.15 * 1.5 * 1.2 * 0.4)
    assert rows["throttled"].spent.accelerator_energy_kwh == pytest.approx(0.15)
    assert rows["capped"].spent.device_h == pytest.approx(0.75)
    assert rows["idle"].cost is None  # nobody knows what an hour cost


def test_a_half_hour_of_the_project_carries_half(trained):
    other = project("other")
    device = Device.objects.get()
    device.assignments.all().delete()
    half = START + timedelta(minutes=30)
    for mine, start, end in ((trained, START, half), (other, half, END)):
        assign_devices(operator(), device_ids=[device.pk], project_id=mine.pk, start=start, end=end)

    mine, theirs = (
        next(row for row in advised(one).waste if row.kind == "idle") for one in (trained, other)
    )

    assert mine.spent.accelerator_energy_kwh == pytest.approx(0.075)
    assert theirs.spent.device_h == pytest.approx(0.125)


def test_a_power_limit_is_a_measured_point(trained):
    (point,) = advised(trained).caps

    assert point.power_limit_w == 600
    assert point.mean_power_w == pytest.approx(600)
    assert point.j_per_gigacycle == pytest.approx(400)


def test_summing_again_changes_nothing(trained):
    before = advised(trained).as_json()

    sum_use([Device.objects.get().pk], start=START, end=END, gap_s=120)

    assert advised(trained).as_json() == before


def test_other_regions_of_the_cloud_are_named_with_year_and_source(trained):
    save_site(operator(), site_of_cloud())

    regions = advised(trained).regions

    assert regions
    assert regions[0].kgco2e == min(one.kgco2e for one in regions)
    assert all(one.source and one.year for one in regions)


def site_of_cloud() -> SiteRecord:
    return replace(site(), provider="gcp", region="us-central1")


def test_hours_that_a_source_tells_show_the_best_start(trained):
    source = IntensitySource.objects.create(
        organisation_id=organisation().pk, provider="csv", name="grid"
    )
    HourlyIntensity.objects.bulk_create(
        HourlyIntensity(
            organisation_id=organisation().pk,
            source=source,
            zone="DE",
            hour=START + timedelta(hours=shift),
            basis="direct",
            value_g_per_kwh=100.0 if shift == 5 else 400.0,
            known_at=NOW,
        )
        for shift in range(-24, 25)
    )

    page = advised(trained)

    (found,) = page.shifts
    assert found.best.shift_h == 5
    assert found.best.kgco2e == pytest.approx(found.as_it_was_kgco2e / 4)
    assert found.covered_fraction == 1
    assert ("DE", "hour") in {(one.name, one.level) for one in page.regions}


def test_the_page_says_what_to_do_when_there_is_nothing(client):
    mine = project("empty")
    reader = signed_in(person("reader", role="admin"))

    answer = reader.get(f"/projects/{mine.slug}/advice/?from=2026-13-01&to=x")

    assert answer.status_code == 200
    assert b"It takes senders that read utilisation" in answer.content


def test_the_page_shows_what_was_found(trained):
    reader = signed_in(person("reader", role="admin"))

    answer = reader.get(
        f"/projects/{trained.slug}/advice/", {"from": "2025-10-01", "to": "2025-10-02"}
    )

    assert answer.status_code == 200
    assert datetime(2025, 10, 1, tzinfo=UTC) == START
    assert b"idle" in answer.content


def test_the_command_line_says_the_same(trained, capsys):
    call_command(
        "advice", "--project", trained.slug, "--from", "2025-10-01", "--to", "2025-10-02", "--json"
    )
    assert json.loads(capsys.readouterr().out) == advised(trained).as_json()

    call_command("advice", "--project", trained.slug)
    assert "idle: 0.2 device-hours" in capsys.readouterr().out

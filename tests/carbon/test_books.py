"""Corrections are new entries: late data, factors and assignments restate, all is kept."""

from datetime import date, timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from carbon.checks import verify
from carbon.configuration import apply, dump
from carbon.models import EmissionEntry, EnergyHour, OpenHours
from carbon.selectors import emissions_by_day, emissions_summary, energy_by_day
from carbon.services import close_hours, repost_site
from runs import configuration as runs_configuration
from runs.selectors import devices_of
from runs.services import assign_devices
from tests.builders import organisation, project
from tests.carbon.builders import (
    INTERVALS,
    NOW,
    SAMPLES,
    START,
    factor,
    imported,
    interval,
    operator,
    samples,
    site,
    write_csv,
)

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
KWH = 3_600_000_000


@pytest.fixture
def hall(tmp_path):
    """A site with factors and two devices that used 0.5 kWh in each of four hours."""
    rows = [
        interval(START + step * HOUR, START + (step + 1) * HOUR, KWH // 2, device=f"GPU-{device}")
        for step in range(4)
        for device in range(2)
    ]
    factor(site(), "host_factor", 1.5)
    factor(site(), "grid_g_per_kwh", 400)
    imported(write_csv(tmp_path / "hall.csv", INTERVALS, rows))
    return site()


def whole(**more):
    return emissions_summary(organisation().pk, None, **more)


def assign(hall, project_id, start, end, devices=None):
    ids = [one.device_id for one in devices_of(hall.site_id)][:devices]
    assign_devices(operator(), device_ids=ids, project_id=project_id, start=start, end=end)


def test_late_data_restates_the_hour_and_keeps_what_was_believed(tmp_path):
    later = NOW + timedelta(days=1)
    imported(write_csv(tmp_path / "a.csv", SAMPLES, samples(count=121)))
    before = whole().accelerator_energy_kwh
    imported(write_csv(tmp_path / "b.csv", SAMPLES, samples()), now=later)
    assert before == pytest.approx(0.325)
    assert whole().accelerator_energy_kwh == pytest.approx(0.65)
    assert whole(as_of=NOW + HOUR).accelerator_energy_kwh == pytest.approx(0.325)
    versions = EnergyHour.objects.filter(hour=START).order_by("version")
    assert [row.version for row in versions] == [1, 2]
    assert [row.superseded_at for row in versions] == [later, None]
    assert verify(organisation().pk) == ()


def test_closing_again_changes_nothing(hall):
    before = EmissionEntry.objects.count(), EnergyHour.objects.count()
    assert repost_site(hall, now=NOW) == 0
    assert (EmissionEntry.objects.count(), EnergyHour.objects.count()) == before


def test_only_the_hours_that_changed_get_a_new_version(hall, tmp_path):
    path = tmp_path / "late.csv"
    imported(
        write_csv(
            path,
            INTERVALS,
            [interval(START + 4 * HOUR, START + 5 * HOUR, KWH // 2, device="GPU-0")],
        )
    )
    assert set(EnergyHour.objects.values_list("version", flat=True)) == {1}


def test_a_new_factor_reverses_and_posts_anew_from_its_day_on(hall):
    before = whole()
    apply(
        operator(),
        {"sites": [{"slug": "hall-1", "factors": [{"from": date(2025, 10, 1), "pue": 1.2}]}]},
    )
    after = whole()
    assert before.scope_2_location_kgco2e == pytest.approx(4 * 1.5 * 0.4)
    assert after.scope_2_location_kgco2e == pytest.approx(4 * 1.5 * 1.2 * 0.4)
    assert whole(as_of=NOW + HOUR).scope_2_location_kgco2e == pytest.approx(2.4)
    signed = sum(EmissionEntry.objects.values_list("scope_2_location_kgco2e", flat=True))
    assert signed == pytest.approx(after.scope_2_location_kgco2e)
    assert EmissionEntry.objects.filter(reverses__isnull=False).count() == 4
    assert verify(organisation().pk) == ()


def test_entries_can_be_neither_changed_nor_deleted(hall):
    entries = EmissionEntry.objects.all()
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        entries.update(scope_2_location_kgco2e=0)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        connection.cursor().execute("DELETE FROM carbon_emissionentry")


def test_an_assignment_moves_energy_to_the_project_and_the_rest_stays_unallocated(hall):
    moe = project()
    assign(hall, moe.pk, START + HOUR / 2, START + 2 * HOUR, devices=1)
    repost_site(hall, now=NOW)
    mine = emissions_summary(organisation().pk, moe.pk)
    assert mine.accelerator_energy_kwh == pytest.approx(0.25 + 0.5)
    assert mine.coverage_fraction == 1.0
    assert whole().accelerator_energy_kwh == pytest.approx(4)
    energies = EmissionEntry.objects.values_list("accelerator_energy_millijoule", flat=True)
    assert sum(energies) == 4 * KWH
    assert verify(organisation().pk) == ()


def test_hours_in_which_assigned_devices_were_silent_lower_the_coverage(hall, tmp_path):
    moe = project()
    assign(hall, moe.pk, START, None)
    path = tmp_path / "later.csv"
    rows = [
        interval(START + 7 * HOUR, START + 8 * HOUR, KWH // 2, device=f"GPU-{one}")
        for one in (0, 1)
    ]
    imported(write_csv(path, INTERVALS, rows))
    repost_site(hall, now=NOW)
    mine = emissions_summary(organisation().pk, moe.pk)
    assert mine.accelerator_energy_kwh == pytest.approx(5)
    assert mine.coverage_fraction == pytest.approx(5 / 8)


def test_days_sum_to_the_whole_and_carry_their_quality(hall):
    (day,) = energy_by_day(organisation().pk, None)
    assert day.day == START.date()
    assert day.accelerator_energy_kwh == pytest.approx(4)
    assert day.it_energy_kwh == pytest.approx(6)
    assert (day.coverage_fraction, day.measured_fraction, day.spread_fraction) == (1.0, 1.0, 0.0)
    (emitted,) = emissions_by_day(organisation().pk, None)
    assert emitted.scope_2_location_kgco2e == pytest.approx(2.4)


def test_a_day_with_one_unknown_hour_is_unknown_not_a_partial_sum(tmp_path):
    factor(site(), "host_factor", 1.5, valid_from=date(2025, 10, 2))
    factor(site(), "grid_g_per_kwh", 400)
    rows = [
        interval(START + step * HOUR, START + (step + 1) * HOUR, KWH // 2) for step in range(20, 28)
    ]
    imported(write_csv(tmp_path / "p.csv", INTERVALS, rows))
    first, second = energy_by_day(organisation().pk, None)
    assert (first.it_energy_kwh, second.it_energy_kwh) == (None, pytest.approx(3))
    assert whole().it_energy_kwh is None


def test_the_running_hour_stays_open_until_it_is_over(tmp_path):
    imported(write_csv(tmp_path / "p.csv", SAMPLES, samples()))
    mark = OpenHours.objects.create(
        organisation_id=organisation().pk,
        site_id=site().site_id,
        start=START,
        end=START + 2 * HOUR,
        device_ids=[one.device_id for one in devices_of(site().site_id)],
        marked_at=NOW,
    )
    close_hours(organisation().pk, now=START + HOUR + HOUR / 2)
    mark.refresh_from_db()
    assert (mark.start, mark.end) == (START + HOUR, START + 2 * HOUR)
    close_hours(organisation().pk, now=START + 3 * HOUR)
    assert not OpenHours.objects.exists()


def test_verify_finds_an_hour_that_differs_from_its_readings(hall):
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE carbon_energyhour SET measured_millijoule = measured_millijoule + 1 "
            "WHERE hour = %s AND device_id = (SELECT min(device_id) FROM carbon_energyhour)",
            [START],
        )
    assert {finding.code for finding in verify(organisation().pk)} == {
        "energy_hour",
        "emission_owner",
        "emission_sum",
    }


def test_configuration_goes_out_and_in_unchanged(hall):
    apply(
        operator(),
        {
            "sites": [
                {
                    "slug": "hall-1",
                    "factors": [
                        {"from": "2025-10-01", "pue": 1.2, "source": "meter", "tier": "measured"}
                    ],
                }
            ]
        },
    )
    written = dump(organisation().pk)
    entries = EmissionEntry.objects.count()
    apply(operator(), written)
    assert dump(organisation().pk) == written
    assert EmissionEntry.objects.count() == entries


def test_a_change_of_region_changes_the_grid_factor(tmp_path):
    factor(site(), "host_factor", 1.5)
    imported(write_csv(tmp_path / "p.csv", SAMPLES, samples()))
    assert {one.level for one in whole().factors if one.kind == "grid_intensity"} == {"world"}
    document = {"sites": [{"slug": "hall-1", "provider": "gcp", "region": "us-central1"}]}
    runs_configuration.apply(operator(), document)
    apply(operator(), document)
    (grid,) = [one for one in whole().factors if one.kind == "grid_intensity"]
    assert (grid.level, grid.value) == ("cloud_region", 431.95)

"""What changes earlier hours restates them whole, in order of posting, and `verify` agrees."""

from datetime import timedelta

import pytest
from django.db import connection

from billing.services import sweep_lake
from carbon.checks import verify
from carbon.deliveries import receive_chunks, sweep_files
from carbon.models import EmissionEntry
from carbon.selectors import emissions_summary
from carbon.services import NewFactor, enqueue_delivery, repost_site, set_site_factors
from jobs.models import Job
from jobs.services import run_job
from lake import blobs
from tests.builders import organisation, project
from tests.carbon.builders import (
    INTERVALS,
    NOW,
    SAMPLES,
    START,
    factor,
    imported,
    instant,
    interval,
    operator,
    samples,
    site,
    write_csv,
)

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)
POWER_W = "600.00074"  # one whose energy does not divide evenly


def findings():
    return {one.code for one in verify(organisation().pk)}


def test_a_waiting_power_file_outlives_the_sweep_of_bills():
    content = b"at,device_uuid,power_w\n2025-10-01T00:00:00Z,G,600\n2025-10-01T00:00:30Z,G,600\n"
    file = receive_chunks("a.csv", iter([content]))
    job_id = enqueue_delivery(operator(), site(), [file])

    sweep_lake(grace_s=0)
    blobs.remove(file.sha256)  # as the refusal of the same bytes as a bill does
    assert sweep_files() == 0
    run_job(job_id)

    assert Job.objects.get(pk=job_id).state == Job.State.SUCCEEDED


def test_slow_samples_do_not_change_the_gap_of_hours_on_the_books(tmp_path):
    late = samples(count=20, start=START + timedelta(minutes=10))
    imported(write_csv(tmp_path / "a.csv", SAMPLES, samples(count=20) + late))
    slow = samples(count=5, every_s=300, start=START + timedelta(days=2))

    report = imported(write_csv(tmp_path / "b.csv", SAMPLES, slow))

    assert report.notes == ()
    assert findings() == set()


def test_a_longer_gap_brings_in_hours_that_had_no_energy_before(tmp_path):
    for step in range(4):
        one = samples(count=1, start=START + timedelta(minutes=5 * step))
        imported(write_csv(tmp_path / f"{step}.csv", SAMPLES, one))
    set_site_factors(operator(), site(), [NewFactor(kind="max_gap_s", value=600)], now=NOW)

    repost_site(site(), now=NOW)

    energy_kwh = emissions_summary(organisation().pk, None).accelerator_energy_kwh
    assert energy_kwh == pytest.approx(0.65 / 4)
    assert findings() == set()


def test_an_interval_restates_the_hour_before_where_it_cuts_a_pair_of_samples(tmp_path):
    at = START + timedelta(minutes=59, seconds=50)
    pair = [(instant(one), "GPU-0000", POWER_W) for one in (at, at + timedelta(seconds=31))]
    imported(write_csv(tmp_path / "s.csv", SAMPLES, pair))
    begin = at + timedelta(seconds=17)

    imported(write_csv(tmp_path / "i.csv", INTERVALS, [interval(begin, begin + HOUR / 3, 5000)]))

    assert findings() == set()


def test_who_posts_late_with_an_early_clock_counts_nothing_twice(tmp_path):
    def energy_kwh(as_of):
        return emissions_summary(organisation().pk, None, as_of=as_of).accelerator_energy_kwh

    for name, minutes, now in (("a", 0, NOW), ("b", 30, NOW + HOUR), ("c", 45, NOW + HOUR / 2)):
        rows = samples(count=20, start=START + timedelta(minutes=minutes))
        imported(write_csv(tmp_path / f"{name}.csv", SAMPLES, rows), now=now)

    first, last = energy_kwh(NOW), energy_kwh(NOW + 2 * HOUR)
    assert energy_kwh(NOW + HOUR * 0.75) == first
    assert last == pytest.approx(3 * first)


@pytest.fixture
def books(tmp_path):
    """Posted entries of a site with factors, and a way to falsify them."""
    factor(site(), "host_factor", 1.0)
    factor(site(), "grid_g_per_kwh", 400)
    imported(write_csv(tmp_path / "a.csv", SAMPLES, samples(count=100)))
    assert findings() == set()

    def falsify(assignment, value):
        with connection.cursor() as cursor:
            cursor.execute(
                "ALTER TABLE carbon_emissionentry DISABLE TRIGGER emission_entry_is_append_only"
            )
            cursor.execute(
                f"UPDATE carbon_emissionentry SET {assignment} = %s",
                [value],
            )
            cursor.execute(
                "ALTER TABLE carbon_emissionentry ENABLE TRIGGER emission_entry_is_append_only"
            )

    return falsify


def test_verify_finds_energy_booked_to_the_wrong_project(books):
    books("project_id", project("moe").pk)
    assert findings() == {"emission_owner"}


def test_verify_finds_wrong_market_based_emissions(books):
    books("scope_2_market_kgco2e", 999)
    assert findings() == {"emission_entry"}


def test_verify_finds_entries_made_with_a_factor_that_no_longer_holds(books):
    factor(site(), "grid_g_per_kwh", 300)
    assert findings() == {"emission_factors"}
    repost_site(site(), now=NOW)
    assert findings() == set()
    assert EmissionEntry.objects.filter(reverses__isnull=False).exists()

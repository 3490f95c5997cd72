"""A period that was signed off holds; what would change it waits, and every change is logged."""

import json
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction

from carbon.boundaries import set_boundary
from carbon.checks import verify
from carbon.instruments import InstrumentError
from carbon.locks import fingerprint
from carbon.models import EmissionEntry, PeriodLock, Restatement
from carbon.services import close_hours_job, enqueue_closing, repost_site
from carbon.sign_off import (
    LockError,
    approve_period,
    discard_period,
    prepare_period,
    release_changes,
    reopen_period,
)
from jobs.models import Job
from jobs.records import JobContext
from projects.access import system_actor
from runs.selectors import devices_of
from runs.services import assign_devices
from tests.builders import organisation, project
from tests.carbon.book_builders import HOUR, certificate, hall, summary, used
from tests.carbon.builders import NOW, START, factor, operator

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
LATER = NOW + DAY


def signer(name="auditor"):
    return system_actor(organisation().pk, name)


@pytest.fixture
def place(tmp_path):
    found = hall(grid_g_per_kwh=400)
    used(tmp_path, *[10.0] * 30)
    return found


def locked(start=START, end=START + DAY, *, now=NOW):
    lock_id = prepare_period(signer("ada"), start, end, now=now)
    approve_period(signer("rita"), lock_id, now=now)
    return PeriodLock.objects.get(pk=lock_id)


def change(place, g_per_kwh=500, now=LATER):
    factor(place, "grid_g_per_kwh", g_per_kwh)
    return repost_site(place, now=now)


def restatements(state):
    return list(Restatement.objects.filter(state=state).order_by("start"))


def test_a_change_of_factors_is_logged_with_both_sums_and_its_cause(place):
    change(place)
    (row,) = restatements("posted")
    assert (row.cause, row.detail) == ("factors", "factors: grid_intensity")
    assert row.before["scope_2_location_kgco2e"] == pytest.approx(120)
    assert row.after["scope_2_location_kgco2e"] == pytest.approx(150)
    assert row.before["facility_energy_kwh"] == row.after["facility_energy_kwh"]
    assert (row.start, row.end, row.entries) == (START, START + 30 * HOUR, 60)


def test_late_readings_are_logged_as_such_and_first_postings_are_not(place, tmp_path):
    assert restatements("posted") == []
    used(tmp_path, 5, device="GPU-1", start=START + HOUR, now=LATER)
    (row,) = restatements("posted")
    assert (row.cause, row.detail) == ("readings", "readings of 1 h")
    assert row.before["accelerator_energy_kwh"] == pytest.approx(10)
    assert row.after["accelerator_energy_kwh"] == pytest.approx(15)


def test_another_owner_is_logged_as_an_assignment(place):
    ids = [one.device_id for one in devices_of(place.site_id)]
    assign_devices(
        operator(), device_ids=ids, project_id=project().pk, start=START, end=START + HOUR
    )
    repost_site(place, now=LATER)
    (row,) = restatements("posted")
    assert row.cause == "assignment"
    assert row.before["accelerator_energy_kwh"] == row.after["accelerator_energy_kwh"]


def test_a_locked_period_holds_changes_until_they_are_released_with_a_reason(place):
    lock = locked()
    before = EmissionEntry.objects.count()

    assert change(place) == 6  # the hours of the open day
    (held,) = restatements("held")
    assert (held.start, held.end) == (START, START + DAY)
    assert held.before["scope_2_location_kgco2e"] == pytest.approx(96)
    assert held.after["scope_2_location_kgco2e"] == pytest.approx(120)
    assert summary().scope_2_location_kgco2e == pytest.approx(96 + 30)
    assert verify(organisation().pk) == ()  # what waits is no mistake
    assert fingerprint(organisation().pk, START, START + DAY).digest == lock.digest

    with pytest.raises(LockError, match="reason"):
        release_changes(signer(), lock.pk, reason=" ", now=LATER)
    assert release_changes(signer("rita"), lock.pk, reason="meter was wrong", now=LATER) == 24

    assert restatements("held") == []
    assert summary().scope_2_location_kgco2e == pytest.approx(150)
    released = [row for row in restatements("posted") if row.decided_at]
    assert [row.decided_by for row in released] == ["rita"]
    assert released[0].detail.endswith("released: meter was wrong")
    lock.refresh_from_db()
    assert lock.totals["scope_2_location_kgco2e"] == pytest.approx(96)
    assert EmissionEntry.objects.count() > before
    assert verify(organisation().pk) == ()


def test_late_readings_of_a_part_of_a_locked_day_wait_once(place, tmp_path):
    locked()
    used(tmp_path, 5, device="GPU-1", start=START + HOUR, now=LATER)
    used(tmp_path, 7, device="GPU-2", start=START + 4 * HOUR, now=LATER + HOUR)
    repost_site(place, now=LATER + 2 * HOUR)
    (held,) = restatements("held")
    assert (held.before["accelerator_energy_kwh"], held.after["accelerator_energy_kwh"]) == (
        pytest.approx(20),
        pytest.approx(32),
    )
    assert held.noted_at == LATER
    assert verify(organisation().pk) == ()
    assert summary().accelerator_energy_kwh == pytest.approx(300)


def test_a_change_that_is_taken_back_waits_no_longer(place):
    locked()
    for ownership, waiting in (("leased", 1), ("own", 0)):
        set_boundary(operator(), place, ownership=ownership, known_at=LATER)
        repost_site(place, now=LATER)
        assert len(restatements("held")) == waiting
    assert verify(organisation().pk) == ()


def test_a_release_of_one_period_leaves_the_next_one_shut(place):
    first = locked()
    locked(START + DAY, START + 2 * DAY)
    change(place)
    assert len(restatements("held")) == 2
    release_changes(signer(), first.pk, reason="meter was wrong", now=LATER)
    (held,) = restatements("held")
    assert held.start == START + DAY


def test_the_database_refuses_entries_of_a_locked_period(place):
    locked()
    row = EmissionEntry.objects.filter(hour=START).get()
    row.pk, row.reverses_id = None, None
    with pytest.raises(DatabaseError, match="locked period"), transaction.atomic():
        row.save(force_insert=True)
    row.hour = START + 26 * HOUR
    row.save(force_insert=True)


def test_who_prepared_a_period_does_not_approve_it(place):
    lock_id = prepare_period(signer("Ada"), START, START + DAY, now=NOW)
    with pytest.raises(LockError, match="Somebody else"):
        approve_period(signer("ada"), lock_id, now=NOW)


def test_books_that_changed_since_are_prepared_again(place):
    lock_id = prepare_period(signer("ada"), START, START + DAY, now=NOW)
    change(place)
    with pytest.raises(LockError, match="changed since"):
        approve_period(signer("rita"), lock_id, now=LATER)
    again = prepare_period(signer("ada"), START, START + DAY, now=LATER)
    assert not PeriodLock.objects.filter(pk=lock_id).exists()
    approve_period(signer("rita"), again, now=LATER)
    with pytest.raises(LockError, match="already"):
        approve_period(signer("rita"), again, now=LATER)


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        (START, START, "first before its last"),
        (START, START + HOUR, "whole UTC days"),
        (START, NOW + 5 * DAY - timedelta(hours=12, minutes=30), "not over yet"),
        (datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC), "nothing on the"),
    ],
)
def test_a_period_that_cannot_be_signed_is_refused_in_words(place, start, end, words):
    with pytest.raises(LockError, match=words):
        prepare_period(signer(), start, end, now=NOW)


def test_a_locked_period_cannot_be_locked_again_in_part(place):
    locked()
    with pytest.raises(LockError, match="locked already"):
        prepare_period(signer(), START, START + 2 * DAY, now=NOW)


def test_reopening_is_a_new_fact_and_posts_what_waited(place):
    lock = locked()
    change(place)
    with pytest.raises(LockError, match="reason"):
        reopen_period(signer(), lock.pk, reason="", now=LATER)
    reopen_period(signer("rita"), lock.pk, reason="new invoice", now=LATER)
    job = Job.objects.filter(kind="carbon.close_hours").get()
    context = JobContext(job_id=job.pk, organisation_id=job.organisation_id, payload=job.payload)
    assert close_hours_job(context)["entries"] == 24
    lock.refresh_from_db()
    assert (lock.reopened_by, lock.reason) == ("rita", "new invoice")
    assert lock.approved_at is not None
    assert restatements("held") == []
    assert summary().scope_2_location_kgco2e == pytest.approx(150)
    with pytest.raises(LockError, match="not locked"):
        release_changes(signer(), lock.pk, reason="x", now=LATER)
    with pytest.raises(LockError, match="reopened, not dropped"):
        discard_period(signer(), lock.pk)


def test_a_prepared_period_can_be_dropped(place):
    lock_id = prepare_period(signer(), START, START + DAY, now=NOW)
    discard_period(signer(), lock_id)
    assert not PeriodLock.objects.exists()


def test_contracts_of_a_locked_period_stay_as_they_were(place):
    locked()
    with pytest.raises(InstrumentError, match="is locked"):
        certificate()


@pytest.mark.django_db(transaction=True)
def test_verify_finds_entries_that_slipped_into_a_locked_period(place):
    locked()
    assert verify(organisation().pk) == ()
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE carbon_emissionentry DISABLE TRIGGER emission_entry_is_append_only"
        )
        cursor.execute(
            "UPDATE carbon_emissionentry SET water_on_site_l = 5 WHERE hour = %s", [START]
        )
        cursor.execute(
            "ALTER TABLE carbon_emissionentry ENABLE TRIGGER emission_entry_is_append_only"
        )
    assert "period_lock" in {one.code for one in verify(organisation().pk)}


@pytest.mark.django_db(transaction=True)
def test_a_release_of_one_day_leaves_the_rest_of_the_period_watched(place):
    lock = locked()
    change(place)
    release_changes(signer("rita"), lock.pk, reason="meter was wrong", now=LATER)
    assert verify(organisation().pk) == ()
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE carbon_emissionentry DISABLE TRIGGER emission_entry_is_append_only"
        )
        cursor.execute(
            "UPDATE carbon_emissionentry SET water_on_site_l = 5 WHERE hour = %s", [START]
        )
        cursor.execute(
            "ALTER TABLE carbon_emissionentry ENABLE TRIGGER emission_entry_is_append_only"
        )
    assert "period_lock" in {one.code for one in verify(organisation().pk)}


def test_the_command_reposts_all_sites_and_says_what_waits(place):
    locked()
    factor(place, "grid_g_per_kwh", 500)
    out = StringIO()
    call_command("repost", json=True, stdout=out)
    assert json.loads(out.getvalue()) == {"sites": [{"site": "hall-1", "entries": 6}], "held": 1}
    with pytest.raises(CommandError, match="No site x"):
        call_command("repost", site="x")


def test_a_window_of_a_site_is_reposted_alone(place):
    factor(place, "grid_g_per_kwh", 500)
    enqueue_closing(place, repost=True, start=START + HOUR / 2, end=START + 3 * HOUR)
    enqueue_closing(place, repost=True, start=START + 7 * HOUR, end=START + 8 * HOUR)
    assert Job.objects.filter(kind="carbon.close_hours").count() == 2
    posted = 0
    for job in Job.objects.filter(kind="carbon.close_hours"):
        context = JobContext(
            job_id=job.pk, organisation_id=job.organisation_id, payload=job.payload
        )
        posted += close_hours_job(context)["entries"]
    assert posted == 4
    assert summary().scope_2_location_kgco2e == pytest.approx(120 + 4)

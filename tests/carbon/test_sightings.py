"""Jobs that senders see on devices: kept from first to last, and named runs get their devices."""

from datetime import datetime, timedelta

import pytest

from audit.models import AuditEntry
from carbon.attribution import instant_of
from carbon.booking import book_readings_job
from carbon.models import JobSighting
from carbon.packed import Brought
from jobs.records import JobContext
from runs.records import RunRecord
from runs.selectors import assignments_of_site, devices_of
from runs.services import assign_devices, save_run
from tests.builders import organisation, project
from tests.carbon.batch_builders import ago, booked, brought, devices, job, microsecond, power
from tests.carbon.builders import operator, site

pytestmark = pytest.mark.django_db


def reading(power_w: float, at: datetime) -> Brought:
    return Brought(devices=devices(), power=power((0, at, power_w)))


def test_sightings_of_a_job_become_one_from_first_to_last():
    place, start = site(), ago(hours=1)
    for minutes in (0, 5, 10, 40):
        at = start + timedelta(minutes=minutes)
        brought(place, Brought(devices=devices(), jobs=(job(0, at, ""),)))
        booked(place)
    spans = [(one.first_at - start, one.last_at - start) for one in JobSighting.objects.all()]
    assert [(low.seconds // 60, high.seconds // 60) for low, high in spans] == [(0, 10), (40, 40)]


def sighted(place, at, run_name, name="4711"):
    body = Brought(
        devices=devices(), power=power((0, at, 600.0)), jobs=(job(0, at, run_name, name),)
    )
    brought(place, body)
    booked(place)


def run_of(owner, slug="first") -> RunRecord:
    return save_run(
        operator(),
        RunRecord(
            run_id=owner.pk,
            project_id=owner.pk,
            slug=slug,
            name=slug,
            accelerator_key="",
            accelerator_count=0,
            precision="",
            start=None,
            end=None,
        ),
    )


def test_a_job_that_names_a_run_gets_the_device_from_its_first_sighting_on():
    place, owner, at = site(), project("moe"), ago(minutes=30)
    sighted(place, at, "moe/first")
    assert assignments_of_site(place.site_id) == []
    run = run_of(owner)  # the run may be known later than its job
    sighted(place, at + timedelta(minutes=5), "moe/first")
    sighted(place, at + timedelta(minutes=10), "moe/first")
    (one,) = assignments_of_site(place.site_id)
    assert (one.project_id, one.run_id, one.end) == (owner.pk, run.run_id, None)
    assert one.start == instant_of(microsecond(at))
    assert AuditEntry.objects.filter(action="devices.assigned").count() == 1


def test_the_next_named_job_takes_the_device_over():
    place, owner, at = site(), project("moe"), ago(minutes=30)
    run_of(owner, "first"), run_of(owner, "second")
    sighted(place, at, "moe/first", "1")
    sighted(place, at + timedelta(minutes=5), "moe/second", "2")
    first, second = assignments_of_site(place.site_id)
    assert first.end == second.start == instant_of(microsecond(at + timedelta(minutes=5)))


def test_an_assignment_by_a_person_stands_above_what_a_sender_saw():
    place, owner, other, at = site(), project("moe"), project("theirs"), ago(minutes=30)
    run_of(owner)
    brought(place, reading(600.0, at))
    booked(place)
    assign_devices(
        operator(),
        device_ids=[devices_of(place.site_id)[0].device_id],
        project_id=other.pk,
        start=ago(days=1),
        end=None,
    )
    sighted(place, at, "moe/first")
    (one,) = assignments_of_site(place.site_id)
    assert (one.project_id, one.end) == (other.pk, None)


def test_a_run_of_another_organisation_gets_nothing():
    theirs = project("moe", of=organisation("others"))
    run_of(theirs)
    sighted(site(), ago(minutes=30), "moe/first")
    assert assignments_of_site(site().site_id) == []


def test_the_assignment_ends_when_the_job_is_gone_and_its_device_goes_on():
    place, owner, at = site(), project("moe"), ago(hours=2)
    run_of(owner)
    sighted(place, at, "moe/first")
    sighted(place, at + timedelta(minutes=10), "moe/first")
    brought(place, reading(90.0, at + timedelta(minutes=40)))
    payload = {"site_id": str(place.site_id)}
    book_readings_job(
        JobContext(job_id=place.site_id, organisation_id=place.organisation_id, payload=payload)
    )
    (one,) = assignments_of_site(place.site_id)
    assert one.end == instant_of(microsecond(at + timedelta(minutes=10)))

"""A device works for one project at a time; changes are audited; configuration round-trips."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, transaction

from audit.models import AuditEntry
from projects.models import Project
from runs.configuration import apply, dump
from runs.models import Assignment, Device
from runs.selectors import assignments_between, devices_of, site_by_slug
from runs.services import RunsError, assign_devices, end_assignments, ensure_devices
from tests.builders import organisation, project
from tests.carbon.builders import operator, site

pytestmark = pytest.mark.django_db
T0 = datetime(2025, 10, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def ids():
    found = ensure_devices(site(), [("GPU-1", "n1", "NVIDIA H100 80GB HBM3"), ("GPU-2", "n1", "")])
    return [found["GPU-1"], found["GPU-2"]]


def assign(ids, start, end, slug="moe"):
    found = Project.objects.filter(slug=slug).first() or project(slug)
    return assign_devices(operator(), device_ids=ids, project_id=found.pk, start=start, end=end)


def test_devices_are_learned_once_with_node_and_accelerator(ids):
    again = ensure_devices(site(), [("GPU-1", "", ""), ("GPU-2", "", "NVIDIA L4")])
    assert list(again.values()) == ids
    first, second = devices_of(site().site_id)
    assert (first.node, first.accelerator_key, first.power_limit_w) == ("n1", "h100-sxm-80gb", 700)
    assert second.accelerator_key == "l4-24gb"


def test_a_device_of_another_site_is_left_where_it_is(ids):
    assert ensure_devices(site("hall-2"), [("GPU-1", "", "")]) == {}
    assert Device.objects.get(uuid="GPU-1").site_id == site().site_id


def test_assigning_twice_changes_nothing(ids):
    assert assign(ids, T0, None) == 2
    assert assign(ids, T0, None) == 0


def test_an_overlap_is_refused_and_names_the_device(ids):
    assign(ids[:1], T0, T0 + 2 * DAY)
    with pytest.raises(RunsError, match="GPU-1"):
        assign(ids, T0 + DAY, T0 + 3 * DAY, slug="other")
    assert Assignment.objects.count() == 1
    assert assign(ids[:1], T0 + 2 * DAY, None, slug="other") == 1


def test_the_database_itself_refuses_an_overlap(ids):
    assign(ids[:1], T0, None)
    row = Assignment.objects.get()
    with pytest.raises(IntegrityError), transaction.atomic():
        Assignment.objects.create(
            organisation=row.organisation,
            device_id=ids[0],
            project=row.project,
            start=T0 + DAY,
            end=T0 + 2 * DAY,
        )


def test_an_assignment_ends_at_an_instant(ids):
    assign(ids, T0, None)
    assert end_assignments(operator(), device_ids=ids, at=T0 + DAY) == 2
    of = organisation().pk
    assert len(assignments_between(of, T0, T0 + DAY)) == 2
    assert assignments_between(of, T0 + DAY, T0 + 2 * DAY) == []


def test_every_change_is_in_the_trail(ids):
    assign(ids, T0, None)
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"site.created", "devices.assigned"} <= actions


DOCUMENT = {
    "sites": [{"slug": "hall-1", "name": "Hall 1", "country": "deu", "factors": [{"pue": 1.2}]}],
    "devices": [{"uuid": "GPU-1", "site": "hall-1", "node": "n1", "accelerator": "h100-sxm-80gb"}],
    "runs": [{"project": "moe", "slug": "main", "accelerator_count": 1, "start": T0}],
    "assignments": [{"project": "moe", "site": "hall-1", "run": "main", "start": T0.date()}],
}


def test_configuration_goes_out_and_in_unchanged():
    project("moe")
    apply(operator(), DOCUMENT)
    assert site_by_slug(organisation().pk, "hall-1").country == "DEU"
    written = dump(organisation().pk)
    assert written["assignments"][0]["devices"] == ["GPU-1"]
    entries = AuditEntry.objects.count()
    apply(operator(), written)
    assert dump(organisation().pk) == written
    assert AuditEntry.objects.count() == entries


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"assignments": [{"project": "moe", "site": "nowhere", "start": T0}]}, "nowhere"),
        ({"assignments": [{"project": "none", "site": "hall-1", "start": T0}]}, "none"),
        ({"devices": [{"uuid": "g", "site": "hall-1", "max_power_w": -1}]}, "max_power_w"),
        ({"devices": [{"uuid": "g", "site": "hall-1", "colour": "red"}]}, "colour"),
        ({"sites": [{"slug": "hall-1", "country": "Germany"}]}, "country"),
    ],
)
def test_a_malformed_entry_is_refused_and_named(change, words):
    project("moe")
    site()
    with pytest.raises(RunsError, match=words):
        apply(operator(), change)

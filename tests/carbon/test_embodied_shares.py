"""Each hour shares the hardware among the accelerators known by then, whatever comes later."""

from datetime import date

import pytest

from carbon.assets import NewAsset, add_asset, withdraw_asset
from carbon.checks import verify
from carbon.entry_queries import current_entries
from carbon.models import EmissionEntry, Restatement
from carbon.services import repost_site
from runs.selectors import devices_of
from runs.services import assign_devices, ensure_devices
from tests.builders import organisation, project
from tests.carbon.book_builders import HOUR, hall, used
from tests.carbon.builders import NOW, START, operator

pytestmark = pytest.mark.django_db
LIFE_H = 1_000.0


def hardware(place, name, *, devices=1, kgco2e=1_000.0, bought=date(2025, 9, 30)):
    asset = NewAsset(
        name=name,
        devices=devices,
        kgco2e=kgco2e,
        purchased_on=bought,
        lifetime_h=LIFE_H,
        source="data sheet",
    )
    return add_asset(operator(), place, asset, known_at=NOW)


def shares():
    """What each hour's entries carry of the hardware."""
    found = {}
    for row in current_entries().order_by("hour"):
        step = (row.hour - START) // HOUR
        found[step] = found.get(step, 0.0) + row.embodied_kgco2e
    return found


@pytest.fixture
def place():
    """A hall with two servers of one accelerator each, 1 kg an hour each."""
    found = hall()
    hardware(found, "server 1")
    hardware(found, "server 2")
    return found


def test_accelerators_that_come_later_change_no_earlier_hour(place, tmp_path):
    used(tmp_path, 1, 1)
    assert shares() == {0: 2.0, 1: 2.0}

    used(tmp_path, 1, 1, device="GPU-1", start=START + 2 * HOUR)
    repost_site(place, now=NOW)

    assert shares() == {0: 2.0, 1: 2.0, 2: 1.0, 3: 1.0}
    assert not EmissionEntry.objects.filter(reverses__isnull=False).exists()
    assert verify(organisation().pk) == ()


def test_accelerators_that_are_merely_listed_change_no_hour(place, tmp_path):
    used(tmp_path, 1, 1)
    ensure_devices(place, [("GPU-9", "", "")])
    assert repost_site(place, now=NOW) == 0
    assert shares() == {0: 2.0, 1: 2.0}
    assert verify(organisation().pk) == ()


def test_an_assigned_accelerator_counts_from_its_assignment_on(place, tmp_path):
    used(tmp_path, 1, 1, 1)
    ensure_devices(place, [("GPU-1", "", "")])
    (silent,) = [one for one in devices_of(place.site_id) if one.device_uuid == "GPU-1"]
    assign_devices(
        operator(),
        device_ids=[silent.device_id],
        project_id=project("moe").pk,
        start=START + 1.5 * HOUR,
        end=None,
    )
    repost_site(place, now=NOW)
    assert shares() == {0: 2.0, 1: 1.5, 2: 2.0}
    assert verify(organisation().pk) == ()


def test_late_data_of_an_earlier_accelerator_restates_the_hours_after_it(place, tmp_path):
    used(tmp_path, 1, 1, 1, 1)
    used(tmp_path, 1, device="GPU-1", start=START + HOUR, now=NOW + HOUR)

    assert shares() == {0: 2.0, 1: 2.0, 2: 1.0, 3: 1.0}
    assert verify(organisation().pk) == ()
    told = Restatement.objects.order_by("start")
    assert (told[0].start, told[len(told) - 1].end) == (START + HOUR, START + 4 * HOUR)


def test_one_piece_of_hardware_is_shared_as_it_says_whoever_is_known(tmp_path):
    place = hall()
    hardware(place, "rack", devices=8)
    used(tmp_path, 1)
    used(tmp_path, 1, device="GPU-1", start=START + HOUR)
    assert shares() == {0: 0.125, 1: 0.125}
    assert verify(organisation().pk) == ()


def test_another_footprint_restates_what_was_posted_with_the_old_one(tmp_path):
    place = hall()
    old = hardware(place, "rack", kgco2e=1_000)
    used(tmp_path, 1, 1)
    withdraw_asset(operator(), place, old, known_at=NOW)
    hardware(place, "rack", kgco2e=3_000)
    repost_site(place, now=NOW, entries_only=True)

    assert shares() == {0: 3.0, 1: 3.0}
    signed = sum(EmissionEntry.objects.values_list("embodied_kgco2e", flat=True))
    assert signed == pytest.approx(6.0)
    (told,) = Restatement.objects.all()
    assert (told.cause, told.entries) == ("factors", 4)
    assert verify(organisation().pk) == ()

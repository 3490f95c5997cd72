"""Whatever comes in whatever order, closing after each part gives what `verify` computes."""

import random
from datetime import timedelta

import pytest

from carbon.checks import verify
from carbon.models import EnergyHour
from carbon.services import repost_site
from runs.services import assign_devices
from tests.builders import organisation, project
from tests.carbon.builders import NOW, START, operator, site
from tests.carbon.reading_builders import closed, counters, device, power, sender

pytestmark = pytest.mark.django_db
KINDS = ("agent", "remote_write", "promql")
MODEL = "NVIDIA H100 80GB HBM3"


def parts_of(chance, gpus, senders):
    """Stretches of readings of devices by senders, with holes, resets and repeats, shuffled."""
    parts = []
    for gpu in gpus:
        counter, epoch = chance.randrange(10**6), 1
        for who in senders:
            minute = chance.uniform(0, 40)
            while minute < 420:
                length, every = chance.choice([20, 45, 90]), chance.choice([0.7, 1, 1.9])
                minutes = [minute + every * step for step in range(int(length / every))]
                watts = [chance.choice([90.0, 350.5, 680.25]) for _minute in minutes]
                if who == senders[-1]:
                    parts.append((power, gpu, list(zip(minutes, watts, strict=True)), who))
                else:
                    rows = []
                    for at, power_w in zip(minutes, watts, strict=True):
                        counter += round(power_w * every * 60_000)
                        rows.append((at, counter, epoch))
                    parts.append((counters, gpu, rows, who))
                    if chance.random() < 0.3:
                        counter, epoch = chance.randrange(10**6), epoch + chance.choice([0, 1])
                minute = minutes[-1] + chance.choice([0.5, 3, 30, 95, 200])
    chance.shuffle(parts)
    return parts


def told():
    rows = EnergyHour.objects.filter(superseded_at__isnull=True, covered_microsecond__gt=0)
    return list(
        rows.order_by("device_id", "hour").values_list(
            "device__uuid",
            "hour",
            "measured_millijoule",
            "spread_millijoule",
            "estimated_millijoule",
            "estimate_method",
        )
    )


@pytest.mark.parametrize("seed", range(3))
def test_hours_do_not_depend_on_the_order_in_which_readings_came(seed):
    chance = random.Random(seed)
    place = site()
    gpus = [device(place, f"GPU-{number}", model=MODEL * (number < 2)) for number in range(3)]
    senders = [sender(place, kind) for kind in KINDS]
    moe, dense = project("moe").pk, project("dense").pk
    for gpu, owner in zip(gpus, (moe, moe, dense), strict=True):
        assign_devices(
            operator(),
            device_ids=[gpu],
            project_id=owner,
            start=START + timedelta(minutes=chance.randrange(200)),
            end=START + timedelta(minutes=chance.randrange(230, 500)),
        )
    for number, (store, gpu, rows, who) in enumerate(parts_of(chance, gpus, senders)):
        store(place, gpu, rows, sender_id=who)
        if chance.random() < 0.4:
            closed(place, NOW + timedelta(minutes=number))
    closed(place, NOW + timedelta(days=1))
    assert [one for one in verify(organisation().pk) if one.code == "energy_hour"] == []
    before = told()
    repost_site(place, now=NOW + timedelta(days=2))
    assert told() == before

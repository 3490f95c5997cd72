"""Booking: what doors stored becomes readings once, whoever repeats, dies or contradicts."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from django.db import connection
from django.utils import timezone

from carbon.attribution import instant_of
from carbon.booking import book_readings_job, enqueue_all_waiting
from carbon.models import (
    CounterReading,
    DeviceNow,
    IntakeBody,
    NodeReading,
    OpenHours,
    PowerSample,
    QuarantinedPower,
    Sender,
    UseReading,
)
from carbon.packed import Brought, NodeColumns, PackedBodyError, SetAside, pack, unpack
from jobs.models import Job
from jobs.records import JobContext, LeaseLost
from runs.selectors import devices_of
from tests.carbon.batch_builders import (
    ago,
    booked,
    brought,
    counters,
    devices,
    job,
    microsecond,
    power,
    use,
)
from tests.carbon.builders import site

pytestmark = pytest.mark.django_db


def reading(power_w: float = 600.0, at=None, *uuids: str) -> Brought:
    return Brought(
        devices=devices(*uuids),
        power=power((0, at or ago(minutes=5), power_w)),
        power_field="instant",
    )


def test_a_packed_body_comes_out_as_it_went_in():
    at = ago(minutes=1)
    body = Brought(
        devices=devices("GPU-1", "GPU-2", node="n1", power_limit_w=700.0, facts={"mig": [1]}),
        power=power((0, at, 1.5), (1, at, 0.0)),
        counters=counters((1, at, 2**62)),
        use=use((0, at, None)),
        jobs=(job(1, at, "moe/run"),),
        set_aside=(SetAside(device_uuid="x", at=None, reading="nan", reason="not_a_number"),),
        ignored=3,
        dropped=4,
    )
    out = unpack(pack(body))
    assert (out.devices, out.jobs, out.set_aside) == (body.devices, body.jobs, body.set_aside)
    assert (out.rows, out.ignored, out.dropped) == (5, 3, 4)
    assert out.counters.counter_millijoule[0] == 2**62
    assert np.isnan(out.use.measures["utilisation_fraction"][0])


@pytest.mark.parametrize("cut", [0, 5, 11, 30])
def test_a_cut_or_foreign_body_is_no_packed_body(cut):
    whole = pack(reading())
    for wrong in (whole[:cut], b"CWB2" + whole[4:], whole[:-3] + b"xyz"):
        with pytest.raises(PackedBodyError):
            unpack(wrong)


def test_what_waited_is_stored_once_and_the_body_goes():
    place, at = site(), ago(minutes=5)
    body = Brought(
        devices=devices("GPU-1", node="n1", model="NVIDIA H100 80GB HBM3"),
        power=power((0, at, 600.0)),
        counters=counters((0, at, 10**15)),
        use=use((0, at, 0.5)),
    )
    assert brought(place, body)
    assert booked(place).stored == 3
    assert not IntakeBody.objects.exists()
    (sample,), (counter,), (seen,) = (
        PowerSample.objects.all(),
        CounterReading.objects.all(),
        UseReading.objects.all(),
    )
    assert (sample.at, sample.power_w) == (instant_of(microsecond(at)), 600.0)
    assert (counter.counter_millijoule, counter.epoch) == (10**15, 1)
    assert (seen.utilisation_fraction, seen.temperature_c) == (0.5, None)
    assert devices_of(place.site_id)[0].node == "n1"


def test_the_same_bytes_wait_once_and_repeats_later_change_nothing():
    place, body = site(), reading()
    assert [brought(place, body) for _ in range(3)] == [True, False, False]
    booked(place)
    assert brought(place, body)
    assert booked(place).stored == 0
    sender = Sender.objects.get()
    assert (PowerSample.objects.count(), sender.rows, sender.duplicates) == (1, 2, 1)
    assert OpenHours.objects.count() == 1


def test_of_what_bodies_tell_of_a_device_the_last_counts_also_where_it_was_told_before():
    place = site()
    for minutes, slices in ((3, [1]), (2, [2]), (1, [1])):
        told = reading(600.0, ago(minutes=minutes))
        brought(place, replace(told, devices=devices(facts={"mig": slices})))
    assert booked(place).stored == 3
    assert DeviceNow.objects.get().use["mig"] == [1]


def test_two_senders_of_one_device_second_are_both_kept():
    place, body = site(), reading()
    brought(place, body, sender="a")
    brought(place, body, sender="b", kind="remote_write")
    assert booked(place).stored == 2
    assert PowerSample.objects.values_list("sender_id").distinct().count() == 2


def test_another_value_of_the_same_sender_is_kept_aside_and_the_first_stays():
    place, at = site(), ago(minutes=5)
    brought(place, reading(600.0, at))
    booked(place)
    brought(place, reading(601.0, at))
    brought(place, reading(602.0, at))
    assert booked(place).reasons == {"another_value_is_stored": 2}
    assert PowerSample.objects.get().power_w == 600.0
    assert set(QuarantinedPower.objects.values_list("reading", flat=True)) == {"601 W", "602 W"}
    assert Sender.objects.get().rejected == 2


def test_of_two_values_in_one_round_the_first_stays():
    place, at = site(), ago(minutes=5)
    brought(place, reading(600.0, at))
    brought(place, reading(601.0, at))
    booked(place)
    assert PowerSample.objects.get().power_w == 600.0
    assert QuarantinedPower.objects.get().reading == "601 W"


@pytest.mark.parametrize(
    ("power_w", "minutes", "reason"),
    [
        (-5.0, 5, "negative"),
        (float("nan"), 5, "not_a_number"),
        (841.0, 5, "above_the_power_limit"),  # 1.2 x 700 W
        (600.0, -60, "in_the_future"),
        (600.0, 60 * 24 * 365 * 40, "before_2010"),
    ],
)
def test_what_cannot_be_true_is_set_aside_with_its_reason(power_w, minutes, reason):
    place = site()
    body = reading(power_w, ago(minutes=minutes))
    brought(
        place, Brought(devices=devices("GPU-1", model="NVIDIA H100 80GB HBM3"), power=body.power)
    )
    assert booked(place).reasons == {reason: 1}
    assert not PowerSample.objects.exists()
    assert QuarantinedPower.objects.get().reason == reason


def test_a_limit_that_only_the_sender_tells_counts_too():
    place = site()
    brought(place, Brought(devices=devices(power_limit_w=300.0), power=reading(361.0).power))
    assert booked(place).reasons == {"above_the_power_limit": 1}


def test_a_device_of_another_site_is_set_aside():
    brought(site("hall-2"), reading())
    booked(site("hall-2"))
    brought(site(), reading(500.0, ago(minutes=3)))
    assert booked(site()).reasons == {"device_of_another_site": 1}
    assert PowerSample.objects.count() == 1


def test_what_the_door_set_aside_is_kept_and_counted():
    place = site()
    aside = SetAside(device_uuid="GPU-9", at=None, reading="inf W", reason="not_a_number")
    brought(place, Brought(set_aside=(aside,), ignored=7, dropped=2))
    assert booked(place).rejected == 1
    sender = Sender.objects.get()
    assert (sender.rows, sender.rejected, sender.ignored, sender.dropped) == (1, 1, 7, 2)
    assert QuarantinedPower.objects.get().start is None


def test_hours_open_back_to_the_reading_before_a_gap():
    place = site()
    before = timezone.now().replace(minute=30, second=0, microsecond=0) - timedelta(hours=9)
    brought(place, Brought(devices=devices(), counters=counters((0, before, 0))))
    booked(place)
    OpenHours.objects.all().delete()
    after = before + timedelta(hours=5)
    brought(place, Brought(devices=devices(), counters=counters((0, after, 10**9))))
    booked(place)
    mark = OpenHours.objects.get()
    assert mark.start <= before
    assert mark.end > after


def test_a_late_reading_opens_the_hours_up_to_its_neighbours():
    place = site()
    first = timezone.now().replace(minute=30, second=0, microsecond=0) - timedelta(hours=9)
    last, late = first + timedelta(hours=6), first + timedelta(hours=3)
    for at in (first, last):
        brought(place, Brought(devices=devices(), counters=counters((0, at, 0))))
        booked(place)
    OpenHours.objects.all().delete()
    brought(place, Brought(devices=devices(), counters=counters((0, late, 0))))
    booked(place)
    mark = OpenHours.objects.get()
    assert mark.start <= first
    assert mark.end >= last


def test_marks_of_the_same_hours_become_one_with_all_devices():
    place, at = site(), ago(minutes=0).replace(minute=30) - timedelta(hours=3)
    for uuid in ("GPU-1", "GPU-2"):
        brought(place, reading(600.0, at, uuid))
        booked(place)
    assert len(OpenHours.objects.get().device_ids) == 2


def test_the_newest_reading_of_a_device_is_at_hand_and_a_late_one_does_not_replace_it():
    place, at = site(), ago(minutes=5)
    body = Brought(
        devices=devices(facts={"energy_scope": "module"}),
        power=power((0, at, 600.0)),
        use=use((0, at, 0.5)),
        jobs=(job(0, at, "moe/run"),),
        power_field="instant",
    )
    brought(place, body)
    brought(place, reading(100.0, at - timedelta(minutes=1)))
    booked(place)
    brought(place, reading(200.0, at - timedelta(minutes=2)))
    booked(place)
    now = DeviceNow.objects.get()
    assert (now.power_w, now.power_field) == (600.0, "instant")
    assert now.use["job"] == {"kind": "slurm", "job": "4711", "run": "moe/run"}
    assert (now.use["utilisation_fraction"], now.use["energy_scope"]) == (0.5, "module")


def test_without_power_the_counter_tells_the_mean_power_now():
    place, at = site(), ago(minutes=5)
    brought(place, Brought(devices=devices(), counters=counters((0, at, 10**9))))
    booked(place)
    later = at + timedelta(seconds=10)
    brought(place, Brought(devices=devices(), counters=counters((0, later, 10**9 + 6_000_000))))
    booked(place)
    now = DeviceNow.objects.get()
    assert (now.power_w, now.power_field) == (600.0, "counter")


def test_power_of_a_node_is_stored_and_opens_the_hours_of_its_devices():
    place, at = site(), ago(hours=3)
    brought(place, Brought(devices=devices(node="n1"), power=reading(600.0, at).power))
    booked(place)
    OpenHours.objects.all().delete()
    nodes = NodeColumns(
        names=("n1",),
        node=np.zeros(2, dtype=np.int32),
        at=np.array([microsecond(at), microsecond(at)], dtype=np.int64),
        meter=np.array([0, 1], dtype=np.int8),
        power_w=np.array([6120.0, 900.0]),
        includes_accelerators=np.array([True, False]),
    )
    for _ in range(2):
        brought(place, Brought(nodes=nodes))
        booked(place)
    meters = set(NodeReading.objects.values_list("meter", "power_w", "includes_accelerators"))
    assert meters == {("bmc", 6120.0, True), ("rapl", 900.0, False)}
    assert OpenHours.objects.get().device_ids == [devices_of(place.site_id)[0].device_id]


def context(place, **more) -> JobContext:
    return JobContext(
        job_id=place.site_id,
        organisation_id=place.organisation_id,
        payload={"site_id": str(place.site_id)},
        **more,
    )


def run_job(place, **more):
    return book_readings_job(context(place, **more))


def test_the_job_books_until_nothing_waits():
    place = site()
    for minute in range(5):
        brought(place, reading(600.0, ago(minutes=minute)))
    assert run_job(place)["stored"] == 5
    assert run_job(place)["bodies"] == 0


def test_a_worker_that_lost_its_job_books_nothing():
    place = site()
    brought(place, reading())

    def taken_over() -> None:
        raise LeaseLost("another worker")

    with pytest.raises(LeaseLost):
        run_job(place, on_assert=taken_over)
    assert IntakeBody.objects.count() == 1
    assert not PowerSample.objects.exists()


def test_a_body_that_cannot_be_read_stays_and_does_not_stop_the_others():
    place = site()
    brought(place, reading(600.0, ago(minutes=5)))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE carbon_intakebody SET body = 'CWB9 of another time'")
    brought(place, reading(600.0, ago(minutes=4)))
    run_job(place)
    assert PowerSample.objects.count() == IntakeBody.objects.count() == 1
    assert "cannot be read" in Sender.objects.get().last_error


def test_a_body_that_no_table_takes_stays_and_does_not_stop_the_others():
    place = site()
    brought(place, reading(600.0, ago(minutes=5), "GPU-1"), sender="good")
    brought(place, reading(600.0, ago(minutes=5), "GPU-" + "x" * 200), sender="bad")
    brought(place, reading(600.0, ago(minutes=4), "GPU-1"), sender="good")
    assert run_job(place)["stored"] == 2
    assert IntakeBody.objects.count() == 1
    assert "cannot be read" in Sender.objects.get(name="bad").last_error
    assert run_job(place)["stored"] == 0


def test_an_instant_beyond_every_calendar_is_set_aside_without_one():
    place = site()
    body = reading()
    far = Brought(devices=body.devices, power=replace(body.power, at=np.array([2**62])))
    brought(place, far)
    assert booked(place).reasons == {"in_the_future": 1}
    assert QuarantinedPower.objects.get().start is None


def test_the_schedule_asks_for_one_job_a_site_however_much_waits():
    for slug in ("hall-1", "hall-2"):
        for minute in range(3):
            brought(site(slug), reading(600.0, ago(minutes=minute), f"GPU-{slug}"))
    assert enqueue_all_waiting() == 2
    assert enqueue_all_waiting() == 2
    assert Job.objects.filter(kind="carbon.book_readings").count() == 2

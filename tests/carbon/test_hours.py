"""Hours from readings of several senders: each second once, gaps said, late data restated."""

from datetime import timedelta

import pytest

from carbon.checks import verify
from carbon.hourly_factors import factors_of_hours
from carbon.models import EnergyHour, QuarantinedPower
from carbon.selectors import emissions_summary
from carbon.services import repost_site
from runs.services import assign_devices, change_device
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
from tests.carbon.reading_builders import (
    HOUR,
    at,
    closed,
    counters,
    device,
    every,
    node_power,
    power,
    sender,
    steady,
    use,
)

pytestmark = pytest.mark.django_db
WATT_HOUR = 3_600_000  # millijoules


def hour_of(device_id, place=0):
    return EnergyHour.objects.get(
        device_id=device_id, hour=START + place * HOUR, superseded_at__isnull=True
    )


def findings():
    return [one for one in verify(organisation().pk) if one.code.startswith("energy")]


def assigned(place, *device_ids):
    moe = project("moe").pk
    assign_devices(
        operator(),
        device_ids=list(device_ids),
        project_id=moe,
        start=START,
        end=START + timedelta(days=1),
    )
    return moe


def test_a_counter_is_measured_where_it_was_read_in_time():
    gpu = device(site())
    counters(site(), gpu, steady(600, every(1)), sender_id=sender(site(), "agent"))
    closed(site())
    row = hour_of(gpu)
    assert (row.measured_millijoule, row.covered_microsecond) == (600 * WATT_HOUR, 3_600_000_000)
    assert (row.spread_millijoule, row.estimated_millijoule, row.reset_millijoule) == (0, 0, 0)
    assert findings() == []


def test_a_counter_across_a_gap_is_spread_over_the_hour_border_and_sums_exactly():
    gpu = device(site())
    counters(site(), gpu, [(0, 0, 1), (40, 0, 1), (100, 1_000_000_001, 1), (101, 1_000_000_001, 1)])
    closed(site())
    first, second = hour_of(gpu), hour_of(gpu, 1)
    assert first.spread_millijoule + second.spread_millijoule == 1_000_000_001
    assert (first.spread_millijoule, second.spread_millijoule) == (333_333_334, 666_666_667)
    assert (first.covered_microsecond, first.estimated_microsecond) == (3_600_000_000, 0)
    assert findings() == []


@pytest.mark.parametrize(
    ("counter", "epoch"), [((9_000_000, 250_000), (1, 1)), ((9_000_000, 9_250_000), (1, 2))]
)
def test_a_reset_or_a_reloaded_driver_counts_from_zero_and_the_rest_is_estimated(counter, epoch):
    gpu = device(site(), model="NVIDIA H100 80GB HBM3")
    since = counter[1]
    before = [(one, counter[0] + round(600 * one * 60_000), 1) for one in every(1, last=29)]
    after = [
        (one, since + round(600 * (one - 30) * 60_000), epoch[1]) for one in every(1, first=30)
    ]
    if epoch[0] == epoch[1]:
        assert after[0][1] < before[-1][1]
    counters(site(), gpu, [*before, *after])
    closed(site())
    row = hour_of(gpu)
    assert row.reset_millijoule == since
    assert row.measured_millijoule == 59 * 600 * 60_000 + since
    assert row.covered_microsecond == 59 * 60_000_000
    assert row.estimated_millijoule == 600 * 60_000 - since
    assert (row.estimate_method, row.estimated_microsecond) == ("own", 60_000_000)
    assert findings() == []


def test_a_counter_that_wraps_never_gives_negative_energy():
    gpu, top = device(site(), model="NVIDIA H100 80GB HBM3"), 2**32
    rows = [
        (0, top - 40_000_000, 0),
        (1, top - 4_000_000, 0),
        (2, 32_000_000, 0),
        (3, 68_000_000, 0),
    ]
    counters(site(), gpu, rows)
    closed(site())
    row = hour_of(gpu)
    assert row.measured_millijoule == 36_000_000 + 32_000_000 + 36_000_000
    assert row.estimated_millijoule == 4_000_000
    assert findings() == []


def test_a_difference_that_no_device_can_draw_is_set_aside_once_and_power_takes_its_place():
    gpu = device(site())
    change_device(operator(), "GPU-0", model="", accelerator_key="", max_power_w=700)
    rows = steady(600, every(1))
    rows = [(minute, value + (10**12 if minute >= 30 else 0), 1) for minute, value, _ in rows]
    counters(site(), gpu, rows, sender_id=sender(site(), "agent"))
    power(site(), gpu, [(one, 500) for one in every(1)], sender_id=sender(site(), "agent"))
    closed(site())
    repost_site(site(), now=NOW)
    row = hour_of(gpu)
    assert row.integrated_millijoule == 500 * 60_000
    assert row.measured_millijoule == 59 * 600 * 60_000 + 500 * 60_000
    aside = QuarantinedPower.objects.get()
    assert (aside.reason, aside.start, aside.end) == (
        "counter_above_the_power_limit",
        at(29),
        at(30),
    )
    assert findings() == []


def test_two_senders_and_a_file_of_one_device_count_once(tmp_path):
    place = site()
    gpu = device(place, "GPU-0000")
    counters(place, gpu, steady(600, every(1, last=40)), sender_id=sender(place, "agent"))
    minutes = [one + 0.25 for one in every(0.5, last=49)]
    counters(place, gpu, steady(630, minutes, base=7), sender_id=sender(place, "remote_write"))
    power(place, gpu, [(one, 900) for one in every(1)], sender_id=sender(place, "promql"))
    imported(write_csv(tmp_path / "f.csv", SAMPLES, samples(power_w=1_000)))
    row = hour_of(gpu)
    agent, remote = 40 * 600 * 60_000, round(9.25 * 630 * 60_000)
    pulled = round((60 - 49.25) * 900 * 60_000)
    assert row.covered_microsecond == 3_600_000_000
    assert row.measured_millijoule == agent + remote + pulled
    assert row.integrated_millijoule == pulled
    assert findings() == []


def test_intervals_count_before_power_and_after_counters(tmp_path):
    place = site()
    gpu = device(place, "GPU-0000")
    counters(place, gpu, steady(600, every(1, last=20)), sender_id=sender(place, "promql"))
    power(place, gpu, [(one, 900) for one in every(1)], sender_id=sender(place, "agent"))
    rows = [interval(at(10), at(40), 30 * 60_000 * 700)]
    imported(write_csv(tmp_path / "i.csv", INTERVALS, rows))
    row = hour_of(gpu)
    assert row.measured_millijoule == 60_000 * (20 * 600 + 20 * 700 + 20 * 900)
    assert findings() == []


def test_an_outage_is_estimated_by_the_run_and_does_not_count_as_covered():
    place = site()
    one, other = device(place, "GPU-0"), device(place, "GPU-1")
    moe = assigned(place, one, other)
    power(place, one, [(minute, 600) for minute in every(1, last=120)])
    power(
        place,
        other,
        [(minute, 400) for minute in (*every(1, last=10), *every(1, first=50, last=120))],
    )
    closed(place)
    row = hour_of(other)
    mean_w = (600 * 60 + 400 * 20) / 80
    assert row.estimate_method == "run"
    assert row.estimated_millijoule == round(mean_w * 40 * 60_000)
    assert (row.covered_microsecond, row.estimated_microsecond) == (1_200_000_000, 2_400_000_000)
    mine = emissions_summary(organisation().pk, moe)
    assert mine.coverage_fraction == pytest.approx(200 / 240)
    assert mine.estimated_fraction == pytest.approx(
        row.estimated_millijoule / (60_000 * (600 * 120 + 400 * 80) + row.estimated_millijoule)
    )
    assert findings() == []


def test_a_device_without_a_run_is_estimated_by_itself_and_else_by_its_model():
    place = site()
    model = "NVIDIA H100 80GB HBM3"
    one, other = (device(place, f"GPU-{number}", model=model) for number in range(2))
    power(place, one, [(minute, 600) for minute in every(1, last=60)])
    power(place, one, [(minute, 600) for minute in every(1, first=61, last=65)])
    power(place, one, [(minute, 600) for minute in every(1, first=75, last=120)])
    power(place, other, [(minute, 300) for minute in (0, 1, 118, 119, 120)])
    closed(place)
    own = hour_of(one, 1)
    assert (own.estimate_method, own.estimated_millijoule) == ("own", 10 * 600 * 60_000)
    row = hour_of(other)
    assert (row.estimate_method, row.estimated_microsecond) == ("model", 59 * 60_000_000)
    assert row.estimated_millijoule == round((600 * 60 + 300) / 61 * 59 * 60_000)
    assert findings() == []


def test_a_device_without_run_and_model_is_never_filled():
    gpu = device(site())
    power(site(), gpu, [(minute, 600) for minute in (*every(1, last=25), *every(1, first=35))])
    closed(site())
    row = hour_of(gpu)
    assert (row.measured_millijoule, row.estimated_millijoule) == (50 * 600 * 60_000, 0)
    assert findings() == []


def test_what_nothing_is_like_is_estimated_by_its_use_or_stays_missing():
    place = site()
    busy, silent = device(place, "GPU-0"), device(place, "GPU-1")
    for uuid in ("GPU-0", "GPU-1"):
        change_device(operator(), uuid, model="", accelerator_key="", max_power_w=700)
    for gpu in (busy, silent):
        power(place, gpu, [(minute, 300) for minute in (0, 1, 59, 60)])
    use(place, busy, [(10, 0.5), (20, 0.7)])
    closed(place)
    row = hour_of(busy)
    assert (row.estimate_method, row.estimated_millijoule) == ("use", 58 * 60_000 * 420)
    row = hour_of(silent)
    assert (row.estimate_method, row.estimated_millijoule, row.estimated_microsecond) == ("", 0, 0)
    assert findings() == []


def test_a_node_that_fell_silent_is_estimated_by_its_run_until_the_site_was_last_seen():
    place = site()
    one, other = device(place, "GPU-0"), device(place, "GPU-1")
    assigned(place, one, other)
    power(place, one, [(minute, 600) for minute in every(1, last=60 * 3)])
    power(place, other, [(minute, 600) for minute in every(1, last=30)])
    closed(place)
    assert [hour_of(other, place_).estimated_millijoule for place_ in range(2)] == [
        30 * 60 * 600_000,
        60 * 60 * 600_000,
    ]
    assert not EnergyHour.objects.filter(device_id=other, hour=START + 2 * HOUR).exists()
    assert findings() == []
    power(place, one, [(minute, 600) for minute in every(1, first=181, last=240)])
    closed(place)
    assert hour_of(other, 2).estimated_millijoule == 60 * 60 * 600_000
    assert findings() == []


def test_late_readings_replace_what_was_estimated_by_a_new_version():
    place = site()
    one, other = device(place, "GPU-0"), device(place, "GPU-1")
    assigned(place, one, other)
    power(place, one, [(minute, 600) for minute in every(1, last=120)])
    power(place, other, [(minute, 400) for minute in every(1, last=10)])
    power(place, other, [(minute, 400) for minute in every(1, first=110, last=120)])
    closed(place)
    assert hour_of(other).estimated_microsecond == 50 * 60_000_000
    power(place, other, [(minute, 400) for minute in every(1, first=11, last=109)])
    closed(place, NOW + HOUR)
    row = hour_of(other)
    assert (row.version, row.estimated_millijoule, row.estimate_method) == (2, 0, "")
    assert row.measured_millijoule == 400 * WATT_HOUR
    assert findings() == []


def test_late_readings_of_one_device_move_the_estimates_of_another():
    place = site()
    one, other, third = (device(place, f"GPU-{number}") for number in range(3))
    assigned(place, one, other, third)
    power(place, one, [(minute, 600) for minute in every(1, last=120)])
    power(
        place,
        other,
        [(minute, 600) for minute in (*every(1, last=30), *every(1, first=60, last=120))],
    )
    closed(place)
    before = hour_of(other).estimated_millijoule
    power(place, third, [(minute, 60) for minute in every(1, last=120)])
    closed(place)
    assert hour_of(other).estimated_millijoule < before
    assert findings() == []


def test_a_counter_that_comes_back_closes_the_hours_of_its_silence_again():
    place = site()
    gpu = device(place)
    counters(place, gpu, steady(600, every(1, last=30)))
    closed(place)
    counters(place, gpu, steady(600, every(1, first=600, last=630)))
    closed(place)
    assert hour_of(gpu, 5).spread_millijoule == 600 * WATT_HOUR
    assert hour_of(gpu).covered_microsecond == 3_600_000_000
    assert findings() == []


def test_a_counter_off_the_power_by_more_than_a_twentieth_is_noted():
    place = site()
    good, bad = device(place, "GPU-0"), device(place, "GPU-1")
    for gpu, power_w in ((good, 590), (bad, 327)):
        base = 600 if gpu == good else 187
        counters(place, gpu, steady(base, every(1)), sender_id=sender(place, "agent"))
        power(place, gpu, [(one, power_w) for one in every(1)], sender_id=sender(place, "agent"))
    closed(place)
    assert hour_of(good).divergence_fraction == pytest.approx(600 / 590 - 1)
    assert hour_of(bad).divergence_fraction == pytest.approx(187 / 327 - 1)
    assert hour_of(bad).measured_millijoule == 187 * WATT_HOUR
    assert findings() == []


def eight_gpus(place, node="node-1", power_w=700.0, last=60):
    gpus = [device(place, f"{node}-{number}", node=node) for number in range(8)]
    for gpu in gpus:
        power(place, gpu, [(minute, power_w) for minute in every(1, last=last)])
    return gpus


def measured(place, hours=1):
    return factors_of_hours(place.site_id, "host_factor", START, START + hours * HOUR)


def test_a_node_whose_meter_sees_its_gpus_gives_the_host_factor_of_the_hour():
    place = site()
    eight_gpus(place)
    node_power(place, "node-1", [(minute, 8_400) for minute in every(1)])
    node_power(
        place, "node-1", [(minute, 900) for minute in every(1)], meter="rapl", includes=False
    )
    closed(place)
    (found,) = measured(place)
    assert (found.value, found.tier, found.level) == (pytest.approx(1.5), "measured", "hour")
    assert (found.numerator, found.denominator) == (pytest.approx(8.4), pytest.approx(5.6))


def test_rapl_is_added_to_the_gpus_and_only_a_lower_bound():
    place = site()
    eight_gpus(place)
    node_power(
        place, "node-1", [(minute, 1_120) for minute in every(1)], meter="rapl", includes=False
    )
    closed(place)
    (found,) = measured(place)
    assert (found.value, found.tier) == (pytest.approx(1.2), "estimated")
    assert "lower bound" in found.source


def test_a_node_seen_for_less_than_nine_tenths_of_the_hour_measures_nothing():
    place = site()
    eight_gpus(place)
    node_power(place, "node-1", [(minute, 8_400) for minute in every(1, last=50)])
    closed(place)
    assert measured(place) == []


def test_a_node_with_an_unseen_gpu_measures_nothing():
    place = site()
    eight_gpus(place)
    device(place, "silent", node="node-1")
    node_power(place, "node-1", [(minute, 8_400) for minute in every(1)])
    closed(place)
    assert measured(place) == []


def test_late_power_of_a_node_gives_its_hour_a_new_factor_and_keeps_the_old():
    place = site()
    eight_gpus(place)
    factor(place, "grid_g_per_kwh", 400)
    node_power(place, "node-1", [(minute, 8_400) for minute in every(1)])
    closed(place)
    eight_gpus(place, node="node-2")
    node_power(place, "node-2", [(minute, 9_520) for minute in every(1)])
    closed(place)
    (found,) = measured(place)
    assert found.value == pytest.approx((8.4 + 9.52) / 11.2)
    assert findings() == []

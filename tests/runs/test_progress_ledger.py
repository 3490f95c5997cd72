"""Every allocated device-second of a run lies in one bucket, and the buckets sum."""

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulae.time_ledger import Bucket
from runs.models import Run
from runs.progress_records import EventKind
from runs.progress_selectors import ledger_by_hour
from runs.progress_summing import sum_stale_days
from tests.builders import organisation
from tests.runs.builders import DAY, HOUR, MINUTE, T0, assign, event, make_run, record, steps

pytestmark = pytest.mark.django_db
NOW = T0 + 10 * DAY
HOUR_US = 3_600_000_000


def ledger(run, start=T0, end=T0 + HOUR, **wish):
    return ledger_by_hour(organisation().pk, run.project_id, start, end, **wish)


def spent(hours):
    """Device-hours by bucket, those without any left out."""
    whole = {}
    for hour in hours:
        for bucket, amount in hour.device_microseconds.items():
            if amount:
                whole[bucket] = whole.get(bucket, 0) + amount
    return {bucket: amount / HOUR_US for bucket, amount in whole.items()}


def test_steps_make_time_productive():
    run = make_run()
    assign(run, T0, None)
    record(run, steps(0, 720, at=T0, every=6), now=NOW)
    assert spent(ledger(run)) == {Bucket.PRODUCTIVE: 8}


def test_time_of_which_nothing_is_told_is_unknown():
    run = make_run()
    assign(run, T0, None)
    assert spent(ledger(run)) == {Bucket.UNKNOWN: 8}


def test_devices_without_a_run_are_unknown_and_no_run_s():
    run = make_run()
    assign(run, T0, None)
    other = make_run("other")
    assert ledger(other, run_id=other.run_id) == []


def test_a_lost_cluster_hour_after_a_stop_is_down_until_the_restart():
    run = make_run()
    assign(run, T0, None)
    told = [
        event(EventKind.STOP, T0 + HOUR),
        event(EventKind.RESTART, T0 + 2 * HOUR, to_step=360, duration_s=600),
    ]
    again = steps(366, 720, at=T0 + 2 * HOUR + 11 * MINUTE, every=6)
    record(run, [*steps(0, 360, at=T0, every=6), *again], told, now=NOW)
    found = spent(ledger(run, end=T0 + 3 * HOUR))
    assert found[Bucket.DOWN] == 8
    assert found[Bucket.STARTUP] == pytest.approx(8 / 6)
    assert found[Bucket.PRODUCTIVE] == pytest.approx(8 + 8 * 50 / 60)
    assert sum(found.values()) == pytest.approx(24)


def test_what_a_rollback_throws_away_is_rework_in_the_hours_it_was_done():
    run = make_run()
    assign(run, T0, None)
    told = [event(EventKind.ROLLBACK, T0 + 2 * HOUR, to_step=540)]
    again = steps(546, 900, at=T0 + 2 * HOUR + MINUTE, every=6)
    record(run, [*steps(0, 720, at=T0, every=6), *again], told, now=NOW)
    sum_stale_days(run.run_id)
    first, second = ledger(run, end=T0 + 2 * HOUR)
    assert Bucket.REWORK not in {b for b, a in first.device_microseconds.items() if a}
    assert second.device_microseconds[Bucket.REWORK] == 4 * HOUR_US  # half an hour of eight


def test_a_loader_above_its_share_is_a_data_stall():
    run = make_run()
    assign(run, T0, None)
    # telemetry's check: a step of 1.8 s with 0.36 s in the loader, 10 % of the step too much
    points = steps(0, 2000, at=T0, every=100, step_s=1.8, data_s=0.36)
    record(run, points, now=NOW)
    found = spent(ledger(run))
    assert found[Bucket.DATA_STALL] == pytest.approx(0.8)
    assert found[Bucket.PRODUCTIVE] == pytest.approx(7.2)


def test_steps_slower_than_usual_are_slow_by_their_excess():
    run = make_run()
    assign(run, T0, None)
    usual = steps(0, 8640, at=T0, every=6)
    slow = steps(8646, 9000, at=T0 + DAY + timedelta(seconds=110), every=6, step_s=11 / 7 * 10)
    record(run, [*usual, *slow], now=NOW)
    found = spent(ledger(run, T0 + DAY, T0 + DAY + HOUR))
    in_steps = found[Bucket.SLOW] + found[Bucket.PRODUCTIVE]
    assert found[Bucket.SLOW] / in_steps == pytest.approx(1 - 7 / 11, rel=1e-6)


def test_one_per_cent_of_steps_at_twice_the_time_is_one_per_cent_slow():
    run = make_run()
    assign(run, T0, None)
    mixed = (99 * 1.8 + 3.6) / 100  # each point is the mean of a hundred steps
    record(run, steps(0, 20_000, at=T0 - DAY, every=100, step_s=1.8), now=NOW)
    record(run, steps(20_100, 22_100, at=T0, every=100, step_s=mixed), now=NOW)
    found = spent(ledger(run))
    assert found[Bucket.SLOW] / sum(found.values()) == pytest.approx(0.01, rel=0.02)


def test_checkpoints_that_hold_up_training_are_their_own():
    run = make_run()
    assign(run, T0, None)
    points = steps(0, 345, at=T0, every=345)
    last = steps(345, 345, at=T0 + HOUR, checkpoint_s=150.0)
    record(run, [points[0], *last], now=NOW)
    found = spent(ledger(run))
    assert found[Bucket.CHECKPOINT] == pytest.approx(8 * 150 / 3600)
    assert found[Bucket.PRODUCTIVE] == pytest.approx(8 * 3450 / 3600)


def test_devices_that_come_later_share_the_hour_from_then_on():
    run = make_run()
    assign(run, T0 + 30 * MINUTE, T0 + 45 * MINUTE)
    record(run, steps(0, 720, at=T0, every=6), now=NOW)
    (hour,) = ledger(run)
    assert hour.hour == T0
    assert sum(hour.device_microseconds.values()) == 2 * HOUR_US


def test_after_the_last_stop_devices_are_idle():
    run = make_run()
    assign(run, T0, None)
    record(run, steps(0, 180, at=T0, every=6), [event(EventKind.STOP, T0 + 30 * MINUTE)], now=NOW)
    assert spent(ledger(run)) == {Bucket.PRODUCTIVE: 4, Bucket.IDLE: 4}


MINUTES = st.integers(min_value=0, max_value=600)
TOLD = st.lists(
    st.tuples(
        MINUTES,
        st.sampled_from(EventKind),
        st.one_of(st.none(), st.integers(0, 3000)),
        st.one_of(st.none(), st.integers(0, 7200)),
    ),
    max_size=6,
)
POINTS = st.lists(
    st.tuples(
        MINUTES,
        st.integers(0, 4000),
        st.one_of(st.none(), st.floats(0.1, 100)),
        st.one_of(st.none(), st.floats(0, 2000)),
        st.one_of(st.none(), st.floats(0, 100)),
    ),
    max_size=12,
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(points=POINTS, told=TOLD, begun=MINUTES, lasts=st.integers(1, 600))
def test_buckets_sum_to_what_was_allocated_whatever_is_reported(points, told, begun, lasts):
    run = make_run(f"run-{Run.objects.count()}")
    start = T0 + begun * MINUTE
    end = start + lasts * MINUTE
    assign(run, start, end, devices=2, named=run.slug)
    record(
        run,
        [
            point
            for minute, step, step_s, held, data in points
            for point in steps(
                step,
                step,
                at=T0 + minute * MINUTE,
                step_time_s=step_s,
                checkpoint_s=held,
                data_s=data,
            )
        ],
        [
            event(kind, T0 + minute * MINUTE, to_step=to_step, duration_s=duration)
            for minute, kind, to_step, duration in told
        ],
        now=NOW,
    )
    hours = ledger(run, T0, T0 + DAY, run_id=run.run_id)
    allocated = 2 * lasts * 60_000_000
    found = [amount for hour in hours for amount in hour.device_microseconds.values()]
    assert min(found) >= 0
    assert sum(found) == allocated


def test_a_step_that_a_scraper_sees_several_times_is_one_step():
    run = make_run()
    assign(run, T0, None)
    seen = [
        point
        for step in range(61)
        for repeat in range(4)
        for point in steps(
            step, step, at=T0 + step * MINUTE + repeat * timedelta(seconds=15), step_s=60.0
        )
    ]
    record(run, seen, now=NOW)
    assert spent(ledger(run)) == {Bucket.PRODUCTIVE: 8}

"""What a run reports is kept once, in any order; days, tokens and utilisation follow from it."""

import itertools
import math
from dataclasses import replace
from datetime import timedelta

import pytest

from audit.models import AuditEntry
from jobs.models import Job
from runs.models import RunDay, StepReading
from runs.progress_records import EventKind
from runs.progress_selectors import (
    events_of,
    latest_of,
    mfu_basis,
    progress_by_day,
    tokens_by,
)
from runs.progress_summing import sum_stale_days
from runs.services import save_run
from tests.carbon.builders import operator
from tests.runs.builders import (
    DAY,
    HOUR,
    MINUTE,
    STEP_S,
    T0,
    TOKENS_PER_STEP,
    assign,
    event,
    make_run,
    record,
    steps,
)

pytestmark = pytest.mark.django_db
NOW = T0 + 10 * DAY


def days(run, count=3, **wish):
    first = T0.date()
    return progress_by_day(
        run.project_id, start_on=first, end_on=first + timedelta(days=count), **wish
    )


def test_a_delivery_may_come_twice_and_changes_nothing():
    run = make_run()
    points = steps(0, 600, at=T0)
    told = [event(EventKind.START, T0)]
    first = record(run, points, told, now=NOW)
    again = record(run, points, told, now=NOW)
    assert (first.points_new, first.points_known, first.events_new) == (11, 0, 1)
    assert (again.points_new, again.points_known, again.events_new) == (0, 11, 0)
    assert StepReading.objects.count() == 11


def test_what_came_first_stays():
    run = make_run()
    record(run, steps(60, 60, at=T0, loss=2.0), now=NOW)
    assert record(run, steps(60, 60, at=T0, loss=9.0), now=NOW).points_known == 1
    assert StepReading.objects.get().loss == 2.0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("at", NOW + 6 * MINUTE),
        ("at", T0.replace(year=1970)),
        ("at", T0.replace(tzinfo=None)),
        ("step", -1),
        ("tokens_total", 2**63),
        ("step_time_s", 0.0),
        ("step_time_s", math.nan),
        ("world_size", 0),
        ("data_s", -0.1),
        ("reported_mfu_fraction", 42.0),
        ("learning_rate", math.inf),
        ("data_shard", "x" * 201),
    ],
)
def test_an_impossible_point_is_named_and_the_others_are_kept(field, value):
    run = make_run()
    good, bad = steps(0, 60, at=T0)
    found = record(run, [good, replace(bad, **{field: value})], now=NOW)
    assert [(one.index, one.field) for one in found.refused] == [(1, field)]
    assert found.points_new == 1


def test_a_loss_that_is_no_number_is_kept():
    run = make_run()
    record(run, steps(0, 0, at=T0, loss=math.nan, grad_norm=math.inf), now=NOW)
    sum_stale_days(run.run_id)
    assert math.isnan(days(run)[0].loss)


def test_a_rollback_that_names_no_step_is_told_by_the_steps_that_fall():
    run = make_run()
    back = event(EventKind.ROLLBACK, T0 + 4 * HOUR + MINUTE)
    points = [*steps(0, 1440, at=T0), *steps(1080, 1440, at=T0 + 5 * HOUR)]
    assert record(run, points, [back], now=NOW).events_new == 1
    assert days(run)[0].rework_tokens == 360 * TOKENS_PER_STEP


def test_an_impossible_event_is_named():
    found = record(make_run(), [], [event(EventKind.STOP, T0, to_step=-1)], now=NOW)
    assert [one.field for one in found.refused] == ["events.to_step"]


def test_the_trail_says_who_began_to_report():
    run = make_run()
    record(run, steps(0, 60, at=T0), now=NOW)
    record(run, steps(120, 180, at=T0 + HOUR), now=NOW)
    assert AuditEntry.objects.filter(action="run.source_added").count() == 1


def test_a_delivery_asks_for_the_sums_of_its_run_once():
    run = make_run()
    record(run, steps(0, 60, at=T0), now=NOW)
    record(run, steps(120, 180, at=T0 + HOUR), now=NOW)
    assert Job.objects.filter(kind="runs.sum_progress").count() == 1


def test_a_day_is_what_was_added_to_the_tokens():
    run = make_run()
    record(run, steps(0, 8640 * 2, at=T0), now=NOW)  # two whole days of steps of 10 s
    first, second = days(run)[:2]
    assert first.tokens == 8580 * TOKENS_PER_STEP  # midnight's own point is the next day's
    assert second.last_tokens_total == 17_220 * TOKENS_PER_STEP
    assert second.tokens == 8640 * TOKENS_PER_STEP
    assert (first.step_time_p50_s, first.rework_tokens) == (STEP_S, 0)


def test_a_day_sums_alike_before_and_after_its_sums_are_kept():
    run = make_run()
    assign(run, T0, T0 + 3 * DAY)
    record(run, steps(0, 8640, at=T0), [event(EventKind.START, T0)], now=NOW)
    fresh = days(run)
    assert sum_stale_days(run.run_id) == 2
    assert not RunDay.objects.filter(is_stale=True).exists()
    assert days(run) == fresh


def test_percentiles_stand_beside_the_mean():
    run = make_run()
    slow = steps(6000, 6000, at=T0 + 20 * HOUR, step_s=30.0)
    record(run, [*steps(0, 5940, at=T0), *slow], now=NOW)
    day = days(run)[0]
    assert (day.step_time_p50_s, day.step_time_p90_s) == (10.0, 10.0)
    assert day.step_time_p99_s == pytest.approx(10.0, abs=0.5)
    assert day.step_time_mean_s == pytest.approx(10 + 20 / 101)


def test_a_rollback_takes_back_what_it_throws_away():
    run = make_run()
    back = event(EventKind.ROLLBACK, T0 + 4 * HOUR, step=1440, to_step=1080)
    record(run, steps(0, 1440, at=T0), [back], now=NOW)
    assert tokens_by(run.run_id, T0 + 3 * HOUR) == 1080 * TOKENS_PER_STEP - 60 * TOKENS_PER_STEP
    assert tokens_by(run.run_id, T0 + 5 * HOUR) == 1080 * TOKENS_PER_STEP
    day = days(run)[0]
    assert (day.tokens, day.rework_tokens) == (
        1080 * TOKENS_PER_STEP,
        360 * TOKENS_PER_STEP,
    )


def test_steps_that_fall_without_an_event_are_a_step_back_too():
    run = make_run()
    record(run, steps(0, 1440, at=T0), now=NOW)
    record(run, steps(1080, 1980, at=T0 + 5 * HOUR), now=NOW)
    day = days(run)[0]
    assert day.rework_tokens == 360 * TOKENS_PER_STEP
    assert day.tokens == day.last_tokens_total == 1980 * TOKENS_PER_STEP


def test_a_rollback_over_midnight_lowers_its_own_day_only():
    run = make_run()
    at = T0 + DAY + HOUR
    points = [*steps(0, 9000, at=T0), *steps(4060, 8020, at=at + 10 * MINUTE)]
    record(run, points, [event(EventKind.ROLLBACK, at, to_step=4000)], now=NOW)
    first, second = days(run)
    assert first.tokens == 8580 * TOKENS_PER_STEP
    assert second.rework_tokens == 5000 * TOKENS_PER_STEP
    assert first.tokens + second.tokens == second.last_tokens_total


def test_tokens_come_from_steps_where_the_log_does_not_tell_them():
    run = make_run(tokens_per_step=TOKENS_PER_STEP)
    record(run, steps(0, 600, at=T0, tokens_total=None), now=NOW)
    assert days(run)[0].tokens == 600 * TOKENS_PER_STEP
    assert tokens_by(run.run_id, T0 + DAY) == 600 * TOKENS_PER_STEP
    bare = save_run(operator(), replace(run, tokens_per_step=None))
    assert days(bare)[0].tokens is None


def test_what_was_trained_before_the_first_report_is_of_no_day():
    run = make_run()
    record(run, steps(100_000, 100_600, at=T0 + HOUR), now=NOW)
    day = days(run)[0]
    assert day.tokens == 600 * TOKENS_PER_STEP
    assert day.last_tokens_total == 100_600 * TOKENS_PER_STEP


def test_progress_is_shown_as_it_was_known():
    run = make_run()
    record(run, steps(0, 600, at=T0), now=T0 + 2 * HOUR)
    record(run, steps(660, 1200, at=T0 + 2 * HOUR), now=T0 + 4 * HOUR)
    sum_stale_days(run.run_id)
    assert days(run, as_of=T0 + HOUR) == []
    assert days(run, as_of=T0 + 3 * HOUR)[0].last_step == 600
    assert days(run)[0].last_step == 1200


def test_two_sources_of_one_run_count_once():
    run = make_run()
    record(run, steps(0, 1440, at=T0), now=NOW, source="tail")
    behind = steps(0, 1440, at=T0 + timedelta(seconds=3), every=10)
    record(run, behind, now=NOW, source="helper")
    day = days(run)[0]
    assert (day.steps, day.rework_tokens) == (1440, 0)


def test_another_node_speaks_for_the_run_after_the_first_falls_silent():
    run = make_run()
    record(run, steps(0, 720, at=T0), now=NOW, source="node-1")
    record(run, steps(360, 1440, at=T0 + 3 * HOUR), now=NOW, source="node-2")
    day = days(run)[0]
    assert day.rework_tokens == 360 * TOKENS_PER_STEP
    assert day.last_step == 1440


def test_days_are_the_same_in_whatever_order_deliveries_come():
    deliveries = [
        (steps(0, 9000, at=T0, every=900), []),
        (steps(6000, 12_000, at=T0 + DAY + 2 * HOUR, every=600), []),
        ([], [event(EventKind.ROLLBACK, T0 + DAY + HOUR, to_step=6000)]),
        (steps(11_000, 15_000, at=T0 + 2 * DAY, every=1000), []),
    ]
    found = []
    for number, order in enumerate(list(itertools.permutations(deliveries))[::3]):
        run = make_run(f"run-{number}")
        for points, events in order:
            record(run, points, events, now=NOW)
            sum_stale_days(run.run_id)
        found.append([replace(day, run_id=None) for day in days(run, run_id=run.run_id)])
    assert len(found[0]) == 3
    assert all(one == found[0] for one in found)


def test_utilisation_is_measured_against_the_dense_peak_by_name():
    basis = mfu_basis(make_run())
    assert basis.peak_flop_per_s == 989.4e12
    assert "BF16 dense, 989.4 TFLOP/s" in basis.denominator
    assert basis.flop_per_token == 6e9
    assert basis.flop_basis == "6N, N = 1B active parameters"


def test_a_told_flop_of_a_token_stands_above_6n():
    assert mfu_basis(make_run(flop_per_token=7e9)).flop_per_token == 7e9


def test_without_size_or_accelerator_there_is_no_utilisation():
    assert mfu_basis(make_run(parameters_active=None)) is None
    assert mfu_basis(make_run("x", accelerator_key="abacus")) is None


def test_utilisation_of_a_day_counts_all_allocated_time():
    run = make_run()
    assign(run, T0, T0 + 2 * HOUR)
    record(run, steps(0, 360, at=T0, every=6), now=NOW)  # one hour of work
    day = days(run)[0]
    in_steps = TOKENS_PER_STEP * 6e9 / (STEP_S * 8 * 989.4e12)
    assert day.step_mfu_fraction == pytest.approx(in_steps)
    assert day.allocated_device_s == 8 * 7200
    assert day.mfu_fraction == pytest.approx(in_steps / 2)


def test_events_are_told_in_order_with_their_run():
    run = make_run()
    record(run, [], [event(EventKind.STOP, T0 + HOUR), event(EventKind.START, T0)], now=NOW)
    found = events_of(run.project_id, T0, T0 + DAY)
    assert [(one.slug, told.kind) for one, told in found] == [("main", "start"), ("main", "stop")]


def test_a_run_that_should_have_spoken_is_silent():
    run = make_run()
    record(run, steps(0, 600, at=T0), now=NOW)
    (soon,) = latest_of(run.project_id, as_of=T0 + 105 * MINUTE)
    (late,) = latest_of(run.project_id, as_of=T0 + 120 * MINUTE)
    assert (soon.step, soon.is_silent, late.is_silent) == (600, False, True)
    assert soon.mfu_fraction == pytest.approx(TOKENS_PER_STEP * 6e9 / (80 * 989.4e12))


def test_a_run_without_progress_is_shown_as_such():
    run = make_run()
    (now,) = latest_of(run.project_id)
    assert (now.at, now.is_silent) == (None, False)
    assert days(run) == []
    assert tokens_by(run.run_id, NOW) is None

"""What the demo's runs report agrees with its story."""

from datetime import timedelta
from itertools import pairwise

import pytest

from costwatch.demo import story
from costwatch.demo.progress import build_progress, by_day
from formulae.compute import training_flop
from runs.progress_records import EventKind


@pytest.fixture(scope="module")
def runs():
    return build_progress(7)


def test_a_seed_gives_the_same_reports_again(runs):
    again = build_progress(7)
    assert [one.points for one in again] == [one.points for one in runs]
    assert build_progress(8)[1].points != runs[1].points


def test_points_rise_but_for_the_rollback_and_the_restart(runs):
    main = runs[1].points
    falls = [after.at for before, after in pairwise(main) if after.step < before.step]
    ends = [story.ROLLBACK_AT, story.RESTART_END]
    assert falls == [end + timedelta(minutes=15, seconds=-1) for end in ends]


def test_nothing_is_reported_while_the_fleet_waits(runs):
    assert not [one for one in runs[1].points if story.RESTART_START < one.at < story.RESTART_END]


def test_the_slow_week_waits_for_data_and_the_others_do_not(runs):
    for point in runs[1].points:
        is_slow = story.is_slow(point.at)
        assert (point.data_s / point.step_time_s > 0.3) == is_slow


def test_the_run_falls_short_of_its_plan(runs):
    last = runs[1].points[-1]
    seconds = (story.AS_OF - story.MAIN_RUN_START).total_seconds()
    flop = training_flop(story.ACTIVE_PARAMETERS, last.tokens_total)
    peak = story.ACCELERATOR_COUNT * story.H100_DENSE_BF16_FLOP_PER_S
    reached = flop / (peak * seconds)
    assert 0.8 < reached / (story.PLANNED_MFU * story.PLANNED_GOODPUT_FRACTION) < 1


def test_each_event_of_the_story_is_told(runs):
    told = {event.kind for event in runs[1].events}
    assert told >= {
        EventKind.START,
        EventKind.CHECKPOINT,
        EventKind.ROLLBACK,
        EventKind.STOP,
        EventKind.RESTART,
    }


def test_a_day_is_known_when_it_is_over(runs):
    for run in runs:
        for known_at, (points, events) in by_day(run).items():
            assert all(one.at <= known_at for one in (*points, *events))

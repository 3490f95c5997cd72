"""A real worker: what is asked for is done, progress is seen, poison stops after three tries."""

import pytest

from tests.jobs.builders import ask
from tests.jobs.conftest import is_over, wait_for

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]


def test_a_committed_wish_is_rung_and_done(worker):
    job = wait_for(ask("count"), is_over, ring=False)
    assert (job.state, job.result, job.attempts) == ("succeeded", {"rows": 3}, 1)
    assert (job.rows_done, job.rows_total) == (3, 3)


def test_progress_is_seen_while_the_job_runs(worker):
    job = wait_for(ask("count", rows=8, pause_s=0.2), lambda job: 0 < job.rows_done < 8)
    assert job.state == "running"
    assert job.message == "counting"
    wait_for(job, is_over)


def test_a_job_that_kills_its_worker_stops_after_three_tries_and_the_others_finish(worker):
    poison, other = ask("kill_itself"), ask("count")
    poison = wait_for(poison, is_over)
    assert (poison.state, poison.attempts) == ("failed", 3)
    assert "SIGKILL" in poison.error or "it was killed" in poison.error
    assert wait_for(other, is_over).state == "succeeded"


def test_a_job_without_end_stops_after_three_tries(worker):
    job = wait_for(ask("never_end"), is_over, timeout_s=40)
    assert (job.state, job.attempts) == ("failed", 3)
    assert "ran longer than 2 s" in job.error


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("raise_always", "RuntimeError: the disk is on fire"), ("run_out_of_memory", "MemoryError")],
)
def test_a_job_that_fails_each_time_stops_after_three_tries_and_says_why(worker, kind, reason):
    job = wait_for(ask(kind), is_over)
    assert (job.state, job.attempts) == ("failed", 3)
    assert job.error == f"Stopped after 3 attempts. The last one: {reason}"

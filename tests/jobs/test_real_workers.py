"""Real workers, really killed: no work is lost, nothing is published twice, poison stops."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.db import transaction

from audit.models import AuditEntry
from jobs.models import Job, Outbox
from jobs.outbox import post
from jobs.services import enqueue
from tests import builders
from tests.jobs.conftest import REPOSITORY, is_over, running_worker, wait_for, worker_environment

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]


def ask(kind: str, **payload) -> Job:
    return enqueue(
        organisation_id=builders.organisation().pk,
        kind=f"tests.{kind}",
        scope="organisation",
        payload=payload,
    )


def wait_for_file(path: Path, timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.05)


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
    assert "SIGKILL" in poison.error
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


def test_a_worker_killed_in_the_middle_loses_nothing(tmp_path, worker_log_folder):
    started = tmp_path / "started"
    with running_worker(worker_log_folder) as worker:
        job = ask("publish_after_pause", started=str(started), pause_s=1.5)
        wait_for_file(started)
        worker.kill_all()
    assert AuditEntry.objects.filter(action="published").count() == 0
    with running_worker(worker_log_folder):
        job = wait_for(job, is_over)
    assert (job.state, job.attempts, job.result) == ("succeeded", 2, {"attempt": 2})
    assert AuditEntry.objects.filter(action="published").count() == 1


def test_a_killed_parent_with_orphans_publishes_once_all_the_same(tmp_path, worker_log_folder):
    started = tmp_path / "started"
    with running_worker(worker_log_folder) as worker:
        job = ask("publish_after_pause", started=str(started), pause_s=1.5)
        wait_for_file(started)
        worker.kill_parent()
    with running_worker(worker_log_folder):
        job = wait_for(job, is_over)
        time.sleep(1)
    assert job.state == "succeeded"
    assert AuditEntry.objects.filter(action="published").count() == 1


def test_a_flushed_broker_loses_nothing(flush_broker, worker_log_folder):
    wanted = [ask("count") for _ in range(5)]
    flush_broker()
    with running_worker(worker_log_folder, beat=True):
        for job in wanted:
            assert wait_for(job, is_over, ring=False, timeout_s=30).state == "succeeded"


def test_an_event_survives_the_death_of_its_sender(tmp_path):
    """Sent, then killed before the row says so: it is sent again, under the same id."""
    sent, died = tmp_path / "sent", tmp_path / "died"
    with transaction.atomic():
        event_id = post(
            organisation_id=builders.organisation().pk,
            topic="tests.note",
            payload={"file": str(sent), "die_after": True, "died": str(died)},
        )
    script = "import django; django.setup(); from jobs.outbox import send_waiting; send_waiting()"
    command = [sys.executable, "-c", script]
    first = subprocess.run(command, cwd=REPOSITORY, env=worker_environment(), check=False)
    assert first.returncode == -9
    assert Outbox.objects.get().sent_at is None
    deadline = time.monotonic() + 20
    while Outbox.objects.get().sent_at is None:
        assert time.monotonic() < deadline
        subprocess.run(command, cwd=REPOSITORY, env=worker_environment(), check=True)
    assert sent.read_text().split() == [str(event_id), str(event_id)]

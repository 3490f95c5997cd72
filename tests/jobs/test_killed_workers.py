"""Workers, brokers and senders that die: no work is lost, nothing is published twice."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.db import transaction

from audit.models import AuditEntry
from jobs.models import Outbox
from jobs.outbox import post
from tests import builders
from tests.jobs.builders import ask
from tests.jobs.conftest import REPOSITORY, is_over, running_worker, wait_for, worker_environment

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]


def wait_for_file(path: Path, timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.05)


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

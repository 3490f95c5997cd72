"""The queue of record: claims, leases, fencing, retries, de-duplication, the outbox."""

import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from jobs.leases import Heartbeat, claim
from jobs.models import Job, Outbox
from jobs.outbox import post, send_waiting
from jobs.records import JobContext, JobState, LeaseLost, UnknownJobError
from jobs.selectors import job_progress, recent_jobs
from jobs.services import enqueue, note_worker_lost, ring_waiting, run_job
from tests import builders
from tests.jobs import kinds
from tests.jobs.builders import ask
from tests.jobs.conftest import REPOSITORY, worker_environment

pytestmark = pytest.mark.django_db


def make_due(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(run_after=timezone.now() - timedelta(seconds=1))


def lose_worker(job: Job) -> None:
    """The worker fell silent: its lease is over."""
    Job.objects.filter(pk=job.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def reread(job: Job) -> Job:
    job.refresh_from_db()
    return job


def test_a_job_runs_and_says_what_came_of_it():
    job = ask(rows=5)
    run_job(job.pk)
    progress = job_progress(job.pk, job.organisation_id)
    assert progress.state == JobState.SUCCEEDED
    assert (progress.rows_done, progress.rows_total, progress.result) == (5, 5, {"rows": 5})
    assert progress.is_over
    assert progress.rows_per_s > 0


def test_a_job_that_is_done_does_not_run_again():
    job = ask()
    run_job(job.pk)
    run_job(job.pk)
    assert reread(job).attempts == 1


def test_an_unknown_kind_is_refused_when_it_is_asked_for():
    with pytest.raises(ValueError, match="not a kind of job"):
        ask("no_such_kind")


def test_a_job_of_another_organisation_is_unknown():
    job = ask()
    with pytest.raises(UnknownJobError):
        job_progress(job.pk, builders.organisation("other").pk)
    assert recent_jobs(builders.organisation("other").pk) == ()


def test_only_one_of_many_workers_gets_a_job():
    job = ask()
    assert claim(job.pk, "one") is not None
    assert claim(job.pk, "two") is None


def test_a_permanent_error_fails_at_once_with_its_own_words():
    job = ask("give_up")
    run_job(job.pk)
    job = reread(job)
    assert (job.state, job.attempts) == ("failed", 1)
    assert job.error == "bill.csv, row 7, column BilledCost: 'abc' is not a number"


def test_a_failed_attempt_waits_longer_each_time(settings):
    settings.JOB_BACKOFF_S = 100
    job = ask("raise_always")
    run_job(job.pk)
    first = reread(job).run_after - timezone.now()
    assert (job.state, job.error) == (
        "queued",
        "Attempt 1 failed: RuntimeError: the disk is on fire",
    )
    run_job(job.pk)
    assert reread(job).attempts == 1, "it is not due yet"
    make_due(job)
    run_job(job.pk)
    second = reread(job).run_after - timezone.now()
    assert timedelta(seconds=90) < first < timedelta(seconds=110)
    assert timedelta(seconds=380) < second < timedelta(seconds=410)


def test_a_job_recovers_from_one_failure():
    job = ask("raise_once")
    run_job(job.pk)
    make_due(job)
    run_job(job.pk)
    job = reread(job)
    assert (job.state, job.result, job.error) == ("succeeded", {"attempt": 2}, "")


def test_a_silent_worker_loses_the_job_to_another():
    job = ask()
    lost = claim(job.pk, "one")
    lose_worker(job)
    found = claim(job.pk, "two")
    assert lost is not None
    assert found is not None
    with pytest.raises(LeaseLost), transaction.atomic():
        lost.assert_still_mine()
    with transaction.atomic():
        found.assert_still_mine()


def test_three_silent_workers_end_a_job_with_a_reason():
    job = ask()
    for _ in range(3):
        make_due(job)
        assert claim(job.pk, "worker") is not None
        lose_worker(job)
        ring_waiting()
    job = reread(job)
    assert (job.state, job.attempts) == ("failed", 3)
    assert "the worker fell silent" in job.error


def test_a_worker_known_to_be_dead_is_not_waited_for():
    job = ask()
    claim(job.pk, "celery abc")
    note_worker_lost(job.pk, holder="celery other", reason="signal 9")
    assert reread(job).state == "running"
    note_worker_lost(job.pk, holder="celery abc", reason="signal 9")
    assert (reread(job).state, job.error) == ("queued", "Attempt 1 failed: signal 9")


def test_the_same_wish_twice_is_one_job_until_a_worker_takes_it():
    first, second = ask(dedupe_key="rebuild"), ask(dedupe_key="rebuild")
    assert first.pk == second.pk
    claim(first.pk, "worker")
    third = ask(dedupe_key="rebuild")
    assert third.pk != first.pk


def test_a_retried_job_does_not_collide_with_a_newer_wish():
    job = ask("raise_always", dedupe_key="rebuild")
    taken = claim(job.pk, "worker")
    newer = ask("raise_always", dedupe_key="rebuild")
    lose_worker(job)
    ring_waiting()
    assert taken is not None
    assert {reread(job).state, reread(newer).state} == {"queued"}


@pytest.mark.django_db(transaction=True)
def test_a_worker_waits_for_the_changes_of_whoever_joined_a_wish():
    job = ask(dedupe_key="rebuild")
    claimed = []

    def try_to_claim():
        try:
            claimed.append(claim(job.pk, "worker"))
        finally:
            connection.close()

    with transaction.atomic():
        assert ask(dedupe_key="rebuild").pk == job.pk
        thread = threading.Thread(target=try_to_claim)
        thread.start()
        thread.join()
        assert claimed == [None]
    assert claim(job.pk, "worker") is not None


@pytest.mark.django_db(transaction=True)
def test_racing_wishes_with_one_key_make_one_job():
    organisation = builders.organisation()
    barrier = threading.Barrier(12)
    made = []

    def wish():
        try:
            barrier.wait()
            made.append(
                enqueue(
                    organisation_id=organisation.pk,
                    kind="tests.count",
                    scope="organisation",
                    payload={},
                    dedupe_key="rebuild",
                ).pk
            )
        finally:
            connection.close()

    threads = [threading.Thread(target=wish) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 12
    assert len(set(made)) == Job.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_heartbeat_keeps_the_lease_past_its_length_and_notices_a_thief(settings):
    settings.JOB_LEASE_S = 1
    job = ask()
    lease = claim(job.pk, "worker")
    with Heartbeat(lease=lease) as heartbeat:
        time.sleep(1.5)
        assert claim(job.pk, "thief") is None
        Job.objects.filter(pk=job.pk).update(lease_token=None)
        heartbeat.lost.wait(5)
        with pytest.raises(LeaseLost):
            heartbeat.report(1, None, "")


@pytest.mark.django_db(transaction=True)
def test_nobody_takes_a_job_while_it_publishes():
    job = ask()
    lease = claim(job.pk, "worker")
    claimed = []

    def steal():
        try:
            claimed.append(claim(job.pk, "thief"))
        finally:
            connection.close()

    with transaction.atomic():
        lease.assert_still_mine()
        Job.objects.filter(pk=job.pk).update(lease_until=timezone.now() - timedelta(seconds=60))
        thread = threading.Thread(target=steal)
        thread.start()
        thread.join()
    assert claimed == [None]


@pytest.mark.django_db(transaction=True)
def test_a_rolled_back_wish_is_no_job():
    with suppress(ZeroDivisionError), transaction.atomic():
        ask()
        _ = 1 / 0
    assert Job.objects.count() == 0


def test_waiting_jobs_are_rung_once_a_while_not_at_every_turn(settings):
    settings.JOB_RING_AGAIN_S = 60
    ask()
    assert ring_waiting() == 1
    assert ring_waiting() == 0
    Job.objects.update(rung_at=timezone.now() - timedelta(seconds=61))
    assert ring_waiting() == 1


@pytest.mark.servers
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("broker", ["refuses", "hangs"])
def test_a_broker_that_is_away_fails_nobody(broker, silent_port):
    port = silent_port if broker == "hangs" else 1
    script = (
        "import django; django.setup(); from uuid import uuid4; from jobs.services import enqueue;"
        "[enqueue(organisation_id=uuid4(), kind='tests.count', scope='organisation', payload={})"
        " for _ in range(3)]"
    )
    environment = {**worker_environment(), "REDIS_URL": f"redis://127.0.0.1:{port}/0"}
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-c", script], cwd=REPOSITORY, env=environment, check=True, timeout=30
    )
    assert time.monotonic() - started < 15
    assert Job.objects.count() == 3


def event(topic="tests.note", **payload):
    return post(organisation_id=builders.organisation().pk, topic=topic, payload=payload)


def test_an_event_is_sent_once_and_marked(tmp_path):
    sent = tmp_path / "sent"
    event_id = event(file=str(sent))
    assert send_waiting() == 1
    assert send_waiting() == 0
    assert sent.read_text().split() == [str(event_id)]
    assert Outbox.objects.get().sent_at is not None


def test_an_event_that_cannot_be_sent_waits_and_lets_the_others_pass(tmp_path):
    event("tests.fail")
    event(file=str(tmp_path / "sent"))
    assert send_waiting() == 1
    row = Outbox.objects.get(topic="tests.fail")
    assert (row.sent_at, row.attempts) == (None, 1)
    assert row.last_error == "ConnectionError: the mail server is away"
    assert row.send_after > timezone.now()


def test_an_unknown_topic_is_refused():
    with pytest.raises(ValueError, match="not a topic"):
        event("tests.nothing")


@pytest.mark.django_db(transaction=True)
def test_two_dispatchers_do_not_send_one_event_twice(tmp_path):
    sent = tmp_path / "sent"
    for _ in range(20):
        event(file=str(sent))

    def dispatch():
        try:
            send_waiting()
        finally:
            connection.close()

    threads = [threading.Thread(target=dispatch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sent.read_text().split()) == len(set(sent.read_text().split())) == 20


def test_a_job_function_can_be_called_without_a_queue():
    organisation = builders.organisation()
    context = JobContext(job_id=organisation.pk, organisation_id=organisation.pk, payload={})
    assert kinds.count(context) == {"rows": 3}

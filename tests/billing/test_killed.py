"""A worker killed at any moment loses nothing, doubles nothing, and shows nobody half a month."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection

from billing.checks import verify
from billing.models import Delivery, PeriodVersion
from billing.services import IncomingFile, NewDelivery, receive_files, sweep_lake
from jobs.models import Job
from jobs.services import ring_waiting, run_job
from tests.billing.builders import focus_csv, imported, in_month, operator, organisation, total

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]
REPOSITORY = Path(__file__).resolve().parents[2]
ROWS = 4000
WORKER = """
import sys, uuid, django
django.setup()
from jobs.services import run_job
run_job(uuid.UUID(sys.argv[1]), holder="doomed")
"""


def bill(cost: str) -> bytes:
    row = in_month("2026-05", BilledCost=cost)
    return focus_csv([{**row, "ResourceId": f"i-{number}"} for number in range(ROWS)])


OLD, NEW = Decimal("0.1") * ROWS, Decimal("0.7") * ROWS


def start_worker(job_id: UUID) -> subprocess.Popen[bytes]:
    """A process that does the job as a worker does."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    address = urlunsplit(parts._replace(path=f"/{connection.settings_dict['NAME']}"))
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "costwatch.settings",
        "DATABASE_URL": address,
        "COSTWATCH_DATA_DIR": str(settings.DATA_DIR),
        "LAKE_URL": settings.LAKE_URL,
        "COSTWATCH_JOB_LEASE_S": "1",
    }
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(job_id)],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@contextmanager
def reader() -> Iterator[set[Decimal]]:
    """Read the published total all the time; yields every total seen."""
    seen: set[Decimal] = set()
    over = threading.Event()

    def read() -> None:
        while not over.wait(0.02):
            seen.add(total())
        connection.close()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def wait_until(condition: Callable[[], object], worker: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while not condition() and worker.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def kill(worker: subprocess.Popen[bytes]) -> None:
    worker.send_signal(signal.SIGKILL)
    worker.wait()


def finish(job_id: UUID) -> None:
    """What a restarted worker and beat do: end the silent attempt, take the job up again."""
    deadline = time.monotonic() + 60
    while Job.objects.get(pk=job_id).state != Job.State.SUCCEEDED:
        assert time.monotonic() < deadline, Job.objects.get(pk=job_id).error
        ring_waiting()
        run_job(job_id)
        time.sleep(0.1)


def lake(pattern: str) -> list[Path]:
    return list(Path(settings.LAKE_URL).glob(pattern))


def while_staging(delivery_id: UUID) -> bool:
    return bool(lake("tmp/*/0/text.parquet"))


def before_the_swap(delivery_id: UUID) -> bool:
    return len(lake("charges/**/*.parquet")) > 1


def after_the_swap(delivery_id: UUID) -> bool:
    return Delivery.objects.get(pk=delivery_id).state == Delivery.State.PUBLISHED


def restate() -> tuple[UUID, UUID]:
    """Publish a month, then hand its restatement in without doing the job."""
    imported(bill("0.1"))
    file = IncomingFile(name="new.csv", chunks=[bill("0.7")])
    receipt = receive_files(operator(), NewDelivery(source_name="aws", files=[file]))
    return receipt.delivery_id, receipt.job_id


def assert_exactly_restated() -> None:
    assert total() == NEW
    assert PeriodVersion.objects.count() == 2
    assert verify(organisation().pk) == []
    sweep_lake(grace_s=0)
    assert verify(organisation().pk) == []
    assert len(lake("charges/**/*.parquet")) == 2
    assert lake("tmp/*") == []


@pytest.mark.parametrize("moment", [while_staging, before_the_swap, after_the_swap])
def test_a_worker_killed_at_a_telling_moment_leaves_exact_totals(settings, moment):
    settings.JOB_BACKOFF_S = 0.1
    delivery_id, job_id = restate()

    with reader() as seen:
        worker = start_worker(job_id)
        wait_until(lambda: moment(delivery_id), worker)
        kill(worker)
        was_published = after_the_swap(delivery_id)
        finish(job_id)

    assert was_published == (moment is after_the_swap)
    assert OLD in seen
    assert seen <= {OLD, NEW}
    assert_exactly_restated()


def test_workers_killed_at_random_moments_leave_exact_totals(settings):
    settings.JOB_BACKOFF_S = 0.1
    moments = random.Random(1302)
    _delivery_id, job_id = restate()

    with reader() as seen:
        for _round in range(2):  # the third attempt is the last one allowed
            worker = start_worker(job_id)
            wait_until(lambda: Job.objects.get(pk=job_id).holder == "doomed", worker)
            time.sleep(moments.uniform(0.0, 1.5))
            kill(worker)
            ring_waiting()
        finish(job_id)

    assert seen <= {OLD, NEW}
    assert_exactly_restated()

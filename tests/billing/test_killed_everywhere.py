"""An import killed before every single fsync, rename and removal: nothing lost, nothing doubled."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from billing.checks import verify
from billing.models import ChargeSlice, Delivery, DeliveryFile, PeriodVersion
from billing.services import IncomingFile, NewDelivery, receive_files, sweep_lake
from jobs.models import Job
from jobs.services import ring_waiting, run_job
from tests.billing.builders import (
    focus_csv,
    gzipped,
    imported,
    in_month,
    operator,
    organisation,
    total,
)
from tests.billing.doomed_worker import WorkOrder, as_line

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]
REPOSITORY = Path(__file__).resolve().parents[2]
TINY = Decimal("0.000000000000000001")
FEWEST_CALLS = 20
MONTHS = 2
LAST_WORDS_S = 10


class Worker:
    """The process that forks a child for each import."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process, self.folder = process, folder
        self.counted = folder / "calls"

    def start(self, *, fatal_call: int = 0, paths: tuple[str, ...] = (), job_id: str = "") -> None:
        assert self.process.stdin is not None
        self.counted.unlink(missing_ok=True)
        order = WorkOrder(
            fatal_call=fatal_call, counted=str(self.counted), paths=paths, job_id=job_id
        )
        self.process.stdin.write(as_line(order))
        self.process.stdin.flush()

    def was_killed(self) -> bool:
        """Wait for the child's end."""
        assert self.process.stdout is not None
        status = int(self.process.stdout.readline())
        assert os.WIFSIGNALED(status) or self.counted.exists(), "the child broke by itself"
        return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL

    def calls(self) -> int:
        return int(self.counted.read_text(encoding="utf-8"))


@contextmanager
def worker(folder: Path) -> Iterator[Worker]:
    folder.mkdir(exist_ok=True)
    parts = urlsplit(os.environ["DATABASE_URL"])
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "costwatch.settings",
        "DATABASE_URL": urlunsplit(parts._replace(path=f"/{connection.settings_dict['NAME']}")),
        "COSTWATCH_DATA_DIR": str(settings.DATA_DIR),
        "LAKE_URL": settings.LAKE_URL,
        "LAKE_THREADS": "1",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.billing.doomed_worker"],
        cwd=REPOSITORY,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield Worker(process, folder)
    finally:
        process.kill()
        process.communicate()


def bills(number: int) -> dict[str, bytes]:
    """The number-th state of two months in two files, one packed."""
    cost = str(number + TINY)
    may = [in_month("2026-05", BilledCost=cost, ResourceId=f"i-{row}") for row in range(4)]
    june = [in_month("2026-06", BilledCost=cost, ResourceId=f"i-{row}") for row in range(2)]
    return {"a.csv": focus_csv(may[:3]), "b.csv.gz": gzipped(focus_csv([*may[3:], *june]))}


def expected(number: int) -> Decimal:
    return 6 * (number + TINY)


def handed_in(number: int, folder: Path) -> tuple[str, ...]:
    """The files of a state, for the worker to hand in."""
    paths = []
    for name, content in bills(number).items():
        path = folder / f"{number}-{name}"
        path.write_bytes(content)
        paths.append(str(path))
    return tuple(paths)


def received(number: int) -> UUID:
    """Hand a state in; the job that waits."""
    files = [IncomingFile(name=name, chunks=[data]) for name, data in bills(number).items()]
    receipt = receive_files(operator(), NewDelivery(source_name="aws", files=files))
    assert receipt.job_id is not None
    return receipt.job_id


def taken_up(job_id: UUID) -> None:
    """What follows a kill: beat ends the silent attempt, a worker takes the job up.

    Beat comes again and again: for a moment the server still finishes what the dead process had
    sent, and may hold the job's row or renew its lease once more.
    """
    long_ago = timezone.now() - timedelta(hours=1)
    given_up_at = time.monotonic() + LAST_WORDS_S
    while True:
        Job.objects.filter(pk=job_id).update(lease_until=long_ago, run_after=long_ago)
        ring_waiting()
        if Job.objects.get(pk=job_id).state != Job.State.RUNNING:
            break
        assert time.monotonic() < given_up_at, "beat never ended the dead process's attempt"
        time.sleep(0.05)
    run_job(job_id)
    assert Job.objects.get(pk=job_id).state == Job.State.SUCCEEDED


def lake_files(folder: str) -> set[str]:
    root = Path(settings.LAKE_URL)
    return {
        path.relative_to(root).as_posix() for path in (root / folder).rglob("*") if path.is_file()
    }


def assert_whole(number: int) -> None:
    assert total() == expected(number)
    sweep_lake(grace_s=0)
    assert verify(organisation().pk) == []
    assert lake_files("tmp") == set()
    assert lake_files("charges") == set(ChargeSlice.objects.values_list("path", flat=True))
    hashes = set(DeliveryFile.objects.values_list("sha256", flat=True))
    assert {name.rpartition("/")[2] for name in lake_files("blobs")} == hashes


def test_an_upload_killed_before_every_file_operation_leaves_nothing_behind(tmp_path):
    imported(*bills(0).items())
    fatal_call, calls = 0, 0

    with worker(tmp_path / "w") as doomed:
        paths = handed_in(1, doomed.folder)
        while not calls:
            fatal_call += 1
            doomed.start(fatal_call=fatal_call, paths=paths)
            calls = 0 if doomed.was_killed() else doomed.calls()
            assert_whole(0)

    sys.stdout.write(f"{calls} file operations of an upload, killed before each\n")
    assert calls == fatal_call - 1 > 0
    run_job(received(1))
    assert_whole(1)


def test_an_import_killed_before_every_file_operation_ends_exact(settings, tmp_path):
    settings.JOB_BACKOFF_S = 0
    imported(*bills(0).items())
    number, calls = 0, 0

    with worker(tmp_path / "w") as doomed:
        while not calls:
            number += 1
            job_id = received(number)
            doomed.start(fatal_call=number, job_id=str(job_id))
            if doomed.was_killed():
                taken_up(job_id)
            else:
                calls = doomed.calls()
            assert_whole(number)

    sys.stdout.write(f"{calls} file operations of an import, killed before each\n")
    assert calls == number - 1 > FEWEST_CALLS
    assert PeriodVersion.objects.filter(superseded_at=None).count() == MONTHS


def test_two_processes_that_import_a_month_at_once_leave_one_whole(tmp_path):
    jobs = [received(1), received(2)]

    with worker(tmp_path / "one") as one, worker(tmp_path / "two") as two:
        # each does both jobs, in another order: every job meets its twin, every month both bills
        for mine, theirs in ((0, 1), (1, 0)):
            one.start(job_id=str(jobs[mine]))
            two.start(job_id=str(jobs[theirs]))
            assert not one.was_killed()
            assert not two.was_killed()

    assert {delivery.state for delivery in Delivery.objects.all()} == {Delivery.State.PUBLISHED}
    assert Job.objects.filter(state=Job.State.SUCCEEDED).count() == 2
    assert PeriodVersion.objects.filter(superseded_at=None).count() == MONTHS
    assert_whole(2)


def test_a_job_that_two_processes_take_at_once_is_done_once(tmp_path):
    job_id = received(3)

    with worker(tmp_path / "one") as one, worker(tmp_path / "two") as two:
        for process in (one, two):
            process.start(job_id=str(job_id))
        assert not one.was_killed()
        assert not two.was_killed()

    assert PeriodVersion.objects.count() == MONTHS
    assert ChargeSlice.objects.count() == MONTHS
    assert Job.objects.get(pk=job_id).attempts == 1
    assert_whole(3)

"""Who holds a job, and until when: claim, extend, hand back. All by the database's clock."""

import threading
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import ExpressionWrapper, F, Q, fields
from django.db.models.expressions import Combinable
from django.db.models.functions import Now

from jobs.models import Job
from jobs.records import LeaseLost

log = structlog.get_logger(__name__)
PROGRESS_EVERY_S = 1.0


def seconds_from_now(seconds: float) -> Combinable:
    """The database's clock plus so many seconds, as an SQL expression."""
    return ExpressionWrapper(
        Now() + timedelta(seconds=seconds), output_field=fields.DateTimeField()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """One attempt of one job. Whoever holds another token for the job holds nothing."""

    job: Job
    token: UUID

    def holds(self) -> Any:
        """The job's row, if it is still this attempt's."""
        return Job.objects.filter(pk=self.job.pk, lease_token=self.token, state=Job.State.RUNNING)

    def assert_still_mine(self) -> None:
        """Lock the job's row until the end of the transaction, and extend the lease.

        Raises:
            LeaseLost: another worker has taken the job over.
        """
        if not connection.in_atomic_block:
            raise transaction.TransactionManagementError("Ask in the transaction that publishes.")
        if not self.holds().update(lease_until=seconds_from_now(settings.JOB_LEASE_S)):
            raise LeaseLost(str(self.job.pk))


def due() -> Q:
    """Jobs that some worker should take now: waiting ones, and those whose worker fell silent."""
    waiting = Q(state=Job.State.QUEUED, run_after__lte=Now())
    abandoned = Q(state=Job.State.RUNNING, lease_until__lt=Now())
    return (waiting | abandoned) & Q(attempts__lt=F("max_attempts"))


def claim(job_id: UUID, holder: str) -> Lease | None:
    """Take the job if it is due and its row is free; the attempt is counted before the work."""
    token = uuid.uuid4()
    with transaction.atomic():
        job = Job.objects.select_for_update(skip_locked=True).filter(due(), pk=job_id).first()
        if job is None:
            return None
        Job.objects.filter(pk=job_id).update(
            state=Job.State.RUNNING,
            attempts=F("attempts") + 1,
            lease_token=token,
            lease_until=seconds_from_now(settings.JOB_LEASE_S),
            holder=holder[:120],
            started_at=Now(),
            finished_at=None,
            rows_done=0,
            rows_total=None,
            message="",
        )
        job.refresh_from_db()
    return Lease(job=job, token=token)


@dataclass(slots=True, kw_only=True)
class Heartbeat:
    """A thread that extends the lease and writes progress, on its own database connection.

    The job's own connection may be deep in a transaction; progress must be seen all the same.
    It stops past the job's time limit, so that a job that never ends is taken over, too.
    """

    lease: Lease
    lost: threading.Event = field(default_factory=threading.Event)
    _stop: threading.Event = field(default_factory=threading.Event)
    _progress: dict[str, Any] = field(default_factory=dict)
    _thread: threading.Thread | None = None

    def __enter__(self) -> "Heartbeat":
        self._thread = threading.Thread(target=self._beat, name="job-heartbeat", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def report(self, rows_done: int, rows_total: int | None, message: str) -> None:
        """Keep progress for the next beat.

        Raises:
            LeaseLost: another worker has taken the job over.
        """
        if self.lost.is_set():
            raise LeaseLost(str(self.lease.job.pk))
        self._progress = {
            "rows_done": max(rows_done, 0),
            "rows_total": rows_total,
            "message": message[:500],
        }

    def last_progress(self) -> dict[str, Any]:
        """What was reported last, as columns of the job."""
        return dict(self._progress)

    def _beat(self) -> None:
        pause_s = min(PROGRESS_EVERY_S, settings.JOB_LEASE_S / 3)
        beats_left = int((settings.JOB_TIME_LIMIT_S + settings.JOB_LEASE_S) / pause_s)
        try:
            while not self._stop.wait(pause_s) and beats_left > 0 and not self.lost.is_set():
                beats_left -= 1
                self._extend()
        finally:
            connection.close()

    def _extend(self) -> None:
        try:
            extended = self.lease.holds().update(
                lease_until=seconds_from_now(settings.JOB_LEASE_S), **self._progress
            )
            # A row that this connection cannot see at all was made in a transaction still open.
            if not extended and Job.objects.filter(pk=self.lease.job.pk).exists():
                self.lost.set()
        except DatabaseError as error:
            log.warning("heartbeat failed", job_id=str(self.lease.job.pk), error=str(error))
            connection.close()

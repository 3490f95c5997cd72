"""Writes of the queue: ask for work, do it, take up what others dropped. The broker only rings."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.module_loading import import_string

from jobs.adapters.doorbell import DOORBELL
from jobs.leases import Heartbeat, Lease, claim, due, seconds_from_now
from jobs.models import Job
from jobs.records import JobContext, LeaseLost, PermanentJobError

__all__ = [
    "JobContext",
    "LeaseLost",
    "PermanentJobError",
    "enqueue",
    "forget_succeeded",
    "note_worker_lost",
    "ring_waiting",
    "run_job",
]

log = structlog.get_logger(__name__)
RINGS_AT_ONCE = 200
MESSAGE_LIVES_S = 60.0  # a late ring is no loss, a pile of old ones is
JobFunction = Callable[[JobContext], Mapping[str, Any] | None]


def enqueue(
    *,
    organisation_id: UUID,
    kind: str,
    scope: str,
    payload: Mapping[str, Any],
    dedupe_key: str | None = None,
    title: str = "",
    created_by_user_id: int | None = None,
    created_by_token_id: UUID | None = None,
) -> Job:
    """Ask for work in the caller's transaction; a worker is rung when it commits.

    With a `dedupe_key`, a job of the same key that no worker has touched yet is returned instead of
    a second one. It is locked until the caller's commit, so that it cannot start before it sees the
    caller's changes.

    Raises:
        ValueError: no such kind in settings.JOB_KINDS.
    """
    if kind not in settings.JOB_KINDS:
        raise ValueError(f"{kind} is not a kind of job: see JOB_KINDS in the settings")
    wish = Job(
        organisation_id=organisation_id,
        kind=kind,
        scope=scope,
        title=title[:200],
        payload=dict(payload),
        dedupe_key=dedupe_key or "",
        created_by_user_id=created_by_user_id,
        created_by_token_id=created_by_token_id,
        max_attempts=settings.JOB_MAX_ATTEMPTS,
    )
    with transaction.atomic():
        job = _insert_once(wish) if dedupe_key else _insert(wish)
        job_id = job.pk
        transaction.on_commit(lambda: _ring(job_id), robust=True)
    return job


def _insert(wish: Job) -> Job:
    wish.save(force_insert=True)
    return wish


def _insert_once(wish: Job) -> Job:
    while True:
        twin = (
            Job.objects.select_for_update()
            .filter(
                organisation_id=wish.organisation_id,
                kind=wish.kind,
                dedupe_key=wish.dedupe_key,
                state=Job.State.QUEUED,
                attempts=0,
            )
            .first()
        )
        if twin is not None:
            return twin
        try:
            with transaction.atomic():
                return _insert(wish)
        except IntegrityError:
            log.debug("a twin was faster", kind=wish.kind, dedupe_key=wish.dedupe_key)


def _ring(job_id: UUID) -> None:
    DOORBELL.ring(job_id, expires_s=MESSAGE_LIVES_S)


def forget_succeeded(
    *, organisation_id: UUID, kind: str, dedupe_key: str, older: timedelta = timedelta(hours=1)
) -> None:
    """Delete jobs of one key that ended well some time ago: for work that is rung all day long."""
    Job.objects.filter(
        organisation_id=organisation_id,
        kind=kind,
        dedupe_key=dedupe_key,
        state=Job.State.SUCCEEDED,
        finished_at__lt=Now() - older,
    ).delete()


def run_job(job_id: UUID, *, holder: str = "inline") -> None:
    """Do the job if it is due. How it went stands in its row; a failed job raises nothing."""
    lease = claim(job_id, holder)
    if lease is None:
        return
    bound = log.bind(job_id=str(job_id), kind=lease.job.kind, attempt=lease.job.attempts)
    bound.info("job started")
    with Heartbeat(lease=lease) as heartbeat:
        outcome = _attempt(lease, heartbeat)
    if lease.holds().update(**heartbeat.last_progress(), **outcome):
        bound.info("job ended", state=outcome["state"], error=outcome.get("error", ""))
    else:
        bound.warning("job lost to another worker")


def _attempt(lease: Lease, heartbeat: Heartbeat) -> dict[str, Any]:
    """Run the job's function once; return the columns that say how it ended."""
    context = JobContext(
        job_id=lease.job.pk,
        organisation_id=lease.job.organisation_id,
        payload=lease.job.payload,
        attempt=lease.job.attempts,
        on_report=heartbeat.report,
        on_assert=lease.assert_still_mine,
    )
    try:
        function: JobFunction = import_string(settings.JOB_KINDS[lease.job.kind].replace(":", "."))
        result = function(context)
    except PermanentJobError as error:
        return _over(Job.State.FAILED, error=str(error))
    except LeaseLost:
        return _over(Job.State.QUEUED)
    except Exception as error:  # the job's outermost line: recorded, then retried
        log.exception("job attempt failed", job_id=str(lease.job.pk), kind=lease.job.kind)
        return _after_failure(lease.job, readable(error))
    return _over(Job.State.SUCCEEDED, result=dict(result or {}))


def readable(error: Exception) -> str:
    """What people read about an unexpected error: its kind and first line, no SQL, no traceback."""
    name = type(error).__name__
    if isinstance(error, SoftTimeLimitExceeded):
        return f"It ran longer than {settings.JOB_TIME_LIMIT_S} s."
    if isinstance(error, DatabaseError):
        return f"The database refused the change ({name})."
    lines = str(error).strip().splitlines()
    return f"{name}: {lines[0][:400]}" if lines else name


def _over(state: Job.State, *, error: str = "", result: Any = None) -> dict[str, Any]:
    return {
        "state": state,
        "error": error,
        "result": result,
        "finished_at": Now(),
        "lease_token": None,
        "lease_until": None,
    }


def _after_failure(job: Job, reason: str) -> dict[str, Any]:
    """The columns of a job whose attempt failed: wait and try again, or stop and say why."""
    if job.attempts >= job.max_attempts:
        return _over(
            Job.State.FAILED, error=f"Stopped after {job.attempts} attempts. The last one: {reason}"
        )
    backoff_s = settings.JOB_BACKOFF_S * 4 ** (job.attempts - 1)
    return {
        **_over(Job.State.QUEUED, error=f"Attempt {job.attempts} failed: {reason}"),
        "finished_at": None,
        "run_after": seconds_from_now(backoff_s),
    }


def note_worker_lost(job_id: UUID, *, holder: str, reason: str) -> None:
    """The process that held the job is known to be dead: end its attempt without waiting."""
    with transaction.atomic():
        job = (
            Job.objects.select_for_update()
            .filter(pk=job_id, holder=holder, state=Job.State.RUNNING)
            .first()
        )
        if job is not None:
            Job.objects.filter(pk=job_id).update(**_after_failure(job, reason))


def ring_waiting() -> int:
    """End attempts whose worker fell silent, and ring for all that is due; return how many rang."""
    _end_silent_attempts()
    again = Now() - timedelta(seconds=settings.JOB_RING_AGAIN_S)
    with transaction.atomic():
        waiting = (
            Job.objects.select_for_update(skip_locked=True)
            .filter(due())
            .filter(Q(rung_at__isnull=True) | Q(rung_at__lt=again))
        )
        job_ids = [job.pk for job in waiting.order_by("run_after")[:RINGS_AT_ONCE]]
        Job.objects.filter(pk__in=job_ids).update(rung_at=Now())
    for job_id in job_ids:
        _ring(job_id)
    return len(job_ids)


def _end_silent_attempts() -> None:
    silent = Q(state=Job.State.RUNNING, lease_until__lt=Now())
    with transaction.atomic():
        for job in Job.objects.select_for_update(skip_locked=True).filter(silent):
            reason = (
                "the worker fell silent: it was killed, ran out of memory or ran longer than "
                f"{settings.JOB_TIME_LIMIT_S} s"
            )
            log.warning("job attempt abandoned", job_id=str(job.pk), attempt=job.attempts)
            Job.objects.filter(pk=job.pk).update(**_after_failure(job, reason))

"""Reads of the queue: how far a job has come, what happened lately."""

from datetime import datetime
from uuid import UUID

from django.utils import timezone

from jobs.models import Job
from jobs.records import JobProgress, JobState, UnknownJobError


def job_progress(job_id: UUID, organisation_id: UUID) -> JobProgress:
    """How far the job has come.

    Raises:
        UnknownJobError: the organisation has no such job.
    """
    job = Job.objects.filter(pk=job_id, organisation_id=organisation_id).first()
    if job is None:
        raise UnknownJobError(str(job_id))
    return _progress(job, timezone.now())


def recent_jobs(organisation_id: UUID, *, limit: int = 50) -> tuple[JobProgress, ...]:
    """The organisation's newest jobs first."""
    now = timezone.now()
    jobs = Job.objects.filter(organisation_id=organisation_id).order_by("-created_at")
    return tuple(_progress(job, now) for job in jobs[:limit])


def newest_jobs_by_scope(organisation_id: UUID, *, kind: str) -> dict[str, JobProgress]:
    """The newest job of a kind for each thing that it was about."""
    now = timezone.now()
    jobs = Job.objects.filter(organisation_id=organisation_id, kind=kind)
    newest = jobs.order_by("scope", "-created_at").distinct("scope")
    return {job.scope: _progress(job, now) for job in newest}


def _progress(job: Job, now: datetime) -> JobProgress:
    return JobProgress(
        job_id=job.pk,
        organisation_id=job.organisation_id,
        kind=job.kind,
        scope=job.scope,
        title=job.title,
        state=JobState(job.state),
        attempts=job.attempts,
        max_attempts=job.max_attempts,
        rows_done=job.rows_done,
        rows_total=job.rows_total,
        rows_per_s=_rows_per_s(job, now),
        message=job.message,
        error=job.error,
        result=job.result,
        created_by_user_id=job.created_by_user_id,
        created_by_token_id=job.created_by_token_id,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
    )


def _rows_per_s(job: Job, now: datetime) -> float | None:
    if job.started_at is None or not job.rows_done:
        return None
    elapsed_s = ((job.finished_at or now) - job.started_at).total_seconds()
    return job.rows_done / elapsed_s if elapsed_s > 0 else None

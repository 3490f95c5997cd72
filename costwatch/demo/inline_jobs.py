"""Runs jobs in this process and waits for their end; a worker that is faster may have them."""

import time
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from jobs.records import JobProgress, JobState
from jobs.selectors import job_progress, recent_jobs
from jobs.services import ring_waiting, run_job

POLL_S: Final = 0.2
PATIENCE_S: Final = 600.0


class InlineJobError(RuntimeError):
    """A job that did not succeed; the message is the job's own."""


def finish_job(job_id: UUID, organisation_id: UUID) -> JobProgress:
    """Do the job here unless a worker does it already, and wait until it is over.

    Raises:
        InlineJobError: it failed, or is not over after ten minutes.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        run_job(job_id)
        progress = job_progress(job_id, organisation_id)
        if progress.is_over:
            break
        if time.monotonic() > deadline:
            raise InlineJobError(f"{progress.title} is not over after {PATIENCE_S:.0f} s")
        ring_waiting()  # frees a job whose worker was killed
        time.sleep(POLL_S)
    if progress.state != JobState.SUCCEEDED:
        raise InlineJobError(f"{progress.title}: {progress.error}")
    return progress


def finish_waiting(organisation_id: UUID, kinds: Iterable[str]) -> None:
    """Do every waiting job of these kinds here, the oldest first."""
    wanted = set(kinds)
    for job in reversed(recent_jobs(organisation_id)):
        if job.kind in wanted and not job.is_over:
            finish_job(job.job_id, organisation_id)

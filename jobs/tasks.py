"""The two messages that the broker carries: look at this job, look for what waits."""

from typing import Any
from uuid import UUID

import structlog
from billiard.exceptions import WorkerLostError
from celery import Task, shared_task
from celery.signals import task_failure
from django.conf import settings

from jobs import outbox, services

log = structlog.get_logger(__name__)
GRACE_S = 30


@shared_task(
    name="jobs.run",
    bind=True,
    soft_time_limit=settings.JOB_TIME_LIMIT_S,
    time_limit=settings.JOB_TIME_LIMIT_S + GRACE_S,
)
def run(self: "Task[Any, Any]", job_id: str) -> None:
    """Do one job, if it is still due."""
    services.run_job(UUID(job_id), holder=f"celery {self.request.id}")


@shared_task(name="jobs.ring")
def ring() -> None:
    """Ring for waiting jobs and send waiting events."""
    services.ring_waiting()
    outbox.send_waiting()


@task_failure.connect(dispatch_uid="jobs.worker_lost")
def note_worker_lost(
    task_id: str, exception: BaseException, args: list[Any] | None = None, **_other: Any
) -> None:
    """A child of this worker died in the middle of a job: say so now, not when the lease ends."""
    if isinstance(exception, WorkerLostError) and args:
        services.note_worker_lost(
            UUID(str(args[0])),
            holder=f"celery {task_id}",
            reason=f"the worker process died ({exception})",
        )

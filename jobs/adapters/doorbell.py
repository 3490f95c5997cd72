"""Rings a worker through the broker. A broker that is down is logged, never raised."""

import time
from uuid import UUID

import structlog
from celery import current_app
from kombu.exceptions import OperationalError

log = structlog.get_logger(__name__)
QUIET_AFTER_FAILURE_S = 30.0


class Doorbell:
    """Rings; after a failure it stays quiet for a moment, so that many jobs wait only once."""

    def __init__(self) -> None:
        self._quiet_until_s = 0.0

    def ring(self, job_id: UUID, *, expires_s: float) -> bool:
        """Tell some worker to look at this job; whether the broker took the message."""
        if time.monotonic() < self._quiet_until_s:
            return False
        try:
            current_app.send_task("jobs.run", args=[str(job_id)], retry=False, expires=expires_s)
        except (OperationalError, OSError) as error:
            self._quiet_until_s = time.monotonic() + QUIET_AFTER_FAILURE_S
            log.warning("broker unreachable", job_id=str(job_id), error=str(error))
            return False
        self._quiet_until_s = 0.0
        return True


DOORBELL = Doorbell()

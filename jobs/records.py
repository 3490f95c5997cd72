"""What other rooms may hold of jobs: the context of a running one, progress, errors. No Django."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID


class PermanentJobError(Exception):
    """Trying again cannot help: the job fails at once and people read this message."""


class LeaseLost(Exception):  # noqa: N818  # named for what happened
    """Another worker has taken the job over: stop, and publish nothing."""


class UnknownJobError(LookupError):
    """No such job in this organisation."""


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


def _report_nothing(rows_done: int, rows_total: int | None, message: str) -> None:
    """For a job function that is called outside the queue."""


def _always_mine() -> None:
    """For a job function that is called outside the queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """What a job function gets. The function must bear being run again from the start."""

    job_id: UUID
    organisation_id: UUID
    payload: Mapping[str, Any]
    attempt: int = 1
    on_report: Callable[[int, int | None, str], None] = _report_nothing
    on_assert: Callable[[], None] = _always_mine

    def report(self, rows_done: int, rows_total: int | None, message: str = "") -> None:
        """Show progress. Cheap: call it as often as you like.

        Raises:
            LeaseLost: another worker has taken the job over.
        """
        self.on_report(rows_done, rows_total, message)

    def assert_still_mine(self) -> None:
        """Call it inside the transaction that publishes: until it ends the job keeps its worker.

        Raises:
            LeaseLost: another worker has taken the job over.
        """
        self.on_assert()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """How far a job has come."""

    job_id: UUID
    organisation_id: UUID
    kind: str
    scope: str
    title: str
    state: JobState
    attempts: int
    max_attempts: int
    rows_done: int
    rows_total: int | None
    rows_per_s: float | None
    message: str
    error: str
    result: Any
    created_by_user_id: int | None
    created_by_token_id: UUID | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in {JobState.SUCCEEDED, JobState.FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEvent:
    """Something to send. It may arrive more than once, always under the same `event_id`."""

    event_id: UUID
    organisation_id: UUID
    topic: str
    payload: Mapping[str, Any]

"""Builders of jobs."""

from jobs.models import Job
from jobs.services import enqueue
from tests import builders


def ask(kind: str = "count", *, dedupe_key: str | None = None, **payload) -> Job:
    """Ask for one of the tests' kinds."""
    return enqueue(
        organisation_id=builders.organisation().pk,
        kind=f"tests.{kind}",
        scope="organisation",
        payload=payload,
        dedupe_key=dedupe_key,
        title="Count rows",
    )

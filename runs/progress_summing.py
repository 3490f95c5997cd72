"""Keeps the sums of runs' days up to date, away from the doors; reading needs none of it."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction

from jobs.records import JobContext
from runs.models import RunDay
from runs.progress_rows import read_day


def sum_stale_days(run_id: UUID) -> int:
    """Sum the run's stale days anew; says how many."""
    stale = RunDay.objects.filter(run_id=run_id, is_stale=True).order_by("day")
    days = list(stale.values_list("pk", flat=True))
    for key in days:
        with transaction.atomic():
            # Who brings readings holds this row until they are committed: none is overlooked.
            row = RunDay.objects.select_for_update().get(pk=key)
            found = read_day(run_id, row.day)
            row.sums, row.claims, row.is_stale = found.document(), found.claims(), False
            row.save(update_fields=["sums", "claims", "is_stale"])
    return len(days)


def sum_progress_job(context: JobContext) -> Mapping[str, Any]:
    """Sum the stale days of one run."""
    return {"days": sum_stale_days(UUID(context.payload["run"]))}

"""The progress of a job, as a fragment that asks again until the job is over."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from projects.access import actor_of
from projects.job_access import job_for


@never_cache
@require_safe
def job_progress(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """Show how far a job has come."""
    progress = job_for(actor_of(request), job_id)
    response = render(
        request,
        "ui/_progress.html",
        {"progress": progress, "url": reverse("job_progress", args=[job_id])},
    )
    if progress.is_over:
        response["HX-Trigger"] = "job-over"
    return response

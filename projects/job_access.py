"""Who may see a job: whoever sees its project, organisation-wide roles, whoever asked for it."""

from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404

from jobs.records import JobProgress, UnknownJobError
from jobs.selectors import job_progress
from projects.access import projects_for, require_organisation_role
from projects.records import Actor


def job_for(actor: Actor, job_id: UUID) -> JobProgress:
    """The progress of a job that the actor may see.

    Raises:
        Http404: no such job, or one that the actor may not see (the two look alike).
    """
    try:
        progress = job_progress(job_id, actor.organisation_id)
    except UnknownJobError:
        raise Http404("No such job.") from None
    if not (_asked_for(actor, progress) or _sees(actor, progress.scope)):
        raise Http404("No such job.")
    return progress


def _asked_for(actor: Actor, progress: JobProgress) -> bool:
    if actor.is_token:
        return progress.created_by_token_id == actor.token_id
    return actor.user_id is not None and progress.created_by_user_id == actor.user_id


def _sees(actor: Actor, scope: str) -> bool:
    kind, _, text = scope.partition(":")
    if kind == "project":
        try:
            return projects_for(actor).filter(pk=UUID(text)).exists()
        except ValueError:
            return False
    try:
        require_organisation_role(actor, write=False)
    except PermissionDenied:
        return False
    return True

"""Tests of a source's connection, done as a job: what works, and which permission is missing."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from billing.connectors import CONNECTORS, CheckReport, CheckStep, ConnectorError, connector_for
from billing.connectors.contract import REACH
from billing.models import Source
from billing.services.pull_requests import connection_of
from jobs import services as jobs
from jobs.records import JobContext
from projects.access import require_organisation_role
from projects.records import Actor
from projects.trail import note


def ask_for_test(actor: Actor, source: Source) -> UUID:
    """Ask for a test of the connection as it is stored; return its job.

    Raises:
        PermissionDenied: the actor is no administrator.
        ValidationError: nothing can be pulled from this kind of source.
    """
    require_organisation_role(actor, write=True)
    if source.kind not in CONNECTORS:
        raise ValidationError(_("Nothing can be pulled from this kind of source."))
    with transaction.atomic():
        job = jobs.enqueue(
            organisation_id=source.organisation_id,
            kind="billing.test_source",
            scope=f"source:{source.pk}",
            payload={"source_id": str(source.pk)},
            dedupe_key=f"test:{source.pk}",
            title=_("Test the connection of {source}").format(source=source.name),
            created_by_user_id=actor.user_id,
            created_by_token_id=actor.token_id,
        )
        note(actor, "source.test", subject=("source", source.pk))
    return job.pk


def test_source(context: JobContext) -> dict[str, Any]:
    """Try the connection step by step; the result is what the page shows."""
    source = Source.objects.get(
        pk=UUID(context.payload["source_id"]), organisation_id=context.organisation_id
    )
    context.report(0, None, _("Trying the connection"))
    try:
        report = connector_for(connection_of(source)).check()
    except ConnectorError as error:
        step = CheckStep(
            name=REACH, ok=False, message=str(error), missing_permission=error.missing_permission
        )
        report = CheckReport(steps=(step,))
    return report_document(report)


def report_document(report: CheckReport) -> dict[str, Any]:
    """A test's report in JSON."""
    steps: list[Mapping[str, Any]] = [
        {
            "name": step.name,
            "ok": step.ok,
            "message": step.message,
            "missing_permission": step.missing_permission,
        }
        for step in report.steps
    ]
    return {"ok": report.ok, "steps": steps}

"""The REST doors of power, energy and emissions: parse, call, answer."""

from dataclasses import asdict
from typing import Any

from django.core.exceptions import PermissionDenied
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from carbon import services
from carbon.adapters.power_bodies import read_csv_text, read_document
from carbon.adapters.power_texts import PowerTextError
from carbon.parsing import PowerCsvParser
from carbon.selectors import emissions_summary, energy_by_day
from carbon.serializers import (
    DaysQuery,
    EmissionsDocument,
    EnergyDocument,
    PowerBatch,
    PowerReceipt,
)
from projects.access import actor_of, project_for, require_organisation_role, require_scope
from projects.parsing import StrictJSONParser
from projects.records import Actor, Scope
from runs.records import SiteRecord
from runs.selectors import site_by_id, site_by_slug

READERS = (Scope.READ_COSTS, Scope.READ_REPORTS, Scope.MANAGE_PROJECT, Scope.ADMIN_ORG)
DAYS = [
    OpenApiParameter("from", OpenApiTypes.DATE, description="first day, inclusive"),
    OpenApiParameter("to", OpenApiTypes.DATE, description="first day that is out"),
    OpenApiParameter("as_of", OpenApiTypes.DATETIME, description="as known at that instant"),
]
SITE = OpenApiParameter(
    "site",
    OpenApiTypes.STR,
    description="the site's slug, for a token that is not limited to one site",
)


class PowerBatchesView(APIView):
    """Where agents send power samples and energy intervals."""

    parser_classes = (StrictJSONParser, PowerCsvParser)

    @extend_schema(
        operation_id="power_batches_create",
        request={"application/json": PowerBatch, "text/csv": OpenApiTypes.STR},
        responses=PowerReceipt,
        parameters=[SITE],
    )
    def post(self, request: Request) -> Response:
        """Store a batch. 200 means committed; the same batch again changes nothing.

        4xx: a retry cannot mend it. 503 with Retry-After: it could not be stored, send it again.
        """
        actor = actor_of(request)
        site = _site_of(actor, request.query_params.get("site", ""))
        body: Any = request.data
        is_csv = str(request.content_type).startswith(PowerCsvParser.media_type)
        try:
            batches = read_csv_text(body["csv"]) if is_csv else read_document(body)
        except PowerTextError as error:
            raise exceptions.ParseError(str(error), code="unreadable") from error
        intake = services.store_batch(actor, site, batches, now=timezone.now())
        return Response(
            {
                "site": site.slug,
                "rows": intake.rows,
                "rejected": intake.rejected,
                "duplicates": intake.duplicates,
                "devices": len(intake.device_ids),
                "reasons": intake.reasons,
            }
        )


def _site_of(actor: Actor, slug: str) -> SiteRecord:
    """The site that the caller may send for: its token's own, else the one it names."""
    if actor.is_token:
        require_scope(actor, Scope.INGEST_POWER)
        if actor.token_project_id is not None:
            raise PermissionDenied("This token is limited to a project; power is sent for a site.")
        if actor.token_source_id is not None and actor.token_site_id is None:
            raise PermissionDenied("This token is limited to a source of bills.")
    else:
        require_organisation_role(actor, write=True)
    if actor.token_site_id is None:
        named = site_by_slug(actor.organisation_id, slug) if slug else None
        if named is None:
            raise exceptions.ParseError(
                "Name a site that exists with ?site=SLUG, or use a token of one site.",
                code="site",
            )
        return named
    own = site_by_id(actor.organisation_id, actor.token_site_id)
    if own is None or slug not in ("", own.slug):
        raise PermissionDenied("This token is limited to another site.")
    return own


class ProjectEnergyView(APIView):
    """A project's energy by day."""

    @extend_schema(operation_id="project_energy_read", responses=EnergyDocument, parameters=DAYS)
    def get(self, request: Request, slug: str) -> Response:
        """Energy of each day at the three boundaries; what is unknown is null."""
        actor = actor_of(request)
        require_scope(actor, *READERS)
        project = project_for(actor, slug)
        days = energy_by_day(actor.organisation_id, project.pk, **_days(request))
        return Response({"project": project.slug, "days": [asdict(day) for day in days]})


class ProjectEmissionsView(APIView):
    """A project's energy and emissions in sum."""

    @extend_schema(
        operation_id="project_emissions_read", responses=EmissionsDocument, parameters=DAYS
    )
    def get(self, request: Request, slug: str) -> Response:
        """The same document as `manage.py emissions --json`."""
        actor = actor_of(request)
        require_scope(actor, *READERS)
        project = project_for(actor, slug)
        summary = emissions_summary(actor.organisation_id, project.pk, **_days(request))
        return Response(summary.as_json())


def _days(request: Request) -> dict[str, Any]:
    """The asked-for days, checked."""
    query = request.query_params
    names = {"from": "start_on", "to": "end_on", "as_of": "as_of"}
    document = DaysQuery(data={names[key]: query[key] for key in names if query.get(key)})
    document.is_valid(raise_exception=True)
    return dict(document.validated_data)

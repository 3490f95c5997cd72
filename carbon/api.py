"""The REST doors of power, energy and emissions: parse, call, answer."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from carbon.selectors import emissions_summary
from carbon.serializers import (
    DaysQuery,
    EmissionsDocument,
)
from projects.access import actor_of, project_for, require_scope
from projects.records import Scope

READERS = (Scope.READ_COSTS, Scope.READ_REPORTS, Scope.MANAGE_PROJECT, Scope.ADMIN_ORG)
DAYS = [
    OpenApiParameter("from", OpenApiTypes.DATE, description="first day, inclusive"),
    OpenApiParameter("to", OpenApiTypes.DATE, description="first day that is out"),
    OpenApiParameter("as_of", OpenApiTypes.DATETIME, description="as known at that instant"),
]


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
        asked = _days(request)
        summary = emissions_summary(actor.organisation_id, project.pk, **asked)
        return Response({**summary.as_json(), "as_of": asked.get("as_of")})


def _days(request: Request) -> dict[str, Any]:
    """The asked-for days, checked."""
    query = request.query_params
    names = {"from": "start_on", "to": "end_on", "as_of": "as_of"}
    document = DaysQuery(data={names[key]: query[key] for key in names if query.get(key)})
    document.is_valid(raise_exception=True)
    return dict(document.validated_data)

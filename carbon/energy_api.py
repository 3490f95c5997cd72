"""The REST doors of energy: by hour, day, month, owner, node or device, for a project or a site."""

from dataclasses import asdict
from typing import Any

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from carbon.energy_answers import bounded, energy_table
from carbon.energy_documents import table_document
from carbon.energy_questions import GROUPS, QuestionError, question_in
from carbon.energy_serializers import EnergyTableDocument
from carbon.readers import READERS
from carbon.selectors import energy_by_day
from carbon.serializers import DaysQuery
from projects.access import actor_of, project_for, require_organisation_role, require_scope
from projects.records import Actor
from runs.selectors import site_by_slug

ASKED = [
    OpenApiParameter("by", OpenApiTypes.STR, enum=GROUPS, description="what a row is"),
    OpenApiParameter("from", OpenApiTypes.STR, description="first day, or hour as 2026-05-01T07"),
    OpenApiParameter("to", OpenApiTypes.STR, description="first day, or hour, that is out"),
    OpenApiParameter("as_of", OpenApiTypes.DATETIME, description="as known at that instant"),
]
RUN = OpenApiParameter("run", OpenApiTypes.STR, description="the slug of one run")


class ProjectEnergyView(APIView):
    """A project's energy."""

    @extend_schema(
        operation_id="project_energy_read", responses=EnergyTableDocument, parameters=[*ASKED, RUN]
    )
    def get(self, request: Request, slug: str) -> Response:
        """Energy and emissions by what `by` says; without it by day, as `days`."""
        actor = actor_of(request)
        require_scope(actor, *READERS)
        project = project_for(actor, slug)
        if request.query_params.get("by"):
            return _table(request, actor, project=project.slug)
        asked = _days(request)
        days = energy_by_day(actor.organisation_id, project.pk, **asked)
        document = {"project": project.slug, "days": [asdict(day) for day in days]}
        return Response({**document, "as_of": asked.get("as_of")})


class SiteEnergyView(APIView):
    """A site's energy, whoever used it."""

    @extend_schema(operation_id="site_energy_read", responses=EnergyTableDocument, parameters=ASKED)
    def get(self, request: Request, slug: str) -> Response:
        """Energy and emissions of a site by what `by` says; by day without it."""
        actor = actor_of(request)
        require_scope(actor, *READERS)
        if site_by_slug(actor.organisation_id, slug) is None:
            raise Http404("No such site.")
        require_organisation_role(actor, write=False)
        return _table(request, actor, site=slug)


def _table(request: Request, actor: Actor, **fixed: str) -> Response:
    """The table that a query asks for."""
    asked = {**request.query_params.dict(), **fixed}
    try:
        question = bounded(question_in(asked, actor))
    except QuestionError as error:
        raise exceptions.ParseError(str(error), code="question") from error
    return Response(table_document(energy_table(question), question))


def _days(request: Request) -> dict[str, Any]:
    """The asked-for days, checked."""
    query = request.query_params
    names = {"from": "start_on", "to": "end_on", "as_of": "as_of"}
    document = DaysQuery(data={names[key]: query[key] for key in names if query.get(key)})
    document.is_valid(raise_exception=True)
    return dict(document.validated_data)

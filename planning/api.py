"""REST doors of intent: estimates, the plan and the burn-down of a project."""

from datetime import UTC, datetime

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from carbon.instants import settled
from formulae.periods import parse_utc
from planning.documents import burndown_document, plan_document
from planning.models import Estimate
from planning.selectors import (
    BASES,
    burndown_of,
    estimates_of,
    may_see_estimate,
    plan_versions,
    version_differences,
)
from planning.services import freeze_estimate
from planning.spec import SpecError, parse_request
from planning.variance import variance_of
from planning.variance_documents import variance_document
from projects.access import (
    Actor,
    Scope,
    actor_of,
    project_for,
    projects_for,
    require_analyst,
    require_scope,
)
from projects.idempotency import idempotent
from projects.models import Project


def _estimate_document(estimate: Estimate) -> dict[str, object]:
    """One frozen estimate, question and answer."""
    return {
        "id": str(estimate.pk),
        "name": estimate.name,
        "created_at": estimate.created_at.isoformat(),
        "created_by": estimate.created_by,
        "spec": estimate.spec,
        **estimate.result,
    }


def _own_project(actor: Actor) -> Project | None:
    """The project that a token is limited to: what it makes belongs there."""
    return projects_for(actor).first() if actor.token_project_id else None


class EstimatesView(APIView):
    """The SPEC of `manage.py estimate`, answered and frozen."""

    @extend_schema(responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request) -> Response:
        """List the estimates that the caller may see, newest first."""
        actor = actor_of(request)
        require_scope(actor, Scope.READ_COSTS, Scope.READ_REPORTS, Scope.MANAGE_PROJECT)
        rows = [
            _estimate_document(estimate)
            for estimate in estimates_of(actor.organisation_id)
            if may_see_estimate(actor, estimate)
        ]
        return Response({"estimates": rows})

    @extend_schema(request=OpenApiTypes.OBJECT, responses={201: OpenApiTypes.OBJECT})
    @idempotent
    def post(self, request: Request) -> Response:
        """Answer a kickoff question and keep it."""
        actor = actor_of(request)
        require_scope(actor, Scope.MANAGE_PROJECT, Scope.ADMIN_ORG)
        require_analyst(actor)
        if not isinstance(request.data, dict):
            raise ValidationError({"spec": "Send one JSON object."})
        try:
            question = parse_request(request.data)
            estimate = freeze_estimate(
                actor, question, as_of=datetime.now(UTC), project=_own_project(actor)
            )
        except SpecError as error:
            raise ValidationError(error.problems) from error
        return Response(_estimate_document(estimate), status=201)


class PlanView(APIView):
    """The plan of a project, all versions."""

    @extend_schema(responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request, slug: str) -> Response:
        """List the versions, newest first, each with what differs from the one before."""
        actor = actor_of(request)
        require_scope(actor, Scope.READ_COSTS, Scope.READ_REPORTS, Scope.MANAGE_PROJECT)
        project = project_for(actor, slug)
        differences = version_differences(project)
        versions = [
            plan_document(version, differences.get(version.number))
            for version in plan_versions(project)
        ]
        return Response({"project": project.slug, "versions": versions})


_WHAT_WAS_KNOWN = extend_schema(
    parameters=[
        OpenApiParameter("as_of", OpenApiTypes.DATETIME),
        OpenApiParameter("basis", enum=list(BASES)),
    ],
    responses={200: OpenApiTypes.OBJECT},
)


def _asked(request: Request, slug: str) -> tuple[Project, datetime, str]:
    """The project that the caller may see, the instant of knowledge, and the cost basis."""
    actor = actor_of(request)
    require_scope(actor, Scope.READ_COSTS, Scope.READ_REPORTS, Scope.MANAGE_PROJECT)
    project = project_for(actor, slug)
    text = request.query_params.get("as_of")
    try:
        as_of = settled(parse_utc(text) if text else datetime.now(UTC))
    except ValueError as error:
        raise ValidationError({"as_of": str(error)}) from error
    basis = request.query_params.get("basis", "effective")
    if basis not in BASES:
        raise ValidationError({"basis": f"Write one of {', '.join(BASES)}."})
    return project, as_of, basis


class BurndownView(APIView):
    """Plan against actuals; the same JSON as `manage.py burndown`."""

    @_WHAT_WAS_KNOWN
    def get(self, request: Request, slug: str) -> Response:
        """Return what was known at `as_of`, now by default."""
        project, as_of, basis = _asked(request, slug)
        return Response(burndown_document(burndown_of(project, as_of=as_of, basis=basis)))


class VarianceView(APIView):
    """Why actuals differ from the plan; the same JSON as `manage.py variance`."""

    @_WHAT_WAS_KNOWN
    def get(self, request: Request, slug: str) -> Response:
        """Return the causes as known at `as_of`, now by default; null without a baseline."""
        project, as_of, basis = _asked(request, slug)
        return Response(variance_document(variance_of(project, as_of=as_of, basis=basis)))

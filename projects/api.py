"""The REST doors of projects, tokens and jobs."""

from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from projects import selectors, services
from projects.access import actor_of, project_for, projects_for, require_scope
from projects.idempotency import idempotent
from projects.job_access import job_for
from projects.records import Actor, Scope
from projects.serializers import (
    JobDocument,
    NewProject,
    NewTokenDocument,
    NewTokenRequest,
    ProjectDocument,
    TokenDocument,
)

READERS = (Scope.READ_COSTS, Scope.READ_REPORTS, Scope.MANAGE_PROJECT, Scope.ADMIN_ORG)
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="Repeat a POST with the same key and body: the first answer comes back, "
    "nothing is made twice.",
)


class ProjectsView(APIView):
    """The projects that the caller may see."""

    @extend_schema(operation_id="projects_list", responses=ProjectDocument(many=True))
    def get(self, request: Request) -> Response:
        """List the projects."""
        actor = actor_of(request)
        require_scope(actor, *READERS)
        return Response(ProjectDocument(projects_for(actor), many=True).data)

    @extend_schema(
        operation_id="projects_create",
        request=NewProject,
        responses={201: ProjectDocument},
        parameters=[IDEMPOTENCY_KEY],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Create a project."""
        actor = actor_of(request)
        require_scope(actor, Scope.ADMIN_ORG)
        document = NewProject(data=request.data)
        document.is_valid(raise_exception=True)
        project = services.create_project(actor, **document.validated_data)
        location = reverse("api_project", args=[project.slug])
        return Response(ProjectDocument(project).data, status=201, headers={"Location": location})


class ProjectView(APIView):
    """One project."""

    @extend_schema(operation_id="projects_read", responses=ProjectDocument)
    def get(self, request: Request, slug: str) -> Response:
        """Read one project."""
        actor = actor_of(request)
        require_scope(actor, *READERS)
        return Response(ProjectDocument(project_for(actor, slug)).data)


class TokensView(APIView):
    """The tokens that the caller may see."""

    @extend_schema(operation_id="tokens_list", responses=TokenDocument(many=True))
    def get(self, request: Request) -> Response:
        """List the tokens; never their secrets."""
        actor = actor_of(request)
        require_scope(actor, Scope.ADMIN_ORG)
        return Response(TokenDocument(selectors.tokens(actor), many=True).data)

    @extend_schema(
        operation_id="tokens_create", request=NewTokenRequest, responses={201: NewTokenDocument}
    )
    def post(self, request: Request) -> Response:
        """Make a token. Its secret is in this answer and nowhere else, so no key replays it."""
        actor = actor_of(request)
        require_scope(actor, Scope.ADMIN_ORG)
        document = NewTokenRequest(data=request.data)
        document.is_valid(raise_exception=True)
        new_token = services.create_token(
            actor,
            name=document.validated_data["name"],
            scopes=[Scope(scope) for scope in document.validated_data["scopes"]],
            days=document.validated_data["days"],
            reach=document.reach(),
        )
        return Response(NewTokenDocument(new_token).data, status=201)


class TokenView(APIView):
    """One token."""

    @extend_schema(operation_id="tokens_revoke", responses={204: None})
    def delete(self, request: Request, token_id: UUID) -> Response:
        """Revoke a token; a token may end itself."""
        actor = actor_of(request)
        if actor.token_id != token_id:
            require_scope(actor, Scope.ADMIN_ORG)
        services.revoke_token(actor, token_id)
        return Response(status=204)


class JobView(APIView):
    """One job."""

    @extend_schema(operation_id="jobs_read", responses=JobDocument)
    def get(self, request: Request, job_id: UUID) -> Response:
        """Read how far a job has come."""
        return Response(JobDocument(job_for(_reader(request), job_id)).data)


def _reader(request: Request) -> Actor:
    """A caller that may read jobs: whoever may read at all, or upload what the job works on."""
    actor = actor_of(request)
    if actor.is_token and not actor.scopes & {*READERS, Scope.UPLOAD_BILLING}:
        raise PermissionDenied("This token may not read jobs.")
    return actor

"""The REST doors of runs and their progress: parse, call, answer.

200 means committed; the same again changes nothing. 4xx: it can never be taken. 503: send it again.
"""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import date, datetime
from typing import IO, Any, Final

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions, parsers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from projects.access import Role, actor_of, project_for, require_scope
from projects.models import Project
from projects.parsing import BodyTooLarge, UnsupportedBody, parse_json, refuse_charsets
from projects.records import Actor, Scope
from projects.unpacking import unpacked_gzip
from runs.progress import ensure_run
from runs.progress_answers import progress_document, run_document
from runs.progress_documents import ProgressDocumentError, read_document
from runs.progress_intake import record_read
from runs.progress_selectors import latest_of
from runs.progress_serializers import (
    ProgressAnswer,
    ProgressDocument,
    RecordedDocument,
    RunDocument,
)
from runs.selectors import run_by_slug

MAX_SENT_BYTES: Final = 8 << 20
MAX_UNPACKED_BYTES: Final = 32 << 20
READERS: Final = (Scope.READ_COSTS, Scope.READ_REPORTS, Scope.MANAGE_PROJECT, Scope.ADMIN_ORG)
FIRST_YEAR, LAST_YEAR = 2000, 9998
START: Final = OpenApiParameter("start", OpenApiTypes.DATE, description="first day")
END: Final = OpenApiParameter("end", OpenApiTypes.DATE, description="first day that is out")
AS_OF: Final = OpenApiParameter(
    "as_of", OpenApiTypes.DATETIME, description="as it was known at that instant"
)


class ProgressJSONParser(parsers.BaseParser):
    """A JSON body, in gzip or bare, as the strict reader reads it."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        meta = getattr((parser_context or {}).get("request"), "META", {})
        refuse_charsets(media_type or "")
        encoding = meta.get("HTTP_CONTENT_ENCODING", "").strip().lower()
        if encoding not in {"", "identity", "gzip"}:
            raise UnsupportedBody(f"Content-Encoding {encoding[:40]!r} is not taken; send gzip.")
        if int(meta.get("CONTENT_LENGTH") or 0) > MAX_SENT_BYTES:
            raise BodyTooLarge(f"The body is larger than {MAX_SENT_BYTES} bytes.")
        sent = bytes(stream.read(MAX_SENT_BYTES + 1))
        if len(sent) > MAX_SENT_BYTES:
            raise BodyTooLarge(f"The body is larger than {MAX_SENT_BYTES} bytes.")
        if encoding == "gzip":
            sent = unpacked_gzip(sent, max_bytes=MAX_UNPACKED_BYTES)
        return parse_json(sent)


class RunsView(APIView):
    """The runs of a project."""

    @extend_schema(operation_id="runs_list", responses=RunDocument(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """List the project's runs and where each stands."""
        actor = actor_of(request)
        project = project_for(actor, slug)
        require_scope(actor, *READERS)
        return Response([run_document(one) for one in latest_of(project.pk)])


class ProgressView(APIView):
    """What a run reports, and what it amounts to by day."""

    parser_classes = (ProgressJSONParser,)

    @extend_schema(
        operation_id="run_progress_read",
        responses=ProgressAnswer,
        parameters=[START, END, AS_OF],
    )
    def get(self, request: Request, slug: str, run_slug: str) -> Response:
        """Read a run's progress by UTC day."""
        actor = actor_of(request)
        project = project_for(actor, slug)
        require_scope(actor, *READERS)
        run = run_by_slug(project.pk, run_slug)
        if run is None:
            raise Http404("No such run.")
        query = request.query_params
        document = progress_document(
            run,
            start_on=_day(query.get("start", ""), "start"),
            end_on=_day(query.get("end", ""), "end"),
            as_of=_instant(query.get("as_of", "")),
        )
        return Response(document)

    @extend_schema(
        operation_id="run_progress_create",
        request=ProgressDocument,
        responses={200: RecordedDocument},
    )
    def post(self, request: Request, slug: str, run_slug: str) -> Response:
        """Take points and events of a run, which is made at its first report.

        200: committed, and the same again changes nothing; records that cannot be true are named
        and left out. 400: none could be taken, or it is no such document. 503: send it again.
        """
        actor = actor_of(request)
        project = _project_to_write(actor, slug)
        try:
            read = read_document(request.data)
        except ProgressDocumentError as error:
            detail = exceptions.ErrorDetail(str(error), code="document")
            raise exceptions.ValidationError({error.field or "document": [detail]}) from error
        recorded = record_read(actor, ensure_run(actor, project, run_slug), read, default="api")
        is_lost = recorded.refused and not recorded.points_known and not recorded.points_new
        if is_lost and not recorded.events_new and not recorded.events_known:
            first = recorded.refused[0]
            document = {
                "code": "refused",
                "message": f"{first.field} of record {first.index}: {first.reason}",
                "field": first.field,
                "row": first.index,
            }
            return Response({**document, **asdict(recorded)}, status=400)
        return Response(asdict(recorded))


def _project_to_write(actor: Actor, slug: str) -> Project:
    """The project, for a token that may bring runs or a person who may change it."""
    if not actor.is_token:
        return project_for(actor, slug, Role.ANALYST)
    project = project_for(actor, slug)
    require_scope(actor, Scope.INGEST_RUNS)
    return project


def _day(text: str, field: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise _unreadable(field, "It is a day, such as 2026-11-16.") from None


def _instant(text: str) -> datetime | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or not FIRST_YEAR <= found.year <= LAST_YEAR:
        raise _unreadable("as_of", "It is an instant with its zone, such as 2026-11-16T08:00:00Z.")
    return found


def _unreadable(field: str, message: str) -> exceptions.ValidationError:
    return exceptions.ValidationError({field: [exceptions.ErrorDetail(message, code="invalid")]})

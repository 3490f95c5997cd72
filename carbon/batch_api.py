"""The door of agents and of other senders of power: check the wrapping, read, store, answer.

200 and 202 mean committed. 4xx: the same bytes can never be taken. 503: send the same again.
"""

import base64
import binascii
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import IO, Any, Final

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.http import Http404
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, PolymorphicProxySerializer, extend_schema
from rest_framework import exceptions, parsers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from carbon import services
from carbon.adapters.agent_batches import agent_name, is_agent_batch, read_batch
from carbon.adapters.agent_columns import AgentBatchError
from carbon.adapters.power_bodies import read_csv_text, read_document
from carbon.adapters.power_texts import PowerTextError
from carbon.attribution import microsecond_of
from carbon.backlog import IntakeFullError
from carbon.batches import BatchConflictError, note_conflict, note_refused, note_taken, take_batch
from carbon.intake import FUTURE
from carbon.parsing import PowerCsvParser, TooMuchWaits
from carbon.serializers import AgentBatchDocument, AgentReceipt, PowerBatch, PowerReceipt
from projects.access import actor_of, require_organisation_role, require_scope
from projects.authentication import bearer_of
from projects.parsing import BodyTooLarge, UnsupportedBody, parse_json, refuse_charsets
from projects.records import Actor, Scope
from projects.unpacking import unpacked_gzip
from runs.records import SiteRecord
from runs.selectors import site_by_id, site_by_slug

MAX_SENT_BYTES: Final = 16 << 20
MAX_UNPACKED_BYTES: Final = 64 << 20
SITE: Final = OpenApiParameter(
    "site",
    OpenApiTypes.STR,
    description="the site's slug, for a token that is not limited to one site",
)
DIGEST: Final = OpenApiParameter(
    "Content-Digest",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="sha-256=:BASE64: of the body as sent (RFC 9530); an agent's batch must have it",
)


class Conflict(exceptions.APIException):
    """The batch contradicts an earlier one."""

    status_code = status.HTTP_409_CONFLICT
    default_code = "conflict"


class PowerJSONParser(parsers.BaseParser):
    """A JSON body as `{"body": bytes, "sha256": bytes}`, checked against its digest, unpacked."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
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
        found = sha256(sent).digest()
        header = meta.get("HTTP_CONTENT_DIGEST", "")
        _check_digest(header, found)
        body = unpacked_gzip(sent, max_bytes=MAX_UNPACKED_BYTES) if encoding == "gzip" else sent
        return {"body": body, "sha256": found, "has_digest": bool(header)}


def _check_digest(header: str, found: bytes) -> None:
    """Compare with `sha-256=:BASE64:`, where the header is there."""
    if not header:
        return
    values = dict(part.strip().partition("=")[::2] for part in header.split(","))
    told = values.get("sha-256", "")
    try:
        is_right = base64.b64decode(told.strip(":"), validate=True) == found
    except binascii.Error:
        is_right = False
    if not is_right:
        raise _bad_digest("The body is not what its sha-256 says: it was damaged on the way.")


def _bad_digest(message: str) -> exceptions.ValidationError:
    detail = exceptions.ErrorDetail(message, code="digest")
    return exceptions.ValidationError({"Content-Digest": [detail]})


class PowerBatchesView(APIView):
    """Where agents send what they read, and others power samples and energy intervals."""

    parser_classes = (PowerJSONParser, PowerCsvParser)

    @extend_schema(
        operation_id="power_batches_create",
        request={
            "application/json": PolymorphicProxySerializer(
                component_name="PowerBatchBody",
                serializers=[PowerBatch, AgentBatchDocument],
                resource_type_field_name=None,
            ),
            "text/csv": OpenApiTypes.STR,
        },
        responses={
            200: PolymorphicProxySerializer(
                component_name="PowerBatchAnswer",
                serializers=[PowerReceipt, AgentReceipt],
                resource_type_field_name=None,
            ),
            202: AgentReceipt,
        },
        parameters=[SITE, DIGEST],
    )
    def post(self, request: Request) -> Response:
        """Store a batch. 2xx means committed; the same batch again changes nothing.

        202: readings lie ahead of our clock and are kept in quarantine. 4xx: a retry cannot mend
        it. 503 with Retry-After: it could not be stored, send it again.
        """
        actor = actor_of(request)
        site = _site_of(actor, request.query_params.get("site", ""))
        body: Any = request.data
        if str(request.content_type).startswith(PowerCsvParser.media_type):
            return _take_texts(actor, site, body, is_csv=True)
        if is_agent_batch(body.get("body", b"")):
            return _take_agent_batch(site, body, now=timezone.now())
        sent: bytes = body.get("body", b"")
        if len(sent) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise BodyTooLarge(
                f"The body is larger than {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes."
            )
        return _take_texts(actor, site, parse_json(sent), is_csv=False)

    def handle_exception(self, exc: Exception) -> Response:
        """Note a refused agent on its site before it is answered."""
        is_refusal = isinstance(
            exc, exceptions.AuthenticationFailed | exceptions.PermissionDenied | PermissionDenied
        )
        if is_refusal and self.request.method == "POST":
            _note_refusal(self.request, str(exc))
        if isinstance(exc, IntakeFullError):
            exc = TooMuchWaits(str(exc))
        return super().handle_exception(exc)


def _take_agent_batch(site: SiteRecord, body: Mapping[str, Any], *, now: datetime) -> Response:
    """Store an agent's batch."""
    if not body["has_digest"]:
        raise _bad_digest("An agent's batch needs the header Content-Digest: sha-256=:BASE64:.")
    try:
        batch = read_batch(body["body"], newest=microsecond_of(now + FUTURE))
    except AgentBatchError as error:
        detail = exceptions.ErrorDetail(error.problem, code=error.code)
        raise exceptions.ValidationError({error.field: [detail]}) from error
    try:
        receipt = take_batch(site, batch, sha256=body["sha256"], now=now)
    except BatchConflictError as error:
        if error.code == "two_boots":
            note_conflict(site, batch.name, str(error), now=now)
        raise Conflict(str(error), code=error.code) from error
    note_taken(site, batch.name, now=now)
    code = status.HTTP_202_ACCEPTED if "in_the_future" in receipt.document["reasons"] else 200
    return Response(receipt.document, status=code)


def _take_texts(actor: Actor, site: SiteRecord, document: Any, *, is_csv: bool) -> Response:
    """Store a document of samples or intervals, or a CSV text."""
    try:
        batches = read_csv_text(document["csv"]) if is_csv else read_document(document)
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
        if not slug:
            raise exceptions.ParseError(
                "Name a site that exists with ?site=SLUG, or use a token of one site.",
                code="site",
            )
        named = site_by_slug(actor.organisation_id, slug)
        if named is None:
            raise Http404("No such site.")
        return named
    own = site_by_id(actor.organisation_id, actor.token_site_id)
    if own is None or slug not in ("", own.slug):
        raise PermissionDenied("This token is limited to another site.")
    return own


def _note_refusal(request: Request, why: str) -> None:
    """Say on the site of a genuine token, though it opens nothing, which agent is refused."""
    actor = bearer_of(request.META.get("HTTP_AUTHORIZATION", ""))
    if actor is None or actor.token_site_id is None:
        return
    try:
        body: Any = request.data
        name = agent_name(body.get("body", b""))
        site = site_by_id(actor.organisation_id, actor.token_site_id)
        if site is not None and name:
            note_refused(site, name, why, now=timezone.now())
    except (exceptions.APIException, DatabaseError):
        return  # the refusal is answered all the same

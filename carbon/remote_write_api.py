"""The door of Prometheus remote-write: check the wrapping, decode, store, answer as senders expect.

204 with an empty body means committed. 5xx is sent again by Prometheus, for ever and in the same
bytes; 4xx is dropped by it, so a 4xx is given only where the same bytes can never be taken.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import IO, Any, Final

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, parsers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from carbon.adapters.remote_write import Decoded, RemoteWriteError, decode
from carbon.backlog import IntakeFullError
from carbon.doors import accept, ensure_sender
from carbon.models import Sender
from carbon.parsing import TooMuchWaits
from carbon.refusals import note_refused, note_taken, sender_name
from carbon.run_samples import store_run_samples
from projects.access import actor_of, require_scope
from projects.authentication import TokenAuthentication, bearer_of
from projects.parsing import BodyTooLarge, UnsupportedBody
from projects.records import Actor, Scope
from runs.records import SiteRecord
from runs.selectors import site_by_id

VERSION_1: Final = "prometheus.WriteRequest"
WRITTEN: Final = "X-Prometheus-Remote-Write-Samples-Written"
LABEL_OF_TOKENS: Final = "token "


class RemoteWriteParser(parsers.BaseParser):
    """A remote-write 1.0 body as `{"body": bytes}`, still packed."""

    media_type = "application/x-protobuf"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, bytes]:
        meta = getattr((parser_context or {}).get("request"), "META", {})
        _refuse_wrappings(media_type or "", meta.get("HTTP_CONTENT_ENCODING", ""))
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if int(meta.get("CONTENT_LENGTH") or 0) > limit:
            raise BodyTooLarge(f"The body is larger than {limit} bytes; send fewer samples.")
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise BodyTooLarge(f"The body is larger than {limit} bytes; send fewer samples.")
        return {"body": bytes(body)}


def _refuse_wrappings(media_type: str, encoding: str) -> None:
    """Take 1.0 in snappy only: what else is sent would be read as something that it is not."""
    parameters = dict(
        part.strip().partition("=")[::2] for part in media_type.split(";")[1:] if "=" in part
    )
    proto = parameters.get("proto", VERSION_1).strip('"')
    if proto != VERSION_1:
        raise UnsupportedBody(f"{proto[:80]} is not taken; set protobuf_message: {VERSION_1}.")
    if encoding.strip().lower() != "snappy":
        raise UnsupportedBody(
            f"Content-Encoding {encoding[:40] or '(none)'} is not taken; send snappy blocks."
        )


class RemoteWriteView(APIView):
    """Where a Prometheus, a vmagent or an OpenTelemetry collector sends power and energy."""

    authentication_classes = (TokenAuthentication,)
    parser_classes = (RemoteWriteParser,)

    @extend_schema(
        operation_id="prometheus_write",
        request={"application/x-protobuf": OpenApiTypes.BINARY},
        responses={204: None},
    )
    def post(self, request: Request) -> HttpResponse:
        """Take a remote-write 1.0 message for the site of the token. 204: committed.

        4xx: the same bytes can never be taken; readings of them that are good are kept, and
        X-Prometheus-Remote-Write-Samples-Written counts them. 503: send the same again.
        """
        actor = actor_of(request)
        site = _site_of(actor)
        document: Any = request.data  # without a body there is nothing to parse
        body: bytes = document.get("body", b"")
        try:
            decoded = decode(body, owner=site.site_id, now=timezone.now())
        except RemoteWriteError as error:
            note_refused(site, _token_name(actor), str(error), now=timezone.now())
            raise exceptions.ParseError(str(error), code=error.code) from error
        version = request.META.get("HTTP_USER_AGENT", "")[:80]
        of_runs = _store(actor, site, decoded, body, sender=(_token_name(actor), version))
        return _answer(decoded, of_runs)

    def handle_exception(self, exc: Exception) -> Response:
        """Note a refused sender on its site before it is answered."""
        is_refusal = isinstance(
            exc, exceptions.AuthenticationFailed | exceptions.PermissionDenied | PermissionDenied
        )
        if is_refusal and self.request.method == "POST":
            _note_refusal(self.request, str(exc))
        if isinstance(exc, IntakeFullError):
            exc = TooMuchWaits(str(exc))
        return super().handle_exception(exc)


def _site_of(actor: Actor) -> SiteRecord:
    """The site of the token; nothing else in a remote-write request could name one."""
    require_scope(actor, Scope.INGEST_POWER)
    site = site_by_id(actor.organisation_id, actor.token_site_id) if actor.token_site_id else None
    if site is None:
        raise PermissionDenied("Remote-write needs a token that is limited to one site.")
    return site


def _token_name(actor: Actor) -> str:
    return actor.label.removeprefix(LABEL_OF_TOKENS)


def _store(
    actor: Actor, site: SiteRecord, decoded: Decoded, body: bytes, *, sender: tuple[str, str]
) -> int:
    """Commit what was understood, one body for each exporter and replica; says how many of runs."""
    if not decoded.streams and not decoded.runs:
        return 0
    name, version = sender
    now = timezone.now()
    with transaction.atomic():
        stored = store_run_samples(actor, decoded, name=name, now=now)
        for stream, brought in decoded.streams:
            sender_id = ensure_sender(
                site,
                Sender.Kind.REMOTE_WRITE,
                sender_name(name, *stream),
                version=version,
                now=now,
            )
            accept(site, sender_id, brought, sha256=sha256(body).digest(), received_at=now)
        note_taken(site, name, decoded.complaint)
    decoded.remember()
    return stored


def _answer(decoded: Decoded, of_runs: int) -> HttpResponse:
    """204, or 400 with what was refused: a part that is lost must never look taken."""
    answer: HttpResponse
    if decoded.complaint:
        document = {
            "code": "partly_refused",
            "message": decoded.complaint,
            "reasons": dict(decoded.refused.reasons),
        }
        answer = Response(document, status=400)
    else:
        answer = HttpResponse(status=204)
    answer[WRITTEN] = str(decoded.written + of_runs)
    return answer


def _note_refusal(request: Request, why: str) -> None:
    """Say on the site of a genuine token, though it opens nothing, that its sender is refused."""
    actor = bearer_of(request.META.get("HTTP_AUTHORIZATION", ""))
    if actor is None or actor.token_site_id is None:
        return
    site = site_by_id(actor.organisation_id, actor.token_site_id)
    if site is not None:
        note_refused(site, _token_name(actor), why, now=timezone.now())

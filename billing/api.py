"""The REST doors of deliveries: hand bills in, read how the import went."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions, serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from billing.adapters import FORMATS
from billing.documents import import_document
from billing.doors import delivery_for, require_upload, sees_totals
from billing.records import ChargesRefusedError
from billing.services import (
    IncomingFile,
    NewDelivery,
    TooManyUploadsError,
    receive_files,
    upload_slot,
)
from projects.access import actor_of, require_scope, sees_unallocated
from projects.idempotency import idempotent
from projects.records import Actor, Scope

MEBIBYTE = 2**20
STATUS_OF = {"too_large": 413, "file_type": 415, "disk_full": 507}


class _TooLarge(exceptions.APIException):
    status_code = 413
    default_code = "too_large"


class _TooMany(exceptions.APIException):
    status_code = 429
    default_code = "too_many_uploads"
    wait = 30


class UploadDocument(serializers.Serializer[Any]):
    """A bill's files and where they come from, as multipart/form-data."""

    file = serializers.ListField(child=serializers.FileField(allow_empty_file=True), min_length=1)
    source = serializers.CharField(max_length=120)  # type: ignore[assignment]  # a field of this name
    format = serializers.ChoiceField(choices=FORMATS, default="auto")
    period = serializers.ListField(child=serializers.CharField(max_length=7), required=False)
    confirm_shrink = serializers.BooleanField(default=False)
    adds = serializers.BooleanField(default=False)
    again = serializers.BooleanField(default=False)


class ImportsView(APIView):
    """Bill files on their way in."""

    parser_classes = [MultiPartParser]

    @extend_schema(
        operation_id="charges_import",
        request=UploadDocument,
        responses={202: OpenApiTypes.OBJECT, 200: OpenApiTypes.OBJECT},
        parameters=[OpenApiParameter("Idempotency-Key", OpenApiTypes.STR, OpenApiParameter.HEADER)],
    )
    def post(self, request: Request) -> Response:
        """Hand bill files in: 202 with the job, 200 when the same bytes are here already."""
        actor = actor_of(request)
        require_upload(actor)
        _check_length(request)
        try:
            with upload_slot(actor.organisation_id):
                return self._receive_once(request)
        except TooManyUploadsError as error:
            raise _TooMany(str(error)) from error

    @idempotent
    def _receive_once(self, request: Request) -> Response:
        actor = actor_of(request)
        sent: Any = request.data
        lists = {key: sent.getlist(key) for key in _LISTS if key in sent}
        document = UploadDocument(data={**sent.dict(), **lists})
        document.is_valid(raise_exception=True)
        wanted = document.validated_data
        require_upload(actor, wanted["source"])
        try:
            receipt = receive_files(actor, _wish(wanted))
        except ChargesRefusedError as refusal:
            return _refused(refusal)
        delivery = delivery_for(actor, receipt.delivery_id)
        body = _visible(actor, delivery, already_imported=receipt.already_imported)
        location = reverse("api_charge_import", args=[delivery.pk])
        status = 200 if receipt.already_imported else 202
        return Response(body, status=status, headers={"Location": location})


_LISTS = ("file", "period")


def _check_length(request: Request) -> None:
    """Refuse a body that is too large before it is read."""
    limit_bytes = (settings.MAX_UPLOAD_MB + 1) * MEBIBYTE
    if int(request.META.get("CONTENT_LENGTH") or 0) > limit_bytes:
        raise _TooLarge(f"The body is larger than {settings.MAX_UPLOAD_MB} MiB.")


def _wish(wanted: dict[str, Any]) -> NewDelivery:
    return NewDelivery(
        source_name=wanted["source"],
        files=[IncomingFile(name=file.name or "", chunks=file.chunks()) for file in wanted["file"]],
        periods=[period for period in wanted.get("period", []) if period],
        bill_format=wanted["format"],
        confirm_shrink=wanted["confirm_shrink"],
        adds=wanted["adds"],
        again=wanted["again"],
    )


def _refused(refusal: ChargesRefusedError) -> Response:
    body = {"code": refusal.code, "message": refusal.sentence, "field": "file"}
    if refusal.row is not None:
        body["row"] = str(refusal.row)
    return Response(body, status=STATUS_OF.get(refusal.code, 400))


def _visible(actor: Actor, delivery: Any, *, already_imported: bool) -> dict[str, Any]:
    """The delivery's document, without the amounts that the caller may not see."""
    document = import_document(delivery, already_imported=already_imported)
    if not sees_totals(actor, delivery):
        return {**document, "totals": None, "report": None}
    if sees_unallocated(actor):
        return document
    shrinking = [
        {name: value for name, value in month.items() if name != "totals"}
        for month in delivery.report.get("shrinking", [])
    ]
    return {**document, "report": {**delivery.report, "shrinking": shrinking}}


class ImportView(APIView):
    """One delivery."""

    @extend_schema(operation_id="charges_import_read", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, delivery_id: UUID) -> Response:
        """Read how an import went."""
        actor = actor_of(request)
        require_scope(actor, Scope.UPLOAD_BILLING, Scope.READ_COSTS, Scope.ADMIN_ORG)
        delivery = delivery_for(actor, delivery_id)
        return Response(_visible(actor, delivery, already_imported=False))

"""The REST doors of the hardware catalogue: parse, call, answer."""

from dataclasses import asdict, fields
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from projects.access import actor_of, require_organisation_role, require_scope
from projects.idempotency import idempotent
from projects.records import Scope
from runs import own_catalogue
from runs.catalogue_pages import AcceleratorLine, TypeLine, accelerator_lines, type_lines
from runs.catalogue_rows import RowError
from runs.own_catalogue import SavedRow
from runs.serializers import (
    AcceleratorDocument,
    InstanceTypeDocument,
    NewAcceleratorDocument,
    NewInstanceTypeDocument,
)

READERS = (Scope.READ_COSTS, Scope.READ_REPORTS, Scope.MANAGE_PROJECT, Scope.ADMIN_ORG)
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="Repeat a POST with the same key and body: the first answer comes back.",
)
TEXT = OpenApiParameter("q", OpenApiTypes.STR, description="words of the name")
VENDOR = OpenApiParameter("vendor", OpenApiTypes.STR, description="such as NVIDIA")
PROVIDER = OpenApiParameter("provider", OpenApiTypes.STR, description="such as aws")
ACCELERATOR = OpenApiParameter("accelerator", OpenApiTypes.STR, description="a key")


def _accelerator_document(line: AcceleratorLine) -> dict[str, Any]:
    spec = line.spec
    document = {one.name: getattr(spec, one.name) for one in fields(spec) if one.name != "family"}
    for kind in ("dense", "sparse"):
        document[f"peak_{kind}_flop_per_s"] = dict(document[f"peak_{kind}_flop_per_s"])
    return {**document, "is_own": line.is_own, "overrides_shipped": line.overrides}


def _instance_type_document(line: TypeLine) -> dict[str, Any]:
    document = asdict(line.spec)
    document["accelerator"] = document.pop("accelerator_key")
    document["accelerator_count"] = f"{line.spec.accelerator_count.normalize():f}"
    is_own = line.entry_id is not None
    return {**document, "is_own": is_own, "overrides_shipped": line.overrides}


def _body(request: Request) -> dict[str, Any]:
    if not isinstance(request.data, dict):
        raise exceptions.ParseError("Send one JSON object.", code="unreadable")
    return request.data


def _answer(saved: SavedRow, document: dict[str, Any]) -> Response:
    code = status.HTTP_201_CREATED if saved.is_new else status.HTTP_200_OK
    return Response(document, status=code)


def _refusal(error: RowError) -> exceptions.ValidationError:
    return exceptions.ValidationError({error.field: [error.message]}, code="row")


class AcceleratorsView(APIView):
    """The accelerators, shipped and own."""

    @extend_schema(
        operation_id="catalogue_accelerators_list",
        responses=AcceleratorDocument(many=True),
        parameters=[TEXT, VENDOR],
    )
    def get(self, request: Request) -> Response:
        """List the accelerators; dense and sparse peaks apart, in FLOP/s."""
        actor = actor_of(request)
        require_scope(actor, *READERS)
        query = request.query_params
        lines = accelerator_lines(
            actor.organisation_id, text=query.get("q", ""), vendor=query.get("vendor", "")
        )
        return Response([_accelerator_document(line) for line in lines])

    @extend_schema(
        operation_id="catalogue_accelerators_create",
        request=NewAcceleratorDocument,
        responses={200: AcceleratorDocument, 201: AcceleratorDocument},
        parameters=[IDEMPOTENCY_KEY],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Add an own accelerator (201), or change the one of this key (200)."""
        actor = actor_of(request)
        require_organisation_role(actor, write=True)
        try:
            saved = own_catalogue.save_accelerator(actor, _body(request))
        except RowError as error:
            raise _refusal(error) from error
        lines = accelerator_lines(actor.organisation_id)
        line = next(line for line in lines if line.spec.key == saved.document["key"])
        return _answer(saved, _accelerator_document(line))


class InstanceTypesView(APIView):
    """The instance types, shipped and own."""

    @extend_schema(
        operation_id="catalogue_instance_types_list",
        responses=InstanceTypeDocument(many=True),
        parameters=[TEXT, PROVIDER, ACCELERATOR],
    )
    def get(self, request: Request) -> Response:
        """List the instance types and how many accelerators each holds."""
        actor = actor_of(request)
        require_scope(actor, *READERS)
        query = request.query_params
        lines = type_lines(
            actor.organisation_id,
            text=query.get("q", ""),
            provider=query.get("provider", ""),
            key=query.get("accelerator", ""),
        )
        return Response([_instance_type_document(line) for line in lines])

    @extend_schema(
        operation_id="catalogue_instance_types_create",
        request=NewInstanceTypeDocument,
        responses={200: InstanceTypeDocument, 201: InstanceTypeDocument},
        parameters=[IDEMPOTENCY_KEY],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Add an own instance type (201), or change the one of this name (200)."""
        actor = actor_of(request)
        require_organisation_role(actor, write=True)
        try:
            saved = own_catalogue.save_instance_type(actor, _body(request))
        except RowError as error:
            raise _refusal(error) from error
        row = saved.document
        lines = type_lines(actor.organisation_id, provider=row["provider"], text=row["name"])
        line = next(line for line in lines if line.spec.name.lower() == row["name"].lower())
        return _answer(saved, _instance_type_document(line))

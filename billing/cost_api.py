"""The REST doors of costs: any question, of a project or of everything that the caller may see."""

from typing import Any
from uuid import UUID

from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from billing.cost_conversion import ConversionError, conversion_document, converted_costs
from billing.cost_questions import GROUP_COLUMNS, CostQuestion, QuestionError, question_in
from billing.cost_questions import Scope as CostScope
from billing.cost_selectors import cost_table
from billing.documents import cost_document
from billing.doors import cost_scope
from billing.exporting import CONTENT_TYPES, FORMATS, export_file
from billing.focus_columns import VERSION
from billing.records import Basis
from projects.access import actor_of, project_for, require_scope
from projects.records import Scope

READERS = (Scope.READ_COSTS, Scope.READ_REPORTS, Scope.MANAGE_PROJECT, Scope.ADMIN_ORG)
QUESTION_PARAMETERS: list[Any] = [
    OpenApiParameter(
        "group_by",
        OpenApiTypes.STR,
        default="x_cost_class",
        description=f"columns, with commas between: {', '.join(GROUP_COLUMNS)}, tag:KEY",
    ),
    OpenApiParameter(
        "basis", OpenApiTypes.STR, enum=[basis.value for basis in Basis], default="billed"
    ),
    OpenApiParameter("from", OpenApiTypes.DATE, description="first day"),
    OpenApiParameter("to", OpenApiTypes.DATE, description="first day that is out"),
    OpenApiParameter("month", OpenApiTypes.STR, description="instead of from and to: 2026-05"),
    OpenApiParameter(
        "filter",
        OpenApiTypes.STR,
        many=True,
        description="column=value or column!=value; several values of one column are alternatives; "
        "no value means missing",
    ),
    OpenApiParameter(
        "currency",
        OpenApiTypes.STR,
        description="also the total in this currency, by the rate of each month's last day",
    ),
]
COST_ROW = {
    "type": "object",
    "description": "The group's columns, then its sums.",
    "properties": {
        "currency": {"type": "string"},
        "cost": {"type": "string", "nullable": True, "description": "an exact decimal"},
        "accelerator_h": {"type": "string", "nullable": True},
        "idle_accelerator_h": {"type": "string", "nullable": True},
        "storage_tb_month": {"type": "string", "nullable": True},
        "requests": {"type": "string", "nullable": True},
        "transfer_bytes": {"type": "string", "nullable": True},
        "rows": {"type": "integer"},
    },
    "additionalProperties": {"type": "string", "nullable": True},
}
COST_TABLE = {
    "type": "object",
    "properties": {
        "basis": {"type": "string"},
        "from": {"type": "string", "format": "date", "nullable": True},
        "to": {"type": "string", "format": "date", "nullable": True},
        "filters": {"type": "array", "items": {"type": "string"}},
        "rows": {"type": "array", "items": COST_ROW},
        "total": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "currency": {"type": "string"},
                    "cost": {"type": "string", "nullable": True},
                },
            },
        },
        "converted_total": {
            "type": "object",
            "description": "With `currency`: its cost is null where a rate is missing.",
            "properties": {
                "currency": {"type": "string"},
                "cost": {"type": "string", "nullable": True},
                "rates": {"type": "array", "items": {"type": "object"}},
                "missing_rates": {"type": "array", "items": {"type": "object"}},
            },
        },
    },
}


class CostsView(APIView):
    """Costs of every project that the caller may see."""

    @extend_schema(
        operation_id="costs", responses={200: COST_TABLE}, parameters=QUESTION_PARAMETERS
    )
    def get(self, request: Request) -> Response:
        """Read costs by any dimension: the JSON of `manage.py costs`."""
        actor = actor_of(request)
        require_scope(actor, *READERS)
        question = asked_question(request, cost_scope(actor))
        return Response(_document(request, actor.organisation_id, question))


class ProjectCostsView(APIView):
    """A project's costs."""

    @extend_schema(
        operation_id="project_costs", responses={200: COST_TABLE}, parameters=QUESTION_PARAMETERS
    )
    def get(self, request: Request, slug: str) -> Response:
        """Read a project's costs by any dimension: the JSON of `manage.py costs --project`."""
        actor = actor_of(request)
        require_scope(actor, *READERS)
        project = project_for(actor, slug)
        question = asked_question(request, CostScope(project_id=project.pk))
        return Response(_document(request, actor.organisation_id, question))


def _document(request: Request, organisation_id: UUID, question: CostQuestion) -> dict[str, Any]:
    """The costs and, where a currency is asked for, their total in it with every rate."""
    document = cost_document(cost_table(organisation_id, question))
    currency = request.query_params.get("currency", "").upper()
    if not currency:
        return document
    try:
        converted = converted_costs(organisation_id, question, currency=currency)
    except ConversionError as error:
        raise exceptions.ValidationError({"currency": [str(error)]}) from error
    return document | conversion_document(converted)


class ChargesExportView(APIView):
    """Charges as a FOCUS file."""

    @extend_schema(
        operation_id="charges_export",
        responses={
            (200, "text/csv"): OpenApiTypes.BINARY,
            (200, "application/vnd.apache.parquet"): OpenApiTypes.BINARY,
        },
        parameters=[
            *QUESTION_PARAMETERS[1:],
            OpenApiParameter("as", OpenApiTypes.STR, enum=list(FORMATS), default="csv"),
            OpenApiParameter("project", OpenApiTypes.STR, description="only this project's"),
        ],
    )
    def get(self, request: Request) -> FileResponse:
        """Read charges as FOCUS 1.2: the file of `manage.py export charges`."""
        actor = actor_of(request)
        require_scope(actor, *READERS)
        kind = request.query_params.get("as") or FORMATS[0]
        if kind not in FORMATS:
            raise exceptions.ValidationError({"as": [f"Choose from {', '.join(FORMATS)}."]})
        slug = request.query_params.get("project")
        scope = CostScope(project_id=project_for(actor, slug).pk) if slug else cost_scope(actor)
        file = export_file(actor.organisation_id, asked_question(request, scope), kind=kind)
        return FileResponse(
            file,
            as_attachment=True,
            filename=f"charges-focus-{VERSION}.{kind}",
            content_type=CONTENT_TYPES[kind],
        )


def asked_question(request: Request, scope: CostScope) -> CostQuestion:
    """The question of a request's parameters, or 400 with the parameter that is wrong."""
    try:
        return question_in(dict(request.query_params.lists()), scope)
    except QuestionError as error:
        raise exceptions.ValidationError({error.field: [error.message]}) from error

"""The REST doors of prices and exchange rates: read those in force, state new ones."""

from datetime import date
from typing import Any

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from billing.doors import require_price_reader
from billing.price_documents import imported_document, price_document, rate_document
from billing.price_reading import price_from_texts, rate_from_texts
from billing.price_records import (
    OWN_BOOK,
    PRICE_CLASSES,
    Imported,
    PricesRefusedError,
    PriceWish,
    RateWish,
)
from billing.price_selectors import exchange_rate, newest_exchange_rates, prices_in_force
from billing.services import add_exchange_rates, add_prices
from projects.access import actor_of, require_organisation_role
from projects.idempotency import idempotent
from projects.records import Actor

MOST_ROWS = 5000
KEY = OpenApiParameter("Idempotency-Key", OpenApiTypes.STR, OpenApiParameter.HEADER)


class PricesDocument(serializers.Serializer[Any]):
    """Prices of one book, each with the columns of a price list; amounts are text."""

    book = serializers.CharField(max_length=120, default=OWN_BOOK)
    prices = serializers.ListField(
        child=serializers.DictField(), min_length=1, max_length=MOST_ROWS
    )


class RatesDocument(serializers.Serializer[Any]):
    """Exchange rates, each with date, base, quote, rate and source; rates are text."""

    exchange_rates = serializers.ListField(
        child=serializers.DictField(), min_length=1, max_length=MOST_ROWS
    )


class PricesView(APIView):
    """The organisation's prices and the shipped list."""

    @extend_schema(
        operation_id="prices",
        responses=OpenApiTypes.OBJECT,
        parameters=[
            OpenApiParameter("on", OpenApiTypes.DATE, description="in force on; default: today"),
            OpenApiParameter("cost_class", OpenApiTypes.STR, enum=PRICE_CLASSES),
            OpenApiParameter("provider", OpenApiTypes.STR),
        ],
    )
    def get(self, request: Request) -> Response:
        """Read the prices in force on a day."""
        actor = actor_of(request)
        require_price_reader(actor)
        on = _day(request)
        cost_class = request.query_params.get("cost_class") or None
        if cost_class is not None and cost_class not in PRICE_CLASSES:
            raise exceptions.ValidationError(
                {"cost_class": [f"Write one of {', '.join(PRICE_CLASSES)}."]}
            )
        provider = request.query_params.get("provider", "").lower()
        found = prices_in_force(actor.organisation_id, on=on, cost_class=cost_class)
        rows = [price_document(one) for one in found if provider in ("", one.provider)]
        return Response({"on": on.isoformat(), "prices": rows})

    @extend_schema(
        operation_id="prices_add",
        request=PricesDocument,
        responses={201: OpenApiTypes.OBJECT, 200: OpenApiTypes.OBJECT},
        parameters=[KEY],
    )
    def post(self, request: Request) -> Response:
        """State prices, all or none: 201 when some are new, 200 when all were known."""
        require_organisation_role(actor_of(request), write=True)
        return self._add_once(request)

    @idempotent
    def _add_once(self, request: Request) -> Response:
        document = PricesDocument(data=request.data)
        document.is_valid(raise_exception=True)
        wanted = document.validated_data
        try:
            wishes = _read_prices(wanted["prices"])
            imported = add_prices(actor_of(request), wishes, book=wanted["book"])
        except PricesRefusedError as error:
            return _refused(error)
        return _stated(imported)


class ExchangeRatesView(APIView):
    """The organisation's exchange rates."""

    @extend_schema(
        operation_id="exchange_rates",
        responses=OpenApiTypes.OBJECT,
        parameters=[
            OpenApiParameter("on", OpenApiTypes.DATE, description="known on; default: today"),
            OpenApiParameter("base", OpenApiTypes.STR),
            OpenApiParameter("quote", OpenApiTypes.STR),
        ],
    )
    def get(self, request: Request) -> Response:
        """Read the newest rate of each pair; with base and quote, that of one pair on a day."""
        actor = actor_of(request)
        require_price_reader(actor)
        base, quote = (request.query_params.get(name, "").upper() for name in ("base", "quote"))
        if base and quote:
            return Response(_rate_of_pair(actor, base, quote, _day(request)))
        rates = [rate_document(rate) for rate in newest_exchange_rates(actor.organisation_id)]
        return Response({"exchange_rates": rates})

    @extend_schema(
        operation_id="exchange_rates_add",
        request=RatesDocument,
        responses={201: OpenApiTypes.OBJECT, 200: OpenApiTypes.OBJECT},
        parameters=[KEY],
    )
    def post(self, request: Request) -> Response:
        """State exchange rates, all or none: 201 when some are new, 200 when all were known."""
        require_organisation_role(actor_of(request), write=True)
        return self._add_once(request)

    @idempotent
    def _add_once(self, request: Request) -> Response:
        document = RatesDocument(data=request.data)
        document.is_valid(raise_exception=True)
        try:
            wishes = _read_rates(document.validated_data["exchange_rates"])
            imported = add_exchange_rates(actor_of(request), wishes)
        except PricesRefusedError as error:
            return _refused(error)
        return _stated(imported)


def _rate_of_pair(actor: Actor, base: str, quote: str, on: date) -> dict[str, Any]:
    found = exchange_rate(actor.organisation_id, base=base, quote=quote, on=on)
    return {"on": on.isoformat(), "exchange_rates": [rate_document(found)] if found else []}


def _read_prices(rows: list[dict[str, Any]]) -> list[PriceWish]:
    wishes = []
    for number, row in enumerate(rows, start=1):
        try:
            wishes.append(price_from_texts(_texts(row), currency="USD"))
        except PricesRefusedError as error:
            raise PricesRefusedError(error.reason, row=number, column=error.column) from error
    return wishes


def _read_rates(rows: list[dict[str, Any]]) -> list[RateWish]:
    wishes = []
    for number, row in enumerate(rows, start=1):
        try:
            wishes.append(rate_from_texts(_texts(row), source=""))
        except PricesRefusedError as error:
            raise PricesRefusedError(error.reason, row=number, column=error.column) from error
    return wishes


def _texts(row: dict[str, Any]) -> dict[str, str]:
    """The row's values as text; a number of JSON may have lost digits, so it is refused."""
    for name, value in row.items():
        if value is not None and not isinstance(value, str):
            raise PricesRefusedError("write it as text, in quotation marks", column=str(name))
    return {name: value or "" for name, value in row.items()}


def _refused(error: PricesRefusedError) -> Response:
    body = {"code": "refused", "message": error.sentence, "field": error.column}
    if error.row is not None:
        body["row"] = str(error.row)
    return Response(body, status=400)


def _stated(imported: Imported) -> Response:
    return Response(imported_document(imported), status=201 if imported.added else 200)


def _day(request: Request) -> date:
    text = request.query_params.get("on")
    if not text:
        return timezone.now().date()
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise exceptions.ValidationError({"on": ["Write a day as 2026-05-31."]}) from error

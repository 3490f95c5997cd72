"""What every request passes: a log line, a look at its query, the sign-in door for pages."""

import time
import uuid
from collections.abc import Callable
from typing import Any

import structlog
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse

log = structlog.get_logger("costwatch.request")
QUIET_PATHS = ("/static/", "/healthz", "/readyz")


class RequestLogMiddleware:
    """Write one line a request, with an id that answers carry too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = uuid.uuid4().hex[:12]
        structlog.contextvars.bind_contextvars(request_id=request_id)
        started = time.perf_counter()
        response = self.get_response(request)
        response["X-Request-Id"] = request_id
        if not request.path.startswith(QUIET_PATHS):
            log.info(
                "request",
                method=request.method,
                path=request.path,
                status=response.status_code,
                duration_ms=round((time.perf_counter() - started) * 1000, 1),
            )
        structlog.contextvars.clear_contextvars()
        return response


class NoNulMiddleware:
    """Refuse a NUL in a query: no table holds one, so no filter could find it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "%00" in request.META.get("QUERY_STRING", ""):
            raise BadRequest("The address holds a NUL character.")
        return self.get_response(request)


class SignedInMiddleware(LoginRequiredMiddleware):
    """Send strangers to the sign-in page; an htmx fragment is told to move the whole page."""

    def handle_no_permission(  # type: ignore[override]  # the stub knows only the redirect
        self, request: HttpRequest, view_func: Callable[..., Any]
    ) -> HttpResponse:
        to_sign_in = super().handle_no_permission(request, view_func)
        if not request.headers.get("HX-Request"):
            return to_sign_in
        response = HttpResponse(status=401)
        response["HX-Redirect"] = to_sign_in["Location"]
        return response

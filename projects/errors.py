"""How the REST API says no: `{code, message, field|row}`, never a traceback, SQL or a path."""

import errno
from typing import Any

import structlog
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.exceptions import ValidationError as ModelRefusal
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

log = structlog.get_logger(__name__)
RETRY_AFTER_S = 5
DISK_TROUBLE = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS}


def api_exception_handler(exc: Exception, context: dict[str, Any]) -> Response:
    """Turn whatever a REST view raised into one JSON answer."""
    if isinstance(exc, exceptions.APIException):
        return _of_api(exc)
    if isinstance(exc, Http404):
        return _answer(404, "not_found", "There is no such thing, or not for you.")
    if isinstance(exc, PermissionDenied):
        return _answer(403, "permission_denied", str(exc) or "You may not do this.")
    if isinstance(exc, ModelRefusal):
        return _of_refusal(exc)
    if isinstance(exc, RequestDataTooBig):
        return _answer(413, "too_large", "The body is too large.")
    if isinstance(exc, SuspiciousOperation):
        return _answer(400, "bad_request", "This request cannot be read.")
    if trouble := _trouble_of_storing(exc):
        log.warning("cannot store", error=type(exc).__name__)
        response = _answer(503, "unavailable", trouble)
        response["Retry-After"] = str(RETRY_AFTER_S)
        return response
    log.exception("request failed", view=type(context.get("view")).__name__, exc_info=exc)
    return _answer(500, "internal", "Something went wrong on our side; it has been logged.")


def _trouble_of_storing(exc: Exception) -> str:
    """What to tell a caller that may send the same again later; empty where that is no help."""
    if isinstance(exc, OperationalError | InterfaceError):
        return "The database does not answer. Try again."
    if isinstance(exc, OSError) and exc.errno in DISK_TROUBLE:
        return "There is no room to store this right now. Try again."
    return ""


def _answer(status: int, code: str, message: str, **more: Any) -> Response:
    return Response({"code": code, "message": message, **more}, status=status)


def _of_api(exc: exceptions.APIException) -> Response:
    if isinstance(exc, exceptions.ValidationError):
        errors = list(_leaves(exc.detail, ""))
        response = _of_errors(errors or [{"code": "invalid", "message": "Not valid.", "field": ""}])
        response.status_code = exc.status_code
    else:
        code = getattr(exc.detail, "code", None) or exc.default_code
        response = _answer(exc.status_code, str(code), str(exc.detail))
    if auth_header := getattr(exc, "auth_header", None):
        response["WWW-Authenticate"] = auth_header
    if wait_s := getattr(exc, "wait", None):
        response["Retry-After"] = str(int(wait_s))
    return response


def _of_refusal(exc: ModelRefusal) -> Response:
    by_field = exc.error_dict if hasattr(exc, "error_dict") else {"": exc.error_list}
    return _of_errors(
        [
            {
                "code": str(error.code or "invalid"),
                "message": " ".join(error.messages),
                "field": "" if field == "__all__" else field,
            }
            for field, errors in by_field.items()
            for error in errors
        ]
    )


def _of_errors(errors: list[dict[str, str]]) -> Response:
    """The first error leads; the others stand beside it."""
    plain = [{key: text for key, text in error.items() if text} for error in errors]
    return Response({**plain[0], **({"errors": plain} if len(plain) > 1 else {})}, status=400)


def _leaves(detail: Any, field: str) -> Any:
    if isinstance(detail, dict):
        for key, item in detail.items():
            name = "" if key == "non_field_errors" else str(key)
            yield from _leaves(item, f"{field}.{name}".strip("."))
    elif isinstance(detail, list):
        for index, item in enumerate(detail):
            is_row = isinstance(item, dict | list)
            yield from _leaves(item, f"{field}[{index}]" if is_row else field)
    else:
        yield {
            "code": str(getattr(detail, "code", "invalid")),
            "message": str(detail),
            "field": field,
        }

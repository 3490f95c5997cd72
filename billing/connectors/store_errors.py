"""What the file systems of fsspec raise, in our words: code, sentence, permission to grant."""

import asyncio
import re
from typing import Any, Final

import aiohttp
import fsspec.exceptions
import google.auth.exceptions
import requests
from azure.core.exceptions import AzureError, HttpResponseError
from django.utils.translation import gettext as _
from gcsfs.retry import HttpError

from billing.connectors.contract import LIST, ConnectorError

STORE_ERRORS: Final[tuple[type[Exception], ...]] = (
    OSError,
    ValueError,
    RuntimeError,
    EOFError,
    HttpError,
    AzureError,
    aiohttp.ClientError,
    asyncio.TimeoutError,
    fsspec.exceptions.FSTimeoutError,
    google.auth.exceptions.GoogleAuthError,
    requests.RequestException,
)
# Google names it: "… does not have storage.objects.list access to the … bucket."
_GOOGLE_PERMISSION: Final = re.compile(r"(storage\.\w+\.\w+)")
_UNKNOWN_CREDENTIAL: Final = frozenset({"AuthenticationFailed", "InvalidAuthenticationInfo"})
_STATUS: Final = {
    401: "credentials", 403: "access_denied", 404: "missing", 408: "timeout", 409: "changed",
    412: "changed", 429: "throttled", 503: "throttled",
}  # fmt: skip


def readable(error: Exception, *, kind: str, step: str, place: str, key: str) -> ConnectorError:
    """The error of the store in our words."""
    code = _code(error)
    if code == "missing" and step == LIST:
        code = "not_found"
    permission = _permission(error, kind, step, place) if code == "access_denied" else ""
    return ConnectorError(code, _sentence(code, place), object=key, missing_permission=permission)


def _code(error: Exception) -> str:
    status = _status_of(error)
    if status is not None:
        return _STATUS.get(status, "unavailable" if status >= 500 else "settings")
    if isinstance(error, FileNotFoundError):
        return "missing"
    if isinstance(error, PermissionError) or str(error).startswith("Forbidden: "):
        return "access_denied"
    if isinstance(error, asyncio.TimeoutError | fsspec.exceptions.FSTimeoutError | TimeoutError):
        return "timeout"
    if isinstance(error, google.auth.exceptions.GoogleAuthError):
        return "credentials"
    if isinstance(error, ValueError):
        return "settings"
    said = str(error)
    if "DefaultAzureCredential" in said or "AADSTS" in said:
        return "credentials"
    return "unavailable"


def _status_of(error: Exception) -> int | None:
    """The status of HTTP that the store answered with."""
    status: Any = None
    if isinstance(error, HttpError):
        status = error.code
    elif isinstance(error, HttpResponseError):
        status = error.status_code
        if getattr(error, "error_code", None) in (
            "AuthenticationFailed",
            "InvalidAuthenticationInfo",
        ):
            return 401
    elif isinstance(error, aiohttp.ClientResponseError):
        status = error.status
    return int(status) if str(status or "").isdigit() else None


def _permission(error: Exception, kind: str, step: str, place: str) -> str:
    if kind == "gcs":
        found = _GOOGLE_PERMISSION.search(str(error).partition("\n")[2])
        usual = "storage.objects.list" if step == LIST else "storage.objects.get"
        return f"{found[1] if found else usual} on gs://{place}"
    if kind == "azure_blob":
        return (
            "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read "
            f"(Storage Blob Data Reader) on {place}"
        )
    return ""


def _sentence(code: str, place: str) -> str:
    return {
        "access_denied": _("the store refuses access"),
        "credentials": _("the store does not know the credential, or there is none"),
        "not_found": _("there is no {place}"),
        "missing": _("the object is not there"),
        "changed": _("the object was replaced meanwhile"),
        "throttled": _("the store asks to slow down"),
        "unavailable": _("the store cannot be reached or failed"),
        "timeout": _("the store did not answer in time"),
        "settings": _("the store does not take the request: check the settings"),
    }[code].format(place=place)

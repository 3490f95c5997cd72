"""Google's errors in our words: what is missing, whether waiting helps. No calls here."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import requests
from django.utils.translation import gettext as _
from google.api_core import exceptions as google_errors
from google.auth import exceptions as auth_errors

from billing.connectors.contract import ConnectorError

JOBS_CREATE: Final = "bigquery.jobs.create"
TABLES_GET: Final = "bigquery.tables.get"
TABLES_GET_DATA: Final = "bigquery.tables.getData"
TABLES_LIST: Final = "bigquery.tables.list"
_PERMISSION: Final = re.compile(r"\bbigquery\.[a-zA-Z]+\.[a-zA-Z]+\b")
_SLOW_DOWN: Final = frozenset({"rateLimitExceeded", "quotaExceeded", "jobRateLimitExceeded"})
_HICCUPS: Final = frozenset({"backendError", "internalError", "jobBackendError"})


@contextmanager
def in_our_words(*, job_project: str, table: str, permission: str) -> Iterator[None]:
    """Turn what Google's client raises into a ConnectorError.

    `permission` is what the call needs, for refusals that do not name it.
    """
    try:
        yield
    except google_errors.RetryError as error:
        cause = error.cause
        if not isinstance(cause, google_errors.GoogleAPICallError):
            raise ConnectorError("timeout", _("Google did not answer in time.")) from error
        raise _of_call(cause, job_project, table, permission) from error
    except google_errors.GoogleAPICallError as error:
        raise _of_call(error, job_project, table, permission) from error
    except (auth_errors.GoogleAuthError, requests.RequestException, OSError) as error:
        raise _of_the_way(error) from error


def _of_the_way(error: Exception) -> ConnectorError:
    """What failed before Google's BigQuery could answer: the network, or the sign-in."""
    if isinstance(error, requests.Timeout | TimeoutError):
        return ConnectorError("timeout", _("Google did not answer in time."))
    if isinstance(error, auth_errors.RefreshError):
        return ConnectorError(
            "credentials",
            _("Google refuses the credential: the key was deleted or disabled, or has expired."),
        )
    if isinstance(error, auth_errors.TransportError | requests.RequestException | OSError):
        return ConnectorError("unavailable", _("Google cannot be reached."))
    return ConnectorError(
        "credentials",
        _(
            "This server has no Google credential of its own: give it a workload identity, or "
            "store the key of a service account here."
        ),
    )


def _of_call(
    error: google_errors.GoogleAPICallError, job_project: str, table: str, permission: str
) -> ConnectorError:
    reason = reason_of(error)
    if reason in _SLOW_DOWN or error.code == 429:
        return ConnectorError("throttled", _("Google asks to slow down: a quota is used up."))
    if reason in _HICCUPS or (error.code or 0) >= 500:
        return ConnectorError("unavailable", _("Google cannot answer just now."))
    if reason == "bytesBilledLimitExceeded":
        return ConnectorError(
            "too_large", _("The query would read more than the limit of this source."), object=table
        )
    if error.code == 401:
        return ConnectorError("credentials", _("Google does not accept the credential."))
    if error.code == 403:
        missing = missing_permission(error.message, job_project, table, permission)
        return ConnectorError(
            "access_denied",
            _("Permission is missing: {permission}.").format(permission=missing),
            missing_permission=missing,
        )
    if error.code == 404:
        return ConnectorError(
            "not_found", _("There is no such table, or nobody may know of it."), object=table
        )
    return ConnectorError(
        "settings", _("BigQuery refuses the query: {reason}").format(reason=error.message[:300])
    )


def reason_of(error: google_errors.GoogleAPICallError) -> str:
    """Google's own word, such as accessDenied or rateLimitExceeded."""
    for entry in error.errors:
        if isinstance(entry, dict) and entry.get("reason"):
            return str(entry["reason"])
    return ""


def missing_permission(message: str, job_project: str, table: str, permission: str) -> str:
    """Which permission on what, as the refusal names it or as the call needs it.

    >>> missing_permission(
    ...     "Access Denied: Project p: User does not have bigquery.jobs.create permission in p.",
    ...     "p", "p.d.t", TABLES_GET_DATA)
    'bigquery.jobs.create on project p'
    """
    named = _PERMISSION.search(message)
    wanted = named.group() if named else permission
    if not named and wanted == JOBS_CREATE and "Access Denied: Table" in message:
        wanted = TABLES_GET_DATA
    if wanted == JOBS_CREATE:
        return f"{wanted} on project {job_project}"
    if wanted == TABLES_LIST:
        return f"{wanted} on dataset {table}"
    return f"{wanted} on table {table}"

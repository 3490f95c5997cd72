"""What S3 and botocore say, in our words: code, sentence, and the permission to grant."""

import re
from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ReadTimeoutError,
    SSLError,
)
from django.utils.translation import gettext as _

from billing.connectors.contract import LIST, ConnectorError

_CODES: Final = {
    "access_denied": {
        "AccessDenied", "AccessDeniedException", "AllAccessDisabled", "AccountProblem",
        "Forbidden", "403", "UnauthorizedAccess", "KMS.DisabledException",
    },
    "expired": {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"},
    "credentials": {
        "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "InvalidClientTokenId",
        "AuthFailure", "UnrecognizedClientException", "401",
    },
    "not_found": {"NoSuchBucket"},
    "missing": {"NoSuchKey", "404", "NotFound"},
    "changed": {"PreconditionFailed", "412"},
    "throttled": {
        "SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests",
        "RequestThrottled", "429", "503", "ServiceUnavailable",
    },
    "settings": {
        "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException",
        "InvalidBucketName", "301", "400", "InvalidRequest", "InvalidObjectState",
    },
}  # fmt: skip
# AWS names what was refused: "is not authorized to perform: kms:Decrypt on resource: arn:…"
_NOT_AUTHORISED: Final = re.compile(
    r"not authorized to perform: ([\w-]+:\w+)(?: on resource: \"?([^\s\"]+?)\"?)?(?:\s|$)"
)


def readable(
    error: BotoCoreError | ClientError, *, step: str, bucket: str, prefix: str, key: str = ""
) -> ConnectorError:
    """The error of the store in our words."""
    if not isinstance(error, ClientError):
        return _of_the_way(error, key)
    answer = error.response.get("Error", {})
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    said = str(answer.get("Code", ""))
    code = next((code for code, said_so in _CODES.items() if said in said_so), "")
    if not code:
        code = "unavailable" if status >= 500 else "access_denied" if status == 403 else "settings"
    permission = ""
    if code == "access_denied":
        permission = _permission(error, str(answer.get("Message", "")), step, bucket)
    return ConnectorError(
        code, _sentence(code, said, bucket), object=key, missing_permission=permission
    )


def _permission(error: ClientError, message: str, step: str, bucket: str) -> str:
    """The permission that is missing, as precisely as the answer tells; empty for an object's."""
    if found := _NOT_AUTHORISED.search(message):
        resource = (found[2] or "").rstrip(".")
        return f"{found[1]} on {resource}" if resource else found[1]
    if error.operation_name == "AssumeRole":
        return "sts:AssumeRole"
    return f"s3:ListBucket on arn:aws:s3:::{bucket}" if step == LIST else ""


def _sentence(code: str, said: str, bucket: str) -> str:
    return {
        "access_denied": _("the store refuses access ({said})"),
        "expired": _("the credential has expired ({said})"),
        "credentials": _("the store does not know the credential ({said})"),
        "not_found": _("there is no bucket {bucket}"),
        "missing": _("the object is not there"),
        "changed": _("the object was replaced meanwhile"),
        "throttled": _("the store asks to slow down ({said})"),
        "unavailable": _("the store failed ({said})"),
        "settings": _("the store does not take the request ({said}): check bucket and region"),
    }[code].format(said=said, bucket=bucket)


def _of_the_way(error: BotoCoreError, key: str) -> ConnectorError:
    """What went wrong on the way to the store."""
    inner = error.kwargs.get("error") if isinstance(error, HTTPClientError) else None
    if isinstance(inner, ConnectorError):
        return inner
    if isinstance(error, NoCredentialsError | PartialCredentialsError | CredentialRetrievalError):
        return ConnectorError(
            "credentials",
            _("no credential: this machine has no role, and the source has no keys"),
        )
    if isinstance(error, ConnectTimeoutError | ReadTimeoutError):
        return ConnectorError("timeout", _("the store did not answer in time"), object=key)
    if isinstance(error, SSLError):
        return ConnectorError("endpoint", _("the store's certificate cannot be trusted"))
    if isinstance(error, EndpointConnectionError):
        return ConnectorError("unavailable", _("the store cannot be reached"), object=key)
    if isinstance(error, HTTPClientError):
        return ConnectorError("unavailable", _("the connection broke"), object=key)
    name = type(error).__name__
    if name in ("ResponseStreamingError", "IncompleteReadError", "ConnectionClosedError"):
        return ConnectorError("unavailable", _("the connection broke"), object=key)
    return ConnectorError("settings", _("the request cannot be made ({name})").format(name=name))

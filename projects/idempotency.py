"""Idempotency-Key on POSTs that create: a retry is answered from memory and changes nothing."""

import hashlib
import json
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, TypeVar

from django.core.files.uploadedfile import UploadedFile
from django.db import connection, transaction
from django.utils import timezone
from rest_framework import exceptions, status
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from projects.access import actor_of
from projects.models import RememberedAnswer
from projects.records import Actor

LONGEST_KEY = 255
REMEMBERED_FOR = timedelta(days=30)
View = TypeVar("View", bound=Callable[..., Response])


class KeyReused(exceptions.APIException):
    """The key belongs to another request."""

    status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
    default_detail = "This Idempotency-Key was used for a request with another body."
    default_code = "idempotency_key_reused"


class TwinInFlight(exceptions.APIException):
    """The same request is being answered right now."""

    status_code = status.HTTP_409_CONFLICT
    default_detail = "The same request is being answered right now. Try again in a moment."
    default_code = "idempotency_twin_in_flight"


def idempotent(view: View) -> View:
    """Make a REST view's `post` honour Idempotency-Key.

    The view runs in one transaction with the memory of its answer: both are kept or neither.
    Refusals (4xx) and failures are not remembered.
    """

    @wraps(view)
    def once(self: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        key = request.headers.get("Idempotency-Key")
        if key is None:
            return view(self, request, *args, **kwargs)
        actor = actor_of(request)
        _check(key)
        request_hash = _hash_of(request)
        with transaction.atomic():
            _lock(actor, key)
            remembered = _remembered(actor, key, request_hash)
            if remembered is not None:
                return remembered
            response = view(self, request, *args, **kwargs)
            if response.status_code < 400:
                _remember(actor, key, request_hash, response)
            else:
                transaction.set_rollback(True)
            return response

    return once  # type: ignore[return-value]


def _check(key: str) -> None:
    if not 1 <= len(key) <= LONGEST_KEY or not key.isprintable():
        raise exceptions.ParseError(
            f"Idempotency-Key holds 1 to {LONGEST_KEY} printable characters.",
            code="idempotency_key",
        )


def _caller(actor: Actor) -> str:
    return f"token {actor.token_id}" if actor.is_token else f"user {actor.user_id}"


def _lock(actor: Actor, key: str) -> None:
    """Hold the key until the end of the transaction; a twin that holds it already is in flight."""
    text = f"{actor.organisation_id}|{_caller(actor)}|{key}"
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [number])
        row = cursor.fetchone()
    if row is None or not row[0]:
        raise TwinInFlight


def _mine(actor: Actor) -> Any:
    return RememberedAnswer.objects.filter(
        organisation_id=actor.organisation_id, caller=_caller(actor)
    )


def _remembered(actor: Actor, key: str, request_hash: str) -> Response | None:
    answer = _mine(actor).filter(key=key).first()
    if answer is None:
        return None
    if answer.request_hash != request_hash:
        raise KeyReused
    body = json.loads(answer.body) if answer.body else None
    return Response(body, status=answer.status, headers={"Idempotent-Replayed": "true"})


def _remember(actor: Actor, key: str, request_hash: str, response: Response) -> None:
    _mine(actor).filter(created_at__lt=timezone.now() - REMEMBERED_FOR).delete()
    RememberedAnswer.objects.create(
        organisation_id=actor.organisation_id,
        caller=_caller(actor),
        key=key,
        request_hash=request_hash,
        status=response.status_code,
        body=JSONRenderer().render(response.data).decode(),
    )


def _hash_of(request: Request) -> str:
    """Hash method, address and body; uploaded files by their streamed SHA-256."""
    digest = hashlib.sha256(f"{request.method} {request.get_full_path()}\n".encode())
    body: Any = request.data
    if isinstance(body, bytes):
        digest.update(body)
    elif hasattr(body, "lists"):
        for name, values in sorted(body.lists()):
            for value in values:
                digest.update(f"{name!r}={_text_of(value)}\n".encode("utf-8", "replace"))
    else:
        digest.update(json.dumps(body, sort_keys=True, default=str).encode("utf-8"))
    return digest.hexdigest()


def _text_of(value: Any) -> str:
    if not isinstance(value, UploadedFile):
        return repr(value)
    file_digest = hashlib.sha256()
    value.seek(0)
    for chunk in value.chunks():
        file_digest.update(chunk)
    value.seek(0)
    return f"{value.name!r} {file_digest.hexdigest()}"

"""The one strict reader of JSON bodies: what it lets through, PostgreSQL can store."""

import json
import math
import re
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from django.conf import settings
from rest_framework import exceptions, parsers, status

MAX_DEPTH = 64
TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', re.DOTALL)


class BodyTooLarge(exceptions.APIException):
    """More bytes than this door takes."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = "The body is too large."
    default_code = "too_large"


class UnsupportedBody(exceptions.APIException):
    """Bytes in a wrapping that this door does not open."""

    status_code = status.HTTP_415_UNSUPPORTED_MEDIA_TYPE
    default_detail = "This media type is not supported."
    default_code = "unsupported_media_type"


class _BadJSONError(ValueError):
    """Carries the code of the answer beside its message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class StrictJSONParser(parsers.BaseParser):
    """UTF-8 JSON without NaN, duplicate keys, deep nesting, NUL or broken characters."""

    media_type = "application/json"
    renderer_class = None

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        meta = getattr((parser_context or {}).get("request"), "META", {})
        _refuse_wrappings(media_type or "", meta.get("HTTP_CONTENT_ENCODING", ""))
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if int(meta.get("CONTENT_LENGTH") or 0) > limit:
            raise BodyTooLarge(f"The body is larger than {limit} bytes.")
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise BodyTooLarge(f"The body is larger than {limit} bytes.")
        return parse_json(body)


def _refuse_wrappings(media_type: str, content_encoding: str) -> None:
    if content_encoding.strip().lower() not in {"", "identity"}:
        raise UnsupportedBody(f"Content-Encoding {content_encoding!r} is not accepted here.")
    refuse_charsets(media_type)


def refuse_charsets(media_type: str) -> None:
    """Take JSON as UTF-8 only.

    Raises:
        UnsupportedBody: another charset is declared.
    """
    for parameter in media_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        charset = value.strip().strip('"').lower()
        if name.strip().lower() == "charset" and charset not in {"utf-8", "utf8"}:
            raise UnsupportedBody("Send JSON as UTF-8.")


def parse_json(body: bytes) -> Any:
    """Read a JSON document strictly.

    Raises:
        ParseError: with a code that says what is wrong (`too_deep`, `number`, `encoding`…).
    """
    try:
        _refuse_depth(body)
        document = json.loads(
            _decode(body),
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
        if b"\\u" in body:
            _refuse_broken_text(document)
    except _BadJSONError as error:
        raise exceptions.ParseError(str(error), code=error.code) from None
    except json.JSONDecodeError as error:
        raise exceptions.ParseError(
            f"Not JSON: {error.msg} at line {error.lineno}, column {error.colno}.", code="not_json"
        ) from None
    except ValueError:
        raise exceptions.ParseError("A number has too many digits.", code="number") from None
    return document


def _decode(body: bytes) -> str:
    if not body.strip():
        raise _BadJSONError("empty", "The body is empty.")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _BadJSONError("encoding", f"Byte {error.start} is not UTF-8.") from None
    if text.startswith("\ufeff"):
        raise _BadJSONError("encoding", "Send UTF-8 without a byte order mark.")
    return text


def _refuse_depth(body: bytes) -> None:
    depth = 0
    for token in TOKENS.finditer(body):
        mark = token.group()[:1]
        if mark in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise _BadJSONError("too_deep", f"Nested deeper than {MAX_DEPTH}.")
        elif mark in b"]}":
            depth -= 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _BadJSONError("duplicate_key", f"The key {twice[:80]!r} appears twice.")
    return document


def _refuse_constant(name: str) -> NoReturn:
    raise _BadJSONError("number", f"{name} is not a number in JSON.")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _BadJSONError("number", f"{text[:40]} is too large.")
    return number


def _refuse_broken_text(value: Any) -> None:
    if isinstance(value, str):
        if "\x00" in value or any("\ud800" <= character <= "\udfff" for character in value):
            raise _BadJSONError("encoding", "A text holds a NUL or half a character.")
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_broken_text(key)
            _refuse_broken_text(item)
    elif isinstance(value, list):
        for item in value:
            _refuse_broken_text(item)

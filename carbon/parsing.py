"""The reader of CSV bodies of the power door; JSON goes through the one strict reader."""

from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework import exceptions, parsers, status

from projects.parsing import BodyTooLarge


class TooMuchWaits(exceptions.APIException):
    """A site's doors are shut until workers have booked what waits."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_code = "too_much_waits"
    wait = 15  # s, the header Retry-After


class PowerCsvParser(parsers.BaseParser):
    """UTF-8 text/csv as `{"csv": text}`."""

    media_type = "text/csv"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise BodyTooLarge(f"The body is larger than {limit} bytes; send smaller batches.")
        try:
            text = bytes(body).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise exceptions.ParseError(
                f"Byte {error.start} is not UTF-8.", code="encoding"
            ) from None
        if "\0" in text:
            raise exceptions.ParseError("The text holds NUL bytes.", code="encoding")
        return {"csv": text}

"""Opens bodies that come in gzip, within bounds; what is in them is read elsewhere."""

import zlib
from typing import Final

from rest_framework import exceptions

from projects.parsing import BodyTooLarge

MAX_GZIP_MEMBERS: Final = 100  # each is read from a copy of all that follows it


def unpacked_gzip(sent: bytes, *, max_bytes: int) -> bytes:
    """The bytes in a gzip wrapping, of one member or several, within a bound.

    Raises:
        ParseError: no gzip, cut short, or of too many members.
        BodyTooLarge: it unpacks to more than `max_bytes`.
    """
    body, rest, members = b"", sent, 0
    while rest:
        members += 1
        if members > MAX_GZIP_MEMBERS:
            raise exceptions.ParseError(
                f"The gzip body has more than {MAX_GZIP_MEMBERS} members.", code="gzip"
            )
        opened = zlib.decompressobj(wbits=31)
        try:
            body += opened.decompress(rest, max_bytes + 1 - len(body))
        except zlib.error as error:
            raise exceptions.ParseError(f"This is no gzip: {error}", code="gzip") from error
        if len(body) > max_bytes:
            raise BodyTooLarge(f"The body unpacks to more than {max_bytes} bytes.")
        if not opened.eof:
            raise exceptions.ParseError("The gzip body is cut short.", code="gzip")
        rest = opened.unused_data
    return body

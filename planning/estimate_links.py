"""A question in an address: packed, and unpacked with care; what it asks is planning.spec's."""

import base64
import binascii
import json
import zlib
from typing import Any, Final

from planning.spec import EstimateRequest, SpecError, parse_request

_LONGEST_LINK: Final = 6_000
_LARGEST_SPEC: Final = 64_000


def packed(request: EstimateRequest) -> str:
    """The question as text that fits into an address; empty when it is too long for one."""
    text = json.dumps(request.document(), separators=(",", ":"))
    link = base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")
    return link if len(link) <= _LONGEST_LINK and len(text) <= _LARGEST_SPEC else ""


def unpacked(link: str) -> EstimateRequest:
    """The question that an address holds, checked like any other.

    Raises:
        SpecError: it is no packed question, too large, or asks what cannot be asked.
    """
    if len(link) > _LONGEST_LINK:
        raise SpecError({"q": "too long"})
    try:
        raw = base64.urlsafe_b64decode(link + "=" * (-len(link) % 4))
        reader = zlib.decompressobj()
        text = reader.decompress(raw, _LARGEST_SPEC)
        document: Any = json.loads(text)
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        raise SpecError({"q": str(error)}) from error
    if reader.unconsumed_tail or not isinstance(document, dict):
        raise SpecError({"q": "no question"})
    return parse_request(document)

"""Records in a file: header and payload with a checksum each, and a scan that survives damage."""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# No byte of it is UTF-8, so that no JSON payload can hold it.
MAGIC: Final = b"\xf5\xc0\xff\x01"
_FIELDS: Final = struct.Struct("<4sBxxxQIII")  # magic, kind, id, rows, length, payload's CRC-32
_CRC: Final = struct.Struct("<I")
HEADER_BYTES: Final = _FIELDS.size + _CRC.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A whole record. `rows`: the readings that would be lost with it."""

    kind: int
    number: int
    rows: int
    payload: bytes
    start: int  # where in the file it begins
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Bytes that are no record. What its header says, where that is whole.

    `torn`: the file ends before the record does, as when the agent died while writing it.
    """

    start: int
    end: int
    rows: int | None = None
    number: int | None = None
    torn: bool = False


def frame(kind: int, number: int, payload: bytes, *, rows: int) -> bytes:
    """The bytes of one record."""
    head = _FIELDS.pack(MAGIC, kind, number, rows, len(payload), zlib.crc32(payload))
    return b"".join((head, _CRC.pack(zlib.crc32(head)), payload))


def scan(data: bytes, start: int = 0) -> Iterator[Record | Damage]:
    """Every record from `start` on, and every stretch between them that is none."""
    at = start
    while at < len(data):
        found = _record_at(data, at)
        yield found
        at = found.end


def _record_at(data: bytes, at: int) -> Record | Damage:
    if not _is_header(data, at):
        torn = len(data) - at < HEADER_BYTES
        return Damage(start=at, end=_next_record(data, at + 1), torn=torn)
    _, kind, number, rows, length, checksum = _FIELDS.unpack(data[at : at + _FIELDS.size])
    end = at + HEADER_BYTES + length
    payload = data[at + HEADER_BYTES : end]
    if len(payload) == length and zlib.crc32(payload) == checksum:
        return Record(kind=kind, number=number, rows=rows, payload=payload, start=at, end=end)
    # The header is whole, so the length holds, unless the writing broke off in the payload.
    after = min(end, _next_record(data, at + 1))
    return Damage(start=at, end=after, rows=rows, number=number, torn=len(payload) < length)


def _is_header(data: bytes, at: int) -> bool:
    head = data[at : at + _FIELDS.size]
    seal = data[at + _FIELDS.size : at + HEADER_BYTES]
    whole = len(seal) == _CRC.size and head.startswith(MAGIC)
    return whole and _CRC.unpack(seal)[0] == zlib.crc32(head)


def _next_record(data: bytes, start: int) -> int:
    """Where the next whole header begins, or the end of the data."""
    at = data.find(MAGIC, start)
    while at >= 0 and not _is_header(data, at):
        at = data.find(MAGIC, at + 1)
    return at if at >= 0 else len(data)

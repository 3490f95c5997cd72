"""Packed bytes of strangers as a stream of plain ones, checked and bounded; no meaning of them."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from isal import isal_zlib

from lake.refusing import CHUNK_BYTES, RefusedError, too_large

PACKED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")
ZSTD_WINDOW_BYTES: Final = 2**27  # what `zstd --long` makes; more would be memory for a stranger
PACKED_BYTES: Final = 2**16  # a piece: what of it is not unpacked yet is copied for every chunk
_GZIP: Final = b"\x1f\x8b\x08"
_HEADER_BYTES: Final = 10
_FRAME: Final = b"\x28\xb5\x2f\xfd"
_RLE_BLOCK, _RESERVED_BLOCK = 1, 3


def chunks_of(source: Path, compression: str, *, limit_bytes: int) -> Iterator[bytes]:
    """The plain bytes, one piece at a time: `none`, `gzip`, `zstd`, or `zip:N`, its N-th member.

    Raises:
        RefusedError: damaged, cut short, packed twice, empty, or more than `limit_bytes`.
    """
    size_bytes = 0
    with source.open("rb") as file:
        for chunk in _opened(file, compression):
            if size_bytes == 0 and compression != "none" and chunk.startswith(PACKED):
                raise RefusedError("file_type", "the file is packed twice; send it packed once")
            size_bytes += len(chunk)
            if size_bytes > limit_bytes:
                raise too_large(limit_bytes)
            yield chunk
    if size_bytes == 0:
        raise RefusedError("empty", "the file is empty")


def _opened(file: BinaryIO, compression: str) -> Iterator[bytes]:
    if compression == "gzip":
        return _gunzip(file)
    if compression == "zstd":
        return _unzstd(file)
    if compression.startswith("zip:"):
        from lake.archives import member_chunks  # only who has an archive needs the reader

        return member_chunks(file, int(compression.removeprefix("zip:")))
    return _pieces(file)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk


def _gunzip(source: BinaryIO) -> Iterator[bytes]:
    """Unpack gzip quickly; where that stumbles, zlib reads again and says what is wrong."""
    try:
        yield from _members(source, is_quick=True)
    except (RefusedError, isal_zlib.error) as error:  # type: ignore[misc]  # its stub lacks the class
        source.seek(0)
        for _chunk in _members(source, is_quick=False):
            pass
        raise RefusedError("damaged", "the gzip file is damaged; send it again") from error


def _members(source: BinaryIO, *, is_quick: bool) -> Iterator[bytes]:
    """Unpack one or more gzip members, never more than a chunk ahead of the consumer."""
    waiting, members = source.read(PACKED_BYTES), 0
    while waiting:
        member = _unpacker(waiting, is_quick=is_quick)
        while not member.eof:
            if not waiting and not (waiting := source.read(PACKED_BYTES)):
                raise RefusedError("truncated", "the gzip file ends in the middle; send it again")
            try:
                unpacked = member.decompress(waiting, CHUNK_BYTES)
            except zlib.error as error:
                raise RefusedError("damaged", _damage(error, members)) from error
            waiting = member.unconsumed_tail or member.unused_data
            if unpacked:
                yield unpacked
        members += 1
        if len(waiting) < _HEADER_BYTES:  # the next member's header may lie in the next piece
            waiting += source.read(PACKED_BYTES)


def _unpacker(head: bytes, *, is_quick: bool) -> Any:
    """What unpacks the member that begins so: zlib where its header is a rare one."""
    is_plain = head[:3] == _GZIP and head[3:4] in (b"\0", b"\x08")  # with no or a file's name
    if is_quick and is_plain and len(head) >= _HEADER_BYTES:
        return isal_zlib.decompressobj(wbits=31)
    return zlib.decompressobj(wbits=31)


def _damage(error: zlib.error, members: int) -> str:
    if "incorrect header" in str(error) and members:
        return "bytes that are not gzip follow the end of the gzip data; send the file again"
    if "incorrect data check" in str(error) or "length check" in str(error):
        return "the checksum of the gzip file is wrong; send it again"
    return "the gzip file is damaged; send it again"


def _unzstd(source: BinaryIO) -> Iterator[bytes]:
    """Unpack one or more zstd frames in bounded pieces; the frames are walked first."""
    import zstandard  # imported by the confined child only when it is needed

    _walk_frames(source)
    source.seek(0)
    unpacker = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    reader = unpacker.stream_reader(
        source, read_across_frames=True, read_size=CHUNK_BYTES, closefd=False
    )
    try:
        while chunk := reader.read(CHUNK_BYTES):
            yield chunk
    except zstandard.ZstdError as error:
        if "memory" in str(error).lower():
            raise RefusedError(
                "limits", "the zstd file needs a window of more than 128 MiB; pack it with less"
            ) from error
        raise RefusedError("damaged", "the zstd file is damaged; send it again") from error


def _walk_frames(source: BinaryIO) -> None:
    """See that every frame is whole and nothing else follows: the unpacker does not say.

    Raises:
        RefusedError: the file ends within a frame, or something else stands between frames.
    """
    frames = 0
    while head := source.read(4):
        if head[1:] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F:  # a frame to be skipped
            _skip(source, int.from_bytes(_exactly(source, 4), "little"))
            continue
        if head != _FRAME:
            raise RefusedError(
                "damaged" if frames else "file_type",
                "bytes that are not zstd follow the end of the zstd data; send the file again"
                if frames
                else "the bytes are not zstd",
            )
        _walk_blocks(source)
        frames += 1


def _walk_blocks(source: BinaryIO) -> None:
    descriptor = _exactly(source, 1)[0]
    is_single, size_flag, dictionary_flag = descriptor >> 5 & 1, descriptor >> 6, descriptor & 3
    size_of_size = (is_single, 2, 4, 8)[size_flag]
    _skip(source, (0 if is_single else 1) + (0, 1, 2, 4)[dictionary_flag] + size_of_size)
    is_last = False
    while not is_last:
        header = int.from_bytes(_exactly(source, 3), "little")
        is_last, kind = bool(header & 1), header >> 1 & 3
        if kind == _RESERVED_BLOCK:
            raise RefusedError("damaged", "the zstd file is damaged; send it again")
        _skip(source, 1 if kind == _RLE_BLOCK else header >> 3)
    if descriptor >> 2 & 1:
        _skip(source, 4)


def _exactly(source: BinaryIO, count: int) -> bytes:
    found = source.read(count)
    if len(found) < count:
        raise RefusedError("truncated", "the zstd file ends in the middle; send it again")
    return found


def _skip(source: BinaryIO, count: int) -> None:
    """Go on by so many bytes, all of which must be there."""
    if count > 0:
        source.seek(count - 1, 1)
        _exactly(source, 1)

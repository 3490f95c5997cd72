"""Zip archives of strangers: what is in them, one member's bytes; writes nothing to disk."""

import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from lake.refusing import CHUNK_BYTES, RefusedError, too_large

MAX_ENTRIES: Final = 1000
MAX_DIRECTORY_BYTES: Final = 4 * 2**20
HEAD_BYTES: Final = 4096
MANIFEST_BYTES: Final = 2**20  # a manifest beside its files comes whole
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_LOCAL_HEADER_BYTES: Final = 30
_IGNORED = ("__MACOSX/",)


def list_members(request: dict[str, Any]) -> dict[str, Any]:
    """Every file of the archive with its first bytes, without unpacking more than those.

    Raises:
        RefusedError: the archive is damaged, encrypted, too large, or means to trick.
    """
    limit_bytes = request["max_unpacked_bytes"]
    with Path(request["source"]).open("rb") as file:
        archive, entries = _entries(file)
        if sum(entry.file_size for _, entry in entries) > limit_bytes:
            raise too_large(limit_bytes)
        members = []
        for index, entry in entries:
            is_manifest = entry.filename.lower().endswith(".json")
            piece = MANIFEST_BYTES if is_manifest else HEAD_BYTES
            head = next(_unpacked(archive, entry, piece), b"")
            members.append(
                {
                    "index": index,
                    "name": entry.filename,
                    "size_bytes": entry.file_size,
                    "head": head.hex(),
                }
            )
    if not members:
        raise RefusedError("empty", "the archive holds no file")
    return {"members": members}


def member_chunks(file: BinaryIO, index: int) -> Iterator[bytes]:
    """The plain bytes of one member, checked against its stated size and checksum."""
    archive, entries = _entries(file)
    entry = dict(entries).get(index)
    if entry is None:
        raise RefusedError("damaged", "the archive has no such member")
    size_bytes = 0
    for chunk in _unpacked(archive, entry, CHUNK_BYTES):
        size_bytes += len(chunk)
        yield chunk
    if size_bytes != entry.file_size:
        raise RefusedError("truncated", "a file of the archive is shorter than the archive says")


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, piece: int) -> Iterator[bytes]:
    try:
        with archive.open(entry) as member:
            while chunk := member.read(piece):
                yield chunk
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as error:
        raise RefusedError(
            "damaged", "a file of the archive is damaged; send the archive again"
        ) from error


def _entries(file: BinaryIO) -> tuple[zipfile.ZipFile, list[tuple[int, zipfile.ZipInfo]]]:
    """The opened archive and its files, each looked at before anything is unpacked."""
    _check_directory(file)
    try:
        archive = zipfile.ZipFile(file)
        entries = archive.infolist()
        _check_places(file, entries)
    except (zipfile.BadZipFile, ValueError, OSError, UnicodeError, NotImplementedError) as error:
        raise RefusedError("damaged", "the zip archive is damaged; send it again") from error
    found = []
    for index, entry in enumerate(entries):
        _check_entry(entry)
        if not entry.is_dir() and not _is_clutter(entry.filename):
            found.append((index, entry))
    return archive, found


def _check_directory(file: BinaryIO) -> None:
    """Bound the archive's directory before it is read into memory."""
    size = file.seek(0, 2)
    file.seek(max(0, size - 66_000))
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < 22:
        raise RefusedError("truncated", "the zip archive ends in the middle; send it again")
    entries = int.from_bytes(tail[at + 10 : at + 12], "little")
    directory_bytes = int.from_bytes(tail[at + 12 : at + 16], "little")
    if at >= 20 and tail[at - 20 : at - 16] == b"PK\x06\x07":
        where = int.from_bytes(tail[at - 12 : at - 4], "little")
        file.seek(min(where, size))
        record = file.read(56)
        if len(record) == 56:
            entries = int.from_bytes(record[32:40], "little")
            directory_bytes = int.from_bytes(record[40:48], "little")
    if entries > MAX_ENTRIES or directory_bytes > MAX_DIRECTORY_BYTES:
        raise RefusedError(
            "archive", f"the archive lists more than {MAX_ENTRIES} files; send only the bill's"
        )
    file.seek(0)


def _check_entry(entry: zipfile.ZipInfo) -> None:
    """Refuse what unpacks elsewhere, links, secrets and unusual packing."""
    name = entry.filename
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0] or "\0" in name:
        raise RefusedError(
            "archive", "a name in the archive leads out of it (.. or an absolute path); pack again"
        )
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise RefusedError("archive", "the archive holds a symbolic link; pack the file itself")
    if entry.flag_bits & 0x41:
        raise RefusedError("encrypted", "the archive is encrypted; send it without a password")
    if entry.compress_type not in _METHODS:
        raise RefusedError("archive", "the archive is packed by an unusual method; use deflate")


def _check_places(file: BinaryIO, entries: list[zipfile.ZipInfo]) -> None:
    """Refuse members that share bytes: so a small archive would unpack to a huge one."""
    if len(entries) > MAX_ENTRIES:
        raise RefusedError("archive", f"the archive holds more than {MAX_ENTRIES} files")
    end = 0
    for entry in sorted(entries, key=lambda one: one.header_offset):
        if entry.header_offset < end:
            raise RefusedError("archive", "files of the archive overlap; pack it again")
        file.seek(entry.header_offset)
        header = file.read(_LOCAL_HEADER_BYTES)
        if len(header) < _LOCAL_HEADER_BYTES or not header.startswith(b"PK\x03\x04"):
            raise zipfile.BadZipFile("no local header")
        name_bytes = int.from_bytes(header[26:28], "little")
        extra_bytes = int.from_bytes(header[28:30], "little")
        body = entry.header_offset + _LOCAL_HEADER_BYTES + name_bytes + extra_bytes
        end = body + entry.compress_size


def _is_clutter(name: str) -> bool:
    """What an operating system adds to archives of its own accord."""
    last = name.rsplit("/", 1)[-1]
    return name.startswith(_IGNORED) or last in (".DS_Store", "Thumbs.db", "desktop.ini")

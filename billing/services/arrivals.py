"""Stores the bytes of a hand-in: files, the members of archives, and what a manifest wants of them.

No delivery is noted here, and no bill is read.
"""

import errno
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.utils.translation import gettext as _

from billing.connectors import ConnectorError
from billing.connectors.manifests import (
    MAX_MANIFEST_BYTES,
    Manifest,
    ManifestFile,
    is_manifest,
    read_manifest,
)
from billing.records import ChargesRefusedError
from lake import blobs
from lake.file_kinds import EVERY, NONE, PARQUET, TEXTS, ZIP
from lake.places import scratch
from lake.text_files import (
    ArchiveMember,
    TextFileRefusedError,
    archive_members,
    compression_of,
)

MEBIBYTE: Final = 2**20
LONGEST_NAME: Final = 255
SHOWN_NAMES: Final = 10
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
_NOT_SHOWN: Final = {"Cc", "Cf", "Cs", "Co", "Cn"}  # categories that hide or reorder text


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingFile:
    """One file on its way in; the name may hold the folders it came in, for a manifest to find."""

    name: str
    chunks: Iterable[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A file whose bytes are durable; a member of an archive shares its bytes with the others."""

    name: str
    blob: blobs.Blob
    compression: str
    path: str = ""  # as it came, with folders
    size_bytes: int = 0
    archive: str = ""  # the archive that it lay in


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The files of a hand-in, and what its manifest says of them."""

    files: tuple[Received, ...]
    period: str | None = None
    version_at: datetime | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)


def arrive(files: Sequence[IncomingFile], *, give_up: Callable[[list[str]], None]) -> Arrival:
    """Store the bytes of all files; `give_up` forgets those of a refused hand-in.

    Raises:
        ChargesRefusedError: a file is no bill or too large, or a manifest misses one.
        ConnectorError: a file could not be fetched whole.
    """
    received: list[Received] = []
    hashes: list[str] = []
    try:
        manifest, others = _manifest_of(files)
        for incoming in others:
            blob = _stored(incoming)
            hashes.append(blob.sha256)
            received += _files_in(incoming, blob)
        manifest, received = _inner_manifest(manifest, received)
        if manifest is None:
            return Arrival(files=tuple(received), origin=_archives_of(received))
        return _as_listed(manifest, received, give_up)
    except (ChargesRefusedError, ConnectorError):
        give_up(hashes)
        raise


def shown_name(name: str) -> str:
    """A file's name as it can be shown: no folders, nothing invisible, not endless."""
    last = re.split(r"[/\\]", name)[-1]
    plain = "".join(
        letter if unicodedata.category(letter) not in _NOT_SHOWN else "�" for letter in last
    )
    return plain.strip()[:LONGEST_NAME] or "file"


def _stored(file: IncomingFile) -> blobs.Blob:
    name = shown_name(file.name)
    try:
        return blobs.receive(file.chunks, max_bytes=settings.MAX_UPLOAD_MB * MEBIBYTE)
    except blobs.BlobTooLargeError as error:
        raise ChargesRefusedError(
            "too_large",
            _("the file is larger than {limit} MiB; send it gzipped or split").format(
                limit=settings.MAX_UPLOAD_MB
            ),
            file=name,
        ) from error
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise ChargesRefusedError(
                "disk_full", _("the disk is full; free some space and send it again"), file=name
            ) from error
        raise


def _files_in(file: IncomingFile, blob: blobs.Blob) -> list[Received]:
    """The file itself, or what is in the archive."""
    name = shown_name(file.name)
    try:
        compression = compression_of(name, blob.head, allowed=EVERY)
        if compression != ZIP:
            return [
                Received(
                    name=name,
                    blob=blob,
                    compression=compression,
                    path=file.name,
                    size_bytes=blob.size_bytes,
                )
            ]
        return list(_members_of(blob, name))
    except TextFileRefusedError as error:
        raise ChargesRefusedError(error.code, error.message, file=name, row=error.row) from error


def _members_of(blob: blobs.Blob, archive: str) -> Iterator[Received]:
    """The bills in an archive. Office documents are archives too, and are named as such."""
    with scratch() as folder:
        members = archive_members(
            blobs.held(blob.sha256, folder=folder),
            folder=folder,
            max_unpacked_bytes=settings.MAX_UNPACKED_MB * MEBIBYTE,
        )
    if any(member.name == "[Content_Types].xml" for member in members):
        raise TextFileRefusedError(
            "file_type", _("workbooks are not read; save the sheet as CSV, or send Parquet")
        )
    for member in members:
        if not is_manifest(member.name):
            _check_member(member)
        yield Received(
            name=shown_name(member.name),
            blob=blobs.Blob(sha256=blob.sha256, size_bytes=blob.size_bytes, head=member.head),
            compression=member.compression,
            path=member.name,
            size_bytes=member.size_bytes,
            archive=archive,
        )


def _check_member(member: ArchiveMember) -> None:
    if not member.head:
        raise TextFileRefusedError(
            "empty", _("the file {name} in the archive is empty").format(name=member.name[:100])
        )
    kind = compression_of(shown_name(member.name), member.head, allowed=EVERY)
    if kind == ZIP:
        raise TextFileRefusedError("archive", _("the archive holds an archive; send that one"))
    if kind in TEXTS and kind != NONE:
        raise TextFileRefusedError(
            "archive", _("a file in the archive is packed once more; pack it once")
        )
    if kind not in (NONE, PARQUET):
        raise TextFileRefusedError("file_type", _("the archive holds what is no bill"))


def _manifest_of(
    files: Sequence[IncomingFile],
) -> tuple[Manifest | None, list[IncomingFile]]:
    """The manifest among the files, and the others."""
    others = [file for file in files if not is_manifest(file.name)]
    manifests = [file for file in files if is_manifest(file.name)]
    if not manifests:
        return None, others
    if len(manifests) > 1:
        raise _several_manifests([file.name for file in manifests])
    content = bytearray()
    for chunk in manifests[0].chunks:
        content += chunk
        if len(content) > MAX_MANIFEST_BYTES:
            raise ChargesRefusedError(
                "too_large", _("the manifest is too large"), file=shown_name(manifests[0].name)
            )
    return _read_manifest(manifests[0].name, bytes(content)), others


def _inner_manifest(
    manifest: Manifest | None, received: list[Received]
) -> tuple[Manifest | None, list[Received]]:
    """The manifest that lies in an archive beside its files."""
    inner = [file for file in received if is_manifest(file.path)]
    if not inner:
        return manifest, received
    if manifest is not None or len(inner) > 1:
        raise _several_manifests([file.path for file in inner])
    bills = [file for file in received if not is_manifest(file.path)]
    return _read_manifest(inner[0].path, inner[0].blob.head), bills


def _several_manifests(names: Sequence[str]) -> ChargesRefusedError:
    shown = ", ".join(shown_name(name) for name in names[:SHOWN_NAMES])
    return ChargesRefusedError(
        "manifest", _("there are several manifests ({names}); hand in one").format(names=shown)
    )


def _read_manifest(name: str, content: bytes) -> Manifest:
    try:
        return read_manifest(name, content)
    except ConnectorError as error:
        raise ChargesRefusedError("manifest", error.message, file=shown_name(name)) from error


def _as_listed(
    manifest: Manifest, received: list[Received], give_up: Callable[[list[str]], None]
) -> Arrival:
    """The files that the manifest lists, all there and of the size it says; others are named."""
    chosen: list[Received] = []
    missing: list[str] = []
    for listed in manifest.files:
        found = _find(listed, received)
        if found is None:
            missing.append(listed.key)
        elif listed.size is not None and found.size_bytes != listed.size:
            raise ChargesRefusedError(
                "size",
                _("the file has {found} bytes, the manifest says {listed}").format(
                    found=found.size_bytes, listed=listed.size
                ),
                file=found.name,
            )
        else:
            chosen.append(found)
    if missing:
        shown = ", ".join(missing[:SHOWN_NAMES])
        raise ChargesRefusedError(
            "missing",
            _("{count} files that the manifest lists are missing: {names}").format(
                count=len(missing), names=shown
            ),
        )
    wanted = {id(file) for file in chosen}
    extra = [file for file in received if id(file) not in wanted]
    kept = {file.blob.sha256 for file in chosen}
    give_up([file.blob.sha256 for file in extra if file.blob.sha256 not in kept])
    return Arrival(
        files=tuple(chosen),
        period=manifest.period,
        version_at=manifest.version_at,
        origin={
            "manifest": manifest.kind,
            "version": manifest.version_id,
            "ignored_files": [file.name for file in extra][:200],
            **_archives_of(chosen),
            **manifest.details,
        },
    )


def _archives_of(files: Iterable[Received]) -> dict[str, Any]:
    """The archives that files lay in, by their hash."""
    archives = {file.blob.sha256: file.archive for file in files if file.archive}
    return {"archives": archives} if archives else {}


def _find(listed: ManifestFile, received: Sequence[Received]) -> Received | None:
    """The file whose path ends as the listed key does; the longest agreement wins."""
    wanted = listed.key.split("/")

    def agreement(file: Received) -> int:
        own = re.split(r"[/\\]", file.path)
        count = 0
        for left, right in zip(reversed(wanted), reversed(own), strict=False):
            if left != right:
                break
            count += 1
        return count

    best = max(received, key=agreement, default=None)
    return best if best is not None and agreement(best) else None

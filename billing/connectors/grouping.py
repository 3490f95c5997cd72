"""A listing made into units: by its manifests, else by month folders. Nothing is fetched here
but manifests, by the function that the connector hands in.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.utils.translation import gettext as _

from billing.connectors.contract import ConnectorError, ObjectRef, Unit
from billing.connectors.manifests import (
    Manifest,
    ManifestFile,
    billing_period_in,
    is_manifest,
    key_in_store,
    read_manifest,
)

# The newest few manifests of a month are read: a run that was copied late may be an old one.
MANIFESTS_READ: Final = 5
# A file newer than its manifest is being rewritten; a copy that brought it late is left alone then.
REWRITE_GRACE: Final = timedelta(hours=1)
_DATA: Final = re.compile(
    r"\.(csv|txt|tsv|parquet)(\.(gz|zip|zst|zstd|snappy))?$|\.(gz|zip)$", re.I
)
_RANGE: Final = re.compile(r"(20\d\d)(0[1-9]|1[0-2])01-20\d{6}")
_AWS_RANGE: Final = re.compile(r"(20\d\d)(0[1-9]|1[0-2])01-20\d{4}01")  # half-open
_MONTH_FOLDER: Final = re.compile(r"(?:[a-z_]+=)?(20\d\d)-?(0[1-9]|1[0-2])", re.I)
_MONTH_IN_NAME: Final = re.compile(r"(?<!\d)(20\d\d)-?(0[1-9]|1[0-2])(?!-?\d)")
_RUN: Final = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|(?<!\d)20\d{10}(?:\d\d)?(?!\d)|20\d{6}T\d{4,6}Z?",
    re.I,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One object of a listing."""

    key: str
    size: int
    etag: str = ""
    modified_at: datetime | None = None

    @property
    def ref(self) -> ObjectRef:
        """The object as it is to be fetched."""
        return ObjectRef(key=self.key, size=self.size, etag=self.etag)


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """What grouping must know of the store that was listed."""

    place: str  # bucket, container: what an address in a manifest must name
    read: Callable[[Listed], bytes]
    is_copy: bool = False  # a copy in a folder: keys of a manifest may begin higher up
    settle: timedelta = timedelta(0)  # a file touched so lately may still be on its way
    now: datetime

    def is_settled(self, one: "Listed") -> bool:
        """Whether nobody touched the object lately."""
        return one.modified_at is None or not (
            timedelta(0) <= self.now - one.modified_at < self.settle
        )


def units_of(listing: Iterable[Listed], store: Store) -> Iterator[Unit]:
    """Every unit of a whole listing, in the order of their keys."""
    objects = {one.key: one for one in listing}
    slots: dict[str, list[Listed]] = defaultdict(list)
    for one in objects.values():
        if is_manifest(one.key):
            slots[slot_of(one.key)].append(one)
    if not slots:
        yield from _plain_units(objects.values(), store)
    for slot in sorted(slots):
        yield _manifest_unit(slot, slots[slot], objects, store)


def slot_of(key: str) -> str:
    """The folder of one month of one report: up to the last folder that names a month."""
    folders = key.split("/")[:-1]
    for count in range(len(folders), 0, -1):
        if _month_of_folders(folders[:count]) is not None:
            return "/".join(folders[:count])
    return "/".join(folders)


def _month_of_folders(folders: Sequence[str]) -> str | None:
    """The month that the last folder names, alone or with the year before it."""
    last = folders[-1]
    found = _RANGE.fullmatch(last) or _MONTH_FOLDER.fullmatch(last)
    if found is None and len(folders) > 1:
        pair = "/".join(folders[-2:])
        found = re.fullmatch(r"(?:year=)?(20\d\d)/(?:month=)?(0?[1-9]|1[0-2])", pair)
    return f"{found[1]}-{int(found[2]):02}" if found else None


def newest_manifest(listing: Iterable[Listed]) -> Listed | None:
    """The manifest that was written last."""
    return max((one for one in listing if is_manifest(one.key)), key=_written, default=None)


def data_objects(listing: Iterable[Listed]) -> list[Listed]:
    """What looks like a file of charges."""
    return [
        one
        for one in listing
        if one.size > 0
        and _DATA.search(one.key)
        and not one.key.rsplit("/", 1)[-1].startswith(("_", "."))
    ]


def _written(one: Listed) -> tuple[datetime, int]:
    """When it was written; of two written at once the one higher up, which names the newest."""
    return one.modified_at or datetime.min.replace(tzinfo=UTC), -one.key.count("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    at: Listed
    manifest: Manifest

    @property
    def order(self) -> tuple[datetime, datetime, int]:
        written, depth = _written(self.at)
        return self.manifest.version_at or written, written, depth


def _manifest_unit(
    slot: str, manifests: Sequence[Listed], objects: dict[str, Listed], store: Store
) -> Unit:
    """The newest whole state that the manifests of one month describe, or why there is none."""
    read: list[_Candidate] = []
    for listed in sorted(manifests, key=_written, reverse=True)[:MANIFESTS_READ]:
        try:
            read.append(_Candidate(at=listed, manifest=_read(listed, store)))
        except ConnectorError as error:
            if error.code not in ("manifest", "key"):
                raise
            if not read:  # something newer than all others cannot be read
                return _problem(slot, listed, error)
    newest = max(read, key=lambda one: one.order)
    try:
        return _whole_unit(slot, newest, objects, store)
    except ConnectorError as error:
        return _problem(slot, newest.at, error, newest.manifest)


def _read(listed: Listed, store: Store) -> Manifest:
    return read_manifest(listed.key, store.read(listed))


def _problem(
    slot: str, listed: Listed, error: ConnectorError, manifest: Manifest | None = None
) -> Unit:
    origin: dict[str, Any] = {"manifest": listed.key}
    return Unit(
        key=slot,
        fingerprint="",
        objects=(),
        period=manifest.period if manifest else None,
        origin=origin | (dict(manifest.details) if manifest else {}),
        problem=error,
    )


def _whole_unit(slot: str, found: _Candidate, objects: dict[str, Listed], store: Store) -> Unit:
    manifest = found.manifest
    files = [_file(one, found, objects, store) for one in manifest.files]
    extra = _extra(files, found, objects, store)
    state = _hash(f"{one.key} {one.size} {one.etag}" for one in files)
    origin = {
        "kind": manifest.kind,
        "place": store.place,
        "manifest": found.at.key,
        "files": len(files),
        **{name: value for name, value in manifest.details.items() if value is not None},
    }
    if extra:
        origin["not_in_manifest"] = len(extra)
    return Unit(
        key=slot,
        fingerprint=f"{manifest.version_id[:120]}:{state}",
        objects=tuple(one.ref for one in files),
        period=manifest.period or billing_period_in(slot + "/"),
        version_at=manifest.version_at or found.at.modified_at,
        stated_total=manifest.stated_total,
        origin=origin,
    )


def _file(
    wanted: ManifestFile, found: _Candidate, objects: dict[str, Listed], store: Store
) -> Listed:
    """The listed object that the manifest means, in the size that it says.

    Raises:
        ConnectorError: it lies elsewhere, is missing, has another size or is being rewritten.
    """
    key = key_in_store(wanted.key, place=store.place)
    if key is None and not store.is_copy:
        raise ConnectorError(
            "key",
            _("the manifest names a file of another bucket, {name}").format(name=wanted.key[:200]),
            object=found.at.key,
        )
    listed = _listed(key or wanted.key, found.at, objects, store)
    if listed is None:
        raise ConnectorError(
            "missing",
            _("the manifest names this file, but it is not there (or outside the prefix)"),
            object=wanted.key,
        )
    if wanted.size is not None and wanted.size != listed.size:
        raise ConnectorError(
            "size",
            _("the file has {found} bytes, the manifest says {expected}").format(
                found=listed.size, expected=wanted.size
            ),
            object=wanted.key,
        )
    _assert_settled(listed, store)
    if not _is_of_run(listed, found) and _is_being_written(listed, found.at, store):
        raise ConnectorError(
            "changed",
            _("the file is newer than its manifest: the export is being written"),
            object=wanted.key,
        )
    return listed


def _listed(key: str, manifest: Listed, objects: dict[str, Listed], store: Store) -> Listed | None:
    if key in objects:
        return objects[key]
    beside = "/".join([*manifest.key.split("/")[:-1], key])
    if "/" not in key and beside in objects:
        return objects[beside]
    if not store.is_copy:
        return None
    parts = key.split("://", 1)[-1].split("/")
    ends = ("/".join(parts[start:]) for start in range(1, len(parts)))
    return next((objects[end] for end in ends if "/" in end and end in objects), None) or (
        objects.get("/".join([*manifest.key.split("/")[:-1], parts[-1]]))
    )


def _assert_settled(one: Listed, store: Store) -> None:
    if not store.is_settled(one):
        raise ConnectorError(
            "changed", _("the file was touched a moment ago: it may be on its way"), object=one.key
        )


def _is_of_run(one: Listed, found: _Candidate) -> bool:
    """Whether the object lies in a folder of this very run, which no other run rewrites."""
    version_id = found.manifest.version_id
    return bool(version_id) and version_id in one.key.rpartition("/")[0]


def _is_being_written(one: Listed, manifest: Listed, store: Store) -> bool:
    if one.modified_at is None or manifest.modified_at is None:
        return False
    return one.modified_at > manifest.modified_at and store.now - one.modified_at < REWRITE_GRACE


def _extra(
    files: Sequence[Listed], found: _Candidate, objects: dict[str, Listed], store: Store
) -> list[Listed]:
    """Data beside the manifest's files that it does not name.

    Raises:
        ConnectorError: one lies in the folder of this very run, or came after the manifest.
    """
    named = {one.key for one in files}
    folders = {one.key.rpartition("/")[0] for one in files}
    extra = [
        one
        for one in data_objects(objects.values())
        if one.key not in named and one.key.rpartition("/")[0] in folders
    ]
    for one in extra:
        if _is_of_run(one, found) or _is_being_written(one, found.at, store):
            raise ConnectorError(
                "extra",
                _("this file lies there, but the manifest does not name it"),
                object=one.key,
            )
    return extra


def _hash(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:40]


def _plain_units(listing: Iterable[Listed], store: Store) -> Iterator[Unit]:
    """Without manifests: files of one month, by their folder or their names, belong together."""
    groups: dict[str, list[Listed]] = defaultdict(list)
    for one in data_objects(listing):
        groups[_group_of(one.key)].append(one)
    for key in sorted(groups):
        yield _plain_unit(key, groups[key], store)


def _group_of(key: str) -> str:
    slot = slot_of(key)
    folders = slot.split("/")
    if slot and _month_of_folders(folders) is not None:
        return slot
    name = key.rsplit("/", 1)[-1]
    months = {f"{year}-{month}" for year, month in _MONTH_IN_NAME.findall(name)}
    return "/".join([*key.split("/")[:-1], months.pop()]) if len(months) == 1 else key


def _plain_unit(key: str, objects: Sequence[Listed], store: Store) -> Unit:
    runs: dict[str, list[Listed]] = defaultdict(list)
    for one in objects:
        runs[_run_of(one.key.removeprefix(key))].append(one)
    newest = max(runs.values(), key=lambda some: max(_written(one) for one in some))
    written = [one.modified_at for one in newest if one.modified_at is not None]
    origin: dict[str, Any] = {"kind": "folder", "place": store.place, "files": len(newest)}
    if len(runs) > 1:
        origin["older_runs"] = len(runs) - 1
    try:
        for one in newest:
            _assert_settled(one, store)
    except ConnectorError as error:
        return Unit(key=key[:1024], fingerprint="", objects=(), origin=origin, problem=error)
    return Unit(
        key=key[:1024],
        fingerprint=_hash(_state(one) for one in newest),
        objects=tuple(one.ref for one in sorted(newest, key=lambda one: one.key)),
        period=_declared(key),
        version_at=max(written) if written and not store.is_copy else None,
        origin=origin,
    )


def _state(one: Listed) -> str:
    return f"{one.key} {one.size} {one.etag or one.modified_at}"


def _run_of(path: str) -> str:
    """Which run of an export a file belongs to, where its path carries a run's id or time.

    Runs of one month are states of it, each whole: the newest replaces the others.
    """
    return " ".join(_RUN.findall(path)).lower()


def _declared(key: str) -> str | None:
    """The month that the folder's name declares as billing month: AWS writes it so."""
    last = key.rsplit("/", 1)[-1]
    found = _AWS_RANGE.fullmatch(last)
    return billing_period_in(key + "/") or (f"{found[1]}-{found[2]}" if found else None)

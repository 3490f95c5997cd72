"""Bills in Google Cloud Storage, Azure Blob and whatever else fsspec opens: list and read."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

from django.utils.translation import gettext as _

from billing.connectors.checking import check_store
from billing.connectors.contract import (
    LIST,
    READ,
    CheckReport,
    Connection,
    ConnectorError,
    JsonObject,
    ObjectRef,
    Unit,
)
from billing.connectors.grouping import Listed, Store, units_of
from billing.connectors.manifests import MAX_MANIFEST_BYTES, instant_of
from billing.connectors.store_errors import STORE_ERRORS, readable
from billing.connectors.store_systems import Place, open_place

CHUNK_BYTES: Final = 8 * 2**20
MAX_OBJECTS: Final = 200_000


class StoreConnector:
    """A folder of a store that fsspec opens."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def check(self) -> CheckReport:
        """Reach, list, read a manifest, read an object."""
        return check_store(self)

    def reach(self) -> None:
        """Make the client: settings, credential and address are looked at."""
        self._place.system.invalidate_cache()

    def listing(self) -> list[Listed]:
        """Every object below the folder; the whole listing or an error."""
        place = self._place
        place.system.invalidate_cache()
        try:
            found = place.system.find(place.root, detail=True)
        except STORE_ERRORS as error:
            raise self._readable(error, LIST) from error
        if len(found) > MAX_OBJECTS:
            raise ConnectorError(
                "settings",
                _(
                    "There are more than {count} objects below the prefix; give a longer one."
                ).format(count=MAX_OBJECTS),
            )
        return [
            _listed(place.key_of(str(name)), info)
            for name, info in found.items()
            if info.get("type") != "directory" and not str(name).endswith("/")
        ]

    def units(self, watermark: JsonObject) -> Iterator[Unit]:
        """Every unit below the folder; the watermark is not needed, fingerprints are."""
        store = Store(
            place=self._place.name,
            read=self.read_small,
            is_copy=self._connection.kind == "fsspec",
            now=datetime.now(UTC),
        )
        yield from units_of(self.listing(), store)

    def read_small(self, listed: Listed) -> bytes:
        """A manifest's bytes."""
        if listed.size > MAX_MANIFEST_BYTES:
            raise ConnectorError("manifest", _("the manifest is too large"), object=listed.key)
        return b"".join(self.open(listed.ref))

    def open(self, object: ObjectRef) -> Iterator[bytes]:
        """The bytes of the object in the state that was listed, looked at before and after."""
        self._assert_unchanged(object)
        size = object.size or 0
        for start in range(0, size, CHUNK_BYTES):
            end = min(start + CHUNK_BYTES, size)
            chunk = self._read(object, start, end)
            if len(chunk) != end - start:
                raise ConnectorError(
                    "size", _("the object is shorter than listed"), object=object.key
                )
            yield chunk
        self._assert_unchanged(object)

    def _read(self, object: ObjectRef, start: int, end: int) -> bytes:
        place = self._place
        options = {"generation": object.etag} if place.has_generations and object.etag else {}
        try:
            return bytes(
                place.system.cat_file(place.path_of(object.key), start=start, end=end, **options)
            )
        except FileNotFoundError as error:
            if options:  # this generation is gone: another one took its place
                raise _changed(object) from error
            raise self._readable(error, READ, object.key) from error
        except STORE_ERRORS as error:
            raise self._readable(error, READ, object.key) from error

    def _assert_unchanged(self, object: ObjectRef) -> None:
        place = self._place
        if place.has_generations and object.etag:
            return  # what is read names the generation that was listed
        place.system.invalidate_cache()
        try:
            now = _listed(object.key, place.system.info(place.path_of(object.key)))
        except STORE_ERRORS as error:
            raise self._readable(error, READ, object.key) from error
        if object.size is not None and now.size != object.size:
            raise ConnectorError(
                "size",
                _("the object has {found} bytes, {expected} were listed").format(
                    found=now.size, expected=object.size
                ),
                object=object.key,
            )
        if object.etag and now.etag != object.etag:
            raise _changed(object)

    def _readable(self, error: Exception, step: str, key: str = "") -> ConnectorError:
        return readable(
            error, kind=self._connection.kind, step=step, place=self._place.name, key=key
        )

    @cached_property
    def _place(self) -> Place:
        return open_place(self._connection)


def _changed(object: ObjectRef) -> ConnectorError:
    return ConnectorError("changed", _("the object was replaced meanwhile"), object=object.key)


def _listed(key: str, info: dict[str, Any]) -> Listed:
    """An entry of any file system as we hold it."""
    modified_at = _instant(
        next(
            (
                info[name]
                for name in ("updated", "last_modified", "LastModified", "mtime", "modified")
                if info.get(name)
            ),
            None,
        )
    )
    state = info.get("generation") or info.get("etag") or info.get("ETag")
    if not state and modified_at is not None:
        state = hashlib.sha256(f"{modified_at} {info.get('size')}".encode()).hexdigest()[:16]
    return Listed(
        key=key, size=int(info.get("size") or 0), etag=str(state or ""), modified_at=modified_at
    )


def _instant(value: Any) -> datetime | None:
    """The instant in whatever form the file system gives it."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, tz=UTC)
    if isinstance(value, str):
        try:
            return instant_of(value)
        except ValueError:
            return None
    return None

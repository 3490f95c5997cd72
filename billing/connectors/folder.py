"""Bills that others put into a folder of this machine, below one that the operator lists."""

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from django.utils.translation import gettext as _

from billing.connectors.checking import check_store
from billing.connectors.contract import (
    CheckReport,
    Connection,
    ConnectorError,
    JsonObject,
    ObjectRef,
    Unit,
)
from billing.connectors.grouping import Listed, Store, units_of
from billing.connectors.manifests import MAX_MANIFEST_BYTES

CHUNK_BYTES: Final = 2**20
MAX_OBJECTS: Final = 200_000
SETTLE_S: Final = 30  # a file touched so lately may still be on its way


class FolderConnector:
    """A watched folder. Links are not followed: what it holds lies in it."""

    def __init__(self, connection: Connection) -> None:
        wanted = str(connection.settings.get("path") or "")
        if not wanted or not Path(wanted).is_absolute():
            raise ConnectorError("settings", _("Give the folder's path from the root on."))
        self._root = Path(wanted).resolve()
        self._settle = timedelta(seconds=_settle_s(connection))
        roots = [root.resolve() for root in connection.allowed.folders]
        if not any(self._root.is_relative_to(root) for root in roots):
            raise ConnectorError(
                "settings",
                _(
                    "The operator of this installation does not list this folder, or one above it, "
                    "in COSTWATCH_WATCHED_FOLDERS."
                ),
            )

    def check(self) -> CheckReport:
        """Reach, list, read a manifest, read an object."""
        return check_store(self)

    def reach(self) -> None:
        """Look whether the folder is there and may be entered."""
        try:
            with os.scandir(self._root):
                pass
        except OSError as error:
            raise _readable(error, str(self._root)) from error

    def listing(self) -> list[Listed]:
        """Every file below the folder that is no link and not hidden."""
        self.reach()
        found: list[Listed] = []
        for folder, folders, names in os.walk(self._root, onerror=_raise):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in names:
                path = Path(folder, name)
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and not name.startswith("."):
                    found.append(_listed(path.relative_to(self._root).as_posix(), status))
            if len(found) > MAX_OBJECTS:
                raise ConnectorError(
                    "settings",
                    _("There are more than {count} files in the folder.").format(count=MAX_OBJECTS),
                )
        return found

    def units(self, watermark: JsonObject) -> Iterator[Unit]:
        """Every unit in the folder; the watermark is not needed, fingerprints are."""
        store = Store(
            place=self._root.name,
            read=self.read_small,
            is_copy=True,
            settle=self._settle,
            now=datetime.now(UTC),
        )
        yield from units_of(self.listing(), store)

    def read_small(self, listed: Listed) -> bytes:
        """A manifest's bytes."""
        if listed.size > MAX_MANIFEST_BYTES:
            raise ConnectorError("manifest", _("the manifest is too large"), object=listed.key)
        return b"".join(self.open(listed.ref))

    def open(self, object: ObjectRef) -> Iterator[bytes]:
        """The file's bytes in the state that was listed, looked at before and after."""
        path = self._path(object.key)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                _assert_same(object, os.fstat(file.fileno()))
                while chunk := file.read(CHUNK_BYTES):
                    yield chunk
                _assert_same(object, os.fstat(file.fileno()))
        except OSError as error:
            raise _readable(error, object.key) from error

    def _path(self, key: str) -> Path:
        """Where the file lies.

        Raises:
            ConnectorError: the key leads out of the folder.
        """
        path = self._root / key
        if ".." in Path(key).parts or not path.resolve().is_relative_to(self._root):
            raise ConnectorError("key", _("the file lies outside the folder"), object=key)
        return path


def _settle_s(connection: Connection) -> int:
    given = connection.settings.get("settle_s", SETTLE_S)
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= 86_400:
        raise ConnectorError("settings", _("settle_s must be seconds between 0 and 86400."))
    return given


def _raise(error: OSError) -> None:
    raise _readable(error, str(error.filename or "")) from error


def _listed(key: str, status: os.stat_result) -> Listed:
    return Listed(
        key=key,
        size=status.st_size,
        etag=f"{status.st_mtime_ns:x}-{status.st_ino:x}",
        modified_at=datetime.fromtimestamp(status.st_mtime, tz=UTC),
    )


def _assert_same(object: ObjectRef, status: os.stat_result) -> None:
    now = _listed(object.key, status)
    if (now.size, now.etag) != (object.size, object.etag):
        raise ConnectorError("changed", _("the file changed meanwhile"), object=object.key)


def _readable(error: OSError, name: str) -> ConnectorError:
    if isinstance(error, PermissionError):
        return ConnectorError(
            "access_denied",
            _("the folder or file may not be read"),
            object=name,
            missing_permission=_("read on {name}, for the user of Costwatch").format(name=name),
        )
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return ConnectorError("missing", _("it is not there"), object=name)
    return ConnectorError("unavailable", _("it cannot be read"), object=name)

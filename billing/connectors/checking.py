"""The test of a connection to a store of files: reach, list, read the manifest, read one object."""

from collections.abc import Callable, Iterator
from typing import Protocol

from django.utils.translation import gettext as _

from billing.connectors.contract import (
    LIST,
    MANIFEST,
    REACH,
    READ,
    CheckReport,
    CheckStep,
    ConnectorError,
    ObjectRef,
)
from billing.connectors.grouping import Listed, data_objects, newest_manifest
from billing.connectors.manifests import read_manifest


class ListedStore(Protocol):
    """A store of files as its test needs it."""

    def reach(self) -> None: ...

    def listing(self) -> list[Listed]: ...

    def read_small(self, listed: Listed) -> bytes: ...

    def open(self, object: ObjectRef) -> Iterator[bytes]: ...


def check_store(store: ListedStore) -> CheckReport:
    """Try every step until one fails; each says what was found."""
    steps: list[CheckStep] = []
    found: list[Listed] = []

    def list_all() -> str:
        found.extend(store.listing())
        if not found:
            raise ConnectorError("not_found", _("nothing lies there: check the prefix"))
        return _("{count} objects listed.").format(count=len(found))

    tries: tuple[tuple[str, Callable[[], str]], ...] = (
        (REACH, lambda: _reach(store)),
        (LIST, list_all),
        (MANIFEST, lambda: _read_manifest(store, found)),
        (READ, lambda: _read_object(store, found)),
    )
    for name, attempt in tries:
        try:
            steps.append(CheckStep(name=name, ok=True, message=attempt()))
        except ConnectorError as error:
            steps.append(
                CheckStep(
                    name=name,
                    ok=False,
                    message=str(error),
                    missing_permission=error.missing_permission,
                )
            )
            break
    return CheckReport(steps=tuple(steps))


def _reach(store: ListedStore) -> str:
    store.reach()
    return _("The store answers.")


def _read_manifest(store: ListedStore, found: list[Listed]) -> str:
    newest = newest_manifest(found)
    if newest is None:
        return _("There is no manifest: files are grouped by the month of their folder or name.")
    manifest = read_manifest(newest.key, store.read_small(newest))
    return _("{name} names {count} files.").format(name=newest.key, count=len(manifest.files))


def _read_object(store: ListedStore, found: list[Listed]) -> str:
    objects = data_objects(found)
    if not objects:
        raise ConnectorError("not_found", _("there is no file of charges: CSV or Parquet"))
    smallest = min(objects, key=lambda one: one.size)
    stream = store.open(smallest.ref)
    size = len(next(iter(stream), b""))
    if close := getattr(stream, "close", None):
        close()
    return _("{name} can be read ({size} bytes tried).").format(name=smallest.key, size=size)

"""Who may change the books right now: one writer an organisation; and how many may upload."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from django.db import connection
from django.utils.translation import gettext as _

UPLOADS_AT_ONCE: Final = 10

_BOOKS = 0x626F6F6B  # "book": keeps our advisory locks apart from everybody else's
_BLOBS = 0x626C6F62  # "blob"
_PRICES = 0x70726963  # "pric"
_UPLOADS = 0x75706C64  # "upld"


class TooManyUploadsError(Exception):
    """All places for uploads are taken; the message says so to people."""


def lock_books(organisation_id: UUID) -> None:
    """Wait until nobody else changes this organisation's charges; held until the commit."""
    _lock(_BOOKS, int.from_bytes(organisation_id.bytes[:4], "big", signed=True))


def lock_prices(organisation_id: UUID) -> None:
    """Wait until nobody else states prices or rates of this organisation; held until the commit."""
    _lock(_PRICES, int.from_bytes(organisation_id.bytes[:4], "big", signed=True))


def lock_blobs() -> None:
    """Wait until nobody else takes up or gives up received bytes; held until the commit."""
    _lock(_BLOBS, 0)


def _lock(kind: int, key: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [kind, key])


@contextmanager
def upload_slot(organisation_id: UUID) -> Iterator[None]:
    """Hold one of the organisation's places for uploads; it falls free with the connection too.

    Raises:
        TooManyUploadsError: all of them are taken.
    """
    key = int.from_bytes(organisation_id.bytes[:4], "big", signed=True)
    taken = next((slot for slot in range(UPLOADS_AT_ONCE) if _try_slot(key ^ slot)), None)
    if taken is None:
        raise TooManyUploadsError(
            _("{limit} uploads are running already; send this one when one has ended").format(
                limit=UPLOADS_AT_ONCE
            )
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [_UPLOADS, key ^ taken])


def _try_slot(key: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [_UPLOADS, key])
        row = cursor.fetchone()
    return bool(row and row[0])

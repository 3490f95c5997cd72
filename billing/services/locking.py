"""Who may change the books right now: one writer an organisation, by locks of the transaction."""

from uuid import UUID

from django.db import connection

_BOOKS = 0x626F6F6B  # "book": keeps our advisory locks apart from everybody else's
_BLOBS = 0x626C6F62  # "blob"
_PRICES = 0x70726963  # "pric"


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

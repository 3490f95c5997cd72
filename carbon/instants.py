"""From which instant on a writing is known, and which instants are settled. No rows of its own.

A writer announces itself before it takes its instant, and its announcement ends with its
transaction; so what was known before every running announcement never changes any more.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import connection

LOCK_CLASS: Final = 0x7768656E  # "when": shared locks whose key is a second, seen in pg_locks
BEGIN: Final = datetime(2010, 1, 1, tzinfo=UTC)  # seconds from here fit a lock's key until 2078
MICROSECOND: Final = timedelta(microseconds=1)
RUNNING: Final = (
    "SELECT statement_timestamp(), (SELECT min(objid::bigint) FROM pg_locks "
    "WHERE locktype = 'advisory' AND classid = %s AND objsubid = 2 AND pid <> pg_backend_pid() "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
)


def announce(told_at: datetime | None = None) -> datetime:
    """The instant from which on what this transaction writes is known; announced until it ends.

    The database's clock, taken after the announcement; `told_at` where history is told anew.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock_shared(%s, floor(extract(epoch FROM "
            "LEAST(clock_timestamp(), %s::timestamptz) - %s::timestamptz))::int)",
            [LOCK_CLASS, told_at, BEGIN],
        )
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return told_at or now


def settled(asked: datetime) -> datetime:
    """The latest instant up to `asked` of which the books give the same answer for good.

    Not after now, and before whatever a transaction that runs may still be known from.
    """
    with connection.cursor() as cursor:
        cursor.execute(RUNNING, [LOCK_CLASS])
        now, running = cursor.fetchone()
    if running is not None:
        now = min(now, BEGIN + timedelta(seconds=running) - MICROSECOND)
    settled_at: datetime = min(asked, now)
    return settled_at

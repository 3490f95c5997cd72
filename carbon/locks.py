"""Locked periods of the books: which hours they hold, what they were signed off with. Reads."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from carbon.attribution import microsecond_of
from carbon.entries import AMOUNTS, WHOLE
from carbon.entry_queries import current_entries
from carbon.models import PeriodLock

Spans = tuple[tuple[int, int], ...]
SIGNED: Final = ("site_id", "hour", "project_id", "run_id", *WHOLE, *AMOUNTS, "scope_category")
LOCK_CLASS: Final = 0x626F6F6B  # "book": apart from the sites' locks
RELEASE_SETTING: Final = "costwatch.release"
HOLD_SETTING: Final = "costwatch.hold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """The fingerprint of a period's entries, and how many they are."""

    digest: str
    entries: int


def active_locks(organisation_id: UUID) -> QuerySet[PeriodLock]:
    """Periods that are signed off and were not reopened."""
    return PeriodLock.objects.filter(
        organisation_id=organisation_id, approved_at__isnull=False, reopened_at__isnull=True
    )


def locked_spans(organisation_id: UUID, start: datetime, end: datetime) -> Spans:
    """The locked parts of time that touch [start, end), microseconds."""
    rows = active_locks(organisation_id).filter(start__lt=end, end__gt=start)
    return tuple(
        (microsecond_of(low), microsecond_of(high))
        for low, high in rows.values_list("start", "end").order_by("start")
    )


def is_locked(spans: Spans, hour: int) -> bool:
    """Whether an hour lies in one of these spans."""
    return any(low <= hour < high for low, high in spans)


def lock_touching(organisation_id: UUID, start: datetime, end: datetime) -> PeriodLock | None:
    """A locked period that overlaps [start, end); None when there is none."""
    return active_locks(organisation_id).filter(start__lt=end, end__gt=start).first()


def fingerprint(
    organisation_id: UUID, start: datetime, end: datetime, *, as_of: datetime | None = None
) -> Signed:
    """SHA-256 over the entries that hold in [start, end), each with all its amounts."""
    rows = current_entries(as_of).filter(
        organisation_id=organisation_id, hour__gte=start, hour__lt=end
    )
    digest, count = hashlib.sha256(), 0
    values = rows.order_by("site_id", "hour", "project_id", "run_id").values_list(*SIGNED)
    for row in values.iterator(chunk_size=5_000):
        digest.update(_text(row))
        count += 1
    return Signed(digest=digest.hexdigest(), entries=count)


def _text(row: Iterable[Any]) -> bytes:
    """One entry as a line of JSON; numbers with all their digits."""
    line = json.dumps([one if isinstance(one, int | float) else _word(one) for one in row])
    return line.encode() + b"\n"


def _word(value: Any) -> str | None:
    if isinstance(value, datetime):
        return f"{microsecond_of(value)}"
    return None if value is None else str(value)


def lock_books(organisation_id: UUID) -> None:
    """Wait for whoever signs periods or enters contracts; PostgreSQL lets go at the end.

    Who also waits for sites takes this lock first.
    """
    key = int.from_bytes(organisation_id.bytes[:4], "big", signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [LOCK_CLASS, key])


def allow_release(is_allowed: bool) -> None:
    """Let this transaction post into locked periods, or no longer; the database asks for it."""
    _set(RELEASE_SETTING, is_on=is_allowed)


def allow_recount(is_allowed: bool) -> None:
    """Let this transaction count again what waits, or no longer; the database asks for it."""
    _set(HOLD_SETTING, is_on=is_allowed)


def _set(name: str, *, is_on: bool) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config(%s, %s, true)", [name, "on" if is_on else ""])

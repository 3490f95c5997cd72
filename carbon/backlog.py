"""How much waits to be booked, by site, and when that closes a site's doors. Stores nothing."""

import time
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.utils.translation import gettext as _

MEASURED_EVERY_S: Final = 2.0  # by each process; in between it adds what it took itself
ROW_BYTES: Final = 200  # what a body takes beside its bytes: columns, header, indexes
BYTES_PER_MB: Final = 1_000_000
WARNED_FROM: Final = 0.5
SIZE: Final = f"COALESCE(sum(octet_length(body) + {ROW_BYTES}), 0)::bigint"


class IntakeFullError(Exception):
    """So much waits at a site that no more is taken until workers have booked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What waits at a site."""

    site_id: UUID
    bodies: int
    size_bytes: int
    limit_bytes: int

    @property
    def is_full(self) -> bool:
        return self.size_bytes >= self.limit_bytes

    @property
    def is_high(self) -> bool:
        return self.size_bytes >= self.limit_bytes * WARNED_FROM


@dataclass(slots=True, kw_only=True)
class _Measured:
    at_s: float
    size_bytes: int


_measured: dict[UUID, _Measured] = {}


def limit_bytes() -> int:
    """How much may wait at one site."""
    return int(settings.INTAKE_WAITING_MB) * BYTES_PER_MB


def refuse_when_full(site_id: UUID, more_bytes: int) -> None:
    """Count what is about to be stored at a site, unless too much waits there already.

    Raises:
        IntakeFullError: it does; nothing may be acknowledged that is not stored.
    """
    known = _measured.get(site_id)
    if known is None or time.monotonic() - known.at_s >= MEASURED_EVERY_S:
        known = _Measured(at_s=time.monotonic(), size_bytes=_size_bytes(site_id))
        _measured[site_id] = known
    if known.size_bytes >= limit_bytes():
        raise IntakeFullError(
            _(
                "Readings of {size} MB wait to be booked at this site: send the same again later, "
                "and see that a worker runs."
            ).format(size=known.size_bytes // BYTES_PER_MB)
        )
    known.size_bytes += more_bytes + ROW_BYTES


def _size_bytes(site_id: UUID) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {SIZE} FROM carbon_intakebody WHERE site_id = %s", [site_id])  # noqa: S608 - our words
        (size_bytes,) = cursor.fetchone()
    return int(size_bytes)


def backlogs(organisation_id: UUID) -> list[Backlog]:
    """What waits at each site at which something does, most first."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT site_id, count(*), {SIZE} AS size FROM carbon_intakebody "  # noqa: S608 - our words
            "WHERE organisation_id = %s GROUP BY site_id ORDER BY size DESC, site_id",
            [organisation_id],
        )
        found = cursor.fetchall()
    limit = limit_bytes()
    return [
        Backlog(site_id=site_id, bodies=bodies, size_bytes=int(size), limit_bytes=limit)
        for site_id, bodies, size in found
    ]

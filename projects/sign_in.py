"""Counts tries to sign in, by name and address, in the database that all web processes share."""

import hashlib
from datetime import timedelta

from django.conf import settings
from django.db import connection
from django.utils import timezone

from projects.models import SignInCount

TRIES_A_MINUTE = 5
KEPT_FOR = timedelta(hours=1)


def may_try(username: str, ip: str) -> bool:
    """Count one more try of this name from this address; whether it is still within the limit."""
    now = timezone.now()
    minute = now.replace(second=0, microsecond=0)
    table = connection.ops.quote_name(SignInCount._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} (key, minute, tries) VALUES (%s, %s, 1) "  # noqa: S608  # our own table's name
            f"ON CONFLICT (key, minute) DO UPDATE SET tries = {table}.tries + 1 RETURNING tries",
            [_key(username, ip), minute],
        )
        row = cursor.fetchone()
    if row[0] == 1:
        SignInCount.objects.filter(minute__lt=now - KEPT_FOR).delete()
    return bool(row[0] <= TRIES_A_MINUTE)


def _key(username: str, ip: str) -> str:
    text = f"{settings.SECRET_KEY}|{username.strip().casefold()[:150]}|{ip}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()

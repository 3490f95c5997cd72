"""An instant is the same instant in the table, whether it differs by row or stands for all."""

from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import pytest
from django.db import connection

from carbon.adapters import binary_rows

pytestmark = pytest.mark.django_db

AT = datetime(2026, 11, 21, 18, 57, tzinfo=UTC)
MICROSECOND = int(AT.timestamp()) * 1_000_000


def test_constant_and_varying_instants_are_stored_alike() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMP TABLE instants (one timestamptz, other timestamptz, number int8)"
        )
        columns: dict[str, tuple[str, binary_rows.Column | UUID | int | str]] = {
            "one": ("timestamptz", MICROSECOND),
            "other": ("timestamptz", np.array([MICROSECOND, MICROSECOND])),
            "number": ("int8", 7),
        }
        binary_rows.write(cursor, "instants", columns, rows=2)
        cursor.execute("SELECT one, other, number FROM instants")
        assert cursor.fetchall() == [(AT, AT, 7), (AT, AT, 7)]

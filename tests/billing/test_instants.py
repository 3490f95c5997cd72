"""A time in UTC is the same time in each of its spellings, and nothing else is a time."""

from datetime import datetime

import ibis
import pytest

from billing.adapters.layout import InstantStyle
from billing.expressions import instant_of, is_readable_instant
from lake.engine import open_engine

DAYS = {"2026-05-04": (2026, 5, 4), "1970-01-01": (1970, 1, 1), "8999-12-31": (8999, 12, 31)}
CLOCKS = {
    "00:00": (0, 0),
    "23:59:59": (23, 59, 59),
    "10:11:12.5": (10, 11, 12, 500000),
    "10:11:12.123456": (10, 11, 12, 123456),
    "10:11:12.123456000": (10, 11, 12, 123456),
}
MARKS = {" ": ("", " UTC", "+00:00", "+00"), "T": ("Z", "+00:00")}
NO_TIMES = (
    "2026-05-04",
    "2026-05-04T00:00:00",  # whose noon?
    "2026-05-04T00:00:00 UTC",
    "2026-05-04 00:00:00Z",
    "2026-05-04 00:00:00+01:00",
    "2026-05-04 00:00:00 CET",
    "2026-05-04Z",
    "2026-05-04 UTC",
    "2026-02-30",
    "2026-05-04 24:00:00",
    "2026-05-04 00:00:60",
    "04.05.2026",
    "1969-12-31",
    "9000-01-01",
    "infinity",
    "epoch",
    "",
)


def read(texts):
    """What each text states, and whether it is readable."""
    with open_engine() as engine:
        table = engine.small_table([{"text": text} for text in texts], {"text": "string"})
        readable = is_readable_instant(table.text, InstantStyle.ISO)
        rows = engine.rows(
            table.mutate(
                at=ibis.ifelse(readable, instant_of(table.text, InstantStyle.ISO), None),
                readable=readable,
            )
        )
    return {row["text"]: (row["at"], row["readable"]) for row in rows}


@pytest.mark.parametrize("day", DAYS)
def test_every_spelling_of_a_time_in_utc_is_that_time(day):
    expected = {
        f"{day}{letter}{clock}{mark}": (datetime(*DAYS[day], *parts), True)
        for clock, parts in CLOCKS.items()
        for letter, marks in MARKS.items()
        for mark in marks
    }

    assert read(expected) == expected


def test_what_states_no_time_in_utc_of_our_age_is_unreadable():
    assert read(NO_TIMES) == dict.fromkeys(NO_TIMES, (None, False))

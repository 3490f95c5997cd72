"""What a round of booking adds to the rows of its senders."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from django.db import connection
from django.utils.translation import gettext as _

from carbon.attribution import instant_of
from carbon.booked_rows import Round
from carbon.metering import Ints
from carbon.models import Sender
from carbon.waiting import Waiting

LONGEST_ERROR: Final = 400
ADD: Final = (
    "UPDATE carbon_sender AS sender SET rows = sender.rows + added.rows, "
    "rejected = sender.rejected + added.rejected, "
    "duplicates = sender.duplicates + added.duplicates, "
    "ignored = sender.ignored + added.ignored, dropped = sender.dropped + added.dropped, "
    "last_seen_at = greatest(sender.last_seen_at, added.seen_at), "
    "last_reading_at = greatest(sender.last_reading_at, added.reading_at) "
    "FROM unnest(%s::int[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], "
    "%s::timestamptz[], %s::timestamptz[]) "
    "AS added(id, rows, rejected, duplicates, ignored, dropped, seen_at, reading_at) "
    "WHERE sender.id = added.id"
)


def count(waiting: Waiting, round_: Round | None) -> None:
    """Add to the counters of every sender, newest times win; note whose bodies cannot be read.

    Whether a sender is refused is its door's to say.

    Comes last in a round: an agent's door waits for its sender's row.
    """
    if round_ is not None:
        _add(waiting, round_)
    note_unreadable(waiting.unreadable)


def note_unreadable(problems: Mapping[int, str]) -> None:
    """Say on senders' rows that a body of theirs waits for ever, and why."""
    for sender_id, problem in problems.items():
        error = _("A body of it waits and cannot be read: {problem}").format(problem=problem)
        Sender.objects.filter(pk=sender_id).update(last_error=error[:LONGEST_ERROR])


def _add(waiting: Waiting, round_: Round) -> None:
    rejected, newest = round_.rejected_by_sender(), _newest(round_)
    senders = sorted(enumerate(waiting.senders), key=lambda one: one[1].sender_id)
    new = {
        about.sender_id: sum(one.get(about.sender_id, 0) for one in round_.new_by_sender.values())
        for about in waiting.senders
    }
    with connection.cursor() as cursor:
        cursor.execute(
            ADD,
            [
                [one.sender_id for _at, one in senders],
                [one.rows for _at, one in senders],
                [int(rejected[at]) for at, _one in senders],
                [one.rows - int(rejected[at]) - new[one.sender_id] for at, one in senders],
                [one.ignored for _at, one in senders],
                [one.dropped for _at, one in senders],
                [one.last_received_at for _at, one in senders],
                [instant_of(newest[at]) if newest[at] >= 0 else None for at, _one in senders],
            ],
        )


def _newest(round_: Round) -> Ints:
    """The newest good reading of each sender by index, -1 where there is none."""
    newest = np.full(len(round_.waiting.senders), -1, dtype=np.int64)
    for table in round_.reason:
        good, columns = round_.good(table), round_.columns(table)
        np.maximum.at(newest, columns["sender"][good], columns["at"][good])
    return newest

"""The names of events, of the ledger's buckets and of a run's state, for people."""

from datetime import datetime
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_lazy as _

from formulae.time_ledger import Bucket
from runs.progress_records import EventKind, RunNow

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

EVENTS: Final = {
    EventKind.START: _("start"),
    EventKind.RESTART: _("restart"),
    EventKind.CHECKPOINT: _("checkpoint"),
    EventKind.ROLLBACK: _("rollback"),
    EventKind.STOP: _("stop"),
    EventKind.NOTE: _("note"),
}
BUCKETS: Final = {
    Bucket.PRODUCTIVE: _("Productive"),
    Bucket.SLOW: _("Slow steps"),
    Bucket.STRAGGLER: _("Stragglers"),
    Bucket.REWORK: _("Rework after rollbacks"),
    Bucket.CHECKPOINT: _("Checkpoints"),
    Bucket.DATA_STALL: _("Waiting for data"),
    Bucket.STARTUP: _("Starting up"),
    Bucket.IDLE: _("Idle"),
    Bucket.DOWN: _("Down"),
    Bucket.UNKNOWN: _("Unknown: nothing told of it"),
}
STATES: Final["dict[str, tuple[str, _StrPromise]]"] = {
    "none": ("not-set", _("no metrics yet")),
    "ended": ("neutral", _("ended")),
    "silent": ("warn", _("silent")),
    "running": ("info", _("running")),
}


def event_name(kind: EventKind) -> str:
    """What an event is called."""
    return str(EVENTS[kind])


def bucket_name(bucket: Bucket) -> str:
    """What a bucket of the ledger is called."""
    return str(BUCKETS[bucket])


def state_of(now: RunNow, at: datetime) -> tuple[str, str]:
    """The badge of a run's state at an instant, and its word."""
    if now.at is None:
        key = "none"
    elif now.run.end is not None and now.run.end <= at:
        key = "ended"
    else:
        key = "silent" if now.is_silent else "running"
    badge, word = STATES[key]
    return badge, str(word)

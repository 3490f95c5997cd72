"""A run's progress as the server's door takes it: points, events, the body of a batch."""

import gzip
import json
import math
import sys
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from costwatch_agent.records import Document
from costwatch_agent.spool import Cut

FORMAT: Final = "costwatch-progress/1"
MAX_ROWS: Final = 5_000  # of one batch
MAX_TEXT: Final = 200
MAX_COUNT: Final = 2**63 - 1


class EventKind(StrEnum):
    """What can happen to a run."""

    START = "start"
    RESTART = "restart"
    CHECKPOINT = "checkpoint"
    ROLLBACK = "rollback"
    STOP = "stop"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Where a run stood at an instant; None where nothing was said of it."""

    at_ms: int
    step: int
    tokens_total: int | None = None
    step_time_s: float | None = None
    world_size: int | None = None
    loss: float | None = None
    grad_norm: float | None = None
    learning_rate: float | None = None
    data_s: float | None = None
    communication_s: float | None = None
    checkpoint_s: float | None = None
    reported_mfu_fraction: float | None = None
    data_shard: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened to a run. `step`: where it stood; `to_step`: where it goes on from."""

    at_ms: int
    kind: EventKind
    step: int | None = None
    to_step: int | None = None
    detail: str = ""
    duration_s: float | None = None


# What the server would refuse a whole point for: better without the value than not at all.
_LIMITS: Final = {
    "step_time_s": (sys.float_info.min, sys.float_info.max),
    "world_size": (1, 2**31 - 1),
    "learning_rate": (-sys.float_info.max, sys.float_info.max),
    "data_s": (0.0, sys.float_info.max),
    "communication_s": (0.0, sys.float_info.max),
    "checkpoint_s": (0.0, sys.float_info.max),
    "duration_s": (0.0, sys.float_info.max),
    "reported_mfu_fraction": (0.0, 1.0),
}


def document_of(item: Point | Event) -> Document:
    """A point or an event as the door takes it; what is not known or cannot be is left out."""
    found: Document = {"at": instant_text(item.at_ms)}
    for column in fields(item):
        value = getattr(item, column.name)
        lowest, highest = _LIMITS.get(column.name, (None, None))
        if column.name == "at_ms" or value is None or value == "":
            continue
        if lowest is None or lowest <= value <= highest:  # NaN is neither
            found[column.name] = _written(value)
    if isinstance(item, Event) and item.kind is EventKind.ROLLBACK and item.to_step is None:
        found |= {"kind": "note", "detail": f"rollback: {item.detail}"[:MAX_TEXT]}
    return found


def instant_text(at_ms: int) -> str:
    """ISO 8601 in UTC, to the millisecond."""
    seconds, rest_ms = divmod(at_ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest_ms:03d}Z"


def _written(value: Any) -> Any:
    """JSON has no NaN and no infinity: they go as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, str):
        return "".join(letter for letter in value if letter.isprintable())[:MAX_TEXT]
    return value


def begun_ms(ended_ms: int, duration_s: float | None) -> int:
    """When something began that is told when it is over."""
    took_s = duration_s if duration_s is not None and 0 <= duration_s < 86_400 else 0.0
    return ended_ms - round(took_s * 1000)


def count_of(value: float | None) -> int | None:
    """A count from what was read; None where it cannot be one."""
    if value is None or not math.isfinite(value) or not 0 <= value <= MAX_COUNT:
        return None
    return round(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressBuilder:
    """Writes batches of one run's progress. `source`: who says so, for telling senders apart."""

    source: str

    def lengths(self, ticks: list[Document]) -> list[int]:
        """Documents that follow each other go together up to a bound."""
        lengths: list[int] = []
        rows = 0
        for tick in ticks:
            size = len(tick["records"]) + len(tick["events"])
            if lengths and rows + size <= MAX_ROWS:
                lengths[-1] += 1
                rows += size
            else:
                lengths.append(1)
                rows = size
        return lengths

    def body(self, cut: Cut) -> bytes:
        """The batch's bytes: compact JSON, compressed. The same cut makes the same bytes."""
        document = {
            "format": FORMAT,
            "source": self.source,
            "records": [record for tick in cut.ticks for record in tick["records"]],
            "events": [event for tick in cut.ticks for event in tick["events"]],
        }
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return gzip.compress(text.encode(), compresslevel=6, mtime=0)

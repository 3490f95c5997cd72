"""Reads progress as senders write it, by records or by columns; stores nothing.

What is no document at all is refused whole; a record that cannot be read is named, the others stay.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final

from django.utils.translation import gettext as _

from runs.progress_records import EventKind, ProgressPoint, Refused, RunEvent

FORMAT: Final = "costwatch-progress/1"
MOST_RECORDS: Final = 200_000
LARGEST_COUNT: Final = 2**63 - 1
TOP: Final = frozenset({"format", "source", "records", "points", "events"})
POINT_FIELDS: Final = tuple(one.name for one in fields(ProgressPoint))
EVENT_FIELDS: Final = tuple(one.name for one in fields(RunEvent))
COUNTS: Final = frozenset({"step", "tokens_total", "world_size", "to_step"})
TEXTS: Final = frozenset({"data_shard", "detail"})
MAY_BE_NO_NUMBER: Final = frozenset({"loss", "grad_norm"})
NO_NUMBERS: Final = {
    "nan": math.nan,
    "inf": math.inf,
    "+inf": math.inf,
    "-inf": -math.inf,
    "infinity": math.inf,
    "-infinity": -math.inf,
}


class ProgressDocumentError(ValueError):
    """The whole cannot be read; `field` says where."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class _RecordError(ValueError):
    """A record cannot be read."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadProgress:
    """What a document holds; `points_at` and `events_at` are the places of what could be read."""

    source: str
    points: tuple[ProgressPoint, ...]
    points_at: tuple[int, ...]
    events: tuple[RunEvent, ...]
    events_at: tuple[int, ...]
    refused: tuple[Refused, ...]


def read_document(document: Any) -> ReadProgress:
    """Read a document of the progress door.

    Raises:
        ProgressDocumentError: it has no such form.
    """
    if not isinstance(document, Mapping):
        raise ProgressDocumentError("", _("Send one JSON object."))
    unknown = sorted(set(document) - TOP)
    if unknown:
        raise ProgressDocumentError(str(unknown[0])[:80], _("There is no such field."))
    if document.get("format", FORMAT) != FORMAT:
        raise ProgressDocumentError("format", _("It is {form}.").format(form=FORMAT))
    source = document.get("source", "")
    if not isinstance(source, str):
        raise ProgressDocumentError("source", _("It is a text."))
    records = [*_listed(document, "records"), *_rows(document.get("points"))]
    events = _listed(document, "events")
    if len(records) + len(events) > MOST_RECORDS:
        raise ProgressDocumentError(
            "records", _("At most {most} at a time.").format(most=MOST_RECORDS)
        )
    return read_records(source, enumerate(records), enumerate(events))


def _listed(document: Mapping[str, Any], name: str) -> list[Any]:
    found = document.get(name, [])
    if not isinstance(found, list):
        raise ProgressDocumentError(name, _("It is a list of objects."))
    return found


def _rows(points: Any) -> list[dict[str, Any]]:
    """The records of columns of one length."""
    if points is None:
        return []
    if not isinstance(points, Mapping) or not all(isinstance(one, list) for one in points.values()):
        raise ProgressDocumentError("points", _("It is an object of columns, each a list."))
    for name in points:
        if name not in POINT_FIELDS:
            raise ProgressDocumentError(f"points.{str(name)[:80]}", _("There is no such field."))
    lengths = {len(one) for one in points.values()}
    if len(lengths) > 1:
        short = min(points, key=lambda name: len(points[name]))
        raise ProgressDocumentError(f"points.{short}", _("The columns are not of one length."))
    return [
        {name: values[index] for name, values in points.items()}
        for index in range(next(iter(lengths), 0))
    ]


def read_records(
    source: str, records: Iterable[tuple[int, Any]], events: Iterable[tuple[int, Any]]
) -> ReadProgress:
    """Read records and events, each with its place."""
    refused: list[Refused] = []
    points = list(_understood(records, POINT_FIELDS, "", refused))
    happened = list(_understood(events, EVENT_FIELDS, "events.", refused))
    return ReadProgress(
        source=source,
        points=tuple(ProgressPoint(**values) for _index, values in points),
        points_at=tuple(index for index, _values in points),
        events=tuple(RunEvent(**values) for _index, values in happened),
        events_at=tuple(index for index, _values in happened),
        refused=tuple(refused),
    )


def _understood(
    records: Iterable[tuple[int, Any]],
    known: Sequence[str],
    before: str,
    refused: list[Refused],
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The values of those records that can be read; the others are put to the refused."""
    for index, record in records:
        try:
            yield index, _values(record, known)
        except _RecordError as error:
            refused.append(Refused(index=index, field=before + error.field, reason=str(error)))


def _values(record: Any, known: Sequence[str]) -> dict[str, Any]:
    if not isinstance(record, Mapping):
        raise _RecordError("", _("It is no object."))
    unknown = sorted(str(name)[:80] for name in record if name not in known)
    if unknown:
        raise _RecordError(unknown[0], _("There is no such field."))
    needed = ("at", "kind") if "kind" in known else ("at", "step")
    for name in needed:
        if record.get(name) is None:
            raise _RecordError(name, _("It is missing."))
    return {name: _value(name, value) for name, value in record.items() if value is not None}


def _value(name: str, value: Any) -> Any:
    if name == "at":
        return _instant(value)
    if name == "kind":
        return _kind(value)
    if name in TEXTS:
        if isinstance(value, str):
            return value
        raise _RecordError(name, _("It is a text."))
    if name in COUNTS:
        return _count(name, value)
    return _number(name, value)


def _instant(value: Any) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _RecordError("at", _("It is an instant, such as 2026-11-16T08:00:00Z.")) from None


def _kind(value: Any) -> EventKind:
    try:
        return EventKind(value)
    except ValueError:
        kinds = ", ".join(EventKind)
        raise _RecordError("kind", _("It is one of {kinds}.").format(kinds=kinds)) from None


def _count(name: str, value: Any) -> int:
    whole = isinstance(value, float) and value.is_integer()
    if (isinstance(value, int) and not isinstance(value, bool)) or whole:
        count = int(value)
        if abs(count) <= LARGEST_COUNT:
            return count
    raise _RecordError(name, _("It must be a whole number from 0."))


def _number(name: str, value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise _RecordError(name, _("It must be a finite number.")) from None
    if name in MAY_BE_NO_NUMBER and isinstance(value, str) and value.lower() in NO_NUMBERS:
        return NO_NUMBERS[value.lower()]
    raise _RecordError(name, _("It is a number."))

"""Reads progress from JSON lines as training code logs them, also by other names; no storing.

Other forms of logs are read where they are written, by the agent.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from django.utils.translation import gettext as _

from runs.progress_documents import EVENT_FIELDS, POINT_FIELDS, ReadProgress, read_records
from runs.progress_records import Refused

OTHER_NAMES: Final = {
    "timestamp": "at",
    "time": "at",
    "ts": "at",
    "lr": "learning_rate",
    "tokens": "tokens_total",
    "step_time": "step_time_s",
    "gradient_norm": "grad_norm",
    "mfu": "reported_mfu_fraction",
}
LINES_AT_ONCE: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLines:
    """What some lines hold; places are line numbers, from 1. `passed` lines tell of no step."""

    read: ReadProgress
    passed: int


def read_lines(lines: Iterable[str], source: str) -> Iterator[ReadLines]:
    """Read JSON lines piece by piece: a point each, or an event where a line has a `kind`."""
    piece: list[tuple[int, str]] = []
    for numbered in enumerate(lines, start=1):
        piece.append(numbered)
        if len(piece) == LINES_AT_ONCE:
            yield _piece(piece, source)
            piece = []
    if piece:
        yield _piece(piece, source)


def _piece(lines: Iterable[tuple[int, str]], source: str) -> ReadLines:
    points: list[tuple[int, Any]] = []
    events: list[tuple[int, Any]] = []
    refused: list[Refused] = []
    passed = 0
    for number, line in lines:
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except ValueError as error:
            why = _("It is no JSON: {error}").format(error=error)
            refused.append(Refused(index=number, field="", reason=why))
            continue
        if not isinstance(found, dict) or not {"step", "kind"} & set(found):
            passed += 1
        elif "kind" in found:
            events.append((number, _known(found, EVENT_FIELDS)))
        else:
            points.append((number, _known(found, POINT_FIELDS)))
    read = read_records(source, points, events)
    everything = sorted((*refused, *read.refused), key=lambda one: one.index)
    return ReadLines(read=replace(read, refused=tuple(everything)), passed=passed)


def _known(found: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    """The fields that progress knows; its own name stands above another name."""
    renamed = {OTHER_NAMES[name]: found[name] for name in OTHER_NAMES if name in found}
    everything = {**renamed, **found}
    return {name: _number_of(everything[name]) for name in fields if name in everything}


def _number_of(value: Any) -> Any:
    """Python writes a loss that is no number bare: as text it is read like any sender's."""
    is_no_number = isinstance(value, float) and not math.isfinite(value)
    return str(value) if is_no_number else value

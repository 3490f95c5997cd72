"""What cannot be true of a run's point or event, said for the people who sent it; no storing."""

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.utils.translation import gettext as _

from runs.progress_records import ProgressPoint, Refused, RunEvent

EARLIEST: Final = datetime(2010, 1, 1, tzinfo=UTC)
FUTURE: Final = timedelta(minutes=5)
LARGEST_COUNT: Final = 2**63 - 1
LARGEST_WORLD: Final = 2**31 - 1
LONGEST_SHARD: Final = 200
LONGEST_DETAIL: Final = 500


def point_refusal(index: int, point: ProgressPoint, now: datetime) -> Refused | None:
    """The first thing about a point that cannot be; None where it is fine."""
    problems: Iterator[tuple[str, str]] = (
        (name, check(getattr(point, name))) for name, check in _POINT_CHECKS
    )
    return _first(index, "", [("at", _instant_problem(point.at, now)), *problems])


def event_refusal(index: int, event: RunEvent, now: datetime) -> Refused | None:
    """The first thing about an event that cannot be; None where it is fine."""
    problems = [
        ("at", _instant_problem(event.at, now)),
        ("step", _count_problem(event.step)),
        ("to_step", _count_problem(event.to_step)),
        ("duration_s", _seconds_problem(event.duration_s)),
        ("detail", _text_problem(event.detail, LONGEST_DETAIL)),
    ]
    return _first(index, "events.", problems)


def _first(index: int, before: str, problems: list[tuple[str, str]]) -> Refused | None:
    return next(
        (Refused(index=index, field=before + name, reason=why) for name, why in problems if why),
        None,
    )


def _instant_problem(at: datetime, now: datetime) -> str:
    if at.tzinfo is None:
        return _("An instant needs its zone, such as 2026-11-16T08:00:00Z.")
    if at < EARLIEST:
        return _("It lies before 2010: seconds and milliseconds may be mixed up.")
    if at > now + FUTURE:
        return _("It lies in the future by more than 5 minutes: set the sender's clock.")
    return ""


def _count_problem(value: int | None) -> str:
    is_fine = value is None or 0 <= value <= LARGEST_COUNT
    return "" if is_fine else _("It must be a whole number from 0.")


def _world_problem(value: int | None) -> str:
    is_fine = value is None or 1 <= value <= LARGEST_WORLD
    return "" if is_fine else _("It must be a whole number from 1.")


def _seconds_problem(value: float | None) -> str:
    is_fine = value is None or 0 <= value < math.inf
    return "" if is_fine else _("It must be at least 0 seconds.")


def _step_time_problem(value: float | None) -> str:
    is_fine = value is None or 0 < value < math.inf
    return "" if is_fine else _("It must be above 0 seconds.")


def _fraction_problem(value: float | None) -> str:
    is_fine = value is None or 0 <= value <= 1
    return "" if is_fine else _("It is a fraction from 0 to 1, such as 0.42.")


def _finite_problem(value: float | None) -> str:
    return "" if value is None or math.isfinite(value) else _("It must be a finite number.")


def _text_problem(text: str, longest: int) -> str:
    if len(text) > longest:
        return _("It has more than {limit} characters.").format(limit=longest)
    return _("It holds a NUL character.") if "\x00" in text else ""


def _shard_problem(text: str) -> str:
    return _text_problem(text, LONGEST_SHARD)


_POINT_CHECKS: Final[tuple[tuple[str, Callable[[Any], str]], ...]] = (
    ("step", _count_problem),
    ("tokens_total", _count_problem),
    ("step_time_s", _step_time_problem),
    ("world_size", _world_problem),
    ("learning_rate", _finite_problem),
    ("data_s", _seconds_problem),
    ("communication_s", _seconds_problem),
    ("checkpoint_s", _seconds_problem),
    ("reported_mfu_fraction", _fraction_problem),
    ("data_shard", _shard_problem),
)

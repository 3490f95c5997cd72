"""What every reader of grid intensity gives: hours of zones, errors, checks. No tables."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from django.utils.translation import gettext as _

from projects.web_client import Limits, WebError

HOUR: Final = timedelta(hours=1)
MOST_G_PER_KWH: Final = 2000.0  # the dirtiest power plant lies below
# What a test of a connection may take, with somebody waiting.
CHECKING: Final = Limits(connect_timeout_s=5.0, read_timeout_s=10.0, tries=1, max_bytes=4 * 2**20)
PULLING: Final = Limits(connect_timeout_s=10.0, read_timeout_s=30.0, max_bytes=32 * 2**20)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntensityPoint:
    """The intensity of a zone in one UTC hour, as a source told it."""

    zone: str
    hour: datetime
    basis: str  # direct, lifecycle
    value_g_per_kwh: float
    signal: str = "average"  # or marginal
    is_estimated: bool = False
    method: str = ""
    told_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The hours of a zone that are asked for, and when."""

    zone: str
    start: datetime
    end: datetime
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a source told of a window; notes say for people what of it was not taken."""

    points: tuple[IntensityPoint, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One step of a connection's test."""

    about: str
    ok: bool
    message: str


class IntensityError(Exception):
    """A source that did not tell; the message is for people and holds no secret.

    Codes: those of the client of the house, and wrong_zone, wrong_unit, wrong_shape, no_access.
    """

    def __init__(self, code: str, message: str, *, retry_after_s: float | None = None) -> None:
        self.code, self.message, self.retry_after_s = code, message, retry_after_s
        super().__init__(message)

    @property
    def permanent(self) -> bool:
        """Whether asking again soon would change nothing."""
        return self.code not in ("throttled", "unavailable", "timeout")

    @classmethod
    def of(cls, error: WebError) -> "IntensityError":
        """The client's error, as this room's."""
        return cls(error.code, error.message, retry_after_s=error.retry_after_s)


class Provider(Protocol):
    """A service that tells the intensity of zones by the hour."""

    def pull(self, window: Window) -> Told:
        """What the service tells of a window.

        Raises:
            IntensityError: it did not tell.
        """

    def check(self, zones: Sequence[str], *, now: datetime) -> list[Check]:
        """Try the connection, step by step; never raises for what the service answers."""


def instant(text: object, field: str) -> datetime:
    """An instant with its zone; times without one are refused, not guessed."""
    if not isinstance(text, str):
        raise IntensityError("wrong_shape", _("{field} is no time.").format(field=field))
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise IntensityError(
            "wrong_shape", _("{field} is no time: {text}.").format(field=field, text=repr(text))
        ) from error
    if at.tzinfo is None:
        raise IntensityError(
            "wrong_shape",
            _("{field} does not say its time zone: {text}.").format(field=field, text=repr(text)),
        )
    return at.astimezone(UTC)


def number(value: object) -> float | None:
    """A finite number of zero or more, else None: such an hour stays a hole."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    found = float(value)
    return found if math.isfinite(found) and found >= 0 else None


def documents(answer: object, name: str) -> list[Mapping[str, Any]]:
    """The list of objects under a name of an answer.

    Raises:
        IntensityError: there is no such list.
    """
    rows = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise IntensityError(
            "wrong_shape", _("The answer holds no list named {name}.").format(name=repr(name))
        )
    return rows


def floor_hour(at: datetime) -> datetime:
    """The start of the UTC hour that holds this instant."""
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def chunks(window: Window, longest: timedelta) -> list[Window]:
    """A window in pieces that a service answers, oldest first."""
    found, start = [], window.start
    while start < window.end:
        end = min(window.end, start + longest)
        found.append(Window(zone=window.zone, start=start, end=end, now=window.now))
        start = end
    return found


def settled(points: Iterable[IntensityPoint], window: Window) -> Told:
    """The hours of the window that are over, each once, what cannot be left out and said.

    Of an hour told twice the newer word counts, then the measured one, then the later in the list.
    """
    inside = [one for one in points if window.start <= one.hour < window.end]
    over = [one for one in inside if one.hour + HOUR <= window.now]
    credible = [one for one in over if one.value_g_per_kwh <= MOST_G_PER_KWH]
    best: dict[tuple[datetime, str, str], IntensityPoint] = {}
    twice = 0
    for point in credible:
        key = (point.hour, point.basis, point.signal)
        other = best.get(key, point)
        twice += other.value_g_per_kwh != point.value_g_per_kwh
        best[key] = max(other, point, key=_rank) if _rank(other) != _rank(point) else point
    notes = _left_out(len(inside) - len(over), len(over) - len(credible), twice)
    return Told(points=tuple(best[key] for key in sorted(best)), notes=tuple(notes))


def _left_out(ahead: int, wrong: int, twice: int) -> list[str]:
    """What was not taken, in words."""
    notes = []
    if ahead:
        notes.append(
            _("{count} hours that are not over yet were left for later.").format(count=ahead)
        )
    if wrong:
        notes.append(
            _("{count} hours above {most} g/kWh cannot be and were left out.").format(
                count=wrong, most=f"{MOST_G_PER_KWH:g}"
            )
        )
    if twice:
        notes.append(
            _("{count} hours were told twice with different values; the newer word counts.").format(
                count=twice
            )
        )
    return notes


def _rank(point: IntensityPoint) -> tuple[datetime, bool]:
    return (point.told_at or datetime.min.replace(tzinfo=UTC), not point.is_estimated)


def hourly_means(
    values: Mapping[datetime, float], *, step: timedelta
) -> tuple[dict[datetime, float], int]:
    """Means of the hours whose every step is there, and how many hours are not whole."""
    by_hour: dict[datetime, list[float]] = {}
    for at, value in values.items():
        by_hour.setdefault(floor_hour(at), []).append(value)
    needed = HOUR // step
    whole = {
        hour: math.fsum(found) / needed
        for hour, found in by_hour.items()
        if len(found) == needed and needed
    }
    return whole, len(by_hour) - len(whole)

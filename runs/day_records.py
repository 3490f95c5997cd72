"""What the sums of a run's day are made of and hold, and their form in JSON; no Django."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

from formulae.spans import Span

CLAIMS: Final = frozenset({"segments", "spans"})


@dataclass(frozen=True, slots=True)
class Reading:
    """A point as the sums need it; `at` in microseconds since 1970."""

    at: int
    step: int
    tokens: int | None = None
    step_s: float | None = None
    world: int | None = None
    loss: float | None = None
    data_s: float | None = None
    checkpoint_s: float | None = None
    source: int = 0


@dataclass(frozen=True, slots=True)
class Happened:
    """An event as the sums need it."""

    at: int
    kind: str
    step: int | None = None
    to_step: int | None = None
    duration: int | None = None


@dataclass(frozen=True, slots=True)
class Back:
    """Steps that were thrown away: the work from `since` to `until` is done again after `at`."""

    at: int
    since: int
    until: int
    from_step: int
    to_step: int
    tokens: int | None


@dataclass(slots=True)
class Segment:
    """A stretch within one hour in which steps were taken, and what of it was spent waiting.

    Where in the hour a wait lay is not kept: waits come first, useful work last.
    """

    start: int
    end: int
    steps: float
    stall: int
    checkpoint: int


@dataclass(slots=True, kw_only=True)
class InSteps:
    """What was done in how much time inside steps; for points whose step time is known."""

    seconds: float = 0.0  # where the world size is not told
    device_seconds: float = 0.0
    tokens: int = 0
    bare_steps: int = 0  # whose tokens are not told


@dataclass(slots=True, kw_only=True)
class DaySums:
    """What a run's day amounts to, before what people set of the run is applied.

    `last_*` is where the run stands at the day's end, after rollbacks. Where tokens are not told,
    steps are kept, to be multiplied by the run's tokens per step when they are read.
    """

    points: int = 0
    first_step: int | None = None
    first_tokens: int | None = None
    first_need_s: float | None = None
    last_at: int | None = None
    last_step: int | None = None
    last_tokens: int | None = None
    loss: float | None = None
    steps: int = 0
    step_time_s: tuple[float, float, float, float] | None = None  # mean, P50, P90, P99
    in_steps: InSteps = field(default_factory=InSteps)
    segments: list[Segment] = field(default_factory=list)
    spans: dict[str, list[Span]] = field(default_factory=dict)
    backs: list[Back] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """The sums as JSON, without the claims; a loss that is no number is kept by its name."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        found = {name: value for name, value in found.items() if name not in CLAIMS}
        found["in_steps"] = asdict(self.in_steps)
        found["backs"] = [list(asdict(one).values()) for one in self.backs]
        if self.loss is not None and not math.isfinite(self.loss):
            found["loss"] = str(self.loss)
        return found

    def claims(self) -> dict[str, Any]:
        """What the day claims of device-time as JSON."""
        return {
            "segments": [list(asdict(one).values()) for one in self.segments],
            "spans": self.spans,
        }


def sums_from(document: Mapping[str, Any], claims: Mapping[str, Any] | None = None) -> DaySums:
    """Sums as they were kept; without the claims where those are not asked for."""
    plain = dict(document)
    loss, times = plain.get("loss"), plain.get("step_time_s")
    told = claims or {}
    return DaySums(
        **{
            **plain,
            "loss": None if loss is None else float(loss),
            "step_time_s": None if times is None else tuple(times),
            "in_steps": InSteps(**plain.get("in_steps", {})),
            "segments": [Segment(*one) for one in told.get("segments", ())],
            "spans": {
                bucket: [(one[0], one[1]) for one in some]
                for bucket, some in told.get("spans", {}).items()
            },
            "backs": [Back(*one) for one in plain.get("backs", ())],
        }
    )

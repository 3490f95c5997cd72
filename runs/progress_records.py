"""What other rooms may hold of a run's progress: points, events, days, ledgers; no Django."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID

from formulae.time_ledger import Bucket
from runs.records import RunRecord


class EventKind(StrEnum):
    """What happens to a run."""

    START = "start"
    RESTART = "restart"
    CHECKPOINT = "checkpoint"
    ROLLBACK = "rollback"
    STOP = "stop"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressPoint:
    """What training code says after a step; what it does not say is None.

    `tokens_total` counts from the run's first step, over all its restarts. `step_time_s` is the
    mean time of the steps since the point before, `data_s` and `communication_s` the part of it
    spent waiting for data and for other devices; `checkpoint_s` is all the time since the point
    before in which a checkpoint held up the training. `loss` and `grad_norm` may be NaN or
    infinite.
    """

    at: datetime
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
class RunEvent:
    """Something that happened to a run at `at`, where it began when it took `duration_s`.

    A rollback, or a restart that names it, goes on from `to_step`: what was trained after that
    step is trained again.
    """

    at: datetime
    kind: EventKind
    step: int | None = None
    to_step: int | None = None
    detail: str = ""
    duration_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A record of a delivery that was not stored, and why."""

    index: int
    field: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What became of a delivery; what was known already stays as it first came."""

    points_new: int
    points_known: int
    events_new: int
    events_known: int = 0
    refused: tuple[Refused, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressDay:
    """A run's UTC day.

    `tokens` is net: what stands at the end of the day less what stood at its start, so a rollback
    may bring it below zero; `rework_tokens` is what rollbacks threw away on this day. Both
    utilisations count what was processed, `tokens` + `rework_tokens`: `mfu_fraction` over all
    device-seconds allocated to the run, `step_mfu_fraction` over those inside its steps.
    """

    run_id: UUID
    day: date
    tokens: int | None
    rework_tokens: int | None
    steps: int
    step_time_mean_s: float | None
    step_time_p50_s: float | None
    step_time_p90_s: float | None
    step_time_p99_s: float | None
    mfu_fraction: float | None
    step_mfu_fraction: float | None
    last_step: int | None
    last_tokens_total: int | None
    loss: float | None
    allocated_device_s: float | None = None
    last_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MfuBasis:
    """What a run's utilisation is measured against, by name."""

    peak_flop_per_s: float
    denominator: str
    flop_per_token: float
    flop_basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerHour:
    """How the device-time allocated in an hour was spent; sums exactly to what was allocated."""

    hour: datetime
    device_microseconds: Mapping[Bucket, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNow:
    """Where a run stands by its last point; silent when it should have said more by now."""

    run: RunRecord
    at: datetime | None
    step: int | None
    tokens_total: int | None
    loss: float | None
    step_time_s: float | None
    mfu_fraction: float | None
    is_silent: bool

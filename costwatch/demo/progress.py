"""What the demo's runs report of themselves: a point each quarter of an hour, and their events."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from costwatch.demo import story
from costwatch.demo.noise import bell
from costwatch.demo.power import experiment_level_w
from runs.progress_records import EventKind, ProgressPoint, RunEvent

QUARTER: Final = timedelta(minutes=15)
SECOND: Final = timedelta(seconds=1)
"""A point is of the quarter that ends with it, and of its day."""
QUARTER_S: Final = 900.0
CHECKPOINT_S: Final = 60.0
STARTUP_S: Final = 600.0
SWEEP_STARTUP_S: Final = 300.0
FLOP_PER_PARAMETER: Final = 6
STEP_NOISE: Final = 0.012
DATA_FRACTION: Final = 0.05
SLOW_DATA_FRACTION: Final = 0.34
COMMUNICATION_FRACTION: Final = 0.14
IDLE_BELOW_W: Final = 200.0
MFU_AT_FULL_W: Final = 0.38
FULL_W: Final = 640.0
SHARD_TOKENS: Final = 1_000_000_000
_MAIN_STREAM, _EXPERIMENT_STREAM = 7_000_000, 7_100_000
SOURCE: Final = "agent-tail:demo-node-01"


@dataclass(slots=True, kw_only=True)
class RunOfStory:
    """What one run reports, in order."""

    slug: str
    points: list[ProgressPoint] = field(default_factory=list)
    events: list[RunEvent] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Trainer:
    """A training that takes steps; what of a quarter is left over goes into the next."""

    tokens_per_step: int
    parameters: int
    accelerators: int
    step: int = 0
    left_s: float = 0.0

    def step_s(self, mfu: float) -> float:
        """The time of a step at a utilisation, s."""
        flop = FLOP_PER_PARAMETER * self.parameters * self.tokens_per_step
        flop_per_s = self.accelerators * story.H100_DENSE_BF16_FLOP_PER_S * mfu
        return flop / flop_per_s

    def quarter(
        self, at: datetime, step_s: float, *, held_s: float, started_s: float, slow: bool
    ) -> ProgressPoint:
        """The point at the end of a quarter."""
        free_s = QUARTER_S - held_s - started_s + self.left_s
        steps = int(free_s / step_s)
        self.left_s = free_s - steps * step_s
        self.step += steps
        tokens = self.step * self.tokens_per_step
        return ProgressPoint(
            at=at - SECOND,
            step=self.step,
            tokens_total=tokens,
            step_time_s=round(step_s, 4),
            world_size=self.accelerators,
            loss=loss_at(tokens, at),
            grad_norm=round(0.4 + 0.2 * (tokens % 7) / 7, 4),
            learning_rate=3e-4,
            data_s=round(step_s * (SLOW_DATA_FRACTION if slow else DATA_FRACTION), 4),
            communication_s=round(step_s * COMMUNICATION_FRACTION, 4),
            checkpoint_s=held_s,
            data_shard=f"train-{tokens // SHARD_TOKENS:05d}",
        )


def loss_at(tokens: int, at: datetime) -> float:
    """A loss that falls as a power of the tokens, and explodes before the rollback."""
    loss: float = 1.69 + 2.9 * (max(tokens, 1) / 1e9) ** -0.28
    hours_left = (story.ROLLBACK_AT - at) / timedelta(hours=1)
    if 0 <= hours_left < 1:
        loss += 6.0 * (1 - hours_left)
    return round(loss, 4)


def build_progress(seed: int = story.DEFAULT_SEED) -> tuple[RunOfStory, RunOfStory]:
    """What experiments and main run report."""
    return _experiments(seed), _main(seed)


def _quarters(start: datetime, end: datetime) -> Iterator[datetime]:
    at = start
    while at < end:
        yield at
        at += QUARTER


def _noise(seed: int, stream: int, start: datetime, end: datetime) -> Sequence[float]:
    found: list[float] = bell(seed=seed, stream=stream, count=(end - start) // QUARTER).tolist()
    return found


def _main(seed: int) -> RunOfStory:
    """The main run: a slow week, a rollback, a node that fails and is waited for."""
    run = RunOfStory(slug=story.MAIN_RUN)
    trainer = _Trainer(
        tokens_per_step=story.MAIN_TOKENS_PER_STEP,
        parameters=story.ACTIVE_PARAMETERS,
        accelerators=story.ACCELERATOR_COUNT,
    )
    noise = _noise(seed, _MAIN_STREAM, story.MAIN_RUN_START, story.AS_OF)
    run.events.append(_starting(EventKind.START, story.MAIN_RUN_START, STARTUP_S))
    steps_at: dict[datetime, int] = {}
    for start, wobble in zip(_quarters(story.MAIN_RUN_START, story.AS_OF), noise, strict=True):
        if story.is_restarting(start):
            continue
        at, slow = start + QUARTER, story.is_slow(start)
        if start == story.ROLLBACK_AT:
            _roll_back(run, trainer, steps_at[story.ROLLBACK_TO])
        if start == story.RESTART_END:
            _restart(run, trainer, steps_at[story.RESTART_START - timedelta(hours=1)])
        is_start = start in (story.MAIN_RUN_START, story.ROLLBACK_AT, story.RESTART_END)
        mfu = story.SLOW_STEP_MFU if slow else story.MAIN_STEP_MFU
        point = trainer.quarter(
            at,
            trainer.step_s(mfu) * (1 + STEP_NOISE * wobble),
            held_s=CHECKPOINT_S if at.minute == 0 else 0.0,
            started_s=STARTUP_S if is_start else 0.0,
            slow=slow,
        )
        run.points.append(point)
        steps_at[at] = point.step
        if at.hour == 0 and at.minute == 0:
            run.events.append(_event(EventKind.CHECKPOINT, at, step=point.step))
    return run


def _event(kind: EventKind, at: datetime, *, step: int | None = None, detail: str = "") -> RunEvent:
    return RunEvent(kind=kind, at=at, step=step, detail=detail)


def _starting(kind: EventKind, at: datetime, duration_s: float) -> RunEvent:
    return RunEvent(kind=kind, at=at, duration_s=duration_s)


def _roll_back(run: RunOfStory, trainer: _Trainer, to_step: int) -> None:
    """The loss explodes: go on from an earlier checkpoint, without the data that did it."""
    at = story.ROLLBACK_AT
    run.events += [
        RunEvent(
            kind=EventKind.ROLLBACK,
            at=at,
            step=trainer.step,
            to_step=to_step,
            detail=f"Loss spike (synthetic): shard {run.points[-1].data_shard} is left out",
        ),
        _starting(EventKind.RESTART, at + timedelta(seconds=1), STARTUP_S),
    ]
    trainer.step, trainer.left_s = to_step, 0.0


def _restart(run: RunOfStory, trainer: _Trainer, to_step: int) -> None:
    """A node has failed and was waited for: go on from the last checkpoint."""
    run.events += [
        RunEvent(
            kind=EventKind.STOP,
            at=story.RESTART_START,
            step=trainer.step,
            detail=f"{story.node_name(story.FAILED_NODE)} fails (synthetic)",
        ),
        RunEvent(
            kind=EventKind.RESTART,
            at=story.RESTART_END,
            to_step=to_step,
            duration_s=STARTUP_S,
            detail="Node replaced, checkpoint loaded (synthetic)",
        ),
    ]
    trainer.step, trainer.left_s = to_step, 0.0


def _experiments(seed: int) -> RunOfStory:
    """Sweeps of a small model one after the other, some hours of every four idle."""
    run = RunOfStory(slug=story.EXPERIMENT_RUN)
    trainer = _Trainer(
        tokens_per_step=story.EXPERIMENT_TOKENS_PER_STEP,
        parameters=story.EXPERIMENT_PARAMETERS,
        accelerators=story.EXPERIMENT_NODE_COUNT * story.GPUS_PER_NODE,
    )
    first, end = story.EXPERIMENTS_START, story.MAIN_RUN_START
    sweep = timedelta(hours=story.EXPERIMENT_SWEEP_H)
    for start, wobble in zip(
        _quarters(first, end), _noise(seed, _EXPERIMENT_STREAM, first, end), strict=True
    ):
        level_w = experiment_level_w(start)
        if level_w < IDLE_BELOW_W:
            continue
        at, is_first = start + QUARTER, (start - first) % sweep == timedelta(0)
        if is_first:
            run.events.append(
                _starting(EventKind.START, start + timedelta(seconds=1), SWEEP_STARTUP_S)
            )
        step_s = trainer.step_s(MFU_AT_FULL_W * level_w / FULL_W) * (1 + STEP_NOISE * wobble)
        started_s = SWEEP_STARTUP_S if is_first else 0.0
        run.points.append(trainer.quarter(at, step_s, held_s=0.0, started_s=started_s, slow=False))
        if (at - first) % sweep == timedelta(0) or at == end:
            run.events.append(_event(EventKind.STOP, at, step=trainer.step))
    return run


def by_day(run: RunOfStory) -> dict[datetime, tuple[list[ProgressPoint], list[RunEvent]]]:
    """What was known at the end of each day and not before."""
    found: defaultdict[datetime, tuple[list[ProgressPoint], list[RunEvent]]] = defaultdict(
        lambda: ([], [])
    )
    for point in run.points:
        found[_end_of_day(point.at)][0].append(point)
    for event in run.events:
        found[_end_of_day(event.at)][1].append(event)
    return dict(sorted(found.items()))


def _end_of_day(at: datetime) -> datetime:
    start = at.replace(hour=0, minute=0, second=0, microsecond=0)
    return start if start == at else start + timedelta(days=1)

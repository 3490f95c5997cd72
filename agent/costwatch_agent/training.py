"""Three lines in a training script: progress goes to Costwatch, and nothing here can hurt a run.

    run = costwatch_agent.training.start("project/run")
    run.step(step=step, tokens=tokens_so_far, loss=loss)
    run.finish()

Only rank 0 speaks. A step is put into a bounded queue and forgotten; a thread does the rest.
"""

import atexit
import logging
import math
import os
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

from costwatch_agent.progress import Event, EventKind, Point, begun_ms, count_of
from costwatch_agent.ranks import place
from costwatch_agent.training_thread import Item, Settings, SettingsError, Worker, settings_of

log = logging.getLogger(__name__)
MAX_QUEUED: Final = 10_000
FINISH_S: Final = 5.0
SAID_ONCE: Final = "costwatch: %s; training goes on without it"


class Run:
    """A run's progress as its training script tells it. No method raises, none waits."""

    def __init__(
        self,
        settings: Settings | None,
        *,
        world_size: int | None = None,
        tokens_per_step: int | None = None,
    ) -> None:
        """Without settings nothing is told."""
        self._queue: deque[Callable[[], Item]] = deque()
        self._worker = Worker(settings, self._queue) if settings is not None else None
        self._pid = os.getpid()
        self._world_size = world_size
        self._tokens_per_step = tokens_per_step
        self._last: tuple[int, float] | None = None  # step and clock
        self._is_finished = False
        self.dropped = 0  # steps and events that found the queue full

    @property
    def is_active(self) -> bool:
        """Whether anything is told: on rank 0, with an address and a token."""
        return self._worker is not None

    def step(self, step: int, tokens: int | None = None, loss: Any = None, **measured: Any) -> None:
        """A step is done.

        tokens: how many the run has trained on so far, over all ranks and restarts.
        measured: step_time_s (else the time since the step before), grad_norm, learning_rate,
        data_s, communication_s, checkpoint_s, reported_mfu_fraction, data_shard.
        Tensors are read later, on another thread: training never waits for them.
        """
        if self._worker is None or self._is_finished:
            return
        try:
            step = int(step)
            if step < 0:
                raise ValueError(f"step {step}")
            at_s, took_s = self.lap(step)
            self.tell(
                step,
                at_s,
                {"step_time_s": took_s, **measured, "loss": loss, "tokens": tokens},
            )
        except Exception as error:  # noqa: BLE001 - a run must not end for its book-keeping
            self._say_once(error)

    def lap(self, step: int) -> tuple[float, float | None]:
        """The instant, and the time a step took since the last lap."""
        at_s, clock_s = time.time(), time.perf_counter()
        before, self._last = self._last, (step, clock_s)
        if before is None or step <= before[0]:
            return at_s, None
        return at_s, (clock_s - before[1]) / (step - before[0])

    def tell(self, step: int, at_s: float, measured: dict[str, Any]) -> None:
        """Queue a step that was done at `at_s`."""
        if self._worker is None or self._is_finished:
            return  # not the rank that speaks: nobody would drain the queue
        if measured.get("tokens") is None and self._tokens_per_step:
            measured["tokens"] = step * self._tokens_per_step
        measured["world_size"] = self._world_size
        held = {name: _detached(value) for name, value in measured.items()}
        self._put(lambda: _point(int(at_s * 1000), int(step), held))

    def event(
        self,
        kind: str,
        *,
        step: int | None = None,
        to_step: int | None = None,
        detail: str = "",
        duration_s: float | None = None,
    ) -> None:
        """Something is over: start, restart, checkpoint, rollback, stop or note.

        to_step: where a restart or a rollback goes on from.
        """
        if self._worker is None or self._is_finished:
            return
        try:
            said = EventKind(kind)
            last = self._last[0] if self._last is not None else None
            found = Event(
                at_ms=begun_ms(int(time.time() * 1000), duration_s),
                kind=said,
                step=last if step is None else int(step),
                to_step=None if to_step is None else int(to_step),
                detail=str(detail),
                duration_s=None if duration_s is None else float(duration_s),
            )
            if said is not EventKind.NOTE:
                self.restart_clock()
            self._put(lambda: found)
        except Exception as error:  # noqa: BLE001 - as above
            self._say_once(error)

    def restart_clock(self) -> None:
        """What took time until now (an evaluation, say) is no part of the next step's."""
        if self._last is not None:
            self._last = (self._last[0], time.perf_counter())

    def finish(self, detail: str = "", timeout_s: float = FINISH_S) -> None:
        """Tell that training stopped, and wait a little for what is still to be sent."""
        if self._worker is None or self._is_finished or os.getpid() != self._pid:
            return
        self.event("stop", detail=detail)
        self._is_finished = True
        atexit.unregister(self.finish)
        try:
            self._worker.finish(timeout_s)
        except Exception as error:  # noqa: BLE001 - as above
            self._say_once(error)

    def _put(self, item: Callable[[], Item]) -> None:
        if os.getpid() != self._pid:
            return  # a worker that was forked off: the thread is not here
        if len(self._queue) >= MAX_QUEUED:
            self.dropped += 1
            return
        self._queue.append(item)

    def _say_once(self, error: Exception) -> None:
        if self._worker is not None and not self._worker.has_complained:
            self._worker.has_complained = True
            log.warning(SAID_ONCE, f"{type(error).__name__}: {error}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.finish(detail=kind.__name__ if kind is not None else "")


def start(
    run: str | None = None,
    *,
    tokens_per_step: int | None = None,
    world_size: int | None = None,
    resumed_from_step: int | None = None,
    rank: int | None = None,
) -> Run:
    """Begin to tell a run's progress.

    run: project/run; else COSTWATCH_RUN. The server and the token come from COSTWATCH_URL and
    COSTWATCH_TOKEN or COSTWATCH_TOKEN_FILE. Where one is missing nothing is told, and a warning
    says so: training goes on.
    """
    try:
        own_rank, size = place()
        if (own_rank if rank is None else rank) != 0:
            return Run(None)
        found = Run(
            settings_of(run),
            world_size=world_size or size,
            tokens_per_step=tokens_per_step,
        )
    except SettingsError as error:
        log.warning(SAID_ONCE, error)
        return Run(None)
    except Exception as error:  # noqa: BLE001 - as above
        log.warning(SAID_ONCE, f"{type(error).__name__}: {error}")
        return Run(None)
    atexit.register(found.finish)
    kind = EventKind.RESTART if resumed_from_step else EventKind.START
    found.event(kind, step=resumed_from_step or None, to_step=resumed_from_step or None)
    return found


def _detached(value: Any) -> Any:
    """The value without the graph that made it: a queue must not keep a step's memory."""
    detach = getattr(value, "detach", None)
    return detach() if detach is not None else value


def _point(at_ms: int, step: int, held: dict[str, Any]) -> Point:
    """On the thread: the numbers, which may have to be fetched from an accelerator."""
    found = {name: _number(held.get(name)) for name in NUMBERS}
    return Point(
        at_ms=at_ms,
        step=step,
        tokens_total=count_of(_number(held.get("tokens"))),
        world_size=count_of(_number(held.get("world_size"))),
        data_shard=str(held.get("data_shard") or ""),
        **found,
    )


NUMBERS: Final = (
    "step_time_s", "loss", "grad_norm", "learning_rate", "data_s", "communication_s",
    "checkpoint_s", "reported_mfu_fraction",
)  # fmt: skip


def _number(value: Any) -> float | None:
    if value is None:
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def __getattr__(name: str) -> Any:
    """The callbacks, made when they are asked for: their frameworks are imported then."""
    if name in {"HuggingFaceCallback", "LightningCallback"}:
        from costwatch_agent import callbacks  # it imports this module

        return callbacks.made(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

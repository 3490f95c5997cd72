"""Callbacks for Hugging Face's Trainer and for Lightning, over `training.start`.

Neither framework is imported before its callback is asked for, and none of their hooks raises.
"""

import functools
import importlib
import logging
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from costwatch_agent.training import Run, start

log = logging.getLogger(__name__)
BASES: Final = {
    "HuggingFaceCallback": (("transformers", "TrainerCallback"),),
    "LightningCallback": (
        ("lightning.pytorch", "Callback"),
        ("pytorch_lightning", "Callback"),
    ),
}
Hook = Callable[..., None]


def made(name: str) -> type:
    """The callback's class, on the framework's own base. ImportError: it is not installed."""
    return _made(name, _base(name))


def _base(name: str) -> type:
    # The one that the script uses has been imported by now.
    for module, attribute in sorted(BASES[name], key=lambda base: base[0] not in sys.modules):
        try:
            found: type = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            if error.name is None or not module.startswith(error.name):
                raise
            continue
        return found
    wanted = " or ".join(module for module, _ in BASES[name])
    raise ImportError(f"{name} needs {wanted}, which is not installed")


@functools.cache
def _made(name: str, base: type) -> type:
    hooks = {"HuggingFaceCallback": _HuggingFace, "LightningCallback": _Lightning}[name]
    return type(name, (hooks, base), {"__doc__": hooks.__doc__, "__module__": __name__})


def _guarded(hook: Hook) -> Hook:
    """A hook that says what went wrong, once, and lets training go on."""

    @functools.wraps(hook)
    def guarded(self: Any, *arguments: Any, **keywords: Any) -> None:
        try:
            hook(self, *arguments, **keywords)
        except Exception as error:  # noqa: BLE001 - a hook that raises would end the training
            if not getattr(self, "_has_complained", False):
                self._has_complained = True
                log.warning("costwatch: %s: %s; training goes on", type(error).__name__, error)

    return guarded


class _Told:
    """What both callbacks are given, and the run that they tell of."""

    def __init__(self, run: str | None = None, *, tokens_per_step: int | None = None) -> None:
        super().__init__()
        self._name = run
        self._tokens_per_step = tokens_per_step
        self._run: Run | None = None

    def _begin(self, *, is_first: bool, step: int, world_size: int | None) -> None:
        if self._run is None:
            self._run = start(
                self._name,
                tokens_per_step=self._tokens_per_step,
                world_size=world_size,
                resumed_from_step=step or None,
                rank=0 if is_first else 1,
            )

    def _end(self, detail: str = "") -> None:
        if self._run is not None:
            self._run.finish(detail)
            self._run = None


class _HuggingFace(_Told):
    """Tells Costwatch of a Trainer's steps: Trainer(..., callbacks=[HuggingFaceCallback()]).

    Tokens are counted where TrainingArguments(include_num_input_tokens_seen=...) is set; else give
    tokens_per_step, the whole run's.
    """

    _waiting: tuple[int, float, dict[str, Any]] | None = (
        None  # a step whose loss may still be logged
    )
    _quiet_s: float = 0.0  # the clock at the last hook

    @_guarded
    def on_train_begin(self, args: Any, state: Any, control: Any, **keywords: Any) -> None:
        size = getattr(args, "world_size", None)
        self._begin(
            is_first=state.is_world_process_zero,
            step=state.global_step,
            world_size=size if isinstance(size, int) else None,
        )

    @_guarded
    def on_step_end(self, args: Any, state: Any, control: Any, **keywords: Any) -> None:
        self._tell()
        seen = getattr(state, "num_input_tokens_seen", 0) or None
        if self._run is not None:
            at_s, took_s = self._run.lap(state.global_step)
            self._waiting = (state.global_step, at_s, {"tokens": seen, "step_time_s": took_s})
        self._quiet_s = time.perf_counter()

    @_guarded
    def on_log(
        self, args: Any, state: Any, control: Any, logs: Any = None, **keywords: Any
    ) -> None:
        self._quiet_s = time.perf_counter()
        if self._waiting is not None and self._waiting[0] == state.global_step:
            names = ("loss", "grad_norm", "learning_rate")
            self._waiting[2].update({name: logs[name] for name in names if name in (logs or {})})

    @_guarded
    def on_evaluate(self, args: Any, state: Any, control: Any, **keywords: Any) -> None:
        self._quiet_s = time.perf_counter()
        if self._run is not None:
            self._run.restart_clock()

    @_guarded
    def on_save(self, args: Any, state: Any, control: Any, **keywords: Any) -> None:
        self._tell()
        if self._run is not None:
            took_s = time.perf_counter() - self._quiet_s if self._quiet_s else None
            self._run.event("checkpoint", step=state.global_step, duration_s=took_s)

    @_guarded
    def on_train_end(self, args: Any, state: Any, control: Any, **keywords: Any) -> None:
        self._tell()
        self._end()

    def _tell(self) -> None:
        if self._waiting is not None and self._run is not None:
            self._run.tell(*self._waiting)
        self._waiting = None


class _Lightning(_Told):
    """Tells Costwatch of a Trainer's steps: Trainer(..., callbacks=[LightningCallback()]).

    The loss is the logged metric `loss` or `train_loss`, else what the step returned. Give
    tokens_per_step, the whole run's, so that tokens are counted.
    """

    _step: int = -1

    @_guarded
    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._step = trainer.global_step
        self._begin(
            is_first=trainer.is_global_zero,
            step=trainer.global_step,
            world_size=getattr(trainer, "world_size", None),
        )

    @_guarded
    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self._run is None or trainer.global_step == self._step:
            return  # gradients are still being gathered
        self._step = trainer.global_step
        metrics = trainer.callback_metrics
        loss = next((metrics[name] for name in ("loss", "train_loss") if name in metrics), None)
        if loss is None:
            loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        groups = [group for one in trainer.optimizers[:1] for group in one.param_groups]
        rate = groups[0].get("lr") if groups else None
        self._run.step(self._step, loss=loss, learning_rate=rate)

    @_guarded
    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if self._run is not None:
            self._run.restart_clock()

    @_guarded
    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:
        if self._run is not None:
            self._run.event("checkpoint", step=trainer.global_step)

    @_guarded
    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._end(type(exception).__name__)

    @_guarded
    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._end()

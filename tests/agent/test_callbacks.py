"""The callbacks, driven as Hugging Face's Trainer and Lightning drive theirs."""

import sys
import time
from types import ModuleType, SimpleNamespace

import pytest

from costwatch_agent import training, training_thread
from tests.agent.progress_server import ProgressDoor, progress_door
from tests.agent.test_training import RANK_NAMES


@pytest.fixture
def door(tmp_path, monkeypatch):
    for name in RANK_NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(training_thread, "BEAT_S", 0.01)
    monkeypatch.setenv("COSTWATCH_TOKEN", "cw_script")
    monkeypatch.setenv("COSTWATCH_SPOOL", str(tmp_path / "spool"))
    found = ProgressDoor()
    with progress_door(found) as url:
        monkeypatch.setenv("COSTWATCH_URL", url)
        yield found
    assert found.faults == []


def module(monkeypatch, name, attribute, base):
    """A framework as far as its callback's base goes."""
    for at in range(1, name.count(".") + 2):
        part = ".".join(name.split(".")[:at])
        monkeypatch.setitem(sys.modules, part, ModuleType(part))
    setattr(sys.modules[name], attribute, base)


# --- Hugging Face: the hooks, their order and their arguments as in transformers' trainer_callback


class TrainerCallback:
    def on_init_end(self, args, state, control, **kwargs): ...
    def on_train_begin(self, args, state, control, **kwargs): ...
    def on_train_end(self, args, state, control, **kwargs): ...
    def on_epoch_begin(self, args, state, control, **kwargs): ...
    def on_epoch_end(self, args, state, control, **kwargs): ...
    def on_step_begin(self, args, state, control, **kwargs): ...
    def on_substep_end(self, args, state, control, **kwargs): ...
    def on_step_end(self, args, state, control, **kwargs): ...
    def on_evaluate(self, args, state, control, **kwargs): ...
    def on_save(self, args, state, control, **kwargs): ...
    def on_log(self, args, state, control, **kwargs): ...


class Trainer:
    """Calls hooks as transformers' CallbackHandler does: by name, with keywords beside."""

    def __init__(self, *callbacks, world_process_zero=True, tokens=2048):
        self.callbacks = [one() if isinstance(one, type) else one for one in callbacks]
        self.args = SimpleNamespace(world_size=8)
        self.state = SimpleNamespace(
            global_step=0, num_input_tokens_seen=0, is_world_process_zero=world_process_zero
        )
        self.control = SimpleNamespace()
        self.tokens = tokens

    def call(self, event, **extra):
        for callback in self.callbacks:
            result = getattr(callback, event)(
                self.args, self.state, self.control, model=None, optimizer=None, **extra
            )
            assert result is None

    def train(self, steps, *, log_every=2, evaluate_at=(), save_at=(), resume_from=0):
        self.state.global_step = resume_from
        self.call("on_train_begin")
        self.call("on_epoch_begin")
        for step in range(resume_from + 1, steps + 1):
            self.call("on_step_begin")
            self.state.global_step = step
            self.state.num_input_tokens_seen += self.tokens
            self.call("on_step_end")
            if step % log_every == 0:
                logs = {"loss": 1.0 / step, "grad_norm": 0.5, "learning_rate": 1e-4, "epoch": 0.1}
                self.call("on_log", logs=logs)
            if step in evaluate_at:
                time.sleep(0.6)
                self.call("on_log", logs={"eval_loss": 9.0})
                self.call("on_evaluate", metrics={"eval_loss": 9.0})
            if step in save_at:
                time.sleep(0.6)
                self.call("on_save")
        self.call("on_epoch_end")
        self.call("on_log", logs={"train_runtime": 1.0, "train_loss": 0.1, "total_flos": 1e15})
        self.call("on_train_end")


@pytest.fixture
def hugging_face(monkeypatch):
    module(monkeypatch, "transformers", "TrainerCallback", TrainerCallback)
    return training.HuggingFaceCallback


def test_a_trainers_steps_arrive_with_tokens_and_the_loss_where_it_is_logged(door, hugging_face):
    callback = hugging_face("moe-10b/main")
    assert isinstance(callback, TrainerCallback)
    Trainer(callback).train(5, save_at=[4], evaluate_at=[2])
    records = list(door.records.values())
    assert [record["step"] for record in records] == [1, 2, 3, 4, 5]
    assert [record["tokens_total"] for record in records] == [n * 2048 for n in range(1, 6)]
    assert [record.get("loss") for record in records] == [None, 0.5, None, 0.25, None]
    assert records[3]["learning_rate"] == 1e-4
    assert {record["world_size"] for record in records} == {8}
    assert records[2]["step_time_s"] < 0.5, "an evaluation is no part of a step"
    assert records[4]["step_time_s"] < 0.5, "nor is saving"
    start, saved, stop = door.events.values()
    assert (start["kind"], saved["kind"], saved["step"], stop["kind"]) == (
        "start", "checkpoint", 4, "stop",
    )  # fmt: skip
    assert 0.6 <= saved["duration_s"] < 5


def test_a_trainer_that_resumes_says_from_where(door, hugging_face):
    Trainer(hugging_face("moe-10b/main")).train(12, resume_from=10)
    first = next(iter(door.events.values()))
    assert (first["kind"], first["to_step"]) == ("restart", 10)
    assert door.steps == [11, 12]


def test_a_trainer_that_counts_no_tokens_is_told_how_many_a_step_has(door, hugging_face):
    Trainer(hugging_face("moe-10b/main", tokens_per_step=100), tokens=0).train(2)
    assert [record["tokens_total"] for record in door.records.values()] == [100, 200]


def test_the_other_processes_of_a_trainer_are_silent(door, hugging_face):
    Trainer(hugging_face("moe-10b/main"), world_process_zero=False).train(3)
    assert door.requests == 0


def test_the_class_can_be_given_and_the_environment_names_the_run(door, hugging_face, monkeypatch):
    monkeypatch.setenv("COSTWATCH_RUN", "moe-10b/main")
    Trainer(hugging_face).train(1)
    assert door.paths == {"/api/v1/runs/moe-10b/main/progress"}


def test_a_trainer_of_another_kind_of_state_is_not_broken(door, hugging_face, caplog):
    trainer = Trainer(hugging_face("moe-10b/main"))
    del trainer.state.is_world_process_zero
    trainer.train(2)
    assert len([message for message in caplog.messages if "goes on" in message]) == 1


def test_two_trainings_of_one_callback_are_two_starts(door, hugging_face):
    trainer = Trainer(hugging_face("moe-10b/main"))
    trainer.train(1)
    trainer.train(2)
    assert door.kinds == ["start", "stop", "start", "stop"]


# --- Lightning


class Callback:
    @property
    def state_key(self):
        return type(self).__qualname__

    def state_dict(self):
        return {}

    def on_train_start(self, trainer, pl_module): ...
    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx): ...
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx): ...
    def on_validation_end(self, trainer, pl_module): ...
    def on_save_checkpoint(self, trainer, pl_module, checkpoint): ...
    def on_exception(self, trainer, pl_module, exception): ...
    def on_train_end(self, trainer, pl_module): ...


class LightningTrainer:
    def __init__(self, *callbacks, is_global_zero=True, accumulate=1, global_step=0):
        self.callbacks = callbacks
        self.is_global_zero = is_global_zero
        self.world_size = 4
        self.global_step = global_step
        self.callback_metrics = {}
        self.optimizers = [SimpleNamespace(param_groups=[{"lr": 3e-4}])]
        self.accumulate = accumulate

    def call(self, hook, *arguments):
        for callback in self.callbacks:
            getattr(callback, hook)(self, None, *arguments)

    def fit(self, batches, *, fail_at=None):
        self.call("on_train_start")
        try:
            for index in range(batches):
                self.call("on_train_batch_start", {}, index)
                if index == fail_at:
                    raise MemoryError
                if (index + 1) % self.accumulate == 0:
                    self.global_step += 1
                self.call("on_train_batch_end", {"loss": 2.0}, {}, index)
            self.call("on_validation_end")
            self.call("on_save_checkpoint", {})
        except MemoryError as error:
            self.call("on_exception", error)
            raise
        self.call("on_train_end")


@pytest.fixture(params=["lightning.pytorch", "pytorch_lightning"])
def lightning(request, monkeypatch):
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)  # as where it is not installed
    module(monkeypatch, request.param, "Callback", Callback)
    return training.LightningCallback


def test_lightnings_steps_arrive_one_for_each_update_of_the_weights(door, lightning):
    callback = lightning("moe-10b/main", tokens_per_step=1000)
    assert isinstance(callback, Callback)
    assert callback.state_key
    LightningTrainer(callback, accumulate=2).fit(6)
    records = list(door.records.values())
    assert [record["step"] for record in records] == [1, 2, 3]
    assert [record["tokens_total"] for record in records] == [1000, 2000, 3000]
    assert (records[0]["loss"], records[0]["learning_rate"]) == (2.0, 3e-4)
    assert records[0]["world_size"] == 4
    assert door.kinds == ["start", "checkpoint", "stop"]


def test_lightnings_logged_loss_is_preferred_and_a_resume_told(door, lightning):
    trainer = LightningTrainer(lightning("moe-10b/main"), global_step=50)
    trainer.callback_metrics = {"train_loss": 1.25}
    trainer.fit(1)
    assert [record["loss"] for record in door.records.values()] == [1.25]
    assert next(iter(door.events.values()))["to_step"] == 50


def test_a_training_that_fails_in_lightning_says_with_what(door, lightning):
    with pytest.raises(MemoryError):
        LightningTrainer(lightning("moe-10b/main")).fit(3, fail_at=1)
    assert list(door.events.values())[-1]["detail"] == "MemoryError"


def test_lightnings_other_processes_are_silent(door, lightning):
    LightningTrainer(lightning("moe-10b/main"), is_global_zero=False).fit(2)
    assert door.requests == 0


def test_a_framework_that_is_not_installed_is_named(monkeypatch):
    for name in ("transformers", "lightning", "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="needs transformers"):
        _ = training.HuggingFaceCallback
    with pytest.raises(ImportError, match=r"needs lightning\.pytorch or pytorch_lightning"):
        _ = training.LightningCallback
    with pytest.raises(AttributeError):
        _ = training.NoSuchCallback

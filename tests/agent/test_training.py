"""The training script's helper: it tells a run's progress, and can neither break nor slow a run."""

import logging
import os
import statistics
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from costwatch_agent import ranks, training, training_thread
from tests.agent.conftest import ROOT
from tests.agent.progress_server import ProgressDoor, progress_door

DOOR = "/api/v1/runs/moe-10b/main/progress"
RANK_NAMES = (*ranks.RANKS, *ranks.SIZES.values())


@pytest.fixture(autouse=True)
def environment(tmp_path, monkeypatch):
    """A script that runs alone, with a token and a spool of its own and nobody at the address."""
    for name in (*RANK_NAMES, "COSTWATCH_RUN", "COSTWATCH_PROJECT", "COSTWATCH_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COSTWATCH_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("COSTWATCH_TOKEN", "cw_script")
    monkeypatch.setenv("COSTWATCH_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setattr(training_thread, "BEAT_S", 0.01)
    return monkeypatch


@pytest.fixture
def door(environment):
    found = ProgressDoor()
    with progress_door(found) as url:
        environment.setenv("COSTWATCH_URL", url)
        yield found
    assert found.faults == []


def test_three_lines_tell_a_run(door):
    run = training.start("moe-10b/main", tokens_per_step=1000, world_size=256)
    for step in (1, 2, 3):
        run.step(step, loss=3.0 / step, learning_rate=1e-4, data_shard="train-00001")
    run.finish()
    assert door.paths == {DOOR}
    assert door.tokens == {"Bearer cw_script"}
    records = list(door.records.values())
    assert [record["step"] for record in records] == [1, 2, 3]
    assert [record["tokens_total"] for record in records] == [1000, 2000, 3000]
    assert "step_time_s" not in records[0]
    assert all(0 < record["step_time_s"] < 5 for record in records[1:])
    assert (records[1]["loss"], records[1]["learning_rate"]) == (1.5, 1e-4)
    assert (records[1]["world_size"], records[1]["data_shard"]) == (256, "train-00001")
    assert door.kinds == ["start", "stop"]


def test_events_say_what_is_over_and_when_it_began(door):
    began_s = time.time()
    with training.start("moe-10b/main", resumed_from_step=40) as run:
        run.step(41, tokens=41_000, loss=float("nan"))
        run.event("checkpoint", duration_s=3600.0, detail="s3://bucket/41")
        run.event("rollback", to_step=30)
        run.event("no such kind")
    start, saved, back, stop = door.events.values()
    assert (start["kind"], start["to_step"]) == ("restart", 40)
    assert (saved["step"], saved["duration_s"]) == (41, 3600.0)
    assert saved["at"] < time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(began_s - 3500))
    assert (back["to_step"], stop["kind"]) == (30, "stop")
    assert next(iter(door.records.values()))["loss"] == "nan"


def test_a_script_that_fails_says_with_what(door):
    with pytest.raises(ZeroDivisionError), training.start("moe-10b/main"):
        raise ZeroDivisionError
    assert [event.get("detail") for event in door.events.values()] == [None, "ZeroDivisionError"]


class Tensor:
    """What a framework's scalar is to us."""

    def __init__(self, value, *, wait_s=0.0, graph="a gigabyte"):
        self.value = value
        self.wait_s = wait_s
        self.graph = graph
        self.read_on = None

    def detach(self):
        found = Tensor(self.value, wait_s=self.wait_s, graph=None)
        found.origin = self
        return found

    def __float__(self):
        assert self.graph is None, "the graph that made it was kept"
        self.origin.read_on = threading.current_thread()
        time.sleep(self.wait_s)
        return self.value


def test_a_tensor_is_read_on_another_thread_and_training_does_not_wait(door):
    run = training.start("moe-10b/main")
    loss = Tensor(2.5, wait_s=1.0)
    began_s = time.perf_counter()
    run.step(1, loss=loss, grad_norm=1.0)
    assert time.perf_counter() - began_s < 0.5
    run.finish()
    assert loss.read_on is not threading.current_thread()
    assert next(iter(door.records.values()))["loss"] == 2.5


class Awkward:
    def __float__(self):
        raise RuntimeError("no value")

    def detach(self):
        raise MemoryError("no detach either")


@pytest.mark.parametrize(
    ("step", "measured"),
    [
        (1, {"loss": Awkward()}),
        (1, {"loss": object()}),
        (1, {"loss": "much"}),
        (1, {"loss": 10**400}),
        ("x", {}),
        (None, {"loss": 1.0}),
        (1, {"tokens": "many"}),
        (1, {"nonsense": 1, "step_time_s": -5}),
        (float("nan"), {}),
        (-1, {}),
    ],
)
def test_nothing_that_a_script_says_raises_and_the_next_step_arrives(door, step, measured):
    run = training.start("moe-10b/main")
    run.step(step, **measured)
    run.event(None)
    run.event("note", step="x")
    run.step(2, loss=1.0)
    run.finish()
    assert 2 in door.steps
    assert set(door.steps) <= {1, 2}
    assert all("loss" not in r or r["loss"] in (1.0, "inf") for r in door.records.values())


def test_what_is_wrong_is_said_once(door, caplog):
    run = training.start("moe-10b/main")
    for step in range(20):
        run.step(step, loss=object())
    run.finish()
    assert len([message for message in caplog.messages if "goes on" in message]) == 1


def test_a_step_costs_microseconds_while_the_server_hangs(environment):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as deaf:  # takes the call and says nothing
        environment.setenv("COSTWATCH_URL", f"http://127.0.0.1:{deaf.getsockname()[1]}")
        run = training.start("moe-10b/main", tokens_per_step=1000)
        took_s = []
        for step in range(5_000):
            began_s = time.perf_counter()
            run.step(step, loss=1.0, grad_norm=2.0, learning_rate=3.0)
            took_s.append(time.perf_counter() - began_s)
        run.finish(timeout_s=0.0)
    assert statistics.median(took_s) < 50e-6


def test_a_full_queue_drops_and_counts_and_takes_no_more_memory(environment):
    environment.setattr(training, "MAX_QUEUED", 100)
    environment.setattr(training_thread, "BEAT_S", 3600.0)
    run = training.start("moe-10b/main")
    for step in range(1_000):
        run.step(step)
    assert len(run._queue) == 100
    assert run.dropped == 901, "the start is in the queue too"
    run.finish(timeout_s=0.0)


def test_what_the_server_did_not_take_is_sent_by_the_next_start(environment):
    run = training.start("moe-10b/main")
    run.step(1, loss=1.0)
    run.finish(timeout_s=1.0)
    run._worker._spool.close()  # as the end of the process does
    door = ProgressDoor()
    with progress_door(door) as url:
        environment.setenv("COSTWATCH_URL", url)
        again = training.start("moe-10b/main")
        again.step(2, loss=1.0)
        again.finish()
    assert door.steps == [1, 2]
    assert door.kinds == ["start", "stop", "start", "stop"]


def test_two_scripts_of_a_run_on_one_machine_both_tell(door):
    one, other = training.start("moe-10b/main"), training.start("moe-10b/main")
    one.step(1)
    other.step(2)
    one.finish()
    other.finish()
    assert sorted(door.steps) == [1, 2]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"COSTWATCH_URL": ""}, "COSTWATCH_URL"),
        ({"COSTWATCH_TOKEN": ""}, "COSTWATCH_TOKEN"),
        ({"COSTWATCH_URL": "http://costwatch.example.org"}, "in the clear"),
        ({"COSTWATCH_URL": "nonsense"}, "is no address"),
        ({"COSTWATCH_SPOOL": "/proc/nowhere"}, "goes on"),
        ({"COSTWATCH_CA_FILE": "/nowhere", "COSTWATCH_URL": "https://x"}, "goes on"),
        ({"name": "no-slash"}, "COSTWATCH_RUN"),
    ],
)
def test_without_what_it_needs_it_says_so_and_training_goes_on(environment, caplog, changes, said):
    name = changes.pop("name", "moe-10b/main")
    for key, value in changes.items():
        environment.setenv(key, value)
    run = training.start(name)
    assert not run.is_active
    run.step(1, loss=1.0)
    run.event("checkpoint")
    run.finish()
    assert said in caplog.text


def test_the_environment_names_the_run_the_token_file_and_the_world(door, environment, tmp_path):
    (tmp_path / "token").write_text("cw_file\n", encoding="ascii")
    for name, value in {
        "COSTWATCH_PROJECT": "moe-10b",
        "COSTWATCH_RUN": "main",
        "COSTWATCH_TOKEN": "",
        "COSTWATCH_TOKEN_FILE": str(tmp_path / "token"),
        "RANK": "0",
        "WORLD_SIZE": "512",
        "SLURM_PROCID": "3",
    }.items():
        environment.setenv(name, value)
    run = training.start()
    run.step(1)
    run.finish()
    assert door.tokens == {"Bearer cw_file"}
    assert next(iter(door.records.values()))["world_size"] == 512


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({}, (0, None)),
        ({"RANK": "3", "WORLD_SIZE": "8"}, (3, 8)),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "64"}, (5, 64)),
        ({"RANK": "0", "WORLD_SIZE": "8", "SLURM_PROCID": "5"}, (0, 8)),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}, (2, 4)),
        ({"PMIX_RANK": "1"}, (1, None)),
        ({"RANK": "x", "SLURM_PROCID": "7"}, (7, None)),
    ],
)
def test_the_rank_is_found_whatever_started_the_script(variables, place):
    assert ranks.place(variables) == place


def test_torch_is_asked_where_it_is_in_use_and_never_imported(environment):
    group = SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: True,
        get_rank=lambda: 6,
        get_world_size=lambda: 16,
    )
    environment.setitem(sys.modules, "torch", SimpleNamespace(distributed=group))
    assert ranks.place({"RANK": "0"}) == (6, 16)


def test_other_ranks_are_silent_and_start_no_thread(environment):
    environment.setenv("RANK", "1")
    before = threading.active_count()
    run = training.start("moe-10b/main")
    run.step(1, loss=1.0)
    run.finish()
    assert not run.is_active
    assert threading.active_count() == before


def test_a_worker_that_was_forked_off_is_silent(door):
    run = training.start("moe-10b/main")
    run.step(1)
    child = os.fork()
    if child == 0:
        run.step(2)
        run.finish()
        os._exit(0 if len(run._queue) <= 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    run.finish()
    assert door.steps == [1]
    assert door.kinds == ["start", "stop"]


SCRIPT = """
import logging, sys
logging.basicConfig(stream=sys.stderr)
from costwatch_agent import training
run = training.start("moe-10b/main")
run.step(1, loss=1.0)
{end}
"""


@pytest.mark.parametrize(
    ("end", "status"), [("", 0), ("raise SystemExit(3)", 3), ("1/0", 1), ("run.finish()", 0)]
)
def test_a_script_ends_as_it_would_have_and_what_it_said_arrives(door, end, status):
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(end=end)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "agent")},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert run.returncode == status, run.stderr
    assert door.steps == [1]
    assert door.kinds == ["start", "stop"]


def test_importing_it_brings_in_no_framework_and_no_gpu_library():
    code = "import sys; from costwatch_agent import training; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "agent")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not set(run.stdout.split()) & {"torch", "transformers", "lightning", "pynvml"}


def test_the_spool_lies_where_only_its_owner_reads(door, tmp_path):
    run = training.start("moe-10b/main")
    run.finish()
    assert (tmp_path / "spool/moe-10b--main").stat().st_mode & 0o077 == 0


def test_the_helper_says_nothing_below_a_warning(door, caplog):
    caplog.set_level(logging.INFO)
    run = training.start("moe-10b/main")
    run.step(1)
    run.finish()
    assert caplog.messages == []

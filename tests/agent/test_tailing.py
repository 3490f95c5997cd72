"""`costwatch-agent tail` and the agent's --tail: from a log to a door for progress and back."""

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from costwatch_agent.log_reading import Told
from costwatch_agent.sender import Door, address
from costwatch_agent.tail_options import profiles_of, tail_options_of
from costwatch_agent.tailing import Tail, TailJob, path_of
from tests.agent.conftest import ROOT, agent_environment
from tests.agent.progress_server import CUT, ProgressDoor, progress_door

LOGS = Path(__file__).with_name("logs")
DOOR = "/api/v1/runs/moe-10b/main/progress"


def step_line(step, second=None):
    second = step if second is None else second
    minute, second = divmod(second, 60)
    return f"2025-11-03 08:{minute:02d}:{second:02d},000 INFO step: {step}  loss: 1.5  tps: 9,000\n"


def job_of(tmp_path, *patterns, **changes):
    job = TailJob(
        run="moe-10b/main",
        patterns=tuple(map(str, patterns)),
        profiles=profiles_of("auto"),
        told=Told(),
        name="node-7",
        spool=tmp_path / "spool",
        spool_max_bytes=1 << 20,
        send_every_s=0.1,
    )
    return replace(job, **changes)


def tail_to(url, job, token="cw_secret"):
    door = Door(address(url, allow_plain_http=False), token, ca_file=None, path=path_of(job.run))
    return Tail(job, door.post)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "train.log"


def add(path, text):
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def test_a_log_arrives_at_the_runs_door(tmp_path):
    door = ProgressDoor()
    with progress_door(door) as url:
        assert tail_to(url, job_of(tmp_path, LOGS / "torchtitan.log")).once()
    assert door.faults == []
    assert door.paths == {DOOR}
    assert door.tokens == {"Bearer cw_secret"}
    assert door.steps == [1, 10, 20, 30]
    assert {source for _, source, _, _ in door.records} == {"agent-tail:node-7"}
    broken = next(record for record in door.records.values() if record["step"] == 20)
    assert (broken["loss"], broken["grad_norm"]) == ("nan", "inf"), "JSON has no NaN"
    assert "reported_mfu_fraction" not in broken, "what is not known is not sent"
    assert door.kinds == ["start", "note", "checkpoint", "note", "restart", "stop"]


def test_a_second_start_goes_on_where_the_first_stopped(tmp_path, log):
    door = ProgressDoor()
    with progress_door(door) as url:
        add(log, step_line(1) + step_line(2) + step_line(3)[:20])
        tail_to(url, job_of(tmp_path, log)).once()
        add(log, step_line(3)[20:] + step_line(4))
        tail_to(url, job_of(tmp_path, log)).once()
    assert door.steps == [1, 2, 3, 4]
    assert door.known == 0, "nothing was sent twice"


def test_settings_that_a_log_told_once_hold_after_a_restart(tmp_path, log):
    door = ProgressDoor()
    with progress_door(door) as url:
        add(log, "global batch size 64, x, sequence length 8192\n" + step_line(1))
        tail_to(url, job_of(tmp_path, log)).once()
        add(log, step_line(2))
        tail_to(url, job_of(tmp_path, log)).once()
    assert [record["tokens_total"] for record in door.records.values()] == [524_288, 1_048_576]


def test_without_its_note_everything_is_read_again_and_counts_once(tmp_path, log):
    door = ProgressDoor()
    add(log, "".join(map(step_line, range(50))))
    with progress_door(door) as url:
        for _ in range(2):
            tail_to(url, job_of(tmp_path, log)).once()
            (tmp_path / "spool/moe-10b--main/tail.json").unlink()
    assert door.faults == []
    assert door.steps == list(range(50))
    assert door.known == 50


def test_a_server_in_trouble_gets_everything_once_it_is_back(tmp_path, log):
    answers = iter([503, CUT, 500, CUT, 429])
    door = ProgressDoor(answer=lambda number: next(answers, 200))
    add(log, "".join(map(step_line, range(30))))
    with progress_door(door) as url:
        tail = tail_to(url, job_of(tmp_path, log))
        tail._sender._first_wait_s = 0.001
        thread = threading.Thread(target=tail.run)
        thread.start()
        wait_for(lambda: len(door.steps) == 30 and door.requests > 5)
        add(log, step_line(30))
        wait_for(lambda: len(door.steps) == 31)
        tail.stopping.set()
        thread.join()
    assert door.faults == []
    assert door.steps == list(range(31))


def wait_for(condition, seconds=20.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_rotation_and_truncation_lose_and_double_nothing(tmp_path, log):
    door = ProgressDoor()
    with progress_door(door) as url:
        tail = tail_to(url, job_of(tmp_path, tmp_path / "train.log*"))
        for round_ in range(4):
            add(log, "".join(step_line(10 * round_ + n) for n in range(5)))
            tail.poll()
            add(log, step_line(10 * round_ + 5))
            log.rename(tmp_path / f"train.log.{round_}")
            add(log, "".join(step_line(10 * round_ + n) for n in (6, 7)))
            tail._looked_s = None  # as ten seconds later
            tail.poll()
            os.truncate(log, 0)
        add(log, step_line(99))
        tail.once()
    assert door.faults == []
    assert door.steps == [10 * round_ + n for round_ in range(4) for n in range(8)] + [99]
    assert door.known == 0


def test_a_pattern_finds_the_logs_of_later_launches(tmp_path):
    door = ProgressDoor()
    (tmp_path / "logs").mkdir()
    with progress_door(door) as url:
        tail = tail_to(url, job_of(tmp_path, tmp_path / "logs/*/rank0.log"))
        for number, job in enumerate(["a", "b"]):
            (tmp_path / "logs" / job).mkdir()
            add(tmp_path / "logs" / job / "rank0.log", step_line(number))
            tail._looked_s = None
            tail.poll()
        tail.once()
    assert door.steps == [0, 1]


def test_a_record_that_the_server_refuses_is_said_and_the_others_arrive(tmp_path, log, caplog):
    door = ProgressDoor(refuse=lambda record: record["step"] == 2)
    add(log, "".join(map(step_line, range(5))))
    with progress_door(door) as url:
        assert tail_to(url, job_of(tmp_path, log)).once()
    assert door.steps == [0, 1, 3, 4]
    assert "refused 1 record(s)" in caplog.text
    assert "said by the test" in caplog.text


def test_what_the_server_never_takes_is_set_aside_with_the_reason(tmp_path, log):
    door = ProgressDoor(answer=lambda number: 400 if number == 1 else 200)
    add(log, step_line(1))
    with progress_door(door) as url:
        tail_to(url, job_of(tmp_path, log)).once()
        add(log, step_line(2))
        assert tail_to(url, job_of(tmp_path, log)).once()
    assert door.steps == [2]
    aside = list((tmp_path / "spool/moe-10b--main/set-aside").glob("*.txt"))
    assert ["said by the test" in path.read_text("utf-8") for path in aside] == [True]


def test_two_runs_never_share_a_spool(tmp_path, log):
    door = ProgressDoor(answer=lambda number: 503 if number < 5 else 200)
    add(log, step_line(1))
    with progress_door(door) as url:
        first = tail_to(url, job_of(tmp_path, log))
        first.poll()
        first.close()  # it waits
        door.requests = 10
        tail_to(url, job_of(tmp_path, log, run="moe-10b/other")).once()
        assert door.paths == {"/api/v1/runs/moe-10b/other/progress"}
        tail_to(url, job_of(tmp_path, log)).once()
    assert door.paths == {DOOR, "/api/v1/runs/moe-10b/other/progress"}


def test_a_log_that_no_profile_reads_is_said(tmp_path, log, caplog):
    add(log, "hello\n" * 2_001)
    with progress_door(ProgressDoor()) as url:
        tail = tail_to(url, job_of(tmp_path, log))
        assert tail.once()
    assert tail.rows == 0
    assert "no profile finds a step" in caplog.text


def test_a_long_log_is_read_in_pieces(tmp_path, log):
    door = ProgressDoor()
    add(
        log, "".join(f'{{"ts": {1762156800 + n}, "step": {n}, "loss": 1}}\n' for n in range(20_000))
    )
    with progress_door(door) as url:
        tail = tail_to(url, job_of(tmp_path, log, spool_max_bytes=64 << 20))
        assert tail.once()
    assert len(door.records) == tail.rows == 20_000
    assert door.requests >= 4


def tail_command(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "costwatch_agent", "tail", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "agent"), "TZ": "UTC", **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_command_sends_what_is_there_and_says_how_it_went(tmp_path, log):
    token = tmp_path / "token"
    token.write_text("cw_secret\n", encoding="utf-8")
    add(log, "".join(map(step_line, range(3))))
    door = ProgressDoor(answer=lambda number: 401 if number == 1 else 200)
    environment = {
        "COSTWATCH_TOKEN_FILE": str(token),
        "COSTWATCH_RUN": "main",
        "COSTWATCH_PROJECT": "moe-10b",
    }
    with progress_door(door) as url:
        arguments = [log, "--spool", tmp_path / "spool", "--once"]
        refused = tail_command(*arguments, COSTWATCH_URL=url, **environment)
        taken = tail_command(*arguments, COSTWATCH_URL=url, **environment)
    assert (refused.returncode, taken.returncode) == (3, 2), "the second found nothing new"
    assert "it waits in" in refused.stderr
    assert door.steps == [0, 1, 2]
    assert "cw_secret" not in refused.stderr + taken.stderr


def test_a_dry_run_needs_no_server_and_shows_what_would_be_sent():
    run = tail_command(LOGS / "megatron_throughput.log", "--dry-run")
    assert run.returncode == 0
    (summary,) = json.loads(run.stdout)["files"]
    assert (summary["profile"], summary["records"]) == ("megatron", 3)
    assert summary["last"]["at"] == "2025-11-03T09:00:26.000Z"
    assert summary["last"]["tokens_total"] == 5760 * 4096
    assert [event["kind"] for event in summary["events"]] == [
        "restart", "note", "checkpoint", "stop",
    ]  # fmt: skip
    assert tail_command("/nowhere/x.log", "--dry-run").returncode == 2


def test_a_tail_that_is_stopped_brings_the_rest(tmp_path, log):
    token = tmp_path / "token"
    token.write_text("cw_secret", encoding="utf-8")
    door = ProgressDoor()
    with progress_door(door) as url:
        options = {"--server": url, "--token-file": token, "--run": "moe-10b/main"}
        options |= {"--spool": tmp_path / "spool", "--send-every": "3600"}
        pairs = [str(part) for pair in options.items() for part in pair]
        process = subprocess.Popen(
            [sys.executable, "-m", "costwatch_agent", "tail", str(log), *pairs],
            env={**os.environ, "PYTHONPATH": str(ROOT / "agent")},
        )
        add(log, step_line(1))
        wait_for(lambda: (tmp_path / "spool/moe-10b--main/tail.json").exists())
        add(log, step_line(2))
        process.terminate()
        assert process.wait(20) == 0
    assert door.steps == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--run", "x", "--server", "https://x", "--token-file", "t"], "write project/run"),
        (["--server", "https://x", "--token-file", "t"], "COSTWATCH_RUN"),
        (["--run", "p/r", "--token-file", "t"], "COSTWATCH_URL"),
        (["--run", "p/r", "--server", "https://x"], "COSTWATCH_TOKEN_FILE"),
        (["--run", "p/r", "--server", "http://x.org", "--token-file", "t"], "in the clear"),
        (["--dry-run", "--profile", "titan"], "write one of"),
        (["--dry-run", "--timezone", "Mars/X"], "--timezone"),
        (["--dry-run", "--send-every", "0"], "--send-every"),
    ],
)
def test_options_that_make_no_sense_are_refused_with_the_reason(
    capsys, monkeypatch, arguments, reason
):
    for name in ("RUN", "PROJECT", "URL", "TOKEN_FILE"):
        monkeypatch.delenv(f"COSTWATCH_{name}", raising=False)
    with pytest.raises(SystemExit):
        tail_options_of(["x.log", *arguments])
    assert reason in capsys.readouterr().err


def test_a_token_or_a_spool_that_cannot_be_had_stops_the_start(tmp_path, log):
    arguments = [log, "--run", "p/r", "--server", "https://x", "--spool", tmp_path / "spool"]
    run = tail_command(*arguments, "--token-file", tmp_path / "none")
    assert run.returncode == 1
    assert "No such file" in run.stderr
    (tmp_path / "token").write_text("x", encoding="utf-8")
    held = tail_to("http://127.0.0.1:9", job_of(tmp_path, log, run="p/r"))
    run = tail_command(*arguments, "--token-file", tmp_path / "token")
    held.close()
    assert run.returncode == 1
    assert "give this one another --spool" in run.stderr


def test_the_running_agent_tails_by_option(nvml, node, library, log):
    door = ProgressDoor()
    add(log, step_line(1))
    token = node.write("runs-token", "cw_runs\n")
    with progress_door(door) as url:
        arguments = node.arguments(url, "--no-bmc", "--no-rapl", "--tail", f"moe-10b/main={log}")
        arguments += ["--tail-token-file", str(token), "--period", "0.1", "--send-every", "0.2"]
        process = subprocess.Popen(
            [sys.executable, "-m", "costwatch_agent", *arguments],
            env=agent_environment(nvml, library),
            stderr=subprocess.DEVNULL,
        )
        wait_for(lambda: (node.spool / "progress/moe-10b--main/tail.json").exists())
        add(log, step_line(2))
        process.terminate()
        assert process.wait(30) == 0
    mine = [key for key in door.records if key[0] == DOOR]
    assert [key[3] for key in mine] == [1, 2]
    assert "Bearer cw_runs" in door.tokens


KILLED = Path(__file__).with_name("killed.py")


def test_a_kill_at_any_step_on_disk_loses_no_line(tmp_path, log, node):
    add(log, "".join(map(step_line, range(3))))
    door = ProgressDoor()
    kills = 0
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "agent"), "TZ": "UTC"}
    with progress_door(door) as url:
        options = ["--server", url, "--token-file", node.token, "--run", "moe-10b/main", "--once"]
        tail = ["tail", log, "--spool", tmp_path / "spool", *options]
        while True:
            command = [KILLED, tmp_path / "spool", tmp_path / "ledger", kills + 1, *tail]
            run = subprocess.run(
                [sys.executable, *map(str, command)], env=environment, capture_output=True
            )
            if run.returncode != -9:
                break
            kills += 1
            add(log, step_line(3 + kills))
    assert run.returncode == 0, run.stderr.decode()
    assert kills > 10
    assert door.faults == []
    assert sorted(door.steps) == [0, 1, 2, *range(4, 4 + kills)]

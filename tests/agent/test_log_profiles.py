"""Training logs as people's frameworks write them, read by the profiles that are shipped."""

import math
from datetime import UTC, datetime
from pathlib import Path

import pytest

from costwatch_agent.followed_logs import FollowedLog
from costwatch_agent.log_profiles import BUILT_IN, TROUBLES, ProfileError, parse, profile_named
from costwatch_agent.log_reading import LogReader, Told
from costwatch_agent.progress import Event, EventKind, Point

LOGS = Path(__file__).with_name("logs")
TOLD = Told(zone=UTC)


def read_log(path, *, profiles=BUILT_IN, told=TOLD):
    """Which profile was chosen, the points, the events."""
    log = FollowedLog(path, [profile_named(name) for name in profiles], told)
    items, is_more = [], True
    while is_more:
        found, is_more = log.read()
        items += found
    log.file.close()
    points = [item for item in items if isinstance(item, Point)]
    return log.profile and log.profile.name, points, [i for i in items if isinstance(i, Event)]


def read_lines(tmp_path, *lines, **options):
    path = tmp_path / "train.log"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return read_log(path, **options)


def at(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def test_torchtitans_log_tells_steps_tokens_and_what_happened():
    name, points, events = read_log(LOGS / "torchtitan.log")
    assert name == "torchtitan"
    assert [point.step for point in points] == [1, 10, 20, 30], "of one rank, without validation"
    first, tenth, broken, last = points
    assert first.at_ms == at("2025-11-03T08:00:33.500")
    assert (first.loss, first.grad_norm) == (12.2471, 4.113)
    assert first.reported_mfu_fraction == pytest.approx(0.1514)
    # 64 sequences of 8192 tokens a step; pp x dp_replicate x dp_shard x cp x tp devices.
    assert [point.tokens_total for point in points] == [n * 64 * 8192 for n in (1, 10, 20, 30)]
    assert {point.world_size for point in points} == {16}
    assert tenth.step_time_s == pytest.approx(64 * 8192 / (5243 * 16))
    assert math.isnan(broken.loss)
    assert broken.grad_norm == math.inf
    assert broken.reported_mfu_fraction is None
    assert last.learning_rate is None
    kinds = [(event.kind.value, event.step, event.to_step) for event in events]
    assert kinds == [
        ("start", None, None),
        ("note", 20, None),
        ("checkpoint", 20, None),
        ("note", 20, None),
        ("restart", 20, 20),
        ("stop", 30, None),
    ]
    saved = events[2]
    assert saved.duration_s == 5.53
    assert saved.at_ms == at("2025-11-03T08:02:32.400"), "when it began"
    assert "CUDA out of memory" in events[3].detail or "OutOfMemoryError" in events[3].detail


def test_megatrons_line_without_throughput_and_without_dates_reads():
    name, points, events = read_log(LOGS / "megatron_old.log")
    assert name == "megatron"
    assert [point.step for point in points] == [1, 2, 3]
    skipped, second, third = points
    assert skipped.loss is None, "a skipped iteration has no loss"
    assert second.loss == pytest.approx(10.72453)
    assert second.step_time_s == 4.0
    assert [point.tokens_total for point in points] == [n * 512 * 2048 for n in (1, 2, 3)]
    assert {point.world_size for point in points} == {64}
    assert (second.data_s, second.communication_s) == (0.01235, 0.31017)
    assert third.data_s is None
    # The last date that the log tells, and on by what the iterations took.
    assert skipped.at_ms == at("2025-11-03T08:05:09.004")
    assert third.at_ms == at("2025-11-03T08:05:17.004")
    assert [event.kind.value for event in events] == ["start", "note", "checkpoint"]
    assert events[1].detail == "skipped-iterations: number of skipped iterations: 1"


def test_megatrons_line_with_throughput_reads():
    name, points, events = read_log(LOGS / "megatron_throughput.log")
    assert name == "megatron"
    first, second, third = points
    assert (first.step, first.tokens_total) == (43, 5504 * 4096)
    assert first.at_ms == at("2025-11-03T09:00:06")
    assert second.at_ms == at("2025-11-03T09:00:12.250")
    assert (first.step_time_s, first.learning_rate) == (5.4449, 8.6e-06)
    assert (first.data_s, first.communication_s) == (0.0065, 0.2025), "the slowest rank's"
    assert third.checkpoint_s == 8.125, "what saving held up, with the iteration after"
    kinds = [(event.kind.value, event.step, event.to_step, event.detail) for event in events]
    assert kinds == [
        ("restart", None, 42, ""),
        ("note", 44, None, "nan-loss: number of nan iterations: 2"),
        ("checkpoint", 44, None, ""),
        ("stop", 45, None, ""),
    ]


def test_megatrons_newer_line_with_compute_per_gpu_reads():
    name, points, _ = read_log(LOGS / "megatron_compute.log")
    assert name == "megatron"
    first, second = points
    assert (first.step, first.loss, first.grad_norm) == (1, 11.9, 5.25)
    assert second.step_time_s == 3.4, "this iteration's, not the average behind the slash"
    assert second.tokens_total == 64 * 8192
    assert second.at_ms == at("2025-11-03T10:00:06")


def test_json_lines_read_with_every_field():
    name, points, events = read_log(LOGS / "jsonl.log")
    assert name == "jsonl"
    first, broken, last = points
    assert first == Point(
        at_ms=at("2025-11-03T08:00:10.250"),
        step=1234567,
        loss=15.7,
        grad_norm=25.8,
        learning_rate=1.2e-05,
        data_shard="train-08192",
        reported_mfu_fraction=0.35,
    )
    assert math.isnan(broken.loss)
    assert broken.grad_norm == math.inf
    assert (broken.learning_rate, broken.step_time_s) == (1e-4, 1.8)
    assert broken.reported_mfu_fraction == pytest.approx(0.355), "above 1 it is a percentage"
    assert (last.tokens_total, last.step_time_s, last.world_size) == (5177958388608, 1.795, 256)
    assert last.at_ms == at("2025-11-03T08:00:14"), "not what the key time holds: a duration"
    assert [event.kind.value for event in events] == [
        "start", "checkpoint", "rollback", "note", "note",
    ]  # fmt: skip
    assert events[1].duration_s == 12.5
    assert (events[2].to_step, events[2].detail) == (1234000, "loss spike")
    assert events[4].detail == "out-of-memory: CUDA out of memory"


def test_a_plain_trainers_lines_read():
    name, points, events = read_log(LOGS / "seed_trainer.log")
    assert name == "seed-trainer"
    first, broken, record = points
    assert first == Point(
        at_ms=at("2025-11-03T10:30:25"), step=100, loss=1.234, learning_rate=1e-4, step_time_s=0.5
    )
    assert math.isnan(broken.loss)
    assert (broken.learning_rate, broken.step_time_s) == (1e-4, 0.5)
    assert (record.step, record.grad_norm) == (300, 0.9)
    assert [event.detail for event in events] == ["nan-loss: Loss became nan", "epoch_completed"]


def trouble(line):
    reader = LogReader(profile_named("torchtitan"), profile_named(TROUBLES), TOLD)
    return [item.detail.partition(":")[0] for item in reader.read(line, at_ms=1)]


@pytest.mark.parametrize(
    "line",
    [
        "loading the tokenizer of bigscience/BLOOM-176B",
        "BLOOM: loss 2.31",
        "the learning rate was changed to 1e-4",
        "changed: shanghai, changing the hanging indent",
        "finance_news shard 12: loss 2.41, banana, nano",
        "FINANCE corpus loss=2.31",
        "| number of skipped iterations:   0 | number of nan iterations:   0 |",
        "checked 256 ranks, 0 errors",
        "ERROR_CODE=0, no error",
        "check_for_nan_in_loss_and_grad .................. True",
        "NCCL_TIMEOUT=1800",
        "loss scale: inf",
        "loss information follows",
        "0 nan loss values",
        "gradient clipping on, to avoid exploding gradients",
        "memory: 47.5GiB, num_ooms 0, 0 CUDA OOM errors thrown.",
        "ValueError handling is on",
        "stuck to the plan, no deadlock",
    ],
)
def test_words_that_only_look_like_trouble_are_none(line):
    assert trouble(line) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", "out-of-memory"),
        ("torch.OutOfMemoryError: HIP out of memory", "out-of-memory"),
        ("2 CUDA OOM errors thrown.", "out-of-memory"),
        ("kernel: Out of memory: Killed process 4242 (python)", "out-of-memory"),
        ("Step 100: loss=nan, lr=1E-4", "nan-loss"),
        ("WARNING Loss became nan at step 150", "nan-loss"),
        ("lm loss: NaN", "nan-loss"),
        ("found NaN in local grad norm", "nan-loss"),
        ("number of nan iterations:   3 |", "nan-loss"),
        ("Gradient exploded at step 7", "gradient-explosion"),
        ("exploding gradients detected", "gradient-explosion"),
        ("[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)", "hang"),
        ("rank 17 is stuck in all-reduce", "hang"),
        ("number of skipped iterations:   2 |", "skipped-iterations"),
        ("ValueError: no such file", "exception"),
        ("[rank3]: torch.distributed.DistBackendError: NCCL error", "exception"),
    ],
)
def test_trouble_is_noted_whatever_its_case(line, found):
    (note,) = trouble(line)
    assert note == found


def test_trouble_that_goes_on_is_told_once_a_minute_and_not_forgotten(tmp_path):
    times = ["08:00:00", "08:00:30", "08:00:59", "08:01:01", "08:03:00"]
    lines = [f'{{"ts": "2025-11-03T{t}Z", "step": {n}, "loss": NaN}}' for n, t in enumerate(times)]
    lines = [line.replace("}", ', "message": "loss is nan"}') for line in lines]
    _, points, events = read_lines(tmp_path, *lines)
    assert len(points) == 5
    assert [event.step for event in events] == [0, 3, 4]


def test_a_note_holds_the_phrase_and_not_the_line(tmp_path):
    line = (
        '{"ts": 1762156820, "step": 1, "loss": 2.0, "message": "CUDA out of memory in secret.py"}'
    )
    _, _, (note,) = read_lines(tmp_path, line)
    assert note.detail == "out-of-memory: CUDA out of memory"


def test_colours_and_progress_bars_do_not_hide_a_step(tmp_path):
    line = (
        "\x1b[38;5;196m2025-11-03 08:00:00,000 INFO \x1b[0m"
        "step: \x1b[1m7\x1b[0m  loss: \x1b[32m1.5\x1b[39m  tps: 1,000"
    )
    bar = " 10%|#   | 1/10\r 20%|##  | 2/10\r" + line
    for text in (line, bar):
        name, (point,), _ = read_lines(tmp_path, text)
        assert (name, point.step, point.loss) == ("torchtitan", 7, 1.5)


def test_the_zone_that_was_named_dates_a_log_that_names_none(tmp_path):
    from zoneinfo import ZoneInfo

    line = "2025-11-03 08:00:00 INFO Step 1: loss=1.0, time=0.5s"
    _, (point,), _ = read_lines(tmp_path, line, told=Told(zone=ZoneInfo("Asia/Shanghai")))
    assert point.at_ms == at("2025-11-03T00:00:00")


def test_what_the_owner_said_of_tokens_and_world_beats_the_log(tmp_path):
    told = Told(tokens_per_step=4_194_304, world_size=256, zone=UTC)
    line = "2025-11-03 08:00:00,000 step: 10  loss: 1.5  tps: 9,102"
    _, (point,), _ = read_lines(tmp_path, line, told=told)
    assert point.tokens_total == 41_943_040
    assert point.world_size == 256
    assert point.step_time_s == pytest.approx(4_194_304 / (9_102 * 256), abs=1e-6)


def test_without_batch_and_world_the_dates_tell_how_long_a_step_takes(tmp_path):
    lines = [
        f"2025-11-03 08:0{minute}:00,000 step: {step}  loss: 1.5  tps: 9,102"
        for minute, step in [(0, 10), (1, 40)]
    ]
    _, (first, second), _ = read_lines(tmp_path, *lines)
    assert (first.tokens_total, first.step_time_s) == (None, None)
    assert second.step_time_s == 2.0


def test_a_log_without_any_date_is_dated_back_from_its_last_change(tmp_path):
    lines = [
        f" iteration {n:8d}/ 100 | elapsed time per iteration (ms): 2000.0 | lm loss: 1.0E+00 |"
        for n in (10, 20, 30)
    ]
    _, points, _ = read_lines(tmp_path, *lines)
    last = points[-1].at_ms
    assert last == int((tmp_path / "train.log").stat().st_mtime * 1000)
    assert [last - point.at_ms for point in points] == [40_000, 20_000, 0]


def test_one_rank_speaks_for_the_run_and_can_be_named(tmp_path):
    lines = [
        f"[rank{rank}]:[titan] 2025-11-03 08:00:0{step},00{rank} step: {step}  loss: {rank}.5"
        for step in (1, 2)
        for rank in (0, 3)
    ]
    _, heard, _ = read_lines(tmp_path, *lines)
    assert [(point.step, point.loss) for point in heard] == [(1, 0.5), (2, 0.5)]
    _, named, _ = read_lines(tmp_path, *lines, told=Told(zone=UTC, rank=3))
    assert [(point.step, point.loss) for point in named] == [(1, 3.5), (2, 3.5)]


def test_steps_that_come_again_after_a_restart_are_told_again(tmp_path):
    lines = [
        "2025-11-03 08:00:00,000 step: 10  loss: 1.5",
        "2025-11-03 08:01:00,000 Training starts at step 6.",
        "2025-11-03 08:02:00,000 step: 10  loss: 1.4",
    ]
    _, points, events = read_lines(tmp_path, *lines)
    assert [point.loss for point in points] == [1.5, 1.4]
    assert [(event.kind, event.step, event.to_step) for event in events] == [
        (EventKind.RESTART, 10, 5)
    ]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "{}",
        "[1, 2]",
        '{"step": 1}',
        '{"step": "x", "loss": 1}',
        '{"step": -1, "loss": 1}',
        '{"step": 1e400, "loss": 1}',
        '{"step": true, "loss": 1}',
        '{"step": null, "loss": null}',
        '{"a":' * 3000,
        "\x00\xff step: loss:",
        "step: 99999999999999999999999 loss: 1",
        "x" * 200_000,
    ],
)
def test_lines_that_are_no_step_are_left_alone(tmp_path, line):
    _, points, events = read_lines(tmp_path, f"2025-11-03 08:00:00 {line}")
    assert (points, events) == ([], [])


OWN = r"""
name = "own"
[instant]
find = ['^(\S+)']
[[line]]
means = "step"
match = 'it=\d+'
[line.fields]
step = { find = 'it=<integer>' }
loss = { find = 'L=<number>' }
step_time_s = { find = 'dt_us=<number>', factor = 1e-6 }
"""


def test_a_profile_of_ones_own_is_a_file(tmp_path):
    (tmp_path / "own.toml").write_text(OWN, encoding="utf-8")
    lines = ["2025-11-03T08:00:00Z it=5 L=-1.5e-3 dt_us=250000"]
    name, (point,), _ = read_lines(tmp_path, *lines, profiles=[str(tmp_path / "own.toml")])
    assert (name, point.step, point.loss, point.step_time_s) == ("own", 5, -0.0015, 0.25)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name =", "Invalid value"),
        ("nmae = 'x'", "nmae is not known"),
        ("[[line]]\nmeans = 'stepp'\nmatch = 'x'", "means = 'stepp'"),
        ("[[line]]\nmeans = 'step'\nmatch = 'x'", "needs the field step"),
        ("[[line]]\nmeans = 'stop'", "no match"),
        ("[[line]]\nmeans = 'stop'\nmatch = '('", "the pattern '('"),
        ("[[line]]\nmeans = 'step'\nmatch = 'x'\nfields.step = {find = '1'}", "0 groups"),
        ("[[line]]\nmeans = 'step'\nmatch = 'x'\nfields.stepp = {find = '1'}", "'stepp'"),
        ("[[line]]\nmeans = 'step'\nmatch = 'x'\nfields.step = {}", "either find or keys"),
        ("[[line]]\nmeans = 'setting'\nmatch = 'x'\nfields.loss = {find = '(1)'}", "may hold"),
    ],
)
def test_a_profile_that_makes_no_sense_is_refused_with_place_and_reason(text, reason):
    with pytest.raises(ProfileError) as refused:
        parse(text, where="own.toml")
    assert "own.toml: " in str(refused.value)
    assert reason in str(refused.value)


def test_a_profile_that_does_not_exist_is_refused():
    with pytest.raises(ProfileError, match=r"write one of torchtitan.*or a \.toml"):
        profile_named("torchtitann")
    with pytest.raises(ProfileError, match="cannot be read"):
        profile_named("/nowhere/x.toml")

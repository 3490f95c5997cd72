"""Logs and scripts against Costwatch itself: a run's progress is kept, each step once."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from costwatch_agent import training, training_thread
from costwatch_agent.log_reading import Told
from costwatch_agent.tail_options import profiles_of
from projects.records import Scope, TokenReach
from runs.models import ProgressSource, StepReading
from runs.progress_now import latest_of
from runs.progress_selectors import events_of, tokens_by
from tests.agent.test_tailing import job_of, tail_to
from tests.agent.test_training import RANK_NAMES
from tests.builders import project, token

LOGS = Path(__file__).with_name("logs")
EXPECTED = {"torchtitan": 4, "megatron_old": 3, "megatron_throughput": 3, "megatron_compute": 2}
EXPECTED |= {"jsonl": 3, "seed_trainer": 3}
START = datetime(2025, 11, 3, tzinfo=UTC)


@pytest.fixture
def moe():
    return project("moe-10b")


@pytest.fixture
def secret(moe):
    return token(Scope.INGEST_RUNS, of=moe.organisation, reach=TokenReach(project_slug="moe-10b"))


@pytest.mark.django_db(transaction=True)
def test_every_sample_of_a_log_is_taken_whole_and_once(live_server, moe, secret, tmp_path, caplog):
    for name, steps in EXPECTED.items():
        for again in range(2):  # the second without its note: everything comes again
            spool = tmp_path / f"spool-{name}-{again}"
            job = job_of(
                tmp_path,
                LOGS / f"{name}.log",
                run=f"moe-10b/{name}",
                spool=spool,
                told=Told(zone=UTC),
                profiles=profiles_of("auto"),
            )
            assert tail_to(live_server.url, replace(job), secret).once()
            assert list(spool.glob("*/set-aside/*")) == []
        assert StepReading.objects.filter(run__slug=name).count() == steps, name
    assert "refused" not in caplog.text
    assert set(ProgressSource.objects.values_list("name", flat=True)) == {"agent-tail:node-7"}


@pytest.mark.django_db(transaction=True)
def test_what_torchtitan_wrote_is_what_costwatch_knows(live_server, moe, secret, tmp_path):
    job = job_of(tmp_path, LOGS / "torchtitan.log", told=Told(zone=UTC))
    assert tail_to(live_server.url, job, secret).once()
    (now,) = latest_of(moe.pk)
    assert (now.step, now.tokens_total, now.loss) == (30, 30 * 64 * 8192, 8.011)
    assert tokens_by(now.run.run_id, START.replace(hour=8, minute=3)) == 20 * 64 * 8192
    happened = [event for _, event in events_of(moe.pk, START, START + timedelta(days=1))]
    assert [(event.kind.value, event.to_step) for event in happened] == [
        ("start", None),
        ("note", None),
        ("checkpoint", None),
        ("note", None),
        ("restart", 20),
        ("stop", None),
    ]
    broken = StepReading.objects.get(step=20)
    assert math.isnan(broken.loss)
    assert broken.grad_norm == math.inf


@pytest.mark.django_db(transaction=True)
def test_what_a_script_says_is_what_costwatch_knows(
    live_server, moe, secret, tmp_path, monkeypatch
):
    for name in RANK_NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(training_thread, "BEAT_S", 0.01)
    monkeypatch.setenv("COSTWATCH_URL", live_server.url)
    monkeypatch.setenv("COSTWATCH_TOKEN", secret)
    monkeypatch.setenv("COSTWATCH_SPOOL", str(tmp_path))
    with training.start("moe-10b/script", tokens_per_step=1000, world_size=8) as run:
        for step in range(1, 6):
            run.step(step, loss=math.nan if step == 3 else 1.0 / step, data_shard="train-1")
        run.event("checkpoint", duration_s=1.5)
    (now,) = latest_of(moe.pk)
    assert (now.run.slug, now.step, now.tokens_total, now.loss) == ("script", 5, 5000, 0.2)
    assert StepReading.objects.count() == 5


@pytest.mark.django_db(transaction=True)
def test_a_token_of_another_scope_is_refused_and_everything_kept(live_server, moe, tmp_path):
    wrong = token(Scope.INGEST_POWER, of=moe.organisation)
    tail = tail_to(live_server.url, job_of(tmp_path, LOGS / "torchtitan.log"), wrong)
    assert not tail.once()
    assert StepReading.objects.count() == 0
    right = token(Scope.INGEST_RUNS, of=moe.organisation, reach=TokenReach(project_slug="moe-10b"))
    assert tail_to(live_server.url, job_of(tmp_path, LOGS / "torchtitan.log"), right).once()
    assert StepReading.objects.count() == 4

"""The agent against Costwatch itself: what the disk took is booked, each reading once."""

import subprocess
import sys
from pathlib import Path

import pytest

from carbon.models import CounterReading, PowerSample, Sender, SenderBatch, SenderGap, UseReading
from projects.records import Scope, TokenReach
from tests.agent.conftest import agent_environment
from tests.agent.test_kill import durable_counters
from tests.builders import token
from tests.carbon.batch_builders import booked
from tests.carbon.builders import site

KILLED = Path(__file__).with_name("killed.py")


@pytest.mark.django_db(transaction=True)
def test_what_the_agent_read_is_booked_once_through_kills(live_server, nvml, node, library):
    nvml.state.gpus = 2
    nvml.splits(1, [("3g.40gb", 60)])
    nvml.gpu(1).counter_millijoule = 9_000_000_000
    nvml.gpu().pids, nvml.gpu().pid[0] = 1, 4242
    node.process(4242, SLURM_JOB_ID="4711", COSTWATCH_RUN="moe-10b/main")
    place = site()
    secret = token(Scope.INGEST_POWER, reach=TokenReach(site_id=place.site_id))
    node.token.write_text(secret, encoding="ascii")
    arguments = node.arguments(live_server.url, "--once", "--no-bmc", "--no-rapl")
    # After the journal is durable, while the batch is made, after it was taken, and not at all.
    for kill_at in (3, 6, 9, 999):
        command = [KILLED, node.spool, node.root / "ledger", kill_at, *arguments]
        run = subprocess.run(
            [sys.executable, *map(str, command)],
            env=agent_environment(nvml, library),
            capture_output=True,
        )
        assert run.returncode in {-9, 0}, run.stderr.decode()
    assert run.returncode == 0
    assert [p.read_bytes()[:300] for p in node.spool.glob("set-aside/*.txt")] == []
    booked(place)
    counters = list(CounterReading.objects.values_list("counter_millijoule", flat=True))
    assert set(counters) >= durable_counters(node.root / "ledger")
    assert len(counters) == len(set(counters)) >= 6
    assert PowerSample.objects.count() == UseReading.objects.count() == len(counters)
    sender = Sender.objects.get(kind="agent", name="node-7")
    assert sender.rejected == sender.duplicates == 0
    assert SenderBatch.objects.values("boot_id").distinct().count() > 1
    assert not SenderGap.objects.exists()

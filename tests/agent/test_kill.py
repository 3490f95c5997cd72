"""Killed at every step it takes on disk, the agent loses nothing that was durable."""

import re
import subprocess
import sys
from pathlib import Path

from tests.agent.conftest import agent_environment
from tests.agent.server import CUT, Oracle, serving

KILLED = Path(__file__).with_name("killed.py")
COUNTER = re.compile(r'"counter_millijoule":\[([\d,]+)\]')


def durable_counters(ledger):
    """Every counter that the disk acknowledged, from the bytes that were in the file then."""
    found = COUNTER.findall(ledger.read_text("utf-8"))
    return {int(counter) for columns in found for counter in columns.split(",")}


def test_a_kill_at_any_step_on_disk_loses_no_durable_reading(nvml, node, library, capsys):
    nvml.state.gpus = 2
    nvml.gpu(1).counter_millijoule = 9_000_000_000
    environment = agent_environment(nvml, library)
    ledger = node.root / "ledger"
    oracle = Oracle()
    run_at = 1
    kills = 0

    def answer(number: int) -> int:
        """In every other run the first answer is lost after the commit."""
        return CUT if kills % 2 and number == run_at else 200

    oracle.answer = answer
    with serving(oracle) as url:
        arguments = node.arguments(url, "--once", "--no-bmc", "--no-rapl")
        while True:
            run_at = oracle.requests + 1
            command = [KILLED, node.spool, ledger, kills + 1, *arguments]
            run = subprocess.run(
                [sys.executable, *map(str, command)], env=environment, capture_output=True
            )
            if run.returncode != -9:
                assert run.returncode == 0, run.stderr.decode()
                break
            kills += 1
    durable = durable_counters(ledger)
    assert oracle.faults == []
    assert durable <= set(oracle.counters), "acknowledged by the disk, so it arrives"
    assert set(oracle.counters.values()) == {1}, "and no reading counts twice"
    assert kills > 10
    assert len(durable) >= kills
    with capsys.disabled():
        sys.stdout.write(
            f" [{kills} kills, {len(durable)} durable readings, {oracle.repeats} repeats] "
        )

"""What the agent does with each answer, judged by a server that shares no code with it."""

import os
import subprocess
import sys
import threading
import time

import pytest

from costwatch_agent.options import options_of
from costwatch_agent.sender import Answer, Door, Fate, Sender, fate_of
from tests.agent.server import CUT, Oracle, serving
from tests.agent.test_spool import batches_of, open_spool


def door_to(url, node):
    options = options_of(node.arguments(url))
    return Door(options.server, options.token_file, ca_file=None)


def send_all(spool, post, *, seconds=20.0):
    """Send as the agent's thread does, until nothing waits."""
    sender = Sender(spool, post, first_wait_s=0.001, refused_wait_s=0.02)
    thread = threading.Thread(target=sender.run)
    thread.start()
    until = time.monotonic() + seconds
    while spool.waiting and time.monotonic() < until:
        time.sleep(0.002)
    sender.stop()
    thread.join()
    assert not spool.waiting
    return sender


@pytest.mark.parametrize(
    ("status", "fate"),
    [
        *((status, Fate.TAKEN) for status in (200, 204)),
        *((status, Fate.SET_ASIDE) for status in (400, 409, 413, 415, 422)),
        *((status, Fate.KEPT) for status in (301, 302, 307, 308, 401, 403, 404, 405)),
        *((status, Fate.AGAIN) for status in (0, 408, 425, 429, 500, 502, 503, 504, 507)),
    ],
)
def test_each_answer_has_its_meaning(status, fate):
    assert fate_of(status) is fate


def test_an_answer_that_is_lost_after_the_commit_counts_nothing_twice(tmp_path, node):
    spool = open_spool(tmp_path / "s")
    batches_of(spool, range(100))
    oracle = Oracle(answer=lambda number: CUT if number % 5 == 0 else 200)
    with serving(oracle) as url:
        send_all(spool, door_to(url, node).post)
    assert oracle.faults == []
    assert oracle.repeats >= 20, "a fifth of the requests got no answer, and each came again"
    assert oracle.counters == dict.fromkeys(range(100), 1)


def test_a_server_in_trouble_is_tried_until_it_is_not(tmp_path, node):
    spool = open_spool(tmp_path / "s")
    batches_of(spool, range(20))
    trouble = iter([503, 500, 429, 502, 504] * 2)
    oracle = Oracle(answer=lambda number: next(trouble, 200))
    with serving(oracle) as url:
        sender = send_all(spool, door_to(url, node).post)
    assert oracle.counters == dict.fromkeys(range(20), 1)
    assert sender.tally.failures == {"503": 2, "500": 2, "429": 2, "502": 2, "504": 2}


def test_a_server_that_is_away_is_waited_for(tmp_path, node):
    spool = open_spool(tmp_path / "s")
    batches_of(spool, range(3))
    oracle = Oracle()
    with serving(oracle) as url:
        port = int(url.rpartition(":")[2])
    sender = Sender(spool, door_to(url, node).post, first_wait_s=0.01)
    thread = threading.Thread(target=sender.run)
    thread.start()
    while not sender.tally.failures.get("no answer"):
        time.sleep(0.01)
    with serving(oracle, port):
        while spool.waiting:
            time.sleep(0.01)
    sender.stop()
    thread.join()
    assert oracle.counters == dict.fromkeys(range(3), 1)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refused_token_keeps_the_spool_and_is_said_until_it_is_taken(
    tmp_path, node, caplog, status
):
    spool = open_spool(tmp_path / "s")
    batches_of(spool, range(5))
    oracle = Oracle(answer=lambda number: status if number <= 3 else 200)
    with serving(oracle) as url:
        door = door_to(url, node)
        sender = Sender(spool, door.post, refused_wait_s=0.0)
        for _ in range(3):
            assert sender.send(spool.first())[0] is Fate.KEPT
        assert sender.tally.refused == status
        assert "kept in the spool" in caplog.text
        node.token.write_text("cw_agent_new\n", encoding="utf-8")  # changed without a restart
        send_all(spool, door.post)
    assert oracle.counters == dict.fromkeys(range(5), 1)
    assert oracle.tokens == {"Bearer cw_agent_secret", "Bearer cw_agent_new"}
    assert spool.tally.set_aside == spool.tally.dropped == 0


@pytest.mark.parametrize("status", [400, 409, 413])
def test_what_is_refused_for_good_is_set_aside_with_the_reason_and_the_rest_arrives(
    tmp_path, node, status
):
    spool = open_spool(tmp_path / "s")
    batches_of(spool, range(5))
    oracle = Oracle(answer=lambda number: status if number == 3 else 200)
    with serving(oracle) as url:
        send_all(spool, door_to(url, node).post)
    assert oracle.counters == dict.fromkeys([0, 1, 3, 4], 1)
    assert spool.tally.set_aside == 1
    kept = {path.name: path for path in (tmp_path / "s/set-aside").iterdir()}
    assert sorted(kept) == [f"{spool.boot}-3.{status}.json.gz", f"{spool.boot}-3.{status}.txt"]
    assert "said by the test" in kept[f"{spool.boot}-3.{status}.txt"].read_text("utf-8")


def test_waiting_grows_is_spread_and_honours_the_servers_wish(tmp_path):
    spool = open_spool(tmp_path / "s")
    batches_of(spool, [1])
    answer = Answer(status=503)
    sender = Sender(spool, lambda body: answer)
    waits = [sender.send(spool.first())[1] for _ in range(12)]
    for tried, wait_s in enumerate(waits):
        longest_s = min(300.0, 2.0**tried)
        assert longest_s / 2 <= wait_s <= longest_s
    answer = Answer(status=429, retry_after_s=7.0)
    assert Sender(spool, lambda body: answer).send(spool.first())[1] == 7.0


def test_a_clock_that_is_off_is_said_and_changes_nothing(tmp_path, caplog):
    spool = open_spool(tmp_path / "s")
    batches_of(spool, [1, 2])
    year_ago_s = time.time() - 365 * 86_400
    sender = Sender(spool, lambda body: Answer(status=200, date_s=year_ago_s))
    sender.send(spool.first())
    sender.send(spool.first())
    assert sender.tally.skew_s == pytest.approx(365 * 86_400, abs=5)
    assert len([line for line in caplog.messages if "clock" in line]) == 1


def test_once_says_whether_everything_arrived(nvml, command, node):
    oracle = Oracle(answer=lambda number: 401 if number == 1 else 200)
    with serving(oracle) as url:
        refused, taken = command(url, "--once"), command(url, "--once")
    assert (refused.returncode, taken.returncode) == (3, 0)
    assert "cw_agent_secret" not in refused.stderr + taken.stderr
    assert len(oracle.documents) == 2
    assert sum(oracle.rows.values()) == 2


def test_a_running_agent_sends_while_it_reads_and_brings_the_rest_when_it_stops(
    nvml, node, library
):
    nvml.state.gpus = 8
    oracle = Oracle(answer=lambda number: 503 if number in {2, 3} else 200)
    with serving(oracle) as url:
        arguments = node.arguments(url, "--period", "0.05", "--send-every", "0.2", "--no-bmc")
        environment = {**os.environ, "PYTHONPATH": "agent", **nvml.environment(library)}
        process = subprocess.Popen(
            [sys.executable, "-m", "costwatch_agent", *arguments], env=environment
        )
        while len(oracle.documents) < 4:
            time.sleep(0.02)
        process.terminate()
        assert process.wait(10) == 0
    assert oracle.faults == []
    asked = {nvml.gpu(index).counter_millijoule for index in range(8)}
    read = {(uuid, counter) for uuid, _, counter in oracle.rows}
    assert len(read) == sum(oracle.rows.values()) >= 8 * 12
    newest = {max(counter for uuid, counter in read if uuid == u) for u, _ in read}
    assert newest == asked, "what was read last arrived too"
    found = [document["sequence"] for document in oracle.documents]
    assert found == list(range(1, len(found) + 1))

"""No acknowledged reading is lost and none counts twice, whatever dies: one run with every fault.

Web processes, worker, PostgreSQL and Redis are real and on loopback; the oracle is the senders' own
ledger (fault_senders.py), which shares no code with Costwatch.
"""

import threading
import time
from contextlib import ExitStack, suppress

import psycopg
import pytest
from django.utils import timezone

from carbon.services import close_hours
from projects.records import Scope, TokenReach
from tests.builders import organisation, token
from tests.carbon.builders import site
from tests.carbon.fault_senders import (
    Agent,
    ClockAhead,
    Ledger,
    Prometheus,
    Proxy,
    Sender,
)
from tests.carbon.fault_servers import Fleet, wait_for

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]
YEAR_MS = 365 * 86_400_000
AGENTS = 5


def senders(ledger: Ledger, port: int, token: str) -> list[Sender]:
    """Agents, one a year behind and one a year ahead, and a Prometheus."""
    now_ms = int(time.time()) * 1000
    past_ms = now_ms - 20 * 3_600_000
    made: list[Sender] = [
        Agent(ledger, port, token, seed=one, name=f"n{one}", start_ms=past_ms)
        for one in range(AGENTS)
    ]
    made.append(Agent(ledger, port, token, seed=90, name="behind", start_ms=past_ms - YEAR_MS))
    ahead = Ledger()
    made.append(ClockAhead(ahead, port, token, seed=91, name="ahead", start_ms=past_ms + YEAR_MS))
    made.append(Prometheus(ledger, port, token, seed=92, start_ms=now_ms - 7_200_000))
    return made


def inject(fleet: Fleet, ledger: Ledger, threads: list[Sender]) -> None:
    """Every fault once, with the senders at work; each time until they go on."""

    def go_on(batches: int = 10) -> None:
        before = sum(one.made for one in threads)
        wanted = before + batches
        wait_for(lambda: sum(one.made for one in threads) >= wanted, "batches", 60, ledger.answers)

    def refuse(what: str) -> None:
        before = ledger.answers["503"]
        wait_for(lambda: ledger.answers["503"] >= before + 3, f"503 while {what}")

    go_on()
    fleet.kill_a_child("web")
    time.sleep(0.5)
    fleet.kill("web")
    fleet.start_web()
    go_on()
    fleet.stop_postgres_at_once()
    refuse("PostgreSQL is down")
    fleet.start_postgres()
    go_on()
    fleet.kill("worker")
    fleet.flush_redis()
    fleet.start_worker()
    go_on()
    fleet.fill_disk()
    refuse("the disk is full")
    fleet.free_disk()
    if not fleet.postgres_runs:
        fleet.start_postgres()
    go_on()


def count(fleet: Fleet, query: str) -> int:
    with suppress(psycopg.OperationalError), fleet.database() as database:
        row = database.execute(query).fetchone()
        return -1 if row is None else int(row[0] or 0)
    return -1


POWER = """
SELECT device.uuid, round(extract(epoch FROM one.at) * 1000)::bigint, one.power_w
FROM carbon_powersample one JOIN runs_device device ON device.id = one.device_id
"""
COUNTERS = """
SELECT device.uuid, round(extract(epoch FROM one.at) * 1000)::bigint, one.counter_millijoule
FROM carbon_counterreading one JOIN runs_device device ON device.id = one.device_id
"""


def rows(fleet: Fleet, query: str) -> list[tuple[str, int, float]]:
    with fleet.database() as database:
        return database.execute(query).fetchall()


@pytest.fixture
def token_of_site():
    reach = TokenReach(site_id=site().site_id)
    return token(Scope.INGEST_POWER, reach=reach)


@pytest.fixture
def fleet(tmp_path, token_of_site):
    with ExitStack() as stack:
        made = Fleet(tmp_path, stack)
        made.make_cluster()
        made.start_postgres()
        made.copy_our_database()
        made.start_redis()
        made.start_web()
        made.start_worker()
        made.start_beat()
        yield made


def test_no_acknowledged_reading_is_lost_and_none_counts_twice(fleet, token_of_site, capsys):
    ledger = Ledger()
    wait_for(fleet.web_answers, "the web")
    proxy = Proxy(fleet.web_port, seed=7)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    threads = senders(ledger, proxy.port, token_of_site)
    for one in threads:
        one.start()
    inject(fleet, ledger, threads)
    for one in threads:
        one.stopping.set()
    for one in threads:
        one.join(40)
        assert not one.is_alive(), f"{type(one).__name__} is still sending: {ledger.answers}"
    proxy.shutdown()
    wait_for(lambda: count(fleet, "SELECT count(*) FROM carbon_intakebody") == 0, "booking", 60)
    with fleet.as_our_database():
        close_hours(organisation().pk, now=timezone.now())
    judge(fleet, ledger, threads, proxy, capsys)


def judge(fleet: Fleet, ledger: Ledger, threads: list[Sender], proxy: Proxy, capsys) -> None:
    power, counters = rows(fleet, POWER), rows(fleet, COUNTERS)
    stored = {(uuid, at): value for uuid, at, value in power}
    counted = {(uuid, at): value for uuid, at, value in counters}
    ahead = next(one for one in threads if isinstance(one, ClockAhead))
    with fleet.database() as database:
        aside = database.execute(
            "SELECT reason, count(*) FROM carbon_quarantinedpower GROUP BY reason"
        ).fetchall()
        sender_rows, sender_rejected, sender_repeats = database.execute(
            "SELECT sum(rows), sum(rejected), sum(duplicates) FROM carbon_sender"
        ).fetchone()
        energy = database.execute(
            "SELECT sum(measured_millijoule + spread_millijoule + estimated_millijoule)::bigint "
            "FROM carbon_energyhour hour JOIN runs_device device ON device.id = hour.device_id "
            "WHERE superseded_at IS NULL AND device.uuid NOT LIKE 'GPU-prom-%'"
        ).fetchone()[0]
    agents = [one for one in threads if isinstance(one, Agent) and one is not ahead]
    oracle = sum(sum(one.counter) - sum(first_counters(ledger, one)) for one in agents)
    with capsys.disabled():
        print(  # noqa: T201 - the counts are what people ask for
            f"\nsent {len(ledger.sent)}, acknowledged {len(ledger.acked)}, "
            f"stored {len(power)} power and {len(counters)} counters; "
            f"{ledger.requests} requests, {ledger.resent} of them again, "
            f"{proxy.replayed} repeated and {proxy.cut} answers cut by the proxy; "
            f"answers {dict(ledger.answers)}, of repeats {dict(proxy.replay_answers)}; "
            f"clock ahead: {len(ahead.ledger.sent)} sent, quarantine {dict(aside)}; "
            f"senders' rows {sender_rows}, repeats {sender_repeats}; "
            f"energy {energy} mJ, oracle {oracle} mJ; "
            f"disk {'full in truth' if fleet.has_small_disk else 'refused by the server'}"
        )
    assert len(power) == len(stored)
    assert len(counters) == len(counted)
    assert ledger.acked <= set(stored) <= set(ledger.sent)
    assert ledger.acked == set(ledger.sent)
    assert all(stored[key] == ledger.sent[key][0] for key in stored)
    told = {key: value[1] for key, value in ledger.sent.items() if value[1] is not None}
    assert counted == told
    assert dict(aside) == {"in_the_future": len(ahead.ledger.sent)}
    assert sender_rejected == len(ahead.ledger.sent)
    assert sender_rows - sender_repeats - sender_rejected == len(power) + len(counters)
    refusals = {one for one in ledger.answers if one.startswith("4")}
    assert not refusals, ledger.answers
    assert ledger.answers["503"] > 0
    assert proxy.cut > 0
    assert proxy.replayed > 0
    assert energy == oracle


def first_counters(ledger: Ledger, agent: Agent) -> list[int]:
    """The counters of an agent's first readings."""
    firsts = {}
    for (uuid, at_ms), (_power_w, counter) in ledger.sent.items():
        known = firsts.get(uuid)
        if counter is not None and (known is None or at_ms < known[0]):
            firsts[uuid] = (at_ms, counter)
    return [firsts[agent.uuid(device)][1] for device in range(len(agent.counter))]

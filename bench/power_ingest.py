"""Measures remote-write against a Prometheus that gets the same requests in the same run.

    python -m costwatch.embedded -- python bench/power_ingest.py [--gpus 16384] [--sustain 600]

Needs a database (the command above starts a throw-away one) and Debian's package `prometheus`. The
same requests go over two connections to Prometheus, and to Costwatch (`manage.py up`: web, worker,
schedule) with one and with two web processes: until the last answer, and until the last sample is
booked into its table. Costwatch has each body on the disk before it answers; Prometheus writes its
log without waiting for the disk. Then every sample is looked for in the table, and the energy of
the hours is compared with a scalar reference that shares no code. Trust the ratios of one run, not
its seconds. `--sustain` replays a fleet in real time instead.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench import power_servers as servers  # noqa: E402
from bench.power_payloads import Fleet, Payloads  # noqa: E402

HOUR_MS = 3_600_000
BOOKED_WITHIN_S = 600.0
LOST = "samples lost or doubled"
ENERGY = "energy / scalar reference - 1"


@dataclass(slots=True, kw_only=True)
class Bench:
    """What is asked for, and the table of what was measured."""

    gpus: int
    ticks: int
    rounds: int
    per_request: int
    folder: Path
    rows: list[tuple[str, str, str, str]] = field(default_factory=list)

    def add(self, what: str, goal: str, measured: str, *, met: bool | None) -> None:
        verdict = {True: "met", False: "NOT MET", None: ""}[met]
        self.rows.append((what, goal, measured, verdict))
        print(f"  {what}: {measured}" + (f" (goal {goal})" if goal else ""), flush=True)

    def show(self) -> None:
        widths = [max(len(row[place]) for row in self.rows) for place in range(4)]
        for row in self.rows:
            print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)))


class Books:
    """The database side: sites, tokens, what waits, what is booked."""

    def __init__(self) -> None:
        import django

        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "costwatch.settings")
        os.environ.setdefault("COSTWATCH_INSECURE_HTTP", "1")
        os.environ.setdefault("COSTWATCH_LOG_LEVEL", "WARNING")
        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        backend = self.one("SELECT pg_backend_pid()")
        self.postmaster_pid = servers.parent_of(backend)

    def one(self, sql: str, *params: Any) -> Any:
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute(sql, list(params))
            return cursor.fetchone()[0]

    def site(self, slug: str) -> tuple[Any, str]:
        """A site of an organisation of its own, so that it may have the same devices; a token."""
        from projects.access import system_actor
        from projects.models import Organisation
        from projects.records import Scope, TokenReach
        from projects.services import create_token
        from runs.services import ensure_site

        actor = system_actor(Organisation.objects.create(name=slug, slug=slug).pk, "bench")
        site = ensure_site(actor, slug=slug)
        made = create_token(
            actor,
            name=slug,
            scopes=(Scope.INGEST_POWER,),
            days=2,
            reach=TokenReach(site_id=site.site_id),
        )
        return site, made.secret

    def wait_until_booked(self, site: Any) -> float:
        """Ring as the door and the schedule do; the seconds until nothing waits."""
        from django.db import transaction

        from carbon.doors import enqueue_booking

        start = time.perf_counter()
        rung_s = 0.0
        sql = "SELECT EXISTS (SELECT FROM carbon_intakebody WHERE site_id = %s)"
        while self.one(sql, site.site_id):
            waited_s = time.perf_counter() - start
            if waited_s > BOOKED_WITHIN_S:
                raise SystemExit("the worker does not book")
            if waited_s >= rung_s:
                with transaction.atomic():
                    enqueue_booking(site)
                rung_s = waited_s + 5.0
            time.sleep(0.05)
        return time.perf_counter() - start

    def samples(self, site: Any) -> dict[tuple[str, int], float]:
        """Every sample in the table, by device and millisecond."""
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT d.uuid, (extract(epoch FROM s.at) * 1000)::bigint, s.power_w "
                "FROM carbon_powersample s JOIN runs_device d ON d.id = s.device_id "
                "WHERE d.site_id = %s",
                [site.site_id],
            )
            return {(uuid, at): watt for uuid, at, watt in cursor.fetchall()}

    def energy_j(self, site: Any, *, after: datetime) -> float:
        """The energy of all closed hours, after closing those that are over by then."""
        from carbon.closing import close_site

        close_site(site, now=after, until=after)
        whole = self.one(
            "SELECT coalesce(sum(measured_millijoule + spread_millijoule + estimated_millijoule),"
            " 0) FROM carbon_energyhour WHERE site_id = %s AND superseded_at IS NULL",
            site.site_id,
        )
        return float(whole) / 1000


def check(bench: Bench, books: Books, site: Any, fleet: Fleet, ticks: int) -> None:
    """Every sample once with its value, and the energy of the hours, against the reference."""
    stored = books.samples(site)
    wrong = sum(
        stored.pop((fleet.uuid(gpu), fleet.at_ms(tick)), None) != fleet.power_w(gpu, tick)
        for gpu in range(fleet.gpus)
        for tick in range(ticks)
    )
    wrong += len(stored)
    bench.add(LOST, "0", f"{wrong} of {fleet.gpus * ticks:,}", met=wrong == 0)
    truth = sum(fleet.energy_j(gpu, ticks) for gpu in range(fleet.gpus))
    after = datetime.fromtimestamp(fleet.at_ms(ticks) / 1000 + 2 * HOUR_MS / 1000, tz=UTC)
    error = books.energy_j(site, after=after) / truth - 1
    bench.add(ENERGY, "1e-9", f"{error:.1e} of {truth / 3.6e6:,.3f} kWh", met=abs(error) <= 1e-9)


@dataclass(slots=True)
class Rates:
    """Samples a second of one receiver, a figure each round."""

    acked: list[float] = field(default_factory=list)
    booked: list[float] = field(default_factory=list)
    per_cpu_s: list[float] = field(default_factory=list)

    def said(self, values: list[float]) -> str:
        return f"{statistics.median(values) / 1e3:,.0f}k/s"


def measure(
    target: servers.Target,
    ticks: list[list[bytes]],
    samples: int,
    rates: Rates,
    booked: Callable[[], float],
) -> None:
    """One round: replay, wait until booked, note the rates."""
    cpu_s = target.cpu_s()
    done = servers.replay(target, ticks)
    whole_s = done.wall_s + booked()
    rates.acked.append(samples / done.wall_s)
    rates.booked.append(samples / whole_s)
    rates.per_cpu_s.append(samples / max(target.cpu_s() - cpu_s, 0.01))


def compare(bench: Bench, books: Books) -> None:
    """The same requests to Prometheus and to Costwatch, in one run."""
    # In the running hour, as live readings are: one that is over would be closed meanwhile.
    span_ms = bench.rounds * bench.ticks * 1_000
    now_ms = int(time.time() * 1000)
    start_ms = max(now_ms - span_ms, now_ms // HOUR_MS * HOUR_MS)
    fleet = Fleet(gpus=bench.gpus, start_ms=start_ms, every_ms=1_000, per_request=bench.per_request)
    payloads = Payloads(fleet)
    rounds = [
        payloads.ticks(one * bench.ticks, (one + 1) * bench.ticks) for one in range(bench.rounds)
    ]
    samples = bench.gpus * bench.ticks
    sizes = [len(body) for one in rounds for tick in one for body in tick]
    print(f"{bench.rounds} rounds of {samples:,} samples, {sum(sizes) / 1e6:,.0f} MB", flush=True)
    anchor = Rates()
    with servers.prometheus(bench.folder) as target:
        for one in rounds:
            measure(target, one, samples, anchor, lambda: 0.0)
    said = f"{anchor.said(anchor.acked)} ({anchor.said(anchor.per_cpu_s)} per CPU-s)"
    bench.add("Prometheus", "", said, met=None)
    for workers in (1, 2):
        site, token = books.site(f"bench-{workers}")
        ours = Rates()
        with servers.costwatch(
            web_workers=workers, token=token, postmaster_pid=books.postmaster_pid
        ) as target:
            for one in rounds:
                measure(target, one, samples, ours, partial(books.wait_until_booked, site))
            servers.replay(target, rounds[-1])  # a repeat, which must change nothing
            books.wait_until_booked(site)
        _tell(bench, ours, anchor, f"{workers} web process{'es' if workers > 1 else ''}")
        check(bench, books, site, fleet, bench.rounds * bench.ticks)


def _tell(bench: Bench, ours: Rates, anchor: Rates, what: str) -> None:
    for name, values, others, goal in (
        ("acknowledged", ours.acked, anchor.acked, 0.5),
        ("booked", ours.booked, anchor.acked, 0.5),
        ("per CPU-s, PostgreSQL included", ours.per_cpu_s, anchor.per_cpu_s, None),
    ):
        ratio = statistics.median(values) / statistics.median(others)
        said = f"{ratio:.2f}x ({ours.said(values)})"
        wanted = f">= {goal}x, aim 1.2x" if goal else ""
        bench.add(f"{what}, {name}", wanted, said, met=ratio >= goal if goal else None)


def sustain(bench: Bench, books: Books, *, seconds: int, every_s: int) -> None:
    """A fleet in real time: is everything answered before the next tick, and nothing lost?"""
    ticks = seconds // every_s
    start_s = int(time.time()) + 30
    fleet = Fleet(
        gpus=bench.gpus,
        start_ms=start_s * 1000,
        every_ms=every_s * 1000,
        per_request=bench.per_request,
    )
    payloads = Payloads(fleet)
    site, token = books.site(f"sustain-{every_s}")
    worst_s = 0.0
    with servers.costwatch(
        web_workers=2, token=token, postmaster_pid=books.postmaster_pid
    ) as target:
        lines = [servers.Connection(target) for _ in range(2)]
        cpu_s, begun_s = target.cpu_s(), time.time()
        for tick in range(ticks):
            bodies = list(payloads.tick(tick))
            time.sleep(max(0.0, start_s + tick * every_s - time.time()))
            for place, body in enumerate(bodies):
                lines[place % 2].send(body)
            worst_s = max(worst_s, time.time() - (start_s + tick * every_s))
        wall_s = time.time() - begun_s
        booked_s = books.wait_until_booked(site)
        used = (target.cpu_s() - cpu_s) / wall_s
    what = f"{bench.gpus:,} GPUs at {every_s} s for {ticks * every_s} s"
    bench.add(f"{what}: last answer after its tick", "", f"{worst_s:.2f} s at most", met=None)
    bench.add(f"{what}: booked after the last answer", "", f"{booked_s:.1f} s", met=None)
    bench.add(f"{what}: cores used, PostgreSQL included", "< 2", f"{used:.2f}", met=used < 2)
    check(bench, books, site, fleet, ticks)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--gpus", type=int, default=16_384)
    parser.add_argument("--ticks", type=int, default=30, help="of one round, a second each")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--per", type=int, default=2_000, help="series of one request")
    parser.add_argument("--sustain", type=int, default=0, metavar="SECONDS")
    parser.add_argument("--every", type=int, default=1, help="seconds of --sustain's ticks")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ["COSTWATCH_DATA_DIR"] = name
        bench = Bench(
            gpus=wanted.gpus,
            ticks=wanted.ticks,
            rounds=wanted.rounds,
            per_request=wanted.per,
            folder=Path(name),
        )
        books = Books()
        print(f"{wanted.gpus:,} GPUs, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        if wanted.sustain:
            sustain(bench, books, seconds=wanted.sustain, every_s=wanted.every)
        else:
            compare(bench, books)
        print(f"load {os.getloadavg()[0]:.1f}")
    bench.show()
    names = ("what", "goal", "measured", "met")
    print(json.dumps([dict(zip(names, row, strict=True)) for row in bench.rows]))
    return int(any(row[-1] == "NOT MET" for row in bench.rows))


if __name__ == "__main__":
    sys.exit(main())

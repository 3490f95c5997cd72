"""Measures the import of bills and questions on them, each against an anchor of the same run.

    python -m costwatch.embedded --data /tmp/bench -- python bench/billing_ingest.py --rows 10000000

Needs a database (the command above starts a throw-away one). The bills are generated. Trust the
ratios of one run, not its seconds: every figure is the median of the rounds, and every anchor runs
beside what it is compared with. `--only` names parts: parquet gz cur memory rollup questions again
exact.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import duckdb  # noqa: E402

from bench import bills  # noqa: E402

CORES = os.cpu_count() or 1
GIBIBYTE_MIB = 1024
DASHBOARD_S = 0.3


@dataclass(slots=True)
class Table:
    """What was measured, and whether it meets its goal."""

    rows: list[tuple[str, str, str, str]] = field(default_factory=list)

    def add(self, what: str, goal: str, measured: str, *, met: bool) -> None:
        self.rows.append((what, goal, measured, "met" if met else "NOT MET"))
        print(f"  {what}: {measured} (goal {goal})", flush=True)

    def show(self) -> None:
        widths = [max(len(row[place]) for row in self.rows) for place in range(4)]
        for row in self.rows:
            print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)))


@dataclass(slots=True, kw_only=True)
class Bench:
    """Sizes, a folder, and the table."""

    rows: int
    rounds: int
    folder: Path
    table: Table = field(default_factory=Table)
    parquet: Path = field(init=False)

    def __post_init__(self) -> None:
        self.parquet = self.folder / "focus.parquet"

    def focus(self) -> Path:
        if not self.parquet.exists():
            bills.write_focus_parquet(self.parquet, self.rows)
        return self.parquet


def beside(
    rounds: int, ours: Callable[[], float | None], anchor: Callable[[], float | None]
) -> tuple[float, float]:
    """The median seconds of both, measured in turns; what returns seconds measured itself."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for work, seconds in ((anchor, found[1]), (ours, found[0])):
            start = time.perf_counter()
            own = work()
            seconds.append(time.perf_counter() - start if own is None else own)
    return statistics.median(found[0]), statistics.median(found[1])


class Importer:
    """Imports files as a new delivery of a new source each time."""

    def __init__(self) -> None:
        import django

        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "costwatch.settings")
        os.environ.setdefault("COSTWATCH_LOG_LEVEL", "WARNING")
        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        self.count = 0

    def receive(self, *paths: Path, source: str = "") -> Any:
        from billing.services import IncomingFile, NewDelivery, receive_files
        from projects.access import system_actor
        from projects.selectors import the_organisation

        self.count += 1
        return receive_files(
            system_actor(the_organisation().pk, "bench"),
            NewDelivery(
                source_name=source or f"bench {os.getpid()} {self.count}",
                files=[IncomingFile(name=path.name, chunks=chunks(path)) for path in paths],
            ),
        )

    def __call__(self, *paths: Path, source: str = "") -> float:
        """Import; the seconds from the job's start to the switch of the pointer."""
        from billing.models import Delivery
        from jobs.services import run_job

        receipt = self.receive(*paths, source=source)
        start = time.perf_counter()
        run_job(receipt.job_id)
        seconds = time.perf_counter() - start
        delivery = Delivery.objects.get(pk=receipt.delivery_id)
        if delivery.state != Delivery.State.PUBLISHED:
            raise SystemExit(f"the bill was not published: {delivery.state} {delivery.refusal}")
        return seconds


def chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            yield chunk


def parquet(bench: Bench, importer: Importer) -> None:
    """An import of FOCUS Parquet against DuckDB copying the same columns."""
    path = bench.focus()

    def copy() -> None:
        with duckdb.connect() as engine:
            engine.execute(f"SET memory_limit = '1GB'; SET temp_directory = '{bench.folder}/spill'")
            engine.execute(
                f"COPY (SELECT * FROM '{path}') TO '{bench.folder}/copy.parquet' "
                "(FORMAT parquet, COMPRESSION zstd)"
            )

    ours, anchor = beside(bench.rounds, lambda: importer(path), copy)
    said = f"{ours / anchor:.2f}x ({ours:.1f} s, {bench.rows / ours:,.0f} rows/s; {anchor:.1f} s)"
    bench.table.add("FOCUS Parquet import / plain copy", "<= 2.0x", said, met=ours <= 2 * anchor)


def gz(bench: Bench, importer: Importer) -> None:
    """An import of csv.gz parts against gunzip of as many at once."""
    parts = [bench.folder / f"part-{number}.csv.gz" for number in range(CORES)]
    for number, path in enumerate(parts):
        bills.write_focus_gz(path, bench.rows // CORES, seed=100 + number)

    def gunzip() -> None:
        waiting = [
            subprocess.Popen(f"zcat '{path}' | wc -l", shell=True, stdout=subprocess.DEVNULL)
            for path in parts
        ]
        for one in waiting:
            one.wait()

    ours, anchor = beside(bench.rounds, lambda: importer(*parts), gunzip)
    said = f"{ours / anchor:.2f}x ({ours:.1f} s, {bench.rows / ours:,.0f} rows/s; {anchor:.1f} s)"
    what = f"csv.gz import, {CORES} parts / as many zcat | wc -l"
    bench.table.add(what, "<= 2.5x", said, met=ours <= 2.5 * anchor)
    copied = statistics.median(_plain_copy_s(bench, parts) for _ in range(bench.rounds))
    said = (
        f"{ours / copied:.2f}x ({ours:.1f} s; {copied:.1f} s), {copied / anchor:.2f}x zcat itself"
    )
    bench.table.add("csv.gz import / plain copy of the texts to Parquet", "told", said, met=True)


def _plain_copy_s(bench: Bench, parts: list[Path]) -> float:
    """The seconds that DuckDB takes to copy csv.gz files to Parquet, every cell left a text."""
    start = time.perf_counter()
    with duckdb.connect() as engine:
        names = [str(path) for path in parts]
        engine.execute(f"SET memory_limit = '1GB'; SET temp_directory = '{bench.folder}/spill'")
        engine.execute(
            f"COPY (SELECT * FROM read_csv({names}, all_varchar = true, header = true)) "
            f"TO '{bench.folder}/copy.parquet' (FORMAT parquet, COMPRESSION zstd)"
        )
    return time.perf_counter() - start


def cur(bench: Bench, importer: Importer) -> None:
    """An import of a CUR with 195 columns."""
    rows = min(bench.rows, 1_000_000)
    path = bench.folder / "cur.csv"
    bills.write_cur_csv(path, rows)
    seconds = statistics.median(importer(path) for _ in range(bench.rounds))
    rate = rows / seconds
    said = f"{rate:,.0f} rows/s ({seconds:.1f} s)"
    bench.table.add("CUR CSV of 195 columns", ">= 40,000 rows/s", said, met=rate >= 40_000)
    path.unlink()


def memory(bench: Bench, importer: Importer) -> None:
    """Peak memory of a worker and of its parsing child, for a tenth of the rows and for all."""
    small = bench.folder / "tenth.parquet"
    bills.write_focus_parquet(small, bench.rows // 10)
    peaks = {}
    for name, path in (("tenth", small), ("all", bench.focus())):
        command = [sys.executable, __file__, "--import", str(path)]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        peaks[name] = json.loads(out.splitlines()[-1])
    worst = max(peaks["all"].values())
    said = ", ".join(f"{who} {mib:,.0f} MiB" for who, mib in peaks["all"].items())
    what = f"peak memory at {bench.rows:,} rows"
    bench.table.add(what, "< 1 GiB", said, met=worst < GIBIBYTE_MIB)
    growth = worst / max(peaks["tenth"].values())
    what = f"peak memory, {bench.rows:,} / {bench.rows // 10:,} rows"
    bench.table.add(what, "<= 1.3x", f"{growth:.2f}x", met=growth <= 1.3)


def import_alone(path: Path) -> None:
    """Import one file in this process and print its peak memory and its child's."""
    Importer()(path)
    who = {"worker": resource.RUSAGE_SELF, "child": resource.RUSAGE_CHILDREN}
    print(json.dumps({name: resource.getrusage(one).ru_maxrss / 1024 for name, one in who.items()}))


def rollup(bench: Bench, importer: Importer) -> None:
    """Loading a version's daily costs by COPY against bulk_create of the same rows."""
    from django.db import transaction

    from billing.models import DailyCost, PeriodVersion
    from billing.services import rollups

    seconds = importer(bench.focus())
    version = PeriodVersion.objects.latest("pk")
    tables = list(rollups.daily_tables(version, ()))
    daily = [row for table in tables for row in table.to_pylist()]
    own = {"organisation_id": version.organisation_id, "version_id": version.pk}
    own["dataset"] = version.period.dataset
    real = rollups.daily_tables

    def by_copy() -> None:
        with transaction.atomic():
            rollups.write_daily_costs(version, rollups.Rules(None))
            transaction.set_rollback(True)

    def by_bulk_create() -> None:
        with transaction.atomic():
            DailyCost.objects.bulk_create(
                (DailyCost(**own, **row) for row in daily), batch_size=5_000
            )
            transaction.set_rollback(True)

    rollups.daily_tables = lambda *_: iter(tables)
    try:
        copied, created = beside(bench.rounds, by_copy, by_bulk_create)
    finally:
        rollups.daily_tables = real
    said = f"{created / copied:.1f}x ({len(daily):,} rows, {copied:.2f} s)"
    bench.table.add("bulk_create / COPY of the roll-up", ">= 10x", said, met=created >= 10 * copied)
    share = copied / seconds
    bench.table.add("COPY / import", "<= 5 %", f"{share:.1%}", met=share <= 0.05)


def questions(bench: Bench, importer: Importer) -> None:
    """Cost questions by dimensions of the roll-up, and one that reads the lake."""
    from billing.models import ChargeSlice
    from billing.selectors import costs_grouped
    from lake import store
    from projects.selectors import the_organisation

    importer(bench.focus())
    whole = {"basis": "effective", "start_on": date(2026, 5, 1), "end_on": date(2026, 6, 1)}

    def ask(*group_by: str) -> float:
        start = time.perf_counter()
        costs_grouped(
            the_organisation().pk, group_by=list(group_by), include_unallocated=True, **whole
        )
        return time.perf_counter() - start

    asked = (("day",), ("day", "service_name"), ("x_cost_class", "region_id"), ("sub_account_id",))
    seconds = sorted(ask(*one) for _ in range(10) for one in asked)
    p50, p95 = seconds[len(seconds) // 2], seconds[int(len(seconds) * 0.95)]
    said = f"p50 {p50 * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms"
    bench.table.add("questions on the roll-up", "p95 < 300 ms", said, met=p95 < DASHBOARD_S)

    paths = [
        str(store.resolve(path)) for path in ChargeSlice.objects.values_list("path", flat=True)
    ]

    def scan() -> None:
        with duckdb.connect() as engine:
            engine.execute("SELECT sum(effective_cost) FROM read_parquet(?)", [paths]).fetchall()

    ours, anchor = beside(5, lambda: ask("tag:project"), scan)
    said = f"{ours / anchor:.1f}x ({ours * 1000:.0f} ms; {anchor * 1000:.0f} ms)"
    what = "a question by tag on the lake / sum of one column"
    bench.table.add(what, "<= 10x", said, met=ours <= 10 * anchor)


def again(bench: Bench, importer: Importer) -> None:
    """Known bytes sent again against their first import, from the upload's first byte on."""
    from jobs.services import run_job

    source = f"again {os.getpid()}"
    path = bench.focus()

    def send() -> float:
        start = time.perf_counter()
        receipt = importer.receive(path, source=source)
        if receipt.job_id is not None:
            run_job(receipt.job_id)
        return time.perf_counter() - start

    first = send()
    second = statistics.median(send() for _ in range(bench.rounds))
    said = f"{second / first:.1%} ({second:.2f} s; {first:.1f} s)"
    bench.table.add("known bytes again / first import", "< 5 %", said, met=second < first * 0.05)


def exact(bench: Bench, importer: Importer) -> None:
    """Writing a bill with exact costs and rolling it up against the same with floats."""
    source = bench.focus()
    costs = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")
    keys = "ChargePeriodStart::DATE, ServiceName, SubAccountId, RegionId"
    sums = ", ".join(f"sum({name})" for name in costs)
    made = bench.folder / "exact.parquet"

    def write_and_roll_up(kind: str) -> None:
        typed = ", ".join(f"{name}::{kind} AS {name}" for name in costs)
        with duckdb.connect() as engine:
            engine.execute(
                f"COPY (SELECT * REPLACE ({typed}) FROM '{source}') TO '{made}' "
                "(FORMAT parquet, COMPRESSION zstd)"
            )
            engine.execute(f"SELECT {keys}, {sums} FROM '{made}' GROUP BY ALL").fetchall()

    ours, anchor = beside(
        bench.rounds,
        lambda: write_and_roll_up("DECIMAL(38, 18)"),
        lambda: write_and_roll_up("DOUBLE"),
    )
    said = f"{ours / anchor:.2f}x ({ours:.1f} s; {anchor:.1f} s)"
    bench.table.add("exact costs / floats", "<= 1.2x", said, met=ours <= 1.2 * anchor)


PARTS = {
    part.__name__: part for part in (parquet, gz, cur, memory, rollup, questions, again, exact)
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--import", dest="alone", type=Path, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.alone:
        import_alone(wanted.alone)
        return 0
    importer = Importer()
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(rows=wanted.rows, rounds=wanted.rounds, folder=Path(name))
        warm = bench.folder / "warm.parquet"
        bills.write_focus_parquet(warm, 1000)
        importer(warm)  # the first import pays for loading the engine
        print(f"{wanted.rows:,} rows, {CORES} cores, load {os.getloadavg()[0]:.1f}")
        for part in wanted.only:
            PARTS[part](bench, importer)
        print(f"load {os.getloadavg()[0]:.1f}")
    bench.table.show()
    return int(any(row[-1] != "met" for row in bench.table.rows))


if __name__ == "__main__":
    sys.exit(main())

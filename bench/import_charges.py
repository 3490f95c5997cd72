"""Measures the import of charges against gunzip and a plain copy, in the same run.

    python -m costwatch.embedded --data /tmp/bench -- python bench/import_charges.py --rows 200000

Needs a database (the command above starts a throw-away one). The bill is generated, so is the
comparison: `zcat | wc -l` of the same bytes, and DuckDB copying the same columns to Parquet as they
are. Trust the ratios of one run, not its seconds.
"""

import argparse
import gzip
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def generate(folder: Path, rows: int) -> Path:
    """A FOCUS 1.2 bill of this many rows; the same rows give the same bytes."""
    tool = Path(sys.executable).with_name("focus-toolkit")
    command = [tool, "generate", "--provider", "aws", "--focus-version", "1.2"]
    command += ["--rows", str(rows), "--seed", "7", "--out", folder]
    subprocess.run(command, check=True, capture_output=True)
    (path,) = folder.glob("*cost_and_usage*.csv")
    return path


def packed(path: Path) -> Path:
    target = path.with_suffix(".csv.gz")
    with path.open("rb") as source, gzip.open(target, "wb", 6) as out:
        shutil.copyfileobj(source, out, 2**20)
    return target


def timed(work: Callable[[], object], rounds: int) -> float:
    """The median of some rounds, in seconds."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def gunzip_and_count(path: Path) -> None:
    subprocess.run(f"zcat '{path}' | wc -l", shell=True, check=True, capture_output=True)


def plain_copy(path: Path, target: Path) -> None:
    """DuckDB's own way from this CSV to Parquet: all text, no check, no type, no class."""
    import duckdb

    with duckdb.connect() as engine:
        engine.execute(
            f"COPY (SELECT * FROM read_csv('{path}', all_varchar = true)) TO '{target}' "
            "(FORMAT parquet, COMPRESSION zstd)"
        )


class Importer:
    """Imports a file as a new delivery each time: received, parsed, classified, published."""

    def __init__(self) -> None:
        import django

        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "costwatch.settings")
        os.environ.setdefault("COSTWATCH_LOG_LEVEL", "WARNING")
        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        self.count = 0

    def __call__(self, path: Path) -> None:
        from billing.models import Delivery
        from billing.services import IncomingFile, NewDelivery, receive_files
        from jobs.services import run_job
        from projects.access import system_actor
        from projects.selectors import the_organisation

        self.count += 1
        receipt = receive_files(
            system_actor(the_organisation().pk, "bench"),
            NewDelivery(
                source_name=f"bench {os.getpid()} {self.count}",
                files=[IncomingFile(name=path.name, chunks=iter_file(path))],
            ),
        )
        run_job(receipt.job_id)
        state = Delivery.objects.get(pk=receipt.delivery_id).state
        if state != Delivery.State.PUBLISHED:
            raise SystemExit(f"the bill was not published: {state}")


def iter_file(path: Path):
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            yield chunk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    wanted = parser.parse_args()
    importer = Importer()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bill = generate(folder, wanted.rows)
        archive = packed(bill)
        importer(archive)  # the first import pays for loading the engine
        measured = {
            "zcat | wc -l": timed(lambda: gunzip_and_count(archive), wanted.rounds),
            "plain DuckDB copy of the CSV": timed(
                lambda: plain_copy(bill, folder / "copy.parquet"), wanted.rounds
            ),
            "import of the CSV": timed(lambda: importer(bill), wanted.rounds),
            "import of the CSV.gz": timed(lambda: importer(archive), wanted.rounds),
        }
        size_mib = bill.stat().st_size / 2**20
    show(measured, rows=wanted.rows, size_mib=size_mib)


def show(measured: dict[str, float], *, rows: int, size_mib: float) -> None:
    zcat, copy = measured["zcat | wc -l"], measured["plain DuckDB copy of the CSV"]
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{rows:,} rows, {size_mib:,.0f} MiB of CSV, {os.cpu_count()} cores")
    print(f"{'':<30} {'s':>7} {'rows/s':>10} {'x zcat':>7} {'x copy':>7}")
    for name, seconds in measured.items():
        rate, to_zcat, to_copy = rows / seconds, seconds / zcat, seconds / copy
        print(f"{name:<30} {seconds:>7.2f} {rate:>10,.0f} {to_zcat:>7.2f} {to_copy:>7.2f}")
    print(f"peak memory: worker {own:,.0f} MiB, largest child {child:,.0f} MiB")


if __name__ == "__main__":
    main()

"""How much slower is importing power than a plain COPY of the same rows, in the same run?

Run: python -m costwatch.embedded -- python bench/import_power.py [--devices 256] [--hours 1512]
"""

import argparse
import io
import json
import os
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "costwatch.settings")
os.environ.setdefault("COSTWATCH_INSECURE_HTTP", "1")

import django

START = datetime(2025, 9, 1, tzinfo=UTC)


def write_file(path: Path, *, devices: int, hours: int) -> int:
    """Hourly intervals of every device; returns the rows."""
    with path.open("w", encoding="utf-8") as file:
        file.write("start,end,device_uuid,energy_millijoule\n")
        for hour in range(hours):
            start = (START + timedelta(hours=hour)).isoformat()
            end = (START + timedelta(hours=hour + 1)).isoformat()
            for device in range(devices):
                energy = 2_200_000_000 + device * 1_000 + hour
                file.write(f"{start},{end},GPU-{device:05d},{energy}\n")
    return devices * hours


def plain_copy(path: Path) -> float:
    """Seconds that PostgreSQL takes to COPY the file's text into a table with the same key."""
    from django.db import connection

    body = io.StringIO(path.read_text(encoding="utf-8").partition("\n")[2])
    started = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute(
            'CREATE TABLE bench_copy (start timestamptz, "end" timestamptz, device text, '
            'energy bigint, PRIMARY KEY (device, start, "end"))'
        )
        with cursor.copy("COPY bench_copy FROM STDIN (FORMAT CSV)") as copy:
            while block := body.read(1 << 20):
                copy.write(block)
    taken_s = time.perf_counter() - started
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE bench_copy")
    return taken_s


def timed_import(path: Path) -> float:
    """Seconds from the file to closed hours and posted entries."""
    from carbon.services import import_power
    from projects.access import system_actor
    from projects.selectors import the_organisation

    actor = system_actor(the_organisation().pk, "bench")
    started = time.perf_counter()
    import_power(actor, site_name="bench", paths=[path], now=datetime.now(tz=UTC))
    return time.perf_counter() - started


def main() -> None:
    """Measure and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=256)
    parser.add_argument("--hours", type=int, default=1_512)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COSTWATCH_DATA_DIR"] = folder
        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        path = Path(folder) / "power.csv"
        rows = write_file(path, devices=options.devices, hours=options.hours)
        copy_s, first_s, again_s = plain_copy(path), timed_import(path), timed_import(path)
    document = {
        "rows": rows,
        "copy_s": round(copy_s, 3),
        "import_s": round(first_s, 3),
        "import_again_s": round(again_s, 3),
        "rows_per_s": round(rows / first_s),
        "ratio_to_copy": round(first_s / copy_s, 2),
    }
    print(json.dumps(document))


if __name__ == "__main__":
    main()

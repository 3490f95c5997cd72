"""Spark runs on the Java of the wheel, where the machine has none."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUM = """
import django; django.setup()
from decimal import Decimal
from lake.engine import open_engine
from lake.java import java_home
print(java_home())
with open_engine() as engine:
    table = engine.small_table(
        [{"a": Decimal("0.1")}, {"a": Decimal("1E-18")}], {"a": "decimal(38, 18)"}
    )
    print(engine.rows(table.agg(total=table.a.sum()))[0]["total"])
"""


def test_a_machine_without_java_sums_exactly(tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("bash", "sh", "dirname", "basename", "ps", "cat", "uname", "nice", "env", "sed"):
        for folder in ("/usr/bin", "/bin"):
            if Path(folder, name).exists() and not (programs / name).exists():
                (programs / name).symlink_to(Path(folder, name))
    environment = {
        **{name: value for name, value in os.environ.items() if name != "JAVA_HOME"},
        "PATH": str(programs),
        "DJANGO_SETTINGS_MODULE": "costwatch.settings",
        "COSTWATCH_DATA_DIR": str(tmp_path / "data"),
        "LAKE_ENGINE": "local[1]",
    }
    done = subprocess.run(
        [sys.executable, "-c", SUM],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    home, total = done.stdout.splitlines()[-2:]
    assert home == str(tmp_path / "data" / "spark-java")
    assert total == "0.100000000000000001"

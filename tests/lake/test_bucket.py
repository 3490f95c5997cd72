"""A lake in a bucket: checked on the way in and out, copies here may vanish, nothing half-there."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import UUID, uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake import blobs, files, places, remote, store
from lake.engine import open_engine
from lake.places import LakeError
from tests.s3_server import KEYS, REGION, S3Server, s3_server

__all__ = ["s3_server"]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def bucket(s3_server: S3Server, settings, tmp_path, monkeypatch) -> str:
    """The lake lies in a new bucket; this is machine one."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    name = f"lake-{uuid4()}"
    s3_server.bucket(name)
    settings.LAKE_URL = f"s3://{name}/costwatch/lake"
    settings.LAKE_S3_ENDPOINT_URL = s3_server.url
    settings.LAKE_S3_REGION = REGION
    settings.LAKE_CACHE_DIR = tmp_path / "machine-1"
    settings.LAKE_CACHE_MB = 64
    return name


def stored(values: list[str], version: UUID | None = None) -> store.StoredTable:
    table = pa.table({"a": values})
    return store.store(
        dataset="tests",
        partition={"part": "one"},
        version=version or uuid4(),
        write=lambda path: pq.write_table(table, path),
    )


def values_of(path: str) -> list[str]:
    with open_engine() as engine:
        return [row["a"] for row in engine.rows(engine.table([path]).order_by("a"))]


def objects(s3_server: S3Server, bucket: str) -> set[str]:
    found = s3_server.client().list_objects_v2(Bucket=bucket).get("Contents", [])
    return {item["Key"] for item in found}


def copies() -> set[str]:
    base = places.root()
    return {
        path.relative_to(base).as_posix()
        for path in base.rglob("*")
        if path.is_file() and path.name != places.CACHE_MARK
    }


def test_what_one_machine_stores_another_reads(bucket, settings, tmp_path):
    table = stored(["x", "y"])
    blob = blobs.receive([b"bytes"], max_bytes=10)

    settings.LAKE_CACHE_DIR = tmp_path / "machine-2"

    assert copies() == set()
    assert values_of(table.path) == ["x", "y"]
    assert [row["a"] for row in store.rows_of(table.path, columns=["a"])] == ["x", "y"]
    with places.scratch() as folder:
        assert blobs.held(blob.sha256, folder=folder).read_bytes() == b"bytes"
    assert copies() == {table.path, f"blobs/{blob.sha256[:2]}/{blob.sha256}"}


def test_a_file_is_in_the_bucket_under_the_prefix_before_it_is_told(bucket, s3_server):
    table = stored(["x"])

    assert objects(s3_server, bucket) == {f"costwatch/lake/{table.path}"}
    assert store.exists(table.path)


def test_a_missing_object_is_named(bucket, s3_server, settings, tmp_path):
    table = stored(["x"])
    s3_server.client().delete_object(Bucket=bucket, Key=f"costwatch/lake/{table.path}")
    settings.LAKE_CACHE_DIR = tmp_path / "machine-2"

    assert not store.exists(table.path)
    with pytest.raises(LakeError, match=f"{table.path} is missing from the lake"):
        values_of(table.path)
    assert copies() == set()


@pytest.mark.parametrize("content", [b"PAR1 but others", b"PAR1"])
def test_a_damaged_object_is_refused_and_not_kept(bucket, s3_server, settings, tmp_path, content):
    table = stored(["x"])
    key, client = f"costwatch/lake/{table.path}", s3_server.client()
    metadata = client.head_object(Bucket=bucket, Key=key)["Metadata"]
    client.put_object(Bucket=bucket, Key=key, Body=content, Metadata=metadata)
    settings.LAKE_CACHE_DIR = tmp_path / "machine-2"

    with pytest.raises(LakeError, match="damaged"):
        values_of(table.path)
    assert copies() == set()


def test_an_object_that_another_tool_copied_there_is_read(bucket, s3_server, settings, tmp_path):
    table = stored(["x"])
    key, client = f"costwatch/lake/{table.path}", s3_server.client()
    content = client.get_object(Bucket=bucket, Key=key)["Body"].read()
    client.put_object(Bucket=bucket, Key=key, Body=content)
    settings.LAKE_CACHE_DIR = tmp_path / "machine-2"

    assert values_of(table.path) == ["x"]


def test_a_refused_upload_leaves_nothing_that_could_be_referred_to(bucket, s3_server, settings):
    settings.LAKE_URL = f"s3://{bucket}-not-there/lake"

    with pytest.raises(LakeError, match=r"cannot write|missing"):
        stored(["x"])
    with pytest.raises(LakeError):
        blobs.receive([b"bytes"], max_bytes=10)
    assert copies() == set()


def test_a_server_that_does_not_answer_is_named(bucket, settings, monkeypatch):
    settings.LAKE_S3_ENDPOINT_URL = "http://127.0.0.1:9"
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")

    with pytest.raises(LakeError, match=r"cannot write s3://.*127\.0\.0\.1:9"):
        stored(["x"])


def test_a_large_file_travels_in_pieces(bucket, s3_server, settings, tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "PIECE_BYTES", 5 * 2**20)
    content = os.urandom(12 * 2**20)

    blob = blobs.receive([content], max_bytes=2**30)
    key = f"costwatch/lake/blobs/{blob.sha256[:2]}/{blob.sha256}"
    assert s3_server.client().head_object(Bucket=bucket, Key=key)["ETag"].endswith('-3"')
    settings.LAKE_CACHE_DIR = tmp_path / "machine-2"
    with places.scratch() as folder:
        assert blobs.held(blob.sha256, folder=folder).read_bytes() == content


KILLED = """
import time
import django; django.setup()
from lake import blobs, remote
remote.PIECE_BYTES = 5 * 2**20
md5 = remote._md5
def slow(content):
    print("piece", flush=True)
    time.sleep(0.5)
    return md5(content)
remote._md5 = slow
blobs.receive([bytes(20 * 2**20)], max_bytes=2**30)
print("stored", flush=True)
"""


def test_a_killed_upload_leaves_nothing_but_pieces_that_a_sweep_takes_back(
    bucket, s3_server, settings
):
    environment = {
        **os.environ,
        **KEYS,
        "DJANGO_SETTINGS_MODULE": "costwatch.settings",
        "LAKE_URL": settings.LAKE_URL,
        "LAKE_S3_ENDPOINT_URL": s3_server.url,
        "LAKE_S3_REGION": REGION,
        "LAKE_CACHE_DIR": str(settings.LAKE_CACHE_DIR),
    }
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    with child:
        for _piece in range(3):
            assert child.stdout is not None
            assert child.stdout.readline() == "piece\n"
        child.send_signal(signal.SIGKILL)

    client = s3_server.client()
    assert objects(s3_server, bucket) == set()
    assert client.list_multipart_uploads(Bucket=bucket).get("Uploads")
    assert blobs.sweep(keep=(), grace_s=0) == 0
    assert not client.list_multipart_uploads(Bucket=bucket).get("Uploads")
    assert places.sweep_scratch(grace_s=0) == 1
    assert copies() == set()


def test_removing_forgets_bucket_and_copy(bucket, s3_server):
    table, blob = stored(["x"]), blobs.receive([b"bytes"], max_bytes=10)

    store.remove(table.path)
    blobs.remove(blob.sha256)

    assert objects(s3_server, bucket) == set()
    assert copies() == set()
    assert not blobs.exists(blob.sha256)


def test_a_sweep_removes_only_what_nobody_refers_to(bucket, s3_server):
    kept, loose = stored(["x"]), stored(["y"])
    blob = blobs.receive([b"bytes"], max_bytes=10)

    assert store.sweep("tests", keep={kept.path}) == 0  # too young
    assert store.sweep("tests", keep={kept.path}, grace_s=0) == 1
    assert blobs.sweep(keep={blob.sha256}, grace_s=0) == 0

    assert store.exists(kept.path)
    assert not store.exists(loose.path)
    assert loose.path not in copies()


def test_bytes_that_are_there_are_not_sent_again(bucket, s3_server):
    first = blobs.receive([b"bytes"], max_bytes=10)
    key = f"costwatch/lake/blobs/{first.sha256[:2]}/{first.sha256}"
    before = s3_server.client().head_object(Bucket=bucket, Key=key)["LastModified"]
    time.sleep(1.1)

    assert blobs.receive([b"bytes"], max_bytes=10) == first
    assert s3_server.client().head_object(Bucket=bucket, Key=key)["LastModified"] == before


def test_the_longest_unwanted_copy_goes_first_and_one_in_use_stays(bucket, settings):
    settings.LAKE_CACHE_MB = 1
    old, wanted, used = (
        blobs.receive([bytes([number]) * 300_000], max_bytes=2**20).sha256 for number in range(3)
    )
    names = {one: blobs.path_of(one) for one in (old, wanted, used)}
    for age_s, one in ((300, used), (200, old), (100, wanted)):
        at = time.time() - age_s
        os.utime(names[one], (at, at))

    with places.scratch() as folder:
        held = blobs.held(used, folder=folder)
        os.utime(names[used], (0, 0))
        blobs.receive([b"n" * 300_000], max_bytes=2**20)

        assert not names[old].exists()
        assert names[used].exists()
        assert names[wanted].exists()
        assert held.read_bytes() == b"\x02" * 300_000
        with places.scratch() as other:
            assert blobs.held(old, folder=other).stat().st_size == 300_000  # fetched again


def test_an_engine_goes_on_reading_what_the_cache_gave_up(bucket, settings, monkeypatch):
    table = stored(["x"])

    with open_engine() as engine:
        found = engine.table([table.path])
        monkeypatch.setattr(files, "LOWEST_FRACTION", 0.0)
        (places.root() / table.path).unlink()
        assert engine.rows(found) == [{"a": "x"}]


def test_a_cache_folder_that_holds_something_else_is_refused(bucket, settings, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("mine")
    settings.LAKE_CACHE_DIR = tmp_path / "precious"

    with pytest.raises(LakeError, match="holds other files"):
        stored(["x"])


def test_a_cache_of_another_bucket_is_refused(bucket, settings):
    stored(["x"])
    settings.LAKE_URL = "s3://another/lake"

    with pytest.raises(LakeError, match="holds copies of"):
        places.root()


def test_a_bucket_without_a_name_is_refused(bucket, settings, tmp_path):
    settings.LAKE_URL, settings.LAKE_CACHE_DIR = "s3://", tmp_path / "empty"

    with pytest.raises(LakeError, match="name a bucket"):
        stored(["x"])

"""A stranger's CSV is parsed by a confined child, whole or not at all, the bad row named."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

from lake import store, text_files
from lake.store import rows_of
from lake.text_files import (
    CsvRequest,
    TextFileRefusedError,
    compression_of,
    read_csv,
    read_file,
)

REPOSITORY = Path(__file__).resolve().parents[2]


def parsed(folder: Path, content: bytes, **options) -> text_files.TextTable:
    source = folder / "source"
    source.write_bytes(content)
    request = CsvRequest(
        source=source,
        folder=folder,
        compression=options.pop("compression", "none"),
        max_unpacked_bytes=options.pop("max_unpacked_bytes", 2**24),
        json_columns=("Tags",),
        **options,
    )
    return read_csv(request)


def rows(table: text_files.TextTable) -> list[dict]:
    return pq.read_table(table.path).to_pylist()


def meanings(table: text_files.TextTable, column: str) -> list:
    """What the texts of a JSON column mean, row by row."""
    lookup = {row["text"]: row["value"] for row in pq.read_table(table.lookups[column]).to_pylist()}
    return [lookup.get(row[column]) for row in rows(table)]


def test_every_column_is_text_and_null_words_are_null(tmp_path):
    table = parsed(tmp_path, b'a,b,c\n007,NULL,"NULL"\n1e3,,"x\ny"\n')

    assert (table.columns, table.rows) == (("a", "b", "c"), 2)
    assert rows(table) == [
        {"a": "007", "b": None, "c": None},
        {"a": "1e3", "b": None, "c": "x\ny"},
    ]


def test_json_objects_become_maps_and_other_texts_are_kept_and_counted(tmp_path):
    content = b'a,Tags\n1,"{""k"": ""v"", ""n"": 2, ""on"": true}"\n2,{bad\n3,[1]\n4,\n'

    table = parsed(tmp_path, content)

    assert meanings(table, "Tags") == [
        [("k", "v"), ("n", "2"), ("on", "true")],
        [("x_unreadable", "{bad")],
        [("x_unreadable", "[1]")],
        None,
    ]
    assert table.bad_json == {"Tags": 2}


def test_plain_and_packed_content_have_the_same_fingerprint(tmp_path):
    content = b"a,b\n1,2\n"
    (tmp_path / "plain").mkdir()
    (tmp_path / "packed").mkdir()

    plain = parsed(tmp_path / "plain", content)
    packed = parsed(tmp_path / "packed", gzip.compress(content), compression="gzip")

    assert plain.unpacked_sha256 == packed.unpacked_sha256


def test_nothing_but_the_table_is_left_in_the_folder(tmp_path):
    parsed(tmp_path, gzip.compress(b"a,Tags\n1,{}\n"), compression="gzip")

    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "lookup-0.parquet",
        "source",
        "text.parquet",
    ]


def test_a_closing_quote_far_behind_does_not_swallow_rows(tmp_path):
    with pytest.raises(TextFileRefusedError) as refusal:
        parsed(tmp_path, b'a,b,c\n1,"abc,2\n3,"def",4\n4,5,6\n')

    assert refusal.value.row == 2


def test_unpacking_stops_one_piece_behind_the_limit(tmp_path):
    bomb = gzip.compress(b"a,b\n" + b"0" * 2**27)

    with pytest.raises(TextFileRefusedError) as refusal:
        parsed(tmp_path, bomb, compression="gzip", max_unpacked_bytes=2**20)

    assert refusal.value.code == "too_large"
    left = sum(path.stat().st_size for path in tmp_path.iterdir() if path.name != "source")
    assert left <= 3 * 2**20


def test_progress_is_told_while_a_long_file_is_read(tmp_path):
    (tmp_path / "source").write_bytes(b"a,b\n" + b"1,22222222222\n" * 3_000_000)
    told: list[int] = []

    read_csv(
        CsvRequest(
            source=tmp_path / "source",
            folder=tmp_path,
            compression="none",
            max_unpacked_bytes=2**30,
        ),
        on_bytes=told.append,
    )

    assert told
    assert told == sorted(told)


def test_columns_can_be_chosen_once_the_header_is_read(tmp_path):
    (tmp_path / "source").write_bytes(b"a,b,c\n1,2,3\n")
    seen: list[list[str]] = []

    def wanted(columns):
        seen.append(list(columns))
        return ("c", "a")

    table = read_file(
        CsvRequest(
            source=tmp_path / "source",
            folder=tmp_path,
            compression="none",
            max_unpacked_bytes=2**20,
        ),
        wanted=wanted,
    )

    assert seen == [["a", "b", "c"]]
    assert table.columns == ("a", "b", "c")
    assert rows(table) == [{"a": "1", "c": "3"}]


def test_a_header_that_cannot_be_read_is_refused_before_anybody_chooses(tmp_path):
    (tmp_path / "source").write_bytes(b"a,a\n1,2\n")
    request = CsvRequest(
        source=tmp_path / "source", folder=tmp_path, compression="none", max_unpacked_bytes=2**20
    )

    with pytest.raises(TextFileRefusedError) as refused:
        read_file(request, wanted=lambda _columns: pytest.fail("nothing to choose from"))

    assert (refused.value.code, refused.value.row) == ("header", 1)


def test_a_child_that_takes_too_long_is_ended(tmp_path):
    (tmp_path / "source").write_bytes(b"a,b\n1,2\n")
    request = CsvRequest(
        source=tmp_path / "source", folder=tmp_path, compression="none", max_unpacked_bytes=2**20
    )

    with pytest.raises(TextFileRefusedError) as refusal:
        read_csv(request, timeout_s=0.01)

    assert refusal.value.code == "limits"


CONFINED = """
import json, resource, socket
from lake.confinement import limit_resources, refuse_network
limit_resources(memory_bytes=2**31, cpu_s=30, file_bytes=2**20)
told = {"refuses": refuse_network()}
try:
    socket.socket()
    told["socket"] = "open"
except OSError as error:
    told["socket"] = type(error).__name__
try:
    bytearray(2**33)
    told["memory"] = "given"
except MemoryError:
    told["memory"] = "MemoryError"
told["core"] = resource.getrlimit(resource.RLIMIT_CORE)[1]
print(json.dumps(told))
"""


def test_the_child_has_no_network_and_bounded_memory():
    done = subprocess.run(
        [sys.executable, "-c", CONFINED], cwd=REPOSITORY, capture_output=True, check=True
    )

    told = json.loads(done.stdout)
    assert told == {
        "refuses": True,
        "socket": "PermissionError",
        "memory": "MemoryError",
        "core": 0,
    }


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("a.csv", b"a,b", "none"),
        ("a.csv.gz", b"\x1f\x8b", "gzip"),
        ("A.CSV", b"a,b", "none"),
        ("export", b"\x1f\x8b", "gzip"),
        ("export", b"a,b", "none"),
    ],
)
def test_packing_is_told_by_the_bytes(name, head, expected):
    assert compression_of(name, head) == expected


def test_rows_can_be_read_back_without_any_engine(settings, tmp_path):
    table = parsed(tmp_path, b"a,b\n1,2\n")
    stored = store.store(
        dataset="tests",
        partition={"part": "one"},
        version=uuid4(),
        write=lambda path: path.write_bytes(table.path.read_bytes()) and None,
    )

    assert list(rows_of(stored.path, columns=["b"])) == [{"b": "2"}]

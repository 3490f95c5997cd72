"""A stranger's Parquet is decoded once by a confined child; nested columns come out flat."""

import io
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake.engine import open_engine
from lake.places import scratch
from lake.text_files import ParseRequest, TextFileRefusedError, TextTable, read_file, read_header
from lake.text_tables import open_text_table


def parquet(table: pa.Table, **options) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def request_of(folder: Path, content: bytes, **options) -> ParseRequest:
    source = folder / "source"
    source.write_bytes(content)
    options.setdefault("max_unpacked_bytes", 2**30)
    return ParseRequest(source=source, folder=folder, compression="parquet", **options)


def read(folder: Path, content: bytes, **options) -> TextTable:
    return read_file(request_of(folder, content, **options))


def lines(content: bytes, **options) -> list[dict]:
    """The rows as reading sees them."""
    with scratch() as folder, open_engine() as engine:
        table = read(folder, content, **options)
        return engine.rows(open_text_table(engine, table).order_by("file_row_number"))


def refusal(folder: Path, content: bytes, **options) -> TextFileRefusedError:
    with pytest.raises(TextFileRefusedError) as refused:
        read(folder, content, **options)
    return refused.value


FLAT = pa.table(
    {
        "cost": pa.array([Decimal("1.10"), None], pa.decimal128(38, 18)),
        "rate": [0.1, 2.0],
        "name": ["x", ""],
        "tags": ['{"a": 1.10}', None],
    }
)


def test_a_flat_file_is_read_where_it_lies_with_its_types(tmp_path):
    content = parquet(FLAT)
    table = read(tmp_path, content, json_columns=("tags",))

    assert table.is_typed
    assert table.path.samefile(tmp_path / "source")
    assert (table.rows, table.columns) == (2, ("cost", "rate", "name", "tags"))
    assert dict(table.types) == {
        "cost": "DECIMAL(38,18)",
        "rate": "DOUBLE",
        "name": "VARCHAR",
        "tags": "VARCHAR",
    }
    assert table.map_columns == ("tags",)


def test_empty_texts_are_null_and_structures_are_maps_with_the_numbers_own_text():
    found = lines(parquet(FLAT), json_columns=("tags",))

    assert found[0]["tags"] == [("a", "1.10")]
    assert (found[1]["name"], found[1]["tags"], found[1]["cost"]) == (None, None, None)
    assert [row["file_row_number"] for row in found] == [0, 1]


def test_nested_columns_come_out_flat():
    label = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
    credit = pa.list_(pa.struct([("name", pa.string()), ("amount", pa.decimal128(10, 4))]))
    table = pa.table(
        {
            "service": pa.array([{"id": "6F81", "more": {"description": "Compute"}}]),
            "labels": pa.array([[{"key": "team", "value": "ml"}]], label),
            "credits": pa.array([[{"name": "CUD", "amount": Decimal("-1.1000")}]], credit),
            "tags": pa.array([[("a", "b")]], pa.map_(pa.string(), pa.string())),
            "codes": pa.array([[1, 2]]),
        }
    )

    (row,) = lines(parquet(table))

    assert row == {
        "service.id": "6F81",
        "service.more.description": "Compute",
        "labels": [("team", "ml")],
        "credits": [[("name", "CUD"), ("amount", "-1.1000")]],
        "tags": [("a", "b")],
        "codes": "[1,2]",
        "file_row_number": 0,
    }


def test_a_label_that_stands_twice_is_kept_as_unreadable():
    label = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
    twice = [{"key": "a", "value": "b"}, {"key": "a", "value": "c"}]

    (row,) = lines(parquet(pa.table({"labels": pa.array([twice], label)})))

    assert row["labels"][0][0] == "x_unreadable"


def test_the_columns_are_told_without_decoding(tmp_path):
    header = read_header(request_of(tmp_path, parquet(FLAT)))

    assert header.columns == ("cost", "rate", "name", "tags")
    assert header.types["cost"] == "DECIMAL(38,18)"


def test_wanted_columns_leave_the_others_out(tmp_path):
    table = read(tmp_path, parquet(FLAT), wanted_columns=("cost",))

    assert table.columns == ("cost", "rate", "name", "tags")
    assert set(table.types) == {"cost"}


def damaged() -> bytes:
    content = bytearray(parquet(pa.table({"a": [str(n) for n in range(10_000)]})))
    content[100:2000] = bytes(1900)
    return bytes(content)


def with_extension() -> bytes:
    kind = pa.json_() if hasattr(pa, "json_") else pa.uuid()
    plain = pa.array(['{"a":1}'], pa.string())
    return parquet(pa.table({"a": pa.ExtensionArray.from_storage(kind, plain)}))


BAD = {
    "cut short": (parquet(FLAT)[:-9], "truncated"),
    "only the ends": (b"PAR1PAR1", "truncated"),
    "a footer of 2 GiB": (b"PAR1" + bytes(64) + b"\xff\xff\xff\x7fPAR1", "damaged"),
    "an encrypted footer": (b"PARE" + bytes(64) + b"PARE", "encrypted"),
    "damaged pages": (damaged(), "damaged"),
    "no rows": (parquet(FLAT.slice(0, 0)), "empty"),
    "10,000 columns": (parquet(pa.table({f"c{n}": [1] for n in range(10_000)})), "header"),
    "an extension type": (with_extension(), "file_type"),
    "a giant text": (parquet(pa.table({"a": ["x" * 200_000]})), "field"),
    "a NUL": (parquet(pa.table({"a": ["x\0y"]})), "nul"),
    "two columns of one name": (
        parquet(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])),
        "header",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_parquet_that_is_no_bill_is_refused(tmp_path, case):
    content, code = BAD[case]

    assert refusal(tmp_path, content).code == code


def test_a_dictionary_bomb_is_refused_by_what_it_decodes_to(tmp_path):
    big = pa.DictionaryArray.from_arrays(pa.array([0] * 200_000, pa.int32()), ["x" * 100_000])
    bomb = parquet(pa.table({"a": big}))
    assert len(bomb) < 2**20

    assert refusal(tmp_path, bomb).code == "too_large"


def test_more_rows_than_could_be_stored_are_refused_by_the_footer_alone(tmp_path):
    many = parquet(pa.table({"a": pa.nulls(3_000_000, pa.int8())}))

    assert refusal(tmp_path, many, max_unpacked_bytes=2**20).code == "too_large"


def test_a_file_of_arrow_and_one_of_the_engine_say_the_same():
    """What other writers put around the same values changes nothing."""
    versions = [
        parquet(FLAT, compression=packing, version=version, use_dictionary=dictionary)
        for packing in ("zstd", "snappy", "none")
        for version in ("1.0", "2.6")
        for dictionary in (True, False)
    ]

    found = {json.dumps(lines(content), default=str) for content in versions}

    assert len(found) == 1

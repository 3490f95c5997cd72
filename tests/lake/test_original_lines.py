"""The line behind a charge is found again in the delivered file, however it was packed."""

import gzip
import io
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from lake.text_files import (
    ParseRequest,
    TextFileRefusedError,
    original_line,
    read_file,
    read_header,
)

ROWS = [{"a": str(n), "b": f'text "{n}"\nof two lines', "A": ""} for n in range(5000)]


def csv_text() -> bytes:
    quoted = [f'{row["a"]},"{row["b"].replace(chr(34), chr(34) * 2)}",\n' for row in ROWS]
    return ("a,b,A\n" + "".join(quoted)).encode()


def zipped(content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bill", content)
    return out.getvalue()


def parquet() -> bytes:
    out = io.BytesIO()
    table = pa.table({"a": [row["a"] for row in ROWS], "b": [row["b"] for row in ROWS]})
    pq.write_table(table.append_column("n", pa.array([None] * 5000, pa.int32())), out)
    return out.getvalue()


FILES = {
    "none": lambda: csv_text(),
    "gzip": lambda: gzip.compress(csv_text()),
    "zstd": lambda: zstandard.compress(csv_text()),
    "zip:0": lambda: zipped(csv_text()),
    "parquet": parquet,
    "zip:0 of Parquet": lambda: zipped(parquet()),
}


@pytest.fixture(params=FILES)
def request_of(request, tmp_path: Path) -> ParseRequest:
    (tmp_path / "source").write_bytes(FILES[request.param]())
    return ParseRequest(
        source=tmp_path / "source",
        folder=tmp_path,
        compression=request.param.split(" ")[0],
        max_unpacked_bytes=2**30,
    )


@pytest.mark.parametrize("row", [2, 3, 5001])
def test_a_line_is_found_by_its_row(request_of, row):
    line = original_line(request_of, row=row)

    assert (line["a"], line["b"]) == (ROWS[row - 2]["a"], ROWS[row - 2]["b"])
    assert set(line.values()) - {line["a"], line["b"]} == {None}


@pytest.mark.parametrize("row", [0, 1, 5002, 10**9])
def test_a_row_that_is_not_there_is_said(request_of, row):
    with pytest.raises(TextFileRefusedError) as refused:
        original_line(request_of, row=row)

    assert refused.value.code == "row"


def test_the_row_is_the_one_that_the_import_counted(request_of):
    table = read_file(request_of)

    line = original_line(request_of, row=table.rows + 1)

    assert pq.read_table(table.path).to_pylist()[-1]["a"] == line["a"]


def test_the_header_is_told_first(request_of):
    assert read_header(request_of).columns[:2] == ("a", "b")


def test_rows_are_written_where_asked_and_columns_left_out(tmp_path: Path):
    (tmp_path / "source").write_bytes(gzip.compress(csv_text()))

    table = read_file(
        ParseRequest(
            source=tmp_path / "source",
            folder=tmp_path,
            compression="gzip",
            max_unpacked_bytes=2**30,
            wanted_columns=("a",),
            number_rows=True,
        )
    )

    assert table.columns == ("a", "b", "A (2)")
    rows = pq.read_table(table.path).to_pylist()
    assert set(rows[0]) == {"a", "x_source_row"}
    assert all(int(row["a"]) + 2 == row["x_source_row"] for row in rows)

"""Uploads that must be refused, or taken as they are: each file is made here, with its answer."""

import base64
import gzip
import io
import pickle
import stat
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import zstandard

from tests.billing.builders import charge, costing, focus_csv

MIB = 2**20
GOOD = focus_csv([charge()])
HEADER, ROW = GOOD.splitlines(keepends=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """One upload: the file, the code and place of its refusal, the status where the door says no.

    A status of 202 means that the door takes it and its job refuses it.
    """

    make: Callable[[], bytes]
    code: str
    name: str = "bill.csv"
    row: int | None = None
    column: str = ""
    status: int = 202
    settings: Mapping[str, int] = field(default_factory=dict)


def bad_text(content: bytes, code: str, **more: object) -> Bad:
    return Bad(make=lambda: content, code=code, **more)


def cell(column: str, text: str) -> Bad:
    """A text that cannot be read, in row 3."""
    content = focus_csv([costing("1"), charge(**{column: text})])
    return Bad(make=lambda: content, code="unreadable", row=3, column=column)


def without(column: str) -> bytes:
    row = charge()
    del row[column]
    return focus_csv([row])


def zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=19, write_checksum=True).compress(content)


def zipped(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def linked() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        entry = zipfile.ZipInfo("bill.csv")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    return out.getvalue()


def overlapping() -> bytes:
    plain = zipped({"first.csv": GOOD, "other.csv": GOOD})
    second = plain.index(b"PK\x01\x02", plain.index(b"PK\x01\x02") + 4)
    return plain[: second + 42] + struct.pack("<I", 0) + plain[second + 46 :]


def encrypted_zip() -> bytes:
    plain = bytearray(zipped({"bill.csv": GOOD}))
    plain[6] |= 1
    plain[plain.index(b"PK\x01\x02") + 8] |= 1
    return bytes(plain)


def many_entries() -> bytes:
    """100,000 entries of a directory, each of no file."""
    entry = b"PK\x01\x02" + bytes(24) + struct.pack("<H", 1) + bytes(16) + b"x"
    directory = entry * 100_000
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, len(directory), 30, 0)
    return b"PK\x03\x04" + bytes(26) + directory + end


def workbook(**parts: bytes) -> bytes:
    return zipped({"[Content_Types].xml": b"<Types/>", "xl/workbook.xml": b"<workbook/>", **parts})


def parquet(table: pa.Table, **options: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def bill_parquet(**columns: pa.Array) -> bytes:
    """The usual charge as Parquet with typed money, some columns changed."""
    values: dict[str, pa.Array] = {}
    for name, text in charge().items():
        is_money = name.endswith("Cost")
        values[name] = (
            pa.array([Decimal(text)], pa.decimal128(38, 18)) if is_money else pa.array([text])
        )
    return parquet(pa.table({**values, **columns}))


def dictionary_bomb() -> bytes:
    big = pa.DictionaryArray.from_arrays(pa.array([0] * 200_000, pa.int32()), ["x" * 100_000])
    return parquet(pa.table({"Tags": big}))


class _Keys(pe.KmsClient):
    def __init__(self, _config: object) -> None:
        pe.KmsClient.__init__(self)

    def wrap_key(self, key_bytes: bytes, _name: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, _name: str) -> bytes:
        return base64.b64decode(wrapped_key)


def encrypted_parquet(*, plaintext_footer: bool) -> bytes:
    """Encrypted by keys that lie behind an address of our own network."""
    config = pe.KmsConnectionConfig(kms_instance_url="http://169.254.169.254/keys")
    settings = pe.EncryptionConfiguration(
        footer_key="footer", column_keys={"b": ["a"]}, plaintext_footer=plaintext_footer
    )
    factory = pe.CryptoFactory(lambda given: _Keys(given))
    out = io.BytesIO()
    table = pa.table({"a": ["x"]})
    properties = factory.file_encryption_properties(config, settings)
    with pq.ParquetWriter(out, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    return out.getvalue()


def with_extension() -> bytes:
    plain = pa.array(['{"a":1}'], pa.string())
    column = pa.ExtensionArray.from_storage(pa.json_(), plain)
    return bill_parquet(Tags=column)


def arrow_ipc() -> bytes:
    out = io.BytesIO()
    table = pa.table({"a": [1]})
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


PACKED = gzip.compress(GOOD, 6, mtime=0)
SMALL = {"MAX_UNPACKED_MB": 4}
BOMB = GOOD + b"0" * (64 * MIB)
PARQUET = {"name": "bill.parquet"}
ZIP = {"name": "bill.zip"}
TYPE = {"code": "file_type", "status": 415}

REFUSED: Mapping[str, Bad] = {
    "F01 no bytes": bad_text(b"", "empty"),
    "F02 header only": bad_text(HEADER, "empty"),
    "F03 unclosed quote": bad_text(GOOD + b'AWS,"AWS,\n' + ROW, "csv", row=3),
    "F04 short row": bad_text(GOOD + b"AWS,AWS\n", "ragged", row=3),
    "F04 long row": bad_text(GOOD + ROW.rstrip() + b",more\n", "ragged", row=3),
    "F05 NUL": bad_text(GOOD.replace(b"a charge", b"a \0 charge"), "nul", row=2),
    "F06 giant field": bad_text(GOOD.replace(b"a charge", b"x" * 140_000), "csv", row=2),
    "F06 giant last line": Bad(make=lambda: GOOD + b"x" * (40 * MIB), code="csv", row=3),
    "F07 UTF-16": bad_text(GOOD.decode().encode("utf-16"), "encoding", row=1, status=400),
    "F07 Latin-1": bad_text(
        GOOD.replace(b"a charge", "Gebühr".encode("latin-1")), "encoding", row=2
    ),
    "F08 decimal comma": cell("BilledCost", "1.234,56"),
    "F09 underscore": cell("BilledCost", "1_000"),
    "F10 two equal headers": bad_text(GOOD.replace(b"ListCost", b"BilledCost", 1), "header", row=1),
    "F11 missing column": bad_text(
        without("BilledCost"), "missing_column", row=1, column="BilledCost"
    ),
    "F12 currency": cell("BillingCurrency", "ZZZ"),
    "F13 no such day": cell("ChargePeriodStart", "2026-02-31T00:00:00Z"),
    "F13 ambiguous day": cell("ChargePeriodStart", "03/04/2026"),
    "F14 NaN": cell("BilledCost", "NaN"),
    "F14 inf": cell("BilledCost", "inf"),
    "F15 too many digits": cell("BilledCost", "123456789012345678901"),
    "F22 gz cut short": bad_text(PACKED[:-12], "truncated", name="bill.csv.gz"),
    "F23 wrong CRC": bad_text(
        PACKED[:-6] + bytes([PACKED[-6] ^ 1]) + PACKED[-5:], "damaged", name="bill.csv.gz"
    ),
    "F24 trailing junk": bad_text(PACKED + b"junk and more", "damaged", name="bill.csv.gz"),
    "F26 gzip bomb": Bad(
        make=lambda: gzip.compress(BOMB, 9), code="too_large", name="b.csv.gz", settings=SMALL
    ),
    "F27 gz in gz": Bad(
        make=lambda: gzip.compress(gzip.compress(BOMB, 9)), code="file_type", name="b.csv.gz"
    ),
    "F28 zstd bomb": Bad(
        make=lambda: zstd(BOMB), code="too_large", name="b.csv.zst", settings=SMALL
    ),
    "F29 climbing name": Bad(
        make=lambda: zipped({"../../x.csv": GOOD}), code="archive", status=400, **ZIP
    ),
    "F29 absolute name": Bad(
        make=lambda: zipped({"/x.csv": GOOD}), code="archive", status=400, **ZIP
    ),
    "F29 symlink": Bad(make=linked, code="archive", status=400, **ZIP),
    "F30 100k entries": Bad(make=many_entries, code="archive", status=400, **ZIP),
    "F31 overlapping entries": Bad(make=overlapping, code="archive", status=400, **ZIP),
    "F32 encrypted zip": Bad(make=encrypted_zip, code="encrypted", status=400, **ZIP),
    "F33 zip in zip": Bad(
        make=lambda: zipped({"inner.zip": zipped({"a.csv": GOOD})}),
        code="archive",
        status=400,
        **ZIP,
    ),
    "F34 workbook": Bad(make=workbook, name="bill.xlsx", **TYPE),
    "F35 workbook with entities": Bad(
        make=lambda: workbook(**{"xl/sheet.xml": b"<!DOCTYPE x [<!ENTITY a 'b'>]>"}),
        name="bill.xlsx",
        **TYPE,
    ),
    "F36 workbook with macros": Bad(make=workbook, name="bill.xlsm", **TYPE),
    "F37 workbook called zip": Bad(
        make=lambda: workbook(**{"xl/sharedStrings.xml": bytes(64 * MIB)}), **ZIP, **TYPE
    ),
    "F38 gzip called csv": Bad(make=lambda: PACKED, **TYPE),
    "F38 csv called gz": Bad(make=lambda: GOOD, name="bill.csv.gz", **TYPE),
    "F38 csv called parquet": Bad(make=lambda: GOOD, **PARQUET, **TYPE),
    "F38 Parquet called csv": Bad(make=bill_parquet, **TYPE),
    "F39 Parquet cut short": Bad(make=lambda: bill_parquet()[:-9], code="truncated", **PARQUET),
    "F40 only the ends": Bad(make=lambda: b"PAR1PAR1", code="truncated", **PARQUET),
    "F41 footer of 2 GiB": Bad(
        make=lambda: b"PAR1" + bytes(64) + b"\xff\xff\xff\x7fPAR1", code="damaged", **PARQUET
    ),
    "F42 dictionary bomb": Bad(
        make=dictionary_bomb, code="too_large", settings={"MAX_UNPACKED_MB": 1024}, **PARQUET
    ),
    "F43 10,000 columns": Bad(
        make=lambda: parquet(pa.table({f"c{n}": [1] for n in range(10_000)})),
        code="header",
        row=1,
        **PARQUET,
    ),
    "F44 extension type": Bad(make=with_extension, code="file_type", **PARQUET),
    "F45 encrypted columns": Bad(
        make=lambda: encrypted_parquet(plaintext_footer=True), code="encrypted", **PARQUET
    ),
    "F45 encrypted footer": Bad(
        make=lambda: encrypted_parquet(plaintext_footer=False), **PARQUET, **TYPE
    ),
    "F46 Arrow": Bad(make=arrow_ipc, name="bill", **TYPE),
    "F46 pickle": Bad(make=lambda: pickle.dumps([1]), name="bill", **TYPE),
    "F46 NumPy": Bad(make=lambda: b"\x93NUMPY\x01\x00", name="bill.npy", **TYPE),
    "F46 HTML": Bad(make=lambda: b"<!DOCTYPE html><html>", name="bill.csv", **TYPE),
}

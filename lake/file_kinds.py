"""What a file is by its first bytes, and whether its name says the same; nothing is unpacked."""

from collections.abc import Collection
from pathlib import Path
from typing import Final

from lake.places import LakeError

NONE: Final = "none"
GZIP: Final = "gzip"
ZSTD: Final = "zstd"
ZIP: Final = "zip"
PARQUET: Final = "parquet"
TEXTS: Final = (NONE, GZIP, ZSTD)  # a CSV, packed or not
EVERY: Final = (*TEXTS, ZIP, PARQUET)

_MAGIC = (
    (b"\x1f\x8b", GZIP),
    (b"PAR1", PARQUET),
    (b"PARE", "encrypted Parquet"),
    (b"PK\x03\x04", ZIP),
    (b"PK\x05\x06", ZIP),
    (b"\x28\xb5\x2f\xfd", ZSTD),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ", "xz"),
    (b"7z\xbc\xaf", "7z"),
    (b"Rar!", "rar"),
    (b"ARROW1", "Arrow"),
    (b"\x93NUMPY", "NumPy"),
    (b"\x80\x02", "pickle"),
    (b"\x80\x03", "pickle"),
    (b"\x80\x04", "pickle"),
    (b"\x80\x05", "pickle"),
    (b"%PDF", "PDF"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook"),
    (b"SQLite format 3", "SQLite"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".xlsb", ".ods")
_SUFFIXES = {
    NONE: (".csv", ".txt", ".tsv", ".dat"),
    GZIP: (".gz", ".gzip"),
    ZSTD: (".zst", ".zstd"),
    ZIP: (".zip",),
    PARQUET: (".parquet", ".pq"),
}
_OTHER_SUFFIXES = (
    *_WORKBOOKS,
    ".json",
    ".html",
    ".htm",
    ".pdf",
    ".pkl",
    ".pickle",
    ".npy",
    ".arrow",
    ".feather",
    ".orc",
    ".avro",
    ".bz2",
    ".xz",
    ".7z",
    ".rar",
)
_KNOWN = tuple(suffix for suffixes in _SUFFIXES.values() for suffix in suffixes)
_WORDS = {
    NONE: "CSV",
    GZIP: "CSV packed by gzip (.csv.gz)",
    ZSTD: "CSV packed by zstd (.csv.zst)",
    ZIP: "zip",
    PARQUET: "Parquet",
}


class TextFileRefusedError(LakeError):
    """The file cannot be read; `row` counts the header as row 1."""

    def __init__(
        self, code: str, message: str, *, row: int | None = None, column: str = ""
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.row, self.column = code, message, row, column


def compression_of(name: str, head: bytes, *, allowed: Collection[str] = TEXTS) -> str:
    """`none`, `gzip`, `zstd`, `zip` or `parquet`, by the bytes, when the name does not differ.

    Raises:
        TextFileRefusedError: the bytes are something else than the name says, or than is allowed.
    """
    kind = _kind_of(head)
    suffix = Path(name.lower()).suffix[:8]
    readable = ", ".join(_WORDS[one] for one in EVERY if one in allowed)
    if kind == "utf-16":
        raise TextFileRefusedError("encoding", "the file is UTF-16; save it as UTF-8", row=1)
    if suffix in _WORKBOOKS or kind == "an old Excel workbook":
        raise TextFileRefusedError(
            "file_type", f"workbooks are not read; save the sheet as CSV. Readable are {readable}"
        )
    if kind not in allowed:
        raise TextFileRefusedError("file_type", f"the file is {kind}; send {readable}")
    if suffix in _OTHER_SUFFIXES:
        raise TextFileRefusedError("file_type", f"the name ends in {suffix}; send {readable}")
    if suffix in _KNOWN and suffix not in _SUFFIXES[kind]:
        packing = _WORDS[kind] if kind == NONE else kind
        raise TextFileRefusedError(
            "file_type",
            f"the name ends in {suffix} but the bytes are {packing}; "
            f"name it {_SUFFIXES[kind][0]}, or export it again",
        )
    return kind


def _kind_of(head: bytes) -> str:
    kind = next((kind for magic, kind in _MAGIC if head.startswith(magic)), NONE)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:64].lower()
    if kind == NONE and text.startswith((b"<!doctype", b"<html", b"<?xml")):
        return "HTML or XML"
    return kind
